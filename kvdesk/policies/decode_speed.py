"""What a decoded token is known to cost at its best: milliseconds by thread count, batch size and attention span.

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

    @property
    def size(self) -> int:
        """1, 2, 3-4, 5-8 tokens and so on: within each a token costs about the same."""
        return (self.n_tokens - 1).bit_length()

    def like(self, other: Work) -> bool:
        """Whether measured times of both may be compared: batches alike, spans next to each other."""
        return self.size == other.size and abs(self.span - other.span) <= 1


class DecodeSpeed:
    """The least ms a token seen for each thread count and work. One good decode proves that the machine can do it."""

    def __init__(self) -> None:
        self._best: dict[tuple[int, int], dict[int, float]] = {}

    def best_ms(self, n_threads: int, work: Work) -> float | None:
        """The best for this work, or that of the nearest span within reach; None when nothing near is known."""
        spans = self._best.get((n_threads, work.size), {})
        nearest = min(spans, key=lambda span: abs(span - work.span), default=None)
        if nearest is None or abs(nearest - work.span) > _REACH:
            return None
        return spans[nearest]

    def learn(self, n_threads: int, work: Work, ms: float) -> None:
        spans = self._best.setdefault((n_threads, work.size), {})
        spans[work.span] = min(ms, spans.get(work.span, ms))

    def relax(self, n_threads: int, work: Work, ms: float) -> None:
        """The machine as a whole has become slower (heat, battery): `ms` is now what can be had."""
        spans = self._best.setdefault((n_threads, work.size), {})
        for span in [s for s in spans if abs(s - work.span) <= _REACH]:
            del spans[span]
        spans[work.span] = ms
