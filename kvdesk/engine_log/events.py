"""The events of a log: what each line says about the cache. Lines that say nothing are ignored.

Must never know requests; which sentence is which event is in `sentences`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kvdesk.engine_log.lines import LogLine
from kvdesk.engine_log.sentences import ANYWHERE, ENGINE, KEYED, OLLAMA, SERVER, Kind, compiled, first_words
from kvdesk.protocol.blocks import METRIC_NAMES
from kvdesk.values import dataclass, field, replace

DEFAULT_LEVEL: Final = 3
"""What llama-server prints without `-lv`."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `slot`, `task`: -1 if the line has none; `values`: what varies in its sentence.

    level   at which llama-server prints it now, 0 for another program
    source  of its line
    """

    kind: Kind
    line: int
    clock: str = ""
    slot: int = -1
    task: int = -1
    level: int = 0
    values: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    def number(self, name: str, default: int = -1) -> int:
        """A value as a whole number; `default` if there is none."""
        text = self.values.get(name, "")
        return int(text) if text.isdecimal() else int(self.real(name, default))

    def real(self, name: str, default: float = -1.0) -> float:
        """A value as a number, likewise."""
        try:
            found = float(self.values[name])
        except (KeyError, ValueError):  # the second, and what is not finite, no engine has written
            return default
        return found if math.isfinite(found) else default


_Rule = tuple[Kind, int, re.Pattern[str]]

_ID: Final = r"-?\d{1,9}"
_HEAD: Final = re.compile(
    rf"(?:slot|srv|que|res)\s+[^\s|:]{{0,30}}:\s*(?:id\s+(?P<slot>{_ID}) \| task (?P<task>{_ID}) \|)?[\s-]*"
    r"(?P<word>\w*)"
)
_TIMES: Final = "print_timing:"
_LATEST: Final = 600
"""Characters before what marks a line of Ollama."""
_GO: Final = re.compile(r'(?:time=(?P<time>\S+) )?level=\w+ source=\S+ msg="?(?P<msg>[^"=]*)"?(?P<rest>.*)')
_PAIR: Final = re.compile(rf"(\w+)=({_ID})(?!\S)")
_GIN: Final = re.compile(
    r"\[GIN\] (?P<time>[\d/ :-]+?) \|\s*(?P<status>\d+) \|[^|]*\|[^|]*\|\s*(?P<method>[A-Z]+)\s+\"(?P<path>[^\"]*)\""
)
_DONE: Final = re.compile(r"(?P<method>[A-Z]+) (?P<path>/\S*) \S+ (?P<status>\d{3})")
_WORD: Final = re.compile(r"\s*(\w+)")
_OPEN: Final = frozenset({Kind.BODY, Kind.DONE, Kind.PURGED, Kind.STATE_READ, Kind.ERROR, Kind.CANCELLED})
"""Kinds whose sentence leaves something to be read from its values."""
_TEXTS: Final = frozenset({Kind.OLD_TEXT, Kind.NEW_TEXT})
"""Kinds whose text may go on over the next lines."""
_LONGEST: Final = 2000
"""Characters that are kept of a text, which may go on over several lines, and looked at in a line of Ollama."""


def _by_word(rules: Iterable[tuple[int, Kind, str]]) -> dict[str, list[_Rule]]:
    table: dict[str, list[_Rule]] = {}
    for level, kind, sentence in rules:
        for word in first_words(sentence):
            table.setdefault(word, []).append((kind, level, compiled(sentence)))
    return table


_SERVER: Final = _by_word(SERVER)
_ENGINE: Final = _by_word((0, kind, sentence) for kind, sentence in ENGINE)
"""By the first word: most lines of a log begin with none of these."""
_ANYWHERE: Final = [(kind, compiled(sentence)) for kind, sentence in ANYWHERE]
_HINTS: Final = ("throughput: ", "hit rate: GPU", " preempted ", "-token: ", "#running-req", "retracted_reqs",
                 "enable_prefix_caching", "disable_radix", "block size to", "max seq len", "kv cache", "KV cache",
                 "Prompt cache restore", "Processing Prompt", "CtxLimit:", " cached tokens and ", " re-prefills ",
                 "Prefix cache restore", "SmartCache", "======== Cache")  # fmt: skip
"""One of them is in each of those: searching for all takes ten times as long."""
_KEYED: Final = re.compile(r"\s*(?:INFO|WARN|VERB)\s+\[ *\w+\] (?P<msg>[^|]*)\|(?P<rest>.*)")
_IDS: Final = ("id_slot", "id_task")
_WHOLE: Final = re.compile(rf"{_ID}$")
_QUOTED: Final = re.compile(r'(\w{1,30})="?([^"\s]*)')
_METRIC: Final = re.compile(r"\s*(?P<name>[a-z]+:\w+)(?P<labels>\{[^}]*\})?\s+(?P<n>[\d.e+]{1,30})\s*$")


def event_of(line: LogLine) -> Event | None:
    """The event of one line; None for the many that say nothing about the cache."""
    text = line.text
    head = _HEAD.match(text)
    if head:
        slot, task, word = head.group("slot", "task", "word")
        if not word and _TIMES in head[0]:  # older versions print them below, without a head
            return Event(Kind.TIMES, line.number, line.clock, int(slot or -1), int(task or -1), 3, source=line.source)
        if (rules := _SERVER.get(word.lower())) is None:
            return None
        return _found(line, text, head.start("word"), rules, int(slot or -1), int(task or -1))
    first = _WORD.match(text)
    if first and (rules := _ENGINE.get(first[1].lower())) and (event := _found(line, text, first.start(1), rules)):
        return event
    if "msg=" in text[:_LATEST] and (go := _GO.search(text[:_LONGEST])):
        kind = OLLAMA.get(go["msg"].strip().lower())
        values = dict(_PAIR.findall(go["rest"]))
        slot = int(values.pop("id", -1))
        clock = go["time"] or line.clock
        return Event(kind, line.number, clock, slot, values=values, source=line.source) if kind else None
    if "[GIN]" in text[:_LATEST] and (gin := _GIN.search(text[:_LONGEST])):
        return Event(Kind.DONE, line.number, gin["time"], values=gin.groupdict(), source=line.source)
    if "tid=" in text[:_LATEST] and (keyed := _KEYED.match(text[:_LONGEST])):
        return _keyed(line, keyed)
    return _anywhere(line, text[:_LONGEST])


def _keyed(line: LogLine, keyed: re.Match[str]) -> Event | None:
    """`INFO [function] message | tid="1" id_slot=0 …`."""
    values = dict(_QUOTED.findall(keyed["rest"]))
    slot, task = (int(found[0]) if (found := _WHOLE.match(values.get(name, ""))) else -1 for name in _IDS)
    kind = KEYED.get(keyed["msg"].strip())
    if kind is None:
        rules = _ENGINE.get(keyed["msg"].partition(" ")[0].lower(), [])
        return _found(line, line.text, keyed.start("msg"), rules, slot, task)
    values["n"] = values.get("p0", values.get("n_past", ""))
    values["truncated"] = "1" if values.get("truncated") == "true" else "0"
    return Event(kind, line.number, line.clock, slot, task, values=values, source=line.source)


def _anywhere(line: LogLine, text: str) -> Event | None:
    if any(hint in text for hint in _HINTS):
        for kind, pattern in _ANYWHERE:
            if match := pattern.search(text):
                values = {name: value for name, value in match.groupdict().items() if value is not None}
                return Event(kind, line.number, line.clock, values=values, source=line.source)
    if ":" in text[:_LATEST] and (metric := _METRIC.match(text)) and metric["name"] in METRIC_NAMES:
        return Event(Kind.METRIC, line.number, values=metric.groupdict(""), source=line.source)
    return None


def _found(line: LogLine, text: str, at: int, rules: list[_Rule], slot: int = -1, task: int = -1) -> Event | None:
    for kind, level, pattern in rules:
        if match := pattern.match(text, at):
            values = match.groupdict()
            if None in values.values():  # a part of the sentence is missing
                values = {name: value for name, value in values.items() if value is not None}
            if len(text) > _LONGEST and "json" not in values:
                values = {name: value[:_LONGEST] for name, value in values.items()}
            event = Event(kind, line.number, line.clock, slot, task, level, values, line.source)
            return _detailed(event) if kind in _OPEN else event
    return None


def _detailed(event: Event) -> Event:
    """The event with what its sentence leaves open: the slot or task that it names, the parts of a request line."""
    if event.kind is Kind.BODY and not event.values["json"].startswith("{"):  # how older versions say `done request:`
        event = replace(event, kind=Kind.DONE, level=4, values={"method": event.values["json"]})
    if event.kind is Kind.DONE:
        done = _DONE.match(event.values["method"])
        return replace(event, values=done.groupdict() if done else {})
    if event.kind in (Kind.PURGED, Kind.STATE_READ):
        return replace(event, slot=event.number("slot"))
    if event.kind in (Kind.ERROR, Kind.CANCELLED):
        return replace(event, task=event.number("task"))
    return event


def read_events(lines: Iterable[LogLine]) -> Iterator[Event]:
    """The events of a log. The text around a difference may go on over lines without a head: it is joined again."""
    joiner = TextJoiner()
    for line in lines:
        yield from joiner.feed(line)
    yield from joiner.close()


class TextJoiner:
    """Joins the text around a difference, and gives every other event as it comes."""

    def __init__(self) -> None:
        self._open: Event | None = None

    def feed(self, line: LogLine) -> Sequence[Event]:
        """The events that are complete with this line."""
        event = event_of(line)
        if self._open is None and (event is None or event.kind not in _TEXTS):
            return () if event is None else (event,)
        before = self._open
        if before is not None and event is None and line.source != before.source:
            return ()
        if before is not None and event is None and not _HEAD.match(line.text):
            text = before.values["text"]
            if len(text) < _LONGEST:
                self._open = replace(before, values={"text": f"{text}\n{line.text}"[:_LONGEST]})
                return ()
        self._open = event if event is not None and event.kind in _TEXTS else None
        return [one for one in (before, event) if one is not None and one is not self._open]

    def close(self) -> Sequence[Event]:
        """What is still open at the end of the log."""
        before, self._open = self._open, None
        return () if before is None else (before,)
