"""Finding a text by a few of its letters, as command palettes do. No Qt."""

from typing import Final

from kvdesk.folding import Folded, fold
from kvdesk.values import dataclass

_LETTER: Final = 1
_NEXT: Final = 10  # more for a letter right after the one before it
_WORD: Final = 8  # more for the first letter of a word


@dataclass(frozen=True, slots=True)
class Match:
    """How well a text matches, higher is better, and the places of the letters that were found in it."""

    score: int
    places: frozenset[int]


def match(wanted: str, text: str) -> Match | None:
    """Match every word of `wanted`, in any order: it is in `text`, or its letters begin words there or follow one
    another, in their order ("newc": New chat). None: no match.

    Compared as `folding` does. Nothing wanted matches everything.
    """
    score, places = 0, frozenset[int]()
    folded = Folded(text)
    for word in fold(wanted).split():
        found = _match_word(word, folded.text)
        if found is None:
            return None
        score += found.score
        places |= {at for place in found.places for at in range(*folded.original(place, place + 1))}
    return Match(score, places)


def _match_word(word: str, text: str) -> Match | None:
    """The best of all ways to find one word."""
    inside = _match_inside(word, text)
    across = _match_across(word, text)
    return max(filter(None, (inside, across)), key=lambda one: one.score, default=None)


def _match_inside(word: str, text: str) -> Match | None:
    """As it is, also in the midst of a word: "spector". Two letters alone are too few for that, but in Chinese."""
    at = text.find(word) if len(word) > 2 or not word.isascii() else -1
    if at < 0:
        return None
    return Match(_LETTER * len(word) + _NEXT * (len(word) - 1), frozenset(range(at, at + len(word))))


def _match_across(word: str, text: str) -> Match | None:
    """Letters that begin words, and those right after them."""
    before: list[tuple[int, tuple[int, ...]] | None] = [None] * len(text)
    for i, letter in enumerate(word):
        now: list[tuple[int, tuple[int, ...]] | None] = [None] * len(text)
        best: tuple[int, tuple[int, ...]] | None = (0, ()) if i == 0 else None  # of all that end before j
        for j, other in enumerate(text):
            left = before[j - 1] if i and j else None
            if left is not None and (best is None or left[0] > best[0]):
                best = left
            if other != letter:
                continue
            begins = j == 0 or not text[j - 1].isalnum()
            worth = _LETTER + (_WORD if begins else 0)
            ways = [(best[0] + worth, (*best[1], j))] if best is not None and begins else []
            if left is not None:
                ways.append((left[0] + _NEXT + worth, (*left[1], j)))
            now[j] = max(ways, key=lambda way: way[0], default=None)
        before = now
    ends = [end for end in before if end is not None]
    if not ends:
        return None
    score, places = max(ends, key=lambda end: end[0])
    return Match(score, frozenset(places))
