"""What one decode is known to cost at its best: milliseconds by thread count, batch size and attention span.

Owns the memory of good times, against which `threads` recognises bad ones. Knows neither load nor clocks.
"""

from __future__ import annotations

from dataclasses import dataclass

_SPAN = 256  # n_kv grows by this much (llama-kv-cache.cpp:1260)
_REACH = 4  # spans over which a neighbour's figure still stands for an unknown one


@dataclass(frozen=True, slots=True)
class Work:
    """What a decode had to do: so many tokens, each over a span of n_kv cells."""

    n_tokens: int
    n_kv: int

    @property
    def span(self) -> int:
        return self.n_kv // _SPAN

    def like(self, other: Work) -> bool:
        """Whether measured times of both may be compared: equal batches, spans next to each other."""
        return self.n_tokens == other.n_tokens and abs(self.span - other.span) <= 1


class DecodeSpeed:
    """The least ms seen for each thread count and work. A single good decode proves that the machine can do it."""

    def __init__(self) -> None:
        self._best: dict[tuple[int, int], dict[int, float]] = {}

    def best_ms(self, n_threads: int, work: Work) -> float | None:
        """The best for this work, or that of the nearest span within reach; None when nothing near is known."""
        spans = self._best.get((n_threads, work.n_tokens), {})
        nearest = min(spans, key=lambda span: abs(span - work.span), default=None)
        if nearest is None or abs(nearest - work.span) > _REACH:
            return None
        return spans[nearest]

    def learn(self, n_threads: int, work: Work, ms: float) -> None:
        spans = self._best.setdefault((n_threads, work.n_tokens), {})
        spans[work.span] = min(ms, spans.get(work.span, ms))

    def relax(self, n_threads: int, work: Work, ms: float) -> None:
        """The machine as a whole has become slower (heat, battery): `ms` is now what can be had."""
        spans = self._best.setdefault((n_threads, work.n_tokens), {})
        for span in [s for s in spans if abs(s - work.span) <= _REACH]:
            del spans[span]
        spans[work.span] = ms
