"""Whether an answer repeats itself, without Qt.

The rule: the end of the text is one and the same piece, `LEAST_TIMES` times or more, over `LEAST_CHARACTERS` or more;
of a long piece `LONG_TIMES` are enough.
The numbers of a list do not count ("3. I am sorry." repeats "2. I am sorry."). Where the same line over and over is
usual (code, tables, ruled lines), it must be far more often and far longer. Only the last `WINDOW` characters are
looked at, so that it costs the same however long the answer is.
"""

import re
from typing import Final

WINDOW: Final = 4000
"""Characters; a piece of up to a quarter of that is found."""
LEAST_TIMES: Final = 4
LONG_PIECE: Final = 200
"""Characters of a piece that is a loop the third time: nobody writes a paragraph three times in a row."""
LONG_TIMES: Final = 3
LEAST_CHARACTERS: Final = 200
"""About 64 tokens of English."""
WIDE_CHARACTERS: Final = 64
"""The same of Chinese, Japanese and Korean, of which a token has one."""
PATTERN_TIMES: Final = 16
PATTERN_CHARACTERS: Final = 1200
"""Of code, tables and ruled lines."""
_KEY: Final = 32
"""Characters at the end that are looked for: where they are before, a piece may end."""
_ORDINAL: Final = re.compile(r"^([ \t]*)\d+([.):])(?=\s)", re.MULTILINE)
_FENCE: Final = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_WORDS: Final = re.compile(r"[^\W\d_]")
_WIDE: Final = r"[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]"
"""Compiled when it is used: large ranges take 4 ms, for which the window would wait."""


def repeated(text: str) -> str:
    """The piece that the end of a text repeats, as it is there; "" if there is none."""
    tail = text[-WINDOW:].rstrip()
    plain = _ORDINAL.sub(r"\1\2", tail)
    piece = _period(plain, LEAST_TIMES, WIDE_CHARACTERS) or _period(plain, LONG_TIMES, LONG_TIMES * LONG_PIECE)
    if not piece:
        return ""
    is_wide = 2 * len(re.findall(_WIDE, piece)) >= len(piece.strip())
    times, characters = LEAST_TIMES, WIDE_CHARACTERS if is_wide else LEAST_CHARACTERS
    if _is_pattern(text, piece):
        times, characters = PATTERN_TIMES, PATTERN_CHARACTERS
    elif len(piece) >= LONG_PIECE:
        times = LONG_TIMES
    return _period(plain, times, characters)


def _period(text: str, times: int, characters: int) -> str:
    """The shortest piece that the end repeats so often over that many characters."""
    key = text[-_KEY:]
    end = len(text)
    while key and (at := text.rfind(key, 0, end - 1)) >= 0:
        end = at + len(key)
        length = len(text) - end
        covered = max(times * length, characters)
        if covered > len(text):
            return ""
        if text[-covered + length :] == text[-covered:-length]:
            return text[-length:]
    return ""


def _is_pattern(text: str, piece: str) -> bool:
    """Whether it is usual that such a piece is repeated: in a block of code, of a table, or without a word.

    Marks that are no ruled line ("！！！！") are none of these.
    """
    if len(_FENCE.findall(text)) % 2:
        return True
    lines = [line.strip() for line in piece.splitlines() if line.strip()]
    if lines and all(line.startswith("|") or line.endswith("|") for line in lines):
        return True
    return not _WORDS.search(piece) and not set(piece) <= set("!！?？。，, \n")
