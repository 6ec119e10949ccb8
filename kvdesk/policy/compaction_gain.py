"""Whether compacting the cache now pays back: learned cost of the attention span against the time it takes.

ms of a decoded token = a + b n_kv + c visible cells. Without flash attention everything hangs on n_kv and holes are
dear; with it nearly everything hangs on the visible cells, and compaction buys little. Which it is, and how much, is
measured here, never assumed. Pure. Must never know the engine.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass

import numpy as np

from kvdesk.policy.fit import Vector, robust_fit

_SPAN = 256
_KEPT = 8  # times kept for one kind of decode; their median counts
_KINDS = 64
_FEWEST_KINDS = 3  # before these the parts of the cost cannot be told apart
PAYS_IDLE = 1.5
"""While idle: the gain must be so many times the cost."""
PAYS_BUSY, LARGE_MS = 8.0, 1_000.0
"""Between two answers of a busy machine: so many times the cost, and at least so many ms."""


@dataclass(frozen=True, slots=True)
class Fragmented:
    """The cache now: span, span after compaction, cells the next token sees, bytes of a whole state blob."""

    n_kv: int
    n_kv_after: int
    n_visible: int
    blob_bytes: int


@dataclass(frozen=True, slots=True)
class Moment:
    """When it is asked: in_answer while any turn runs; n_expected: tokens likely to be decoded before the cache
    changes by itself.
    """

    in_answer: bool
    idle: bool
    n_expected: int
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class CompactionVerdict:
    """compact, and why, in words and numbers. Times in ms; 0.0 where nothing is known."""

    compact: bool
    reason: str
    gain_ms: float = 0.0
    cost_ms: float = 0.0


class SpanCost:
    """Learns ms of one decoded token by span and visible cells, and how fast blobs are copied. One a thread count."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, int], deque[float]] = {}
        self._blobs: deque[float] = deque(maxlen=_KEPT)
        self._line: Vector | None = None

    def learn(self, n_kv: int, n_visible: int, ms: float) -> None:
        """One token over `n_kv` cells, of which it saw `n_visible`, took `ms`."""
        key = (n_kv // _SPAN, n_visible // _SPAN)
        taken = self._kinds.pop(key, deque(maxlen=_KEPT))
        taken.append(ms)
        self._kinds[key] = taken
        if len(self._kinds) > _KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._line = None

    def learn_blob(self, n_bytes: int, ms: float) -> None:
        """Saving and restoring a state of `n_bytes` took `ms` together."""
        if n_bytes > 0:
            self._blobs.append(ms / n_bytes)

    @property
    def known(self) -> bool:
        """Whether spans and visible cells were different enough to tell their costs apart."""
        return len(self._kinds) >= _FEWEST_KINDS and len({n_kv - seen for n_kv, seen in self._kinds}) > 1

    def saved_ms(self, n_kv: int, n_kv_after: int) -> float:
        """What a token gains when the span shrinks. 0.0 while not `known`."""
        if not self.known:
            return 0.0
        if self._line is None:
            rows = [(1.0, (n_kv + 0.5) * _SPAN, (seen + 0.5) * _SPAN) for n_kv, seen in self._kinds]
            self._line = robust_fit(rows, [statistics.median(taken) for taken in self._kinds.values()])
        return float(np.float64(self._line[1])) * (n_kv - n_kv_after)

    def blob_ms(self, n_bytes: int) -> float | None:
        """To save and restore `n_bytes`; None before the first."""
        return statistics.median(self._blobs) * n_bytes if self._blobs else None


def judge_compaction(cost: SpanCost, cache: Fragmented, moment: Moment, default_gb_s: float = 0.5) -> CompactionVerdict:
    """Compact now? `default_gb_s` stands in until a blob was measured."""
    if not moment.enabled:
        return CompactionVerdict(False, "Automatic compaction is off.")
    if moment.in_answer:
        return CompactionVerdict(False, "An answer is being made: never in the middle of one.")
    if cache.n_kv_after >= cache.n_kv:
        return CompactionVerdict(False, f"Attention walks over {cache.n_kv:,} cells, and would after compacting too.")
    if not cost.known:
        return CompactionVerdict(False, "What the span costs on this machine has not been measured yet.")
    saved = cost.saved_ms(cache.n_kv, cache.n_kv_after)
    gain = saved * moment.n_expected
    taken = cost.blob_ms(cache.blob_bytes)
    price = cache.blob_bytes / default_gb_s / 1e6 if taken is None else taken
    numbers = (
        f"{cache.n_kv:,} -> {cache.n_kv_after:,} cells saves {saved:.2f} ms a token, {gain:,.0f} ms over the next "
        f"{moment.n_expected:,} tokens, and costs {price:,.0f} ms"
    )
    if moment.idle and gain > PAYS_IDLE * price:
        return CompactionVerdict(True, f"Idle, and it pays: {numbers}.", gain, price)
    if gain > PAYS_BUSY * price and gain > LARGE_MS:
        return CompactionVerdict(True, f"The gain is large: {numbers}.", gain, price)
    return CompactionVerdict(False, f"It does not pay{'' if moment.idle else ' now'}: {numbers}.", gain, price)
