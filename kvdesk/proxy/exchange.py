"""One request that passed, and what the server counted of it.

Bounded: of a request and an answer only so much is kept, and what is longer is not read.
"""

import re
import time
import zlib
from collections.abc import Mapping
from typing import Any, Final

from kvdesk.loose_json import json_value, obj
from kvdesk.values import dataclass, field

MOST_BODY: Final = 16 << 20
"""Bytes of a request that is compared."""
_MOST_LINE: Final = 4 << 20
"""Bytes of one event, or of an answer that is no stream, which is read for its numbers."""
_FASTEST: Final = 1e9  # tokens a second
_COUNTED: Final = re.compile(rb'"(?:usage|timings)"\s*:\s*\{|"prompt_eval_count"\s*:')


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them, -1 if it does not say. `read_tok_s`: of the prompt, 0.0 likewise."""

    prompt: int = -1
    cached: int = -1
    answer: int = 0
    read_tok_s: float = 0.0


@dataclass(slots=True)
class Exchange:
    """`client`: by which requests belong together; `body`: None if it is too long; `first_byte_s`: from the head of
    the request to the first byte of the answer's body; `parent`: headers that say of which span it is; `ended`: the
    answer is complete.
    """

    path: str
    client: bytes
    body: bytes | None
    status: int = 0
    is_stream: bool = False
    first_byte_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    began_ns: int = field(default_factory=time.time_ns)
    parent: Mapping[str, str] = field(default_factory=dict)
    ended: bool = False


class AnswerTap:
    """Reads the numbers of an answer while its bytes pass. `feed` raises nothing."""

    def __init__(self, content_type: str, encoding: str) -> None:
        self.is_stream = content_type.startswith(("text/event-stream", "application/x-ndjson"))
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in ("gzip", "deflate") else None
        self._is_readable = encoding in ("", "identity", "gzip", "deflate")
        self._rest = bytearray()
        self._skips = False  # the rest of a line that is too long
        self.usage = Usage()

    def feed(self, chunk: bytes) -> None:
        """The next bytes, as they came."""
        if not self._is_readable:
            return
        if self._inflate is None:
            self._take(chunk)
            return
        try:
            while chunk:
                self._take(self._inflate.decompress(chunk, _MOST_LINE))
                chunk = self._inflate.unconsumed_tail
        except zlib.error:
            self._is_readable = False

    def close(self) -> None:
        """The answer has ended."""
        if not self._skips:
            self._read(bytes(self._rest))
        self._rest.clear()

    def _take(self, data: bytes) -> None:
        if not self.is_stream:
            self._keep(data)
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._keep(line)
            if not self._skips:
                self._read(bytes(self._rest))
            self._rest.clear()
            self._skips = False
        self._keep(rest)

    def _keep(self, data: bytes) -> None:
        self._skips = self._skips or len(self._rest) + len(data) > _MOST_LINE
        if self._skips:
            self._rest.clear()
        else:
            self._rest += data

    def _read(self, text: bytes) -> None:
        if not _COUNTED.search(text):
            return
        value = json_value(text.removeprefix(b"data:"))
        if isinstance(value, list):  # several answers of /completion
            value = value[0] if value else None
        if isinstance(value, dict):
            self.usage = merged(self.usage, usage_of(value))


def usage_of(value: Mapping[str, Any]) -> Usage:
    """What an answer, or one event of it, says. llama-server's own counts before those of the protocol."""
    for name in ("message", "response"):  # of Anthropic's first event, and of OpenAI's responses
        if isinstance(inner := value.get(name), dict):
            value = {**value, **inner}
    found = _of_protocol(obj(value.get("usage")))
    if found.prompt < 0 and (prompt := _count(value.get("prompt_eval_count"))) >= 0:  # Ollama's own protocol
        found = Usage(prompt, -1, max(0, _count(value.get("eval_count"))))
    timings = obj(value.get("timings"))
    cached, read = _count(timings.get("cache_n")), _count(timings.get("prompt_n"))
    if read < 0:
        return found
    speed = timings.get("prompt_per_second")
    return Usage(
        read + max(0, cached) if found.prompt < 0 or cached >= 0 else found.prompt,
        cached if cached >= 0 else found.cached,
        max(found.answer, _count(timings.get("predicted_n")), 0),
        float(speed) if isinstance(speed, int | float) and 0 < speed < _FASTEST else 0.0,
    )


def _of_protocol(usage: Mapping[str, Any]) -> Usage:
    answer = max(_count(usage.get("completion_tokens")), _count(usage.get("output_tokens")), 0)
    prompt = _count(usage.get("prompt_tokens"))
    if prompt < 0:
        prompt = _count(usage.get("input_tokens"))
    read, written = _count(usage.get("cache_read_input_tokens")), _count(usage.get("cache_creation_input_tokens"))
    if prompt >= 0 and (read >= 0 or written >= 0):  # Anthropic's: newly read tokens are counted separately
        return Usage(prompt + max(0, read) + max(0, written), max(0, read), answer)
    details = obj(usage.get("prompt_tokens_details")) or obj(usage.get("input_tokens_details"))
    cached = _count(details.get("cached_tokens"))
    if cached < 0:
        cached = _count(usage.get("prompt_cache_hit_tokens"))
    return Usage(prompt, cached, answer)


def merged(before: Usage, after: Usage) -> Usage:
    """Of two events of one answer: what the later one says, as far as it says it."""
    is_counted = after.prompt > 0
    return Usage(
        after.prompt if is_counted else before.prompt,
        after.cached if is_counted and after.cached >= 0 else before.cached,
        max(before.answer, after.answer),
        after.read_tok_s or before.read_tok_s,
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else -1
