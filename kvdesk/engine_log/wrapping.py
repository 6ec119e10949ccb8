"""What wraps a message of a log: colours, JSON, quotes of Markdown, time stamps, names of services and containers.

A few wrappings are known. Others are learned: the text before a sentence of llama.cpp is taken off the lines that begin
alike. Must never know what a message means.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from kvdesk.codec import CodecError, decode
from kvdesk.loose_json import json_value, object_in
from kvdesk.values import dataclass

Message = tuple[str, str, int, str]
"""Text, clock, level and source: see `kvdesk.engine_log.lines.LogLine`."""

LEVELS: Final = {"E": 1, "W": 2, "I": 3, "D": 5}
"""By the letters that llama-server prints."""
_NAMES: Final = {"error": 1, "warn": 2, "info": 3, "debug": 5}
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][A-Z0-9]|[=>78cDEHM])")
"""What a terminal acts on: colours, titles, character sets."""
_WRITTEN: Final = re.compile(r"(?:\^\[|#033|\\x1b|\\033|\\u001b|\\e)?\[\d{1,2}(?:;\d{1,3})*m")
"""A colour whose sign was written out, as syslog does, or lost, as in what is pasted."""
_RESET: Final = "[0m"
"""Ends a colour."""
_LATEST_US: Final = 1e16  # an integer of JSON may be no float at all
_CLOCK: Final = r"\d+\.\d\d\.\d{3}\.\d{3}"
_DAY: Final = re.compile(r"\[?(?P<day>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)[\d.,]*(?:Z|[+-]\d\d:?\d\d)?\]? ?")
_OWN: Final = rf"(?: ?(?P<clock>{_CLOCK}) )?(?:(?P<letter>[DIWE]) )?"
"""What llama-server itself writes before a message."""
_BEGIN: Final = re.compile(_OWN)
_KNOWN: Final = re.compile(
    r"(?:>\s?)*"  # a quote in Markdown
    r"(?:[A-Z][a-z]{2}\s+\d+ \d\d:\d\d:\d\d\s+\S+?(?: \S+?)?\[\d*\]: )?"  # journald: host and program
    r"(?:[A-Za-z][\w.-]*[-_]\d+\s+\| )?"  # docker compose
    rf"(?:{_DAY.pattern})?"
    r"(?:\[(?:DEBUG|INFO|WARN|ERROR|LM STUDIO SERVER)\] ?)*"
    r"(?:\[\d+\] )?"  # the port of a router's child
    rf"(?P<own>{_OWN})"
)
_SENTENCE: Final = re.compile(
    r"\b(?:slot\s+[^\s|]*: id\s+-?\d{1,9} \| task |srv\s+[^\s|]*: \S"
    r"|(?:find_slot|llama_\w+|Llama\.generate|Cache reuse summary): )"
)
"""How a message of llama.cpp begins that is no other program's."""
_HINTS: Final = ("slot", "srv", "llama_", "Llama.", "Cache reuse")
"""One of them is in each of those: most lines of a log have none, and a search takes twenty times as long."""
_OWN_AT_END: Final = re.compile(rf"(?:{_CLOCK} )?(?:[DIWE] )?$")
_JSON: Final = ("{", "[{")
_KEYS: Final = {"slot_id": "id_slot", "task_id": "id_task"}
"""How llamafile calls them."""
_OF_SERVER: Final = '{"type":"log"'
"""Begins a line of `--log-jsonl`."""
_LONGEST: Final = 300
"""Characters before a message that may wrap it."""
_MOST_LEARNED: Final = 8
"""Wrappings of one log that are remembered: those met last; and lines of different programs that go on."""
_RUN: Final = re.compile(r"\w+|\s+|.")
_SOURCE: Final = re.compile(
    r"(?P<process>\S+\[\d*\]): "  # journald, syslog
    r"|\[(?P<pod>pod/[^\]\s]+)\] "
    r"|^\s*(?:\d+\|)?(?!(?:info|warn|warning|error|debug|notice|trace)\b)(?P<service>[a-z][\w.-]*)\s+\| "
    r"|\[ *(?P<port>\d{2,5})\] $",  # of a router's child
    re.IGNORECASE,
)
"""What of a wrapping says which of several programs wrote the line."""
_PIECES: Final = (16 << 10, 48 << 10)
"""Bytes after which Docker, containerd and journald begin another line in the middle of one."""
_CUT: Final = 8
"""Bytes more, where a character was cut and each of its bytes became a �."""
_MOST_PIECES: Final = 4 << 20
"""Characters of a line that is put together."""


@dataclass(frozen=True, slots=True)
class _Json:
    """A line of JSON: of `--log-jsonl`, of Docker's files, of `journalctl -o json`, of a collector. Others may give
    these names to anything.
    """

    type: Any = None
    function: Any = None
    level: Any = None
    time: Any = None
    container_name: Any = None
    log: Any = None
    MESSAGE: Any = None
    message: Any = None
    msg: Any = None
    line: Any = None
    textPayload: Any = None  # noqa: N815 - Google's name
    body: Any = None
    text: Any = None

    @property
    def inner(self) -> str | None:
        """The message in it; None if there is none."""
        found = None
        for one in (self.log, self.MESSAGE, self.message, self.msg, self.line, self.textPayload, self.body, self.text):
            if one is not None and (text := _text_of(one)):
                return text
            found = "" if isinstance(one, str) else found
        return found


class Unwrapper:
    """Takes off what wraps the messages of one log."""

    def __init__(self) -> None:
        self._learned: list[re.Pattern[str]] = []
        self._pieces: dict[str, str] = {}  # by source: of lines that go on

    def messages(self, text: str) -> Sequence[Message]:
        """The messages of one line: several if a line of JSON holds several, none if the next one goes on."""
        text = _plain(text)
        if text.startswith("[{") and isinstance(found := json_value(text), list):
            lines = [json.dumps(one, ensure_ascii=False) for one in found if isinstance(one, dict)]
            return [message for line in lines for message in self._of_message(line, "", "")]
        return self._of_message(text, "", "") if text.startswith(_JSON) else self._of_text(text, "", "")

    def close(self) -> Sequence[Message]:
        """What is still open at the end of the log."""
        pieces, self._pieces = self._pieces, {}
        return [message for source, text in pieces.items() for message in self._of_message(text, "", source)]

    def _of_text(self, text: str, day: str, source: str, *, is_inside: bool = False) -> Sequence[Message]:
        """A line, or what was inside of one of JSON."""
        start = 0
        if not text.startswith(_JSON):
            start, own_day, own_source = self._wrapped(text)
            day, source = own_day or day, f"{source} {own_source}".strip()
        if not (start or is_inside):
            return (_own(text, day, source),)
        piece = text[start:]
        whole = self._pieces.pop(source, "") + piece if self._pieces else piece
        if _goes_on(piece) and len(whole) < _MOST_PIECES and len(self._pieces) < _MOST_LEARNED:
            self._pieces[source] = whole
            return ()
        return self._of_message(whole, day, source)

    def _of_message(self, text: str, day: str, source: str) -> Sequence[Message]:
        if text.startswith(_JSON):
            found = _json(text)
            inner = found.inner if found is not None else None
            if found is not None and isinstance(found.function, str):
                inner = _keyed(text, found)
            if found is not None and inner is not None:
                return self._of_json(found, inner, day, source)
            text = text[self._wrapped(text)[0] :]
        return (_own(text, day, source),)

    def _of_json(self, found: _Json, inner: str, day: str, source: str) -> Sequence[Message]:
        if found.type == "log" and isinstance(found.msg, str):
            return [(*message, source) for message in _of_server(found)]
        day = found.time if isinstance(found.time, str) else day
        source = source or (found.container_name if isinstance(found.container_name, str) else "")
        return self._of_text(_plain(inner.removesuffix("\n")), day, source, is_inside=True)

    def _wrapped(self, text: str) -> tuple[int, str, str]:
        """Where the message begins, and the day and the source that are named before it."""
        own = _KNOWN.match(text)
        assert own is not None  # every part of it may be missing
        if not _SENTENCE.match(text, own.end()) and (wrapping := self._wrapping(text, own.end())):
            own = _KNOWN.match(text, len(wrapping))
            assert own is not None
        start = own.start("own")
        return (start, *_named(text[:start])) if start else (0, "", "")

    def _wrapping(self, text: str, at: int) -> str:
        """The text before the message; "" if it is no longer than what `_KNOWN` takes off, up to `at`."""
        begin = text[:_LONGEST]
        if (start := begin.find(_OF_SERVER, at)) > 0:
            return begin[:start]
        if any(hint in begin for hint in _HINTS) and (sentence := _SENTENCE.search(begin, at)):
            wrapping = _OWN_AT_END.sub("", begin[: sentence.start()], 1)
            is_text = all(word.isalpha() for word in wrapping.split()) and wrapping.strip()
            if not is_text and not any(learned.fullmatch(wrapping) for learned in self._learned):
                self._learned = [_alike(wrapping), *self._learned][:_MOST_LEARNED]
            return wrapping
        found = (match[0] for learned in self._learned if (match := learned.match(text)))
        return next(found, "")


@lru_cache(maxsize=256)
def _named(wrapping: str) -> tuple[str, str]:
    """The day and the source in a wrapping; many lines have the same."""
    day = _DAY.search(wrapping)
    sources = (next(filter(None, match.groups())) for match in _SOURCE.finditer(wrapping))
    return day["day"] if day else "", " ".join(sources)


def _own(text: str, day: str, source: str) -> Message:
    """A message without what llama-server itself writes before it."""
    own = _BEGIN.match(text)
    assert own is not None  # every part of it may be missing
    clock, letter = own.groups()
    return text[own.end() :], clock or day, LEVELS.get(letter, 0), source


def _plain(text: str) -> str:
    """Without colours, and without what a line has overwritten."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if text.find(_RESET, 0, _LONGEST) >= 0 and not text.startswith(_JSON):
        text = _WRITTEN.sub("", text[:_LONGEST]) + text[_LONGEST:]
    return text.rstrip("\r").rsplit("\r", 1)[-1] if "\r" in text else text


def _text_of(value: object) -> str | None:
    """A text of JSON, or the numbers of its bytes: so journald writes one with colours. None for anything else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(n, int) and 0 <= n < 256 for n in value):
        return None
    return bytes(value).decode("utf-8", "replace")


def _goes_on(piece: str) -> bool:
    """Whether the next line of the same program is the rest of this one."""
    if 4 * len(piece) < _PIECES[0]:
        return False
    n = len(piece.encode("utf-8", "replace"))
    return any(0 <= n - most < _CUT for most in _PIECES)


def _alike(wrapping: str) -> re.Pattern[str]:
    """The wrapping with other times, numbers and names. Blanks at its end are as many: more are the message's."""
    before = wrapping.rstrip()
    runs = (r"\s+" if run.isspace() else re.escape(run) for run in _RUN.findall(before))
    alike = (r"\w+" if re.match(r"\w", run) else run for run in runs)
    return re.compile("".join(alike) + " " * (len(wrapping) - len(before)))


def _json(text: str) -> _Json | None:
    """The object of a line, which may be one of an array: a comma follows then."""
    try:
        return decode(_Json, text.removeprefix("[").rstrip().removesuffix("]").removesuffix(","))
    except CodecError:
        return None


def _keyed(text: str, found: _Json) -> str:
    """A line of JSON of ik_llama.cpp, llamafile and llama-server in 2024 as they write it with `--log-format text`."""
    values = {_KEYS.get(name, name): value for name, value in object_in(text).items()}
    message = values.pop("msg", "")
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    pairs = " ".join(f"{name}={text}" for name, text in texts.items())
    return f"{found.level} [{found.function}] {message} | tid= {pairs}"


def _of_server(found: _Json) -> Sequence[tuple[str, str, int]]:
    """What `--log-jsonl` wrote."""
    has_time = isinstance(found.time, int | float) and 0 < found.time < _LATEST_US
    clock = f"{found.time / 1e6:.3f} s" if has_time else ""
    level = _NAMES.get(found.level, 0) if isinstance(found.level, str) else 0
    if "\n" not in found.msg.strip("\n") or found.msg.startswith("\n"):
        return ((found.msg.removesuffix("\n"), clock, level),)
    return [(line, clock, level) for line in found.msg.split("\n")]
