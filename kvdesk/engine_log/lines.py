"""The lines of a log, without what wraps them.

Owns decoding and the limits that keep memory bounded. Must never know what a line means;
of which lines say nothing `sentences` has the patterns.
"""

import codecs
import datetime as dt
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from kvdesk.engine_log.sentences import IDLE_OTHER, IDLE_SLOT
from kvdesk.engine_log.wrapping import LEVELS, Unwrapper
from kvdesk.values import dataclass

LONGEST: Final = 4 << 20
"""Characters of a line that are kept: a dump of 131,072 cells in one JSON line has 700,000."""
CHUNK: Final = 1 << 20
"""Bytes read at once."""

_ENCODED: Final = 64
"""Bytes of a log that show how it is encoded."""
_NUL: Final = "\0"
"""Fills a file that was cut while its program went on writing; says nothing."""
_RUNS: Final = re.compile(
    rf"^((?:[.M0-9][.M0-9 *]{{40,}}\n){{2,}}|(?:{IDLE_SLOT}){{2,}}|(?:{IDLE_OTHER}){{2,}})", re.MULTILINE
)
"""Rows of a map, of which there may be hundreds a token, and lines that say nothing: they come as one."""
_IN_RUNS: Final = " D "
"""Is in a piece of a log that has any: at level 5."""
_LATEST: Final = 1e10  # seconds
_CLOCK: Final = re.compile(r"(\d{1,8})\.(\d\d)\.(\d{3})\.(\d{3})")
_PLAIN: Final = re.compile(r"(\d+\.\d\d\.\d{3}\.\d{3}) ([DIWE]) ")
"""What llama-server itself writes before a message: taken off in a fifth of the time."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One message. `text`: without what wraps it; several lines where a JSON line holds several, and for a run of
    rows of a map, or of lines that say nothing.

    number  of the line in the log, from 1
    clock   the time as it is printed, "" for none
    level   1 (errors) to 5 (debug), 0 if the log does not show it
    source  which of several programs wrote it, by what wraps it: the port of a router's child, a container, a process
    """

    number: int
    text: str
    clock: str = ""
    level: int = 0
    source: str = ""


def read_lines(chunks: Iterable[bytes]) -> Iterator[LogLine]:
    """The messages of a log that comes in pieces, cut anywhere; with an empty piece another file begins. UTF-8 or
    UTF-16, also where its mark was cut off; other bytes are �.
    """
    unwrapper, number = Unwrapper(), 0
    for number, text in _split(_decoded(chunks)):
        plain = _PLAIN.match(text)
        if plain and "\x1b" not in text and "\r" not in text:
            clock, letter = plain.groups()
            yield LogLine(number, text[plain.end() :], clock, LEVELS[letter])
        else:
            yield from (LogLine(number, *message) for message in unwrapper.messages(text))
    yield from (LogLine(number, *message) for message in unwrapper.close())


def seconds_of(clock: str) -> float:
    """What a line's time says: seconds since the start of its program, or Unix time; 0.0 if that is unknown."""
    if plain := _CLOCK.fullmatch(clock):
        minutes, seconds, ms, us = map(int, plain.groups())
        return 60.0 * minutes + seconds + ms / 1e3 + us / 1e6
    try:
        found = float(clock[:-2]) if clock.endswith(" s") else dt.datetime.fromisoformat(clock).timestamp()
    except (ValueError, OverflowError, OSError):  # the last two for a year that no clock shows
        return 0.0
    return found if 0.0 < found < _LATEST else 0.0


def _decoded(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder: codecs.IncrementalDecoder | None = None
    begin, is_open = b"", False
    for chunk in chain(chunks, (b"",)):
        data = chunk
        if decoder is None:
            begin += chunk
            if not begin or (chunk and len(begin) < _ENCODED and b"\n" not in begin):
                continue
            decoder, data, begin = codecs.getincrementaldecoder(_encoding(begin))("replace"), begin, b""
        text = decoder.decode(data, not chunk).replace(_NUL, "")
        is_open = not text.endswith("\n") if text else is_open
        if not chunk:
            text += "\n" if is_open else ""
            decoder, is_open = None, False
        yield text


def _encoding(begin: bytes) -> str:
    """Of a log that begins with these bytes: an ASCII sign of UTF-16 has a NUL on one side."""
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = begin[::2].count(0), begin[1::2].count(0)
    if 4 * max(even, odd) > len(begin) > 8 * min(even, odd):
        return "utf-16-le" if odd > even else "utf-16-be"
    return "utf-8-sig"


def _split(pieces: Iterable[str]) -> Iterator[tuple[int, str]]:
    rest, number = "", 1
    for piece in pieces:
        if len(rest) == LONGEST:  # what goes on behind it is left out
            piece = piece[piece.find("\n") :] if "\n" in piece else ""
        text = rest + piece
        end = text.rfind("\n") + 1
        rest = text[end:][:LONGEST]
        whole = text[:end]
        for i, part in enumerate(_RUNS.split(whole) if _IN_RUNS in whole else (whole,)):
            if i % 2:
                yield number, part.removesuffix("\n")
                number += part.count("\n")
            elif part:
                for line in part.removesuffix("\n").split("\n"):
                    yield number, line[:LONGEST]
                    number += 1
    if rest:
        yield number, rest
