"""Where a text may be cut: between whole signs, as a user sees them (grapheme clusters, Unicode Standard Annex 29).

An emoji of several parts, a flag, a letter with its accents, a Korean syllable and an Indic conjunct are one sign each.
Titles, names and excerpts are cut here. Where Unicode's tables are not in Python, ranges stand for them: a sign is then
too long rather than too short.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal
from unicodedata import category, combining

_LONGEST: Final = 1_000
"""Characters before a place that are looked at for the beginning of its sign."""
_JOINER: Final = "\u200d"
_NON_JOINER: Final = "\u200c"
_PREPENDED: Final = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3\U0001193f\U00011941"
    "\U00011a3a\U00011a84-\U00011a89\U00011d46\U00011f02]"
)
_PICTURE: Final = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
    "\U0001fc00-\U0001fffd]"
)
_ATTACHED: Final = re.compile("[\u0e33\u0eb3\u200c\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
"""What continues a sign without being a mark: vowels, skin colours, the letters in a flag of a region."""
_LINKS: Final = frozenset(
    "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0c4d\u0ccd\u0d4d\u1039\u17d2\u1a60\u1b44\u1bab\ua9c0\uaaf6\U00010a3f\U00011133"
    "\U000113d0\U0001193e\U00011a47\U00011a99\U00011f42"
)
"""Signs that make one conjunct of the consonants around them."""
_VIRAMA: Final = 9  # the combining class; other viramas do so before a joiner

_Kind = Literal["other", "control", "mark", "joiner", "picture", "flag", "prepended", "L", "V", "T", "LV", "LVT"]
_FOLLOWING: Final[dict[_Kind, tuple[_Kind, ...]]] = {
    "L": ("L", "V", "LV", "LVT"),
    "LV": ("V", "T"),
    "V": ("V", "T"),
    "LVT": ("T",),
    "T": ("T",),
}
"""What continues a Korean syllable."""


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
    first = at
    while first > 0 and at - first < _LONGEST and not _begins(text, first):
        first -= 1
    found = first
    for place in _places(text, first):
        if place > at:
            break
        found = place
    return found


def _begins(text: str, at: int) -> bool:
    """Whether a sign begins there, whatever precedes it."""
    return _kind(text[at]) == "other" and category(text[at]) != "Lo" and _kind(text[at - 1]) != "prepended"


def _places(text: str, at: int) -> Iterator[int]:
    """The places between signs after `at`, which is one."""
    before = _kind(text[at])
    n_flags = int(before == "flag")
    is_picture = before == "picture"  # and marks
    block, links = _block(text[at]), False  # of the last consonant; the marks after it link it to the next one
    for place in range(at + 1, len(text)):
        character = text[place]
        kind = _kind(character)
        if not _continues(text, place, before, kind, n_flags, is_picture, links and block == _block(character)):
            yield place
        if kind == "mark":
            links = (links or character in _LINKS) and character != _NON_JOINER
        elif kind == "joiner":
            links = links or combining(text[place - 1]) == _VIRAMA
        else:
            block, links = _block(character), False
            is_picture = kind == "picture"
        n_flags = n_flags + 1 if kind == "flag" else 0
        before = kind


def _continues(text: str, at: int, before: _Kind, kind: _Kind, n_flags: int, is_picture: bool, is_linked: bool) -> bool:
    """Whether the character at this place belongs to the sign before it."""
    if "control" in (before, kind):
        return text[at - 1 : at + 1] == "\r\n"
    if kind in ("mark", "joiner") or before == "prepended" or kind in _FOLLOWING.get(before, ()):
        return True
    if kind == "picture":
        return before == "joiner" and is_picture
    if kind == "flag":
        return n_flags % 2 == 1
    return is_linked and category(text[at]) == "Lo"


def _block(character: str) -> int:
    """Scripts of India have blocks of 128 characters."""
    return ord(character) >> 7


@lru_cache(maxsize=1 << 12)
def _kind(character: str) -> _Kind:
    if " " <= character <= "~":
        return "other"
    if character == _JOINER:
        return "joiner"
    if _ATTACHED.match(character):
        return "mark"
    if _PREPENDED.match(character):
        return "prepended"
    if _PICTURE.match(character):
        return "picture"
    if "\U0001f1e6" <= character <= "\U0001f1ff":
        return "flag"
    general = category(character)
    if general[0] == "M":
        return "mark"
    if general in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return "control"
    return _korean(ord(character))


def _korean(code: int) -> _Kind:
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB:
        return "T"
    if 0xAC00 <= code <= 0xD7A3:
        return "LV" if (code - 0xAC00) % 28 == 0 else "LVT"
    return "other"
