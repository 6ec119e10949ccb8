"""What wraps a message of a log: colours, JSON, quotes of Markdown, time stamps, names of services and containers.

A few wrappings are known. Others are learned: the text before a sentence of llama.cpp is taken off the lines that begin
alike. Must never know what a message means.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from kvdesk.codec import CodecError, decode
from kvdesk.values import dataclass

Message = tuple[str, str, int]
"""Text, clock and level: see `kvdesk.engine_log.lines.LogLine`."""

LEVELS: Final = {"E": 1, "W": 2, "I": 3, "D": 5}
"""By the letters that llama-server prints."""
_NAMES: Final = {"error": 1, "warn": 2, "info": 3, "debug": 5}
_COLOUR: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LATEST_US: Final = 1e16  # an integer of JSON may be no float at all
_CLOCK: Final = r"\d+\.\d\d\.\d{3}\.\d{3}"
_DAY: Final = re.compile(r"\[?(?P<day>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)[\d.,]*(?:Z|[+-]\d\d:?\d\d)?\]? ?")
_KNOWN: Final = re.compile(
    r"(?:>\s?)*"  # a quote in Markdown
    r"(?:[A-Z][a-z]{2}\s+\d+ \d\d:\d\d:\d\d\s+\S+?(?: \S+?)?\[\d*\]: )?"  # journald: host and program
    r"(?:[A-Za-z][\w.-]*[-_]\d+\s+\| )?"  # docker compose
    rf"(?:{_DAY.pattern})?"
    r"(?:\[(?:DEBUG|INFO|WARN|ERROR|LM STUDIO SERVER)\] ?)*"
    r"(?:\[\d+\] )?"  # the port of a router's child
    rf"(?: ?(?P<clock>{_CLOCK}) )?(?:(?P<letter>[DIWE]) )?"
)
_SENTENCE: Final = re.compile(
    r"\b(?:slot\s+[^\s|]*: id\s+-?\d{1,9} \| task |srv\s+[^\s|]*: \S"
    r"|(?:find_slot|llama_\w+|Llama\.generate|Cache reuse summary): )"
)
"""How a message of llama.cpp begins that is no other program's."""
_HINTS: Final = ("slot", "srv", "llama_", "Llama.", "Cache reuse")
"""One of them is in each of those: most lines of a log have none, and a search takes twenty times as long."""
_OWN: Final = re.compile(rf"(?:{_CLOCK} )?(?:[DIWE] )?$")
_LONGEST: Final = 300
"""Characters before a message that may wrap it."""
_MOST_LEARNED: Final = 8
"""Wrappings of one log that are remembered: those met last."""
_RUN: Final = re.compile(r"\w+|\s+|.")


@dataclass(frozen=True, slots=True)
class _Json:
    """A line of JSON: of `--log-jsonl`, of Docker's files, of `journalctl -o json`, of a collector."""

    type: str = ""
    msg: str = ""
    level: Any = None
    time: Any = None
    log: str = ""
    MESSAGE: str = ""
    message: str = ""


class Unwrapper:
    """Takes off what wraps the messages of one log."""

    def __init__(self) -> None:
        self._learned: list[re.Pattern[str]] = []

    def messages(self, text: str) -> Sequence[Message]:
        """The messages of one line: several where a line of JSON holds several."""
        text = _plain(text)
        found = _json(text) if text.startswith("{") else None
        if found is None:
            return (self._message(text),)
        if found.type == "log":
            return _of_server(found)
        inner = _plain((found.log or found.MESSAGE or found.message or text).removesuffix("\n"))
        message, clock, level = self._message(inner)
        return ((message, clock or (found.time if isinstance(found.time, str) else ""), level),)

    def _message(self, text: str) -> Message:
        own, wrapping = _KNOWN.match(text), ""
        assert own is not None  # every part of it may be missing
        if not _SENTENCE.match(text, own.end()) and (wrapping := self._wrapping(text, own.end())):
            own = _KNOWN.match(text, len(wrapping))
            assert own is not None
        day = own["day"] or ((found := _DAY.search(wrapping)) and found["day"])
        return text[own.end() :], own["clock"] or day or "", LEVELS.get(own["letter"], 0)

    def _wrapping(self, text: str, at: int) -> str:
        """The text before the message; "" if it is no longer than what `_KNOWN` takes off, up to `at`."""
        begin = text[:_LONGEST]
        if any(hint in begin for hint in _HINTS) and (sentence := _SENTENCE.search(begin, at)):
            wrapping = _OWN.sub("", begin[: sentence.start()], 1)
            is_text = all(word.isalpha() for word in wrapping.split()) and wrapping.strip()
            if not is_text and not any(learned.fullmatch(wrapping) for learned in self._learned):
                self._learned = [_alike(wrapping), *self._learned][:_MOST_LEARNED]
            return wrapping
        found = (match[0] for learned in self._learned if (match := learned.match(text)))
        return next(found, "")


def _plain(text: str) -> str:
    """Without colours, and without what a line has overwritten."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return text.rstrip("\r").rsplit("\r", 1)[-1] if "\r" in text else text


def _alike(wrapping: str) -> re.Pattern[str]:
    """The wrapping with other times, numbers and names. Blanks at its end are as many: more are the message's."""
    before = wrapping.rstrip()
    runs = (r"\s+" if run.isspace() else re.escape(run) for run in _RUN.findall(before))
    alike = (r"\w+" if re.match(r"\w", run) else run for run in runs)
    return re.compile("".join(alike) + " " * (len(wrapping) - len(before)))


def _json(text: str) -> _Json | None:
    try:
        return decode(_Json, text)
    except CodecError:
        return None


def _of_server(found: _Json) -> Sequence[Message]:
    """What `--log-jsonl` wrote."""
    has_time = isinstance(found.time, int | float) and 0 < found.time < _LATEST_US
    clock, level = f"{found.time / 1e6:.3f} s" if has_time else "", _NAMES.get(str(found.level), 0)
    if "\n" not in found.msg.strip("\n") or found.msg.startswith("\n"):
        return ((found.msg.removesuffix("\n"), clock, level),)
    return [(line, clock, level) for line in found.msg.split("\n")]
