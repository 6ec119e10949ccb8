"""Offsets of the characters of a shown text in its Markdown source. No Qt.

Rendering Markdown leaves characters out and hardly ever adds one, so what is shown is read along the source: each
character is the next such one there, if it comes soon.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

_SOON: Final = 256  # characters: an address behind a link may lie between


_OBJECT: Final = "\ufffc"


def source_offsets(source: str, shown: str, formulas: Sequence[str] = ()) -> list[int]:
    """For each character that is shown its offset in the source, never falling; one that is not there has the offset
    of what follows. `formulas`: the sources of those that are shown, each as one U+FFFC."""
    if source == shown:
        return list(range(len(shown)))
    found = []
    at = 0
    rest = iter(formulas)
    for character in shown:
        formula = next(rest, "") if character == _OBJECT else ""
        next_at = source.find(formula or character, at, at + len(formula) + _SOON)
        if next_at < 0 and character == "\u00a0":
            next_at = source.find(" ", at, at + _SOON)
        found.append(next_at if next_at >= 0 else min(at, len(source)))
        if next_at >= 0:
            at = next_at + max(len(formula), 1)
    return found


def to_source(offsets: Sequence[int], first: int, last: int) -> tuple[int, int]:
    """Characters `[first, last)` of what is shown, as characters of the source."""
    if first >= last or not offsets:
        return 0, 0
    last = min(last, len(offsets))
    return offsets[min(first, len(offsets) - 1)], offsets[last - 1] + 1


def to_shown(offsets: Sequence[int], first: int, last: int) -> tuple[int, int]:
    """Characters `[first, last)` of the source, as characters of what is shown; an empty range where nothing of them
    is."""
    return bisect_left(offsets, first), bisect_left(offsets, last)
