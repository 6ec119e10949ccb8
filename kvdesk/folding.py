"""How two texts are compared when a user looks for something: the one place that says what does not count.

Case, accents, whether they are composed or not, compatibility forms (full width, ligatures), kinds of apostrophes,
quotes and dashes, and characters that nobody sees. Marks that make another letter stay: Japanese voicing, vowels and
tones of Indic and Thai. Search index, titles, highlighting and filters all ask here.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from unicodedata import category, normalize

_SAME: Final = str.maketrans(
    dict.fromkeys("‘’‚‛ʼʹ′´`＇", "'")
    | dict.fromkeys("“”„‟″«»＂", '"')
    | dict.fromkeys("‐‑‒–—―−", "-")
    | {"ı": "i"}
    | {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe"}  # strokes are part of the letter
)
_DROPPED: Final = re.compile(
    "[\u00ad\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff"  # nobody sees them
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"  # accents
    "\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670]"
)


def fold(text: str) -> str:
    """What is compared: equal for texts that a user takes for the same."""
    if text.isascii():
        return text.lower().replace("`", "'")
    plain = normalize("NFKD", normalize("NFKD", text.translate(_SAME)).casefold()).translate(_SAME)
    return normalize("NFC", _DROPPED.sub("", plain))


def fold_words(words: Sequence[str]) -> tuple[str, ...]:
    """Words to look for, folded; those of which nothing is left are none."""
    return tuple(folded for word in words if (folded := fold(word).strip()))


class Folded:
    """A folded text that knows where each of its characters is in the original."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._originals: list[int] | None = None  # ascending starts of what was folded as one; None: one to one
        self._starts: list[int] = []
        if text.isascii():
            self.text = fold(text)
            return
        self._originals = [at for at, character in enumerate(text) if at == 0 or not _joins(character)]
        parts = []
        n_before = 0
        for first, last in zip(self._originals, [*self._originals[1:], len(text)], strict=True):
            part = _fold_cluster(text[first:last])
            self._starts.append(n_before)
            parts.append(part)
            n_before += len(part)
        self.text = "".join(parts)

    def original(self, first: int, last: int) -> tuple[int, int]:
        """The range `[first, last)` of the original that became this range of the folded text, which is not empty."""
        if self._originals is None:
            return first, last
        begin = bisect_right(self._starts, first) - 1
        end = bisect_right(self._starts, last - 1)
        return self._originals[begin], self._originals[end] if end < len(self._originals) else self._length


def places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where the words are: ranges `[first, last)` of characters of `text`, ascending, none within another."""
    wanted = [re.escape(word) for word in sorted(fold_words(words), key=len, reverse=True)]
    if not wanted:
        return []
    folded = Folded(text)
    found: list[tuple[int, int]] = []
    for match in re.finditer("|".join(wanted), folded.text):
        first, last = folded.original(*match.span())
        if found and first < found[-1][1]:  # both in one sign, such as a ligature
            first, last = found.pop()[0], max(last, first)
        found.append((first, last))
    return found


def holds_all(texts: Sequence[str], words: Sequence[str]) -> bool:
    """Whether every word is in one of the texts."""
    folded = [fold(text) for text in texts]
    return all(any(word in text for text in folded) for word in fold_words(words))


@lru_cache(maxsize=8_192)
def _fold_cluster(cluster: str) -> str:
    return fold(cluster)


@lru_cache(maxsize=8_192)
def _joins(character: str) -> bool:
    """Whether it belongs to the sign before it: accents, vowel signs, later parts of Hangul, what is dropped."""
    begin = normalize("NFKD", character)[0]
    return category(begin)[0] == "M" or "\u1160" <= begin <= "\u11ff" or _DROPPED.match(begin) is not None
