"""Finding a text by a few of its letters, as command palettes do. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvdesk.folding import Folded, fold

_LETTER: Final = 1
_NEXT: Final = 10  # more for a letter right after the one before it
_WORD: Final = 8  # more for the first letter of a word
_LEAST: Final = 5  # per letter; less is a scatter of letters that nobody meant


@dataclass(frozen=True, slots=True)
class Match:
    """How well a text matches, higher is better, and the places of the letters that were found in it."""

    score: int
    places: frozenset[int]


def match(wanted: str, text: str) -> Match | None:
    """Match every word of `wanted`, in any order: its letters stand in `text` in their order. None: no match.

    Compared as `folding` does. Nothing wanted matches everything.
    """
    score, places = 0, frozenset[int]()
    folded = Folded(text)
    for word in fold(wanted).split():
        found = _match_word(word, folded.text)
        if found is None or found.score < _LEAST * len(word):
            return None
        score += found.score
        places |= {at for place in found.places for at in range(*folded.original(place, place + 1))}
    return Match(score, places)


def _match_word(word: str, text: str) -> Match | None:
    """The best of all ways to find the letters of one word in their order."""
    before: list[tuple[int, tuple[int, ...]] | None] = [None] * len(text)
    for i, letter in enumerate(word):
        now: list[tuple[int, tuple[int, ...]] | None] = [None] * len(text)
        best: tuple[int, tuple[int, ...]] | None = (0, ()) if i == 0 else None  # of all that end before j
        for j, other in enumerate(text):
            if j and i and (left := before[j - 1]) is not None and (best is None or left[0] > best[0]):
                best = left
            if other != letter or best is None:
                continue
            worth = _LETTER + (_WORD if j == 0 or not text[j - 1].isalnum() else 0)
            now[j] = (best[0] + worth, (*best[1], j))
            if j and i and (left := before[j - 1]) is not None and left[0] + _NEXT > best[0]:
                now[j] = (left[0] + _NEXT + worth, (*left[1], j))
        before = now
    ends = [end for end in before if end is not None]
    if not ends:
        return None
    score, places = max(ends, key=lambda end: end[0])
    return Match(score, frozenset(places))
