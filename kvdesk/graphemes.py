"""Where a text may be cut: between whole signs, as a user sees them (grapheme clusters, Unicode Standard Annex 29).

An emoji of several parts, a flag, a letter with its accents, a Korean syllable and an Indic conjunct are one sign each.
Titles, names and excerpts are cut here.
"""

from typing import Final
from unicodedata import combining

_JOINER: Final = "\u200d"
_VIRAMA: Final = 9  # the combining class


def cut(text: str, most: int, end: str = "…") -> str:
    """The text, or its beginning of whole signs with `end`, together at most `most` characters. Of a first sign that is
    longer than that a part remains.
    """
    if len(text) <= most:
        return text
    at = max(0, most - len(end))
    return text[: boundary(text, at) or at] + end


def boundary(text: str, at: int) -> int:
    """The last place up to `at` between two signs, or an end of the text."""
    if not 0 < at < len(text):
        return min(max(at, 0), len(text))
    from wcwidth import grapheme_boundary_before  # its tables are read when a text is too long, not at every start

    found = grapheme_boundary_before(text, at + 1)
    while found > 1 and text[found - 1] == _JOINER and combining(text[found - 2]) == _VIRAMA:
        found = grapheme_boundary_before(text, found)  # conjuncts as those of Sinhala, which the annex leaves apart
    return found
