"""The operations of the rows of the timeline: all, all but decodes, or consecutive decodes as one row.

Pure. Operations are counted in as they come; a row costs 8 bytes, so that a million of them can be listed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvdesk.cache.packing import Entry
from kvdesk.translation import marked

DECODE: Final = "decode"


class Shown(StrEnum):
    """Which rows there are."""

    FOLDED = marked("Decodes grouped")
    OTHERS = marked("Without decodes")
    ALL = marked("All")


@dataclass(frozen=True, slots=True)
class Row:
    """Operations `first` to `last` by number, `n` of them. `ms` and `n_cells` are sums."""

    first: int
    last: int
    n: int
    ms: float
    n_cells: int


class TimelineRows:
    """Grows at the end only; `clear` for another recording."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._numbers = array("q")
        self._ms = array("d", [0.0])  # running sums
        self._cells = array("q", [0])
        self._folded = array("q")  # indices into `_numbers`: where each row begins
        self._others = array("q")
        self._previous = ""  # conversation of the last operation, if that was a decode
        self._in_run = False

    @property
    def first(self) -> int:
        return self._numbers[0] if self._numbers else 0

    @property
    def last(self) -> int:
        return self._numbers[-1] if self._numbers else 0

    def add(self, entries: Iterable[Entry]) -> None:
        """Operations after the last one, ascending."""
        for entry in entries:
            operation = entry.operation
            index = len(self._numbers)
            self._numbers.append(operation.number)
            self._ms.append(self._ms[-1] + operation.ms)
            self._cells.append(self._cells[-1] + entry.n_cells)
            decode = operation.name == DECODE
            if not decode:
                self._others.append(index)
            if not (decode and self._in_run and operation.conversation == self._previous):
                self._folded.append(index)
            self._in_run, self._previous = decode, operation.conversation

    def count(self, shown: Shown) -> int:
        if shown is Shown.ALL:
            return len(self._numbers)
        return len(self._folded if shown is Shown.FOLDED else self._others)

    def row(self, shown: Shown, i: int) -> Row:
        """The i-th row from the oldest on."""
        if shown is Shown.FOLDED:
            a = self._folded[i]
            b = self._folded[i + 1] if i + 1 < len(self._folded) else len(self._numbers)
        else:
            a = i if shown is Shown.ALL else self._others[i]
            b = a + 1
        return Row(
            self._numbers[a], self._numbers[b - 1], b - a, self._ms[b] - self._ms[a], self._cells[b] - self._cells[a]
        )

    def row_of(self, shown: Shown, number: int) -> int:
        """The row that holds operation `number`, or the last one before it; -1 before the first."""
        index = bisect_right(self._numbers, number) - 1
        if shown is Shown.ALL:
            return index
        return bisect_right(self._folded if shown is Shown.FOLDED else self._others, index) - 1

    def step(self, number: int, by: int) -> int:
        """The operation `by` steps after `number`, within those there are; `number` itself where there are none."""
        if not self._numbers:
            return number
        here = bisect_left(self._numbers, number) if by < 0 else bisect_right(self._numbers, number) - 1
        return self._numbers[min(max(here + by, 0), len(self._numbers) - 1)]
