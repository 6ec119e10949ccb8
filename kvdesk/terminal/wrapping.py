"""Lines that break between words, of a text that comes in pieces."""

import re
from typing import Final

from prompt_toolkit.utils import get_cwidth

_WIDE: Final = "\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U0001f300-\U0003ffff"
_PART: Final = re.compile(rf"\n|[{_WIDE}]|[^\s{_WIDE}]+|\s")
"""A line's end, one wide character (a line may break on either side), a word, one space."""


class Wrapping:
    """Owns the column where the next character goes. A word waits until it is known to be whole."""

    def __init__(self) -> None:
        self.column = 0
        self._word = ""

    def feed(self, text: str, width: int) -> str:
        """What can be written now, with line breaks, in `width` columns."""
        parts = _PART.findall(self._word + text)
        self._word = parts.pop() if parts and not parts[-1].isspace() and get_cwidth(parts[-1][-1]) < 2 else ""
        return "".join(self._placed(part, width) for part in parts)

    def end(self, width: int) -> str:
        """What still waited."""
        word, self._word = self._word, ""
        return self._placed(word, width) if word else ""

    def _placed(self, part: str, width: int) -> str:
        if part == "\n":
            self.column = 0
            return part
        n = get_cwidth(part)
        if self.column and self.column + n > width:
            if part.isspace():  # left out: the line breaks before the next word
                self.column += n
                return ""
            self.column = 0
            return "\n" + self._placed(part, width)
        self.column = self.column + n if n <= width else n % width
        return part
