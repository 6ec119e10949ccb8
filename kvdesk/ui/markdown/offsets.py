"""Offsets of the characters of a shown text in its Markdown source. No Qt.

Rendering Markdown leaves characters out and hardly ever adds one, so what is shown is read along the source: each
character is the next such one there, if it comes soon.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

_SOON: Final = 256  # characters: an address behind a link may lie between


_OBJECT: Final = "\ufffc"
_DELIMITERS: Final = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\n")
"""The line below the heads of a table."""


def source_offsets(source: str, shown: str, formulas: Sequence[str] = ()) -> list[int]:
    """For each character that is shown its offset in the source, never falling; one that is not there has the offset
    of what follows. `formulas`: the sources of those that are shown, each as one U+FFFC."""
    if source == shown:
        return list(range(len(shown)))
    found = []
    at = 0
    rest = iter(formulas)
    for character in shown:
        if character == "\n":
            found.append(min(at, len(source)))
            at = _after_line(source, at)
            continue
        formula = next(rest, "") if character == _OBJECT else ""
        next_at = source.find(formula or character, at, at + len(formula) + _SOON)
        if next_at < 0 and character == "\u00a0":
            next_at = source.find(" ", at, at + _SOON)
        found.append(next_at if next_at >= 0 else min(at, len(source)))
        if next_at >= 0:
            at = next_at + max(len(formula), 1)
    return found


def _after_line(source: str, at: int) -> int:
    """Where the next shown line begins, behind all that is shown of the one at `at`: below it, or in the next cell of
    its row of a table."""
    end = source.find("\n", at)
    if end < 0 or any(cell.strip() for cell in source[at:end].split("|")[1:]):
        return at
    row_of_heads = "|" in source[at:end] and _DELIMITERS.match(source, end + 1)
    return row_of_heads.end() if row_of_heads else end + 1


def to_source(offsets: Sequence[int], first: int, last: int) -> tuple[int, int]:
    """Characters `[first, last)` of what is shown, as characters of the source."""
    if first >= last or not offsets:
        return 0, 0
    last = min(last, len(offsets))
    return offsets[min(first, len(offsets) - 1)], offsets[last - 1] + 1


def to_shown(offsets: Sequence[int], first: int, last: int) -> tuple[int, int]:
    """Characters `[first, last)` of the source, as characters of what is shown; an empty range if nothing of them
    is."""
    return bisect_left(offsets, first), bisect_left(offsets, last)


def characters(text: str, units: int) -> int:
    """How many characters of a text the first `units` are that Qt counts."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))


def utf16(text: str) -> int:
    """How long a text is for Qt, which counts characters beyond U+FFFF twice."""
    return len(text) + sum(character > "\uffff" for character in text)
