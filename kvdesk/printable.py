"""Texts of other programs in a terminal or a line of a list."""

from typing import Final

PICTURES: Final = {
    **{n: 0x2400 + n for n in range(32) if chr(n) not in "\n\t"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}
"""For `str.translate`, of a text of several lines: control characters become pictures of them."""


def printable(text: str) -> str:
    """The text on one line, without what moves the cursor of a terminal: such characters are shown as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return " " if character.isspace() and ord(character) > ord(" ") else character.encode("unicode_escape").decode()
