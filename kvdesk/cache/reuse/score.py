"""What the cache saved a run of requests, and what it missed: counts, causes and sentences.

Pure: the figures of requests (`TurnStats`) are added up. A miss is a request that read tokens again which the cache had
held; new text is none, nor is the first request of a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kvdesk.cache.reuse.explain import Cause
from kvdesk.cache.reuse.prompt_change import Change
from kvdesk.cache.reuse.usual_causes import UsualCause
from kvdesk.message import TurnStats
from kvdesk.translation import marked, plural, tr
from kvdesk.values import dataclass, field

NOT_SHARED: Final = "not shared"
"""The client wanted nothing of the cache (`cache_prompt`)."""
NOT_KEPT: Final = "not kept"
"""The prompt goes on from the one before, and its server has read it again."""
_OTHER: Final = marked("prompt changed")
_LABELS: Final[dict[str, str]] = {
    UsualCause.DATE: marked("date or time in the system prompt"),
    UsualCause.ATTRIBUTION: marked("attribution header that changes"),
    UsualCause.IDENTIFIER: marked("identifier or header that changes"),
    UsualCause.TOOLS: marked("tools reordered or changed"),
    UsualCause.REASONING: marked("earlier reasoning left out"),
    UsualCause.BLANKS: marked("earlier answer written again"),
    UsualCause.CALL_IDS: marked("calls with other ids"),
    UsualCause.FIELD_ORDER: marked("arguments of a call in another order"),
    UsualCause.NULL_FIELDS: marked("arguments of a call without null fields"),
    Cause.EDITED: marked("message changed"),
    Cause.THINKING: marked("earlier reasoning left out"),
    Cause.BLANKS: marked("earlier answer with other blank lines"),
    Cause.RETOKENIZED: marked("same text, other tokens"),
    Cause.CHECKPOINT: marked("state restored from a checkpoint"),
    Cause.RECURRENT: marked("recurrent state that cannot be cut"),
    Cause.WINDOW: marked("sliding window no longer in the cache"),
    Cause.EVICTED: marked("evicted"),
    Cause.EXACT: marked("exact answers reuse whole blocks only"),
    Change.TOOLS_GONE: marked("tools left out"),
    Change.TOOLS_REORDERED: marked("tools reordered"),
    Change.TOOLS_CHANGED: marked("tools changed or added"),
    Change.ROLE_CHANGED: marked("role changed"),
    Change.FRONT_CUT: marked("front cut"),
    Change.DROPPED: marked("message dropped"),
    Change.INSERTED: marked("message inserted"),
    Change.BLOCK_MOVED: marked("block moved"),
    Change.COMPACTED: marked("conversation compacted"),
    Change.SETTINGS: marked("template arguments changed"),
    NOT_SHARED: marked("reuse switched off by the program"),
    NOT_KEPT: marked("not kept by the server"),
}


@dataclass(frozen=True, slots=True)
class Misses:
    """Requests that missed for one cause: how many, the tokens that were read again, and the seconds that took."""

    n: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """Requests, their prompts in tokens, and how much of that was reused. `misses`: by cause (`TurnStats.miss`)."""

    requests: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    misses: Mapping[str, Misses] = field(default_factory=dict)

    def with_request(self, stats: TurnStats) -> Score:
        """The score after one more request; unchanged if that never began."""
        if not stats.prompt_tokens:
            return self
        seconds = stats.reread_tokens / stats.prefill_tok_s if stats.prefill_tok_s else 0.0
        misses = {stats.miss: Misses(1, stats.reread_tokens, seconds)} if stats.miss else {}
        return total((self, Score(1, stats.prompt_tokens, stats.reused_tokens, misses)))

    @property
    def share(self) -> int:
        """Reused share of the prompts in per cent, rounded down, so that only all is 100."""
        return 100 * self.reused_tokens // self.prompt_tokens if self.prompt_tokens else 0

    @property
    def sentence(self) -> str:
        """For example "94 % reused; 3 misses: tools reordered or changed (2), message changed (1)"."""
        if not self.requests:
            return tr("No request came.")
        reused = tr("{share} % reused").format(share=self.share)
        if not self.misses:
            return tr("{reused}; no misses").format(reused=reused)
        named = tr(", ").join(f"{label_of(cause)} ({found.n})" for cause, found in self._sorted)
        n = sum(found.n for found in self.misses.values())
        misses = plural("1 miss", "%n misses", n)
        return tr("; ").join((reused, f"{misses}: {named}"))

    @property
    def lines(self) -> list[str]:
        """The counts, then each cause with its tokens and seconds."""
        counts = plural(
            "{prompt:,} prompt tokens in 1 request, {reused:,} reused",
            "{prompt:,} prompt tokens in %n requests, {reused:,} reused",
            self.requests,
        )
        counts = counts.format(prompt=self.prompt_tokens, reused=self.reused_tokens)
        said = tr("{label}: {tokens:,} tokens read again, {seconds:.1f} s")
        return [
            counts,
            *(
                said.format(label=label_of(cause), tokens=found.tokens, seconds=found.seconds)
                for cause, found in self._sorted
            ),
        ]

    @property
    def _sorted(self) -> list[tuple[str, Misses]]:
        """The most expensive cause first."""
        return sorted(self.misses.items(), key=lambda item: (-item[1].tokens, item[0]))

    def as_json(self) -> dict[str, Any]:
        misses = {
            cause: {"n": found.n, "tokens": found.tokens, "seconds": found.seconds} for cause, found in self._sorted
        }
        counts = {"requests": self.requests, "prompt_tokens": self.prompt_tokens, "reused_tokens": self.reused_tokens}
        return {**counts, "misses": misses}


def total(scores: Iterable[Score]) -> Score:
    """Several scores as one."""
    misses: dict[str, Misses] = {}
    requests = prompt = reused = 0
    for score in scores:
        requests, prompt = requests + score.requests, prompt + score.prompt_tokens
        reused += score.reused_tokens
        for cause, found in score.misses.items():
            before = misses.get(cause, Misses())
            misses[cause] = Misses(before.n + found.n, before.tokens + found.tokens, before.seconds + found.seconds)
    return Score(requests, prompt, reused, misses)


def from_json(found: Mapping[str, Any]) -> Score:
    """What `as_json` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    misses = {
        str(cause): Misses(int(one["n"]), int(one["tokens"]), float(one["seconds"]))
        for cause, one in dict(found["misses"]).items()
    }
    return Score(int(found["requests"]), int(found["prompt_tokens"]), int(found["reused_tokens"]), misses)


def label_of(cause: str) -> str:
    """A cause in a few words."""
    return tr(_LABELS.get(cause, _OTHER))
