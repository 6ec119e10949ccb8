"""JSON read from a stream value by value, so that a large file is never in memory as a whole."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn, Protocol

from kvdesk.conversations.porting.values import LARGEST_VALUE, Malformed
from kvdesk.translation import tr
from kvdesk.values import dataclass

CHUNK: Final = 4 << 20
_BLANK: Final = re.compile("[ \t\n\r\ufeff]*")
"""A byte order mark also appears where files were joined."""
_SHORTEST_START: Final = 4
"""Bytes that tell the encoding (`json.detect_encoding`)."""
_NEAR_THE_END: Final = 16
"""Characters: an error so close to the end of what was read may be that of a literal that goes on."""


def _no_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is no JSON", name, 0)


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_no_constant)


class Readable(Protocol):
    """What can be read: at most `n` bytes, none at the end."""

    def read(self, n: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Value:
    """One value, how many characters it had, and the members of the object around it that came before."""

    header: dict[str, Any]
    value: Any
    n_characters: int


def json_values(stream: Readable) -> Iterator[Value]:
    """The elements of every array that is alone or is the member `conversations` of an object, and every other object.

    Several of them may follow one another, as in JSON lines. Raises Malformed.
    """
    text = _Text(stream)
    try:
        while first := text.peek():
            if first == "[":
                for element, n in text.elements():
                    yield Value({}, element, n)
            elif first == "{":
                yield from _members(text)
            else:
                raise Malformed(tr("This file is not JSON."))
    except UnicodeDecodeError as error:
        raise Malformed(tr("This file is not text in UTF-8, UTF-16 or UTF-32."), str(error)) from error
    except RecursionError as error:
        raise Malformed(tr("This file is not readable: its JSON is nested too deeply.")) from error
    except ValueError as error:
        raise Malformed(tr("This file is damaged, or is not JSON."), str(error)) from error


def _members(text: _Text) -> Iterator[Value]:
    found: dict[str, Any] = {}
    n_characters = 0
    was_streamed = False
    text.take("{")
    while text.peek() != "}":
        name, n = text.value()
        if not isinstance(name, str):
            raise ValueError("a member without a name")
        text.take(":")
        if name == "conversations" and text.peek() == "[":
            was_streamed = True
            for element, size in text.elements():
                yield Value(found, element, size)
        else:
            found[name], size = text.value()
            n_characters += n + size
            if n_characters > LARGEST_VALUE:
                raise too_large()
        if text.peek() != "}":
            text.take(",")
    text.take("}")
    if not was_streamed:
        yield Value({}, found, n_characters)


def too_large() -> Malformed:
    """The error for one chat that exceeds the limit."""
    megabytes = LARGEST_VALUE >> 20
    return Malformed(tr("One chat of this file has more than {n} MB; kvdesk reads no larger ones.").format(n=megabytes))


class _Text:
    """What was read and not used yet. Raises ValueError for what is no JSON."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._start = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._text = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is not blank; "" at the end."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            assert blank is not None
            self._at = blank.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._read(CHUNK)

    def take(self, character: str) -> None:
        """Go past this character, which must be the next that is not blank."""
        if self.peek() != character:
            raise ValueError(f"{character} is missing")
        self._at += 1

    def elements(self) -> Iterator[tuple[Any, int]]:
        """Each element of the array that comes next, with its number of characters."""
        self.take("[")
        while self.peek() != "]":
            yield self.value()
            if self.peek() != "]":
                self.take(",")
        self.take("]")

    def value(self) -> tuple[Any, int]:
        """The next value, and its number of characters."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                may_go_on = error.pos >= len(self._text) - _NEAR_THE_END or error.msg.startswith("Unterminated")
                if self._ended or not may_go_on:
                    raise
            else:
                if end < len(self._text) or self._ended:
                    size = end - self._at
                    self._at = end
                    return value, size
            rest = len(self._text) - self._at
            if rest > LARGEST_VALUE:
                raise too_large()
            self._read(max(CHUNK, 3 * rest))  # what is there is read again from its beginning: not often

    def _read(self, n: int) -> None:
        data = self._stream.read(n)
        self._ended = not data
        if self._decoder is None:
            data = self._start + data
            if len(data) < _SHORTEST_START and not self._ended:
                self._start = data
                return
            self._decoder = codecs.getincrementaldecoder(json.detect_encoding(data))("surrogatepass")
        self._text = self._text[self._at :] + self._decoder.decode(data, final=self._ended)
        self._at = 0
