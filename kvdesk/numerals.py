"""How a number that a user typed is read: in one way, whatever the language of the system.

A point and a comma both separate decimals, digits of every script count, and so do the spaces and marks with which a
language groups thousands. Fields, and texts that hold numbers, all ask here.
"""

import re
from typing import Final
from unicodedata import decimal

_MINUS: Final = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
_PLUS: Final = "+\uff0b"
_DECIMAL: Final = (
    ".,\uff0e\uff0c\u3002\u066b\u060c"  # also as keyboards of Arabic, Persian, Chinese and Japanese type them
)
_GROUPS: Final = "'_ \u2019\u066c\u2e41\u12c8\u00a0\u2007\u2009\u202f"  # these never begin decimals
_UNSEEN: Final = dict.fromkeys(map(ord, "\u061c\u200e\u200f\u2066\u2067\u2068\u2069"))  # they set the direction
_LONGEST: Final = 100
_PARTS: Final = re.compile(rf"[0-9]+|[{re.escape(_DECIMAL + _GROUPS)}]")


def read_real(text: str) -> float | None:
    """The number; None if it is none. A single point or comma separates decimals: "1,234" is a little more than one."""
    found = _split(text, groups=False)
    return None if found is None else float(f"{found[0]}{found[1] or 0}.{found[2] or 0}")


def read_whole(text: str) -> int | None:
    """The number; None if it is none, or has decimals. Points and commas group thousands: "1,234" is above 1000."""
    found = _split(text, groups=True)
    return None if found is None or found[2] else int(f"{found[0]}{found[1]}")


def _split(text: str, *, groups: bool) -> tuple[str, str, str] | None:
    """Sign, digits before and digits after the separator. `groups`: a single point or comma groups thousands."""
    if len(text) > _LONGEST:
        return None
    text = _ascii_digits(text.translate(_UNSEEN).strip())
    sign = "-" if text[:1] in tuple(_MINUS) else ""
    if text[:1] in tuple(_MINUS + _PLUS):
        text = text[1:].lstrip()
    parts = _PARTS.findall(text)
    if "".join(parts) != text or not any(part.isdigit() for part in parts):
        return None
    at = _separator(parts, groups=groups)
    whole, rest = parts[:at], parts[at + 1 :]
    if any(not part.isdigit() for part in rest) or not _are_grouped(whole):
        return None
    return sign, "".join(part for part in whole if part.isdigit()), "".join(rest)


def _separator(parts: list[str], *, groups: bool) -> int:
    """Where decimals begin; after the end if the number has none."""
    marks = [n for n, part in enumerate(parts) if not part.isdigit()]
    if not marks or parts[marks[-1]] not in _DECIMAL:
        return len(parts)
    before = {parts[n] for n in marks[:-1]}
    if parts[marks[-1]] in before:  # as in 1,234,567
        return len(parts)
    return len(parts) if groups and not before and _are_grouped(parts) else marks[-1]


def _are_grouped(parts: list[str]) -> bool:
    """Digits alone, or in groups with one mark between them. A mark that may be a separator groups by threes, as in
    1,234,567, or by twos before the last three, as in 12,34,567.
    """
    if len(parts) < 2:
        return all(part.isdigit() for part in parts)
    digits, marks = parts[::2], parts[1::2]
    in_turn = len(parts) % 2 == 1 and all(part.isdigit() for part in digits) and len(set(marks)) == 1
    if not in_turn or marks[0].isdigit():
        return False
    if marks[0] in _GROUPS:
        return True
    first, *between, last = (len(part) for part in digits)
    return first <= 3 and last == 3 and not digits[0].startswith("0") and set(between) in (set(), {2}, {3})


def _ascii_digits(text: str) -> str:
    """Digits of every script as those of ASCII."""
    return "".join(str(decimal(char)) if char.isdecimal() else char for char in text)
