"""Assembles an answer that streams from a server: chunks in, text and numbers out. Pure: knows no network.

The server is not trusted: a chunk that violates the protocol ends the answer with one sentence.
"""

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from kvdesk.backends.openai.problems import Broken, Nonsense, ServerError, said_by
from kvdesk.loose_json import obj
from kvdesk.message import LIMIT_NOTE, FinishReason, MessageState, TurnStats, storable
from kvdesk.policies.first_token import Delay, first_token_reason
from kvdesk.reasoning import BEGINNING, END
from kvdesk.translation import tr
from kvdesk.values import dataclass, field

MOST_TEXT: Final = 16 << 20
"""Characters of an answer."""
MOST_ID: Final = 200
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Answer:
    """The result of one answer. Times by time.perf_counter, in seconds.

    asked_at     when the user asked
    continued    the text that is continued; if a server repeats it, it is not passed on again
    """

    asked_at: float
    continued: str = ""
    n_chunks: int = 0
    n_chars: int = 0
    id: str = ""
    finish: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, Any] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    first_at: float = 0.0
    last_at: float = 0.0
    _thinks: bool = False
    _held: str = ""  # the beginning, while it may still repeat the continued text

    def take(self, data: str) -> str:
        """The text of one event of the stream, "" if it has none. Raises ServerError."""
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Nonsense(f"{error}: {data[:200]!r}") from error
        if not isinstance(chunk, dict):
            raise Nonsense(data)
        if chunk.get("error"):
            said = said_by(data.encode("utf-8", "replace"))
            raise ServerError(tr("The server has ended the answer.") + (f" {said}" if said else ""), data[:2000])
        if not self.id and isinstance(name := chunk.get("id"), str):
            self.id = name[:MOST_ID]
        for name in ("usage", "timings"):
            if isinstance(value := chunk.get(name), dict):
                setattr(self, name, value)
        self.progress = p if isinstance(p := chunk.get("prompt_progress"), dict) else {}
        return self._counted(self._text_of(chunk, data))

    def end(self) -> str:
        """The end of the stream: returns the text that was held back. Raises Broken if it ended too early."""
        if not self.finish:
            raise Broken("the stream ended without a finish_reason")
        return self._released(force=True) + (END if self._thinks else "")

    def _text_of(self, chunk: Mapping[str, Any], data: str) -> str:
        choices = chunk.get("choices")
        if choices in ([], None):
            return ""
        if not isinstance(choices, list) or not isinstance(choices[0], dict):
            raise Nonsense(data)
        choice = choices[0]
        said = choice.get("delta", choice.get("message"))
        if isinstance(finish := choice.get("finish_reason"), str):
            self.finish = finish
        if not isinstance(said, dict):
            return ""
        text, thought = _joined(said.get("content"), said.get("reasoning_content") or said.get("reasoning"))
        if not isinstance(text, str | None) or not isinstance(thought, str | None):
            raise Nonsense(data)
        return self._marked(text or "", thought or "")

    def _marked(self, text: str, thought: str) -> str:
        """Reasoning from a separate field is put between the marks that models write."""
        marked = ""
        if thought:
            marked = thought if self._thinks else BEGINNING + thought
            self._thinks = True
        if text and self._thinks:
            marked += END
            self._thinks = False
        return marked + text

    def _counted(self, text: str) -> str:
        if not text:
            return ""
        if _SURROGATE.search(text):
            text = storable(text)
        self.last_at = time.perf_counter()
        self.first_at = self.first_at or self.last_at
        self.n_chunks += 1
        self.n_chars += len(text)
        if self.n_chars > MOST_TEXT:
            raise ServerError(tr("The answer is longer than kvdesk keeps."))
        if not self.continued:
            return text
        self._held += text
        return self._released(force=False)

    def _released(self, *, force: bool) -> str:
        """The text that surely does not repeat the continued one."""
        held, before = self._held, self.continued
        if not before:
            return ""
        if not force and len(held) < len(before) and before.startswith(held):
            return ""
        self._held = self.continued = ""
        repeats = len(before) >= 8 and held.startswith(before)
        return held[len(before) :] if repeats else held

    @property
    def ended(self) -> tuple[MessageState, str, FinishReason]:
        """State, note and reason of a stream that ended normally."""
        match self.finish:
            case "length":
                return "complete", tr(LIMIT_NOTE).format(n=f"{self.n_generated:,}"), "limit"
            case "content_filter":
                return "stopped", tr("The server's content filter has ended it."), "stopped"
            case "tool_calls" | "function_call":
                return "stopped", tr("The model called a tool that kvdesk has not offered."), "stopped"
            case _:
                return "complete", "", "end"

    @property
    def n_generated(self) -> int:
        """Tokens as the server counts them, else the number of chunks, which are usually tokens."""
        return _number(self.usage, "completion_tokens") or _number(self.timings, "predicted_n") or self.n_chunks

    @property
    def stats(self) -> TurnStats:
        """Statistics: the server's own if it sends them, else by this clock."""
        cached = _number(self.usage.get("prompt_tokens_details"), "cached_tokens") or _number(self.timings, "cache_n")
        prompt = _number(self.usage, "prompt_tokens") or cached + _number(self.timings, "prompt_n")
        cached = min(cached, prompt)
        seconds = self.last_at - self.first_at
        until_first = self.first_at - self.asked_at if self.first_at else 0.0
        read_tok_s = _speed(self.timings, "prompt_per_second")
        why = tr("{n} of {prompt} tokens were in the server's cache.").format(n=f"{cached:,}", prompt=f"{prompt:,}")
        measured = (self.n_generated - 1) / seconds if seconds > 0 and self.n_generated > 1 else 0.0
        return TurnStats(
            prompt_tokens=prompt,
            reused_tokens=cached,
            prefilled_tokens=prompt - cached,
            generated_tokens=self.n_generated,
            ttft_ms=until_first * 1e3,
            prefill_tok_s=read_tok_s,
            decode_tok_s=_speed(self.timings, "predicted_per_second") or measured,
            why=why if prompt else "",
            time_why=first_token_reason(Delay(until_first, prompt - cached, read_tok_s)) if prompt else "",
        )

    @property
    def read(self) -> tuple[int, int, float] | None:
        """Tokens of the prompt that are read, of how many, and how fast, while the server reports it."""
        total, done = _number(self.progress, "total"), _number(self.progress, "processed")
        if not total:
            return None
        ms = _number(self.progress, "time_ms")
        n_new = max(0, done - _number(self.progress, "cache"))
        return min(done, total), total, n_new / ms * 1e3 if ms else 0.0


def _number(value: object, name: str) -> int:
    """A count in an object, 0 if there is none."""
    found = obj(value).get(name)
    return int(found) if isinstance(found, int | float) and 0 < found < 1 << 40 else 0


def _speed(value: Mapping[str, Any], name: str) -> float:
    found = value.get(name)
    return float(found) if isinstance(found, int | float) and 0 < found < 1e9 else 0.0


def _joined(content: object, thought: object) -> tuple[object, object]:
    """Text and reasoning, which some servers send as a list of parts (Mistral: `text`, `thinking`)."""
    if not isinstance(content, list):
        return content, thought
    texts, thoughts = [], [thought] if isinstance(thought, str) else []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and "thinking" in part:
            inner, _ = _joined(part["thinking"], None)
            thoughts.append(inner if isinstance(inner, str) else "")
        elif isinstance(part, dict) and isinstance(text := part.get("text"), str):
            texts.append(text)
    return "".join(texts), "".join(thoughts)
