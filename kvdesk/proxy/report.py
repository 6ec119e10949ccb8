"""What a request reused and read again, as a line and as JSON, and the score of all.

The server's own numbers count. If it gives none, tokens are estimated from characters, which is said.
"""

from typing import Any, Final

from kvdesk.cache.reuse.prompt_change import Change, Prompt
from kvdesk.cache.reuse.score import NOT_KEPT, Score
from kvdesk.loose_json import object_in, text_in
from kvdesk.message import TurnStats
from kvdesk.printable import printable
from kvdesk.proxy.exchange import Exchange
from kvdesk.proxy.sessions import Comparison, Sessions, prompt_of, session_of
from kvdesk.server.spans import Reused
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass

CHARS_PER_TOKEN: Final = 4.0
"""Of English and code, if no server counts."""
FEW: Final = 16
"""Tokens that may be read again without a miss: the last block, the full stop at the end of a message."""
NOT_KEPT_SHARE: Final = 0.1
"""Share of a prompt that a server reads again without a miss where the prompt goes on: blocks and checkpoints are
whole."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One request. `stats`: as in a score; `is_estimated`: tokens reused are those that a cache could have."""

    number: int
    exchange: Exchange
    stats: TurnStats
    comparison: Comparison | None
    is_estimated: bool
    model: str = ""

    @property
    def reused(self) -> Reused:
        """What its span has of the cache; numbers that are estimated are left out."""
        stats = self.stats
        prompt, cached = (-1, -1) if self.is_estimated else (stats.prompt_tokens, stats.reused_tokens)
        change = self.comparison.change if self.comparison is not None else None
        cause = stats.miss or (change.cause if change is not None else "")
        return Reused(prompt, cached, stats.generated_tokens, cause, lost=stats.reread_tokens)

    @property
    def line(self) -> str:
        """Everything in one line, without signs that a terminal acts on."""
        stats, exchange = self.stats, self.exchange
        head = f"{self.number}. {exchange.path[:100]} {exchange.status}"
        if not exchange.ended:
            head += " " + tr("(broken off)")
        parts = [f"{head}: {self._counts}", *self._changes]
        if stats.miss:
            said = plural(
                "1 token was read again, about {s:.2f} s.",
                "%n tokens were read again, about {s:.2f} s.",
                stats.reread_tokens,
            )
            parts.append(said.format(s=self.seconds))
        return printable(" ".join(parts))

    @property
    def seconds(self) -> float:
        """For what was read again; 0.0 if nothing was measured."""
        return self.stats.reread_tokens / self.stats.prefill_tok_s if self.stats.prefill_tok_s else 0.0

    def as_json(self) -> dict[str, Any]:
        """For a log. `sentence` may quote the prompt."""
        stats, exchange, found = self.stats, self.exchange, self.comparison
        change = found.change if found is not None else None
        return {
            "n": self.number,
            "path": exchange.path,
            "status": exchange.status,
            "complete": exchange.ended,
            "prompt_tokens": stats.prompt_tokens,
            "reused": stats.reused_tokens,
            "read": stats.prefilled_tokens,
            "estimated": self.is_estimated,
            "first_byte_s": exchange.first_byte_s,
            "cause": stats.miss or (change.cause if change is not None else ""),
            "message": change.message if change is not None else 0,
            "field": change.field if change is not None else "",
            "position": change.position if change is not None else 0,
            "sentence": change.sentence if change is not None else "",
            "characters_again": found.overlap.again if found is not None else 0,
            "read_again": stats.reread_tokens,
            "seconds": self.seconds,
        }

    @property
    def _counts(self) -> str:
        stats, first = self.stats, self.exchange.first_byte_s
        if not stats.prompt_tokens:
            return tr("first byte after {s:.2f} s.").format(s=first)
        counts = (
            tr("about {reused:,} of {n:,} tokens could be reused, {read:,} read; first byte after {s:.2f} s.")
            if self.is_estimated
            else tr("{reused:,} of {n:,} tokens reused, {read:,} read; first byte after {s:.2f} s.")
        )
        return counts.format(reused=stats.reused_tokens, n=stats.prompt_tokens, read=stats.prefilled_tokens, s=first)

    @property
    def _changes(self) -> list[str]:
        if self.comparison is None:
            return [tr("Its prompt cannot be compared.")]
        if self.comparison.is_first:
            return [tr("It continues no earlier request.")]
        change = self.comparison.change
        if not _goes_on(self.comparison):
            return [f"{change.place}: {change.sentence}"]
        if self.stats.miss == change.cause:
            return [change.sentence]
        if self.stats.miss == NOT_KEPT:
            return [tr("It continues an earlier request, whose prompt the server did not keep.")]
        return [tr("It continues an earlier request.")]


class Reporter:
    """Explains requests in the order in which they ended. Used by one thread alone."""

    def __init__(self) -> None:
        self.score = Score()
        self.is_estimated = False  # some of its tokens are
        self._sessions = Sessions()
        self._n = 0

    def explain(self, exchange: Exchange) -> Finding:
        """What the request reused, and why not more."""
        self._n += 1
        asked = object_in(exchange.body)
        prompt = prompt_of(asked)
        comparison = None
        if prompt is not None:
            client = exchange.client + session_of(asked).encode("utf-8", "replace")
            comparison = self._sessions.compare(client, prompt)
            if exchange.status < 400:
                self._sessions.keep(client, prompt, len(exchange.body or b""))
        stats, is_estimated = _stats(exchange, comparison, _characters(prompt))
        if exchange.status < 400:
            self.score = self.score.with_request(stats)
            self.is_estimated = self.is_estimated or (is_estimated and stats.prompt_tokens > 0)
        return Finding(self._n, exchange, stats, comparison, is_estimated, text_in(asked.get("model"))[:100])

    @property
    def lines(self) -> list[str]:
        """The score of all requests."""
        lines = [self.score.sentence, *(f"  {line}" for line in self.score.lines)] if self._n else [Score().sentence]
        if self.is_estimated:
            lines.append("  " + tr("Some servers reported no numbers: tokens are estimated from characters."))
        return lines


def _characters(prompt: Prompt | None) -> int:
    if prompt is None:
        return 0
    return sum(len(part.text) for part in prompt.parts) + sum(len(text) for _, text in prompt.tools)


def _goes_on(comparison: Comparison) -> str:
    """What its server has missed if the messages of a prompt go on; "" if they do not."""
    change = comparison.change
    return {Change.NOTHING: NOT_KEPT, Change.SETTINGS: change.cause}.get(change.change, "")


def _stats(exchange: Exchange, comparison: Comparison | None, n_chars: int) -> tuple[TurnStats, bool]:
    """As a score counts them, and whether the tokens reused are an estimate."""
    usage = exchange.usage
    n = usage.prompt if usage.prompt >= 0 else round(n_chars / CHARS_PER_TOKEN)
    per_char = n / n_chars if n_chars else 0.0
    common = round(comparison.overlap.common * per_char) if comparison is not None else 0
    again = round(comparison.overlap.again * per_char) if comparison is not None else 0
    is_estimated = usage.cached < 0
    reused = min(n, common if is_estimated else usage.cached)
    again, miss = min(again, n - reused), ""
    if comparison is not None and not comparison.is_first:
        miss = comparison.change.cause
        if goes_on := _goes_on(comparison):
            again, miss = max(0, common - reused), goes_on
            again = 0 if again <= max(FEW, NOT_KEPT_SHARE * n) else again
    if again <= FEW:
        again, miss = 0, ""
    speed = usage.read_tok_s
    if not speed and exchange.is_stream and exchange.first_byte_s > 0:
        speed = (n - reused) / exchange.first_byte_s
    stats = TurnStats(
        n, reused, n - reused, usage.answer, exchange.first_byte_s * 1e3, speed, 0.0, reread_tokens=again, miss=miss
    )
    return stats, is_estimated
