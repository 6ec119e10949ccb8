"""An answer as its text comes, in the parts that the protocol has: reasoning, what it says, calls of tools."""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvdesk.call_format import CallFormat
from kvdesk.call_text import held_back
from kvdesk.reasoning import ReasoningMarks, SaidStart, parts_of
from kvdesk.tool_calls import CallReader, ToolCall
from kvdesk.values import dataclass

_LETTERS: Final = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class CallDelta:
    """What is new of a call. `name`: of one that begins; then `id` is new too."""

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """What is new of an answer."""

    thought: str = ""
    said: str = ""
    calls: tuple[CallDelta, ...] = ()

    def parts(self) -> tuple[AnswerDelta, AnswerDelta]:
        """In the order in which they were written: the rest of an open call comes before the text after it."""
        rest = tuple(call for call in self.calls if not call.name)
        return AnswerDelta(self.thought, calls=rest), AnswerDelta(said=self.said, calls=self.calls[len(rest) :])


class AnswerReader:
    """Reads one answer. `begin` comes before its text; without it, all of that is what it says."""

    def __init__(self, tools: Sequence[Mapping[str, Any]] = (), *, splits: bool = True, is_json: bool = False) -> None:
        """tools: those that may be called; splits: reasoning is distinguished from what is said; is_json: what is said
        follows a JSON schema.
        """
        self._tools, self._splits, self._is_json = tools, splits, is_json
        self._marks: ReasoningMarks | None = None
        self._start: SaidStart | None = None
        self._reader = CallReader(None)
        self._text = ""
        self._n_read = 0  # characters that the reader of calls has
        self._n_said = 0
        self._told: list[str] = []  # arguments of each call
        self._ids: list[str] = []
        self.thought = ""

    def begin(self, marks: ReasoningMarks | None, form: CallFormat | None, before: str = "") -> None:
        """`before`: the beginning of the answer that its client has already."""
        self._marks = marks
        self._start = SaidStart(marks) if self._splits else None
        self._reader = CallReader(form, self._tools, is_exact=self._is_json)
        if before:
            self.add(before)

    @property
    def said(self) -> str:
        return self._reader.said

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(self._reader.calls)

    def add(self, text: str) -> AnswerDelta:
        """More text: what can be sent now."""
        self._text += text
        if self._start is not None:
            self._start.take(text)
        return self._read(over=False)

    def end(self) -> AnswerDelta:
        """The answer is over: the rest."""
        return self._read(over=True)

    def _read(self, *, over: bool) -> AnswerDelta:
        start = 0 if self._start is None else self._start.at
        thought = self._thought(over, start)
        if start is None and over:
            found = parts_of(self._text, self._marks)
            start = found.said if found is not None else 0
        if start is not None:
            end = len(self._text) if self._start is None else self._end(start, over)
            at = max(start, self._n_read)
            if end > at:
                self._reader.add(self._text[at:end])
                self._n_read = end
        if over:
            self._reader.end()
        said, self._n_said = self._reader.said[self._n_said :], max(self._n_said, len(self._reader.said))
        return AnswerDelta(thought, said, tuple(self._calls()))

    def _thought(self, over: bool, start: int | None) -> str:
        """What is new of the reasoning."""
        if self._start is None or (start is not None and self._n_read):
            return ""
        found = parts_of(self._text, self._marks)
        if found is None:
            is_open = self._marks is not None and self._marks.is_open and start is None and not over
            first, last = (0, len(self._text)) if is_open else (0, 0)
        else:
            first, last = found.thought, found.thought_end
        whole = self._text[first:last]
        if start is None and not over:
            end = self._marks.end if self._marks is not None else "</think>"
            whole = whole[: len(whole) - held_back(whole, end)].rstrip()
        if is_new := whole.startswith(self.thought):
            new, self.thought = whole[len(self.thought) :], whole
        return new.lstrip() if is_new and self.thought == new else (new if is_new else "")

    def _end(self, start: int, over: bool) -> int:
        """Where what is said ends: before the mark that its family writes behind it."""
        after = self._marks.after if self._marks is not None else ""
        if not after:
            return len(self._text)
        said = self._text[start:]
        if over:
            found = parts_of(self._text, self._marks)
            return found.said_end if found is not None else len(self._text)
        at = said.find(after)
        return start + at if at >= 0 else len(self._text) - held_back(said, after)

    def _calls(self) -> list[CallDelta]:
        deltas = []
        for i, call in enumerate(self._reader.calls):
            is_new = i == len(self._told)
            if is_new:
                self._told.append("")
                self._ids.append("".join(secrets.choice(_LETTERS) for _ in range(9)))
            told = self._told[i]
            more = call.arguments[len(told) :] if call.arguments.startswith(told) else ""
            if is_new or more:
                self._told[i] = told + more
                deltas.append(CallDelta(i, self._ids[i], call.name if is_new else "", more))
        return deltas

    def calls_as_json(self) -> list[dict[str, Any]]:
        """The calls of an answer that is over. An id has nine letters and digits: Mistral's templates take no other."""
        return [
            {"id": identity, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for identity, call in zip(self._ids, self._reader.calls, strict=True)
        ]


def delta_as_json(delta: AnswerDelta) -> dict[str, Any]:
    """As the protocol has it; {} for nothing."""
    found: dict[str, Any] = {}
    if delta.thought:
        found["reasoning_content"] = delta.thought
    if delta.said:
        found["content"] = delta.said
    if delta.calls:
        found["tool_calls"] = [
            {
                "index": call.index,
                **({"id": call.id, "type": "function"} if call.name else {}),
                "function": {**({"name": call.name} if call.name else {}), "arguments": call.arguments},
            }
            for call in delta.calls
        ]
    return found
