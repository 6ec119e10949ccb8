"""The operations of the rows of the timeline: all, all but decodes, or as groups that can be unfolded. Consecutive
decodes are one, and an operation by hand with the calls that compare the next token before and after it.

Pure. Operations are counted in as they come; a row costs 8 bytes, so that a million of them can be listed.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from kvdesk.cache.journal.packing import REQUEST, Entry
from kvdesk.protocol.operations import TO_COMPARE
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

DECODE: Final = "decode"
_ONE_LINE: Final = 34
"""Characters of a call and its reason that fit into one line of a narrow inspector."""
MOST_LINES: Final = 3


class Shown(StrEnum):
    """Which rows there are."""

    FOLDED = marked("Grouped")
    OTHERS = marked("Without decodes")
    ALL = marked("All")


@dataclass(frozen=True, slots=True)
class Row:
    """Operations `first` to `last` by number, `n` of them. `ms` and `n_cells` are sums.

    main    the one that stands for all: the last decode, or the operation by hand among the calls that compare
    lines   number of lines of its text
    opened  it is the first of a group that was unfolded; `inner`: it is one of the others
    """

    first: int
    last: int
    n: int
    ms: float
    n_cells: int
    main: int = 0
    lines: int = 1
    opened: bool = False
    inner: bool = False


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
        self._lines = array("b")  # of each operation's text
        self._hands: dict[int, int] = {}  # index of a group's first call that compares: of its operation by hand
        self._opened: set[int] = set()  # where groups begin that are unfolded
        self._inner: set[int] = set()  # the other operations of those
        self._start = 0  # where the last group begins
        self._run = ""  # of which the last operation was one: "decode", "probe", or ""
        self._previous = ""  # its conversation

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
            n = len(operation.name) + len(operation.reason)
            wraps = operation.reason and operation.name != REQUEST
            self._lines.append(min(MOST_LINES, 1 + n // _ONE_LINE) if wraps else 1)
            probes = operation.reason in (TO_COMPARE, tr(TO_COMPARE))
            decode = operation.name == DECODE and not probes
            if not decode:
                self._others.append(index)
            joins = self._joins(index, decode=decode, probes=probes, conversation=operation.conversation)
            if not joins:
                self._start = index
            if not joins or self._start in self._opened:
                self._folded.append(index)
            if joins and self._start in self._opened:
                self._inner.add(index)
            self._run = "decode" if decode else "probe" if probes or joins else ""
            self._previous = operation.conversation

    def _joins(self, index: int, *, decode: bool, probes: bool, conversation: str) -> bool:
        """Whether an operation belongs to the group before it. Calls that compare are before and after an operation
        by hand; those before the next one go with those after the last, if nothing else lies between.
        """
        if decode:
            return self._run == "decode" and conversation == self._previous
        if self._run != "probe":
            return False
        if probes:
            return True
        if self._start in self._hands:
            return False
        self._hands[self._start] = index
        return True

    def toggle(self, i: int) -> bool:
        """Unfold the group of row `i` of the folded ones, or fold it again. Whether it is one."""
        a = self._folded[i]
        if a in self._opened:
            b = next((k for k in range(i + 1, len(self._folded)) if self._folded[k] not in self._inner), None)
            end = len(self._folded) if b is None else b
            self._inner.difference_update(self._folded[i + 1 : end])
            self._opened.discard(a)
            del self._folded[i + 1 : end]
            return True
        end = self._folded[i + 1] if i + 1 < len(self._folded) else len(self._numbers)
        if end - a < 2 or a in self._inner:
            return False
        self._opened.add(a)
        self._inner.update(range(a + 1, end))
        self._folded[i + 1 : i + 1] = array("q", range(a + 1, end))
        return True

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
        main = b - 1
        if shown is Shown.FOLDED and b - a > 1 and self._hands.get(a, b) < b:
            main = self._hands[a]
        return Row(
            first=self._numbers[a],
            last=self._numbers[b - 1],
            n=b - a,
            ms=self._ms[b] - self._ms[a],
            n_cells=self._cells[b] - self._cells[a],
            main=self._numbers[main],
            lines=self._lines[main],
            opened=shown is Shown.FOLDED and a in self._opened,
            inner=shown is Shown.FOLDED and a in self._inner,
        )

    def row_of(self, shown: Shown, number: int) -> int:
        """The row that holds operation `number`, or the last one before it; -1 before the first."""
        index = bisect_right(self._numbers, number) - 1
        if shown is Shown.ALL:
            return index
        return bisect_right(self._folded if shown is Shown.FOLDED else self._others, index) - 1

    def step(self, number: int, by: int) -> int:
        """The operation `by` steps after `number`, within those there are; `number` itself without others."""
        if not self._numbers:
            return number
        here = bisect_left(self._numbers, number) if by < 0 else bisect_right(self._numbers, number) - 1
        return self._numbers[min(max(here + by, 0), len(self._numbers) - 1)]
