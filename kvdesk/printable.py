"""Texts of other programs in a terminal or a line of a list."""


def printable(text: str) -> str:
    """The text on one line, without what moves the cursor of a terminal: such characters are shown as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return " " if character.isspace() and ord(character) > ord(" ") else character.encode("unicode_escape").decode()
