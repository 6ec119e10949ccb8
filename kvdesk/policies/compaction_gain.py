"""Whether compacting the cache now pays back: learned cost of the attention span against the time it takes.

ms of a decoded token = a + b n_kv + c visible cells. Without flash attention everything hangs on n_kv and holes are
dear; with it nearly everything hangs on the visible cells, and compaction buys little. How much is measured here; where
the measured times do not tell, the bytes that a token reads do. Pure. Must never know the engine.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass

from kvdesk.policies.fit import Guess, Line, at, robust_fit
from kvdesk.translation import tr

_SPAN = 256
_KEPT = 8  # times kept for one kind of decode; the least counts
_KINDS = 64
_FEWEST_KINDS = 3  # before these the parts of the cost cannot be told apart
_SKIPPED = 0.1  # of what a cell costs where it is masked: its mask is looked at all the same
PAYS_IDLE = 1.5
"""While idle: the gain must be so many times the cost."""
NOTICED = 0.05
"""Share of a token's time below which nobody notices what is saved: not worth adding sums in another order."""
PAYS_BUSY, LARGE_MS = 8.0, 1_000.0
"""Between two answers of a busy machine: so many times the cost, and at least so many ms."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Bytes that a decoded token reads: all weights, and K and V of each cell; `skips`: not of masked cells."""

    weights: int
    cell: int
    skips: bool


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
    changes by itself; noticed: share of a token's time below which the gain does not count.
    """

    in_answer: bool
    idle: bool
    n_expected: int
    enabled: bool = True
    noticed: float = NOTICED


@dataclass(frozen=True, slots=True)
class CompactionVerdict:
    """Whether to compact, and why, in words with the numbers."""

    compact: bool
    reason: str


class SpanCost:
    """Learns ms of one decoded token by span and visible cells, for each number of threads, and how fast blobs are
    copied.

    Whatever else the machine does makes a token slower, never quicker. So the least time of a kind counts, and no token
    is taken to cost more than one that was measured over a longer span.
    """

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._all: dict[int, dict[tuple[int, int], deque[float]]] = {}
        self._kinds: dict[tuple[int, int], deque[float]] = {}  # of the number of threads used last
        self._blobs: deque[float] = deque(maxlen=_KEPT)
        self._line: Line | None = None

    def learn(self, n_kv: int, n_visible: int, ms: float, n_threads: int = 1) -> None:
        """One token over `n_kv` cells, of which it saw `n_visible`, took `ms`."""
        kinds = self._kinds = self._all.setdefault(n_threads, {})
        key = (n_kv // _SPAN, n_visible // _SPAN)
        taken = kinds.pop(key, deque(maxlen=_KEPT))
        taken.append(ms)
        kinds[key] = taken
        if len(kinds) > _KINDS:
            del kinds[next(iter(kinds))]
        self._line = None

    def learn_blob(self, n_bytes: int, ms: float) -> None:
        """Saving and restoring a state of `n_bytes` took `ms` together."""
        if n_bytes > 0:
            self._blobs.append(ms / n_bytes)

    @property
    def known(self) -> bool:
        """Whether spans and visible cells were different enough to tell their costs apart."""
        return len(self._kinds) >= _FEWEST_KINDS and len({n_kv - seen for n_kv, seen in self._kinds}) > 1

    def ms(self, n_kv: int, n_visible: int) -> float:
        """What a token costs on a quiet machine. 0.0 before the first token."""
        if self._line is None and self._kinds:
            self._line = self._fit()
        return at(self._line, (1.0, n_kv, n_visible)) if self._line else 0.0

    def saved_ms(self, n_kv: int, n_kv_after: int) -> float:
        """What a token gains when the span shrinks. 0.0 before the first token."""
        return self.ms(n_kv, 0) - self.ms(n_kv_after, 0)

    def _fit(self) -> Line:
        least = {kind: min(taken) for kind, taken in self._kinds.items()}
        rows, ms = [], []
        for n_kv, seen in least:
            rows.append((1.0, float(n_kv * _SPAN), (seen + 0.5) * _SPAN))
            ms.append(min(t for (n, s), t in least.items() if n >= n_kv and s >= seen))
        ms_a_byte = min(t / (self._reads.weights + self._read(row)) for row, t in zip(rows, ms, strict=True))
        cell = max(self._reads.cell, 1) * ms_a_byte
        full, masked = Guess(cell, cell), Guess(0.0, _SKIPPED * cell)
        return robust_fit(rows, ms, (None, masked, full) if self._reads.skips else (None, full, masked))

    def _read(self, row: tuple[float, float, float]) -> float:
        """Bytes of cells that a token of this kind reads."""
        return self._reads.cell * (row[2] if self._reads.skips else row[1])

    def blob_ms(self, n_bytes: int) -> float | None:
        """To save and restore `n_bytes`; None before the first."""
        return statistics.median(self._blobs) * n_bytes if self._blobs else None


def judge_compaction(cost: SpanCost, cache: Fragmented, moment: Moment, default_gb_s: float = 2.5) -> CompactionVerdict:
    """Compact now? `default_gb_s` stands in until a blob was measured."""
    if not moment.enabled:
        return CompactionVerdict(False, tr("Automatic compaction is off."))
    if moment.in_answer:
        return CompactionVerdict(False, tr("An answer is being written: the cache is compacted only between answers."))
    if cache.n_kv_after >= cache.n_kv:
        said = tr("Attention reads {n:,} cells, and would after compacting too.")
        return CompactionVerdict(False, said.format(n=cache.n_kv))
    saved = cost.saved_ms(cache.n_kv, cache.n_kv_after)
    now = cost.ms(cache.n_kv, cache.n_visible)
    if saved <= moment.noticed * now:
        said = tr("Too little to be noticed: it saves {saved:.2f} of {now:.1f} ms a token.")
        return CompactionVerdict(False, said.format(saved=saved, now=now))
    gain = saved * moment.n_expected
    taken = cost.blob_ms(cache.blob_bytes)
    price = cache.blob_bytes / default_gb_s / 1e6 if taken is None else taken
    estimated = "" if cost.known else tr(" (estimated from the bytes of a cell)")
    numbers = tr(
        "{n_kv:,} -> {n_kv_after:,} cells saves {saved:.2f} ms a token{estimated}, {gain:,.0f} ms over the next "
        "{n_expected:,} tokens, and costs {price:,.0f} ms"
    ).format(
        n_kv=cache.n_kv,
        n_kv_after=cache.n_kv_after,
        saved=saved,
        estimated=estimated,
        gain=gain,
        n_expected=moment.n_expected,
        price=price,
    )
    if moment.idle and gain > PAYS_IDLE * price:
        return CompactionVerdict(True, tr("Idle, and it pays: {numbers}.").format(numbers=numbers))
    if gain > PAYS_BUSY * price and gain > LARGE_MS:
        return CompactionVerdict(True, tr("The gain is large: {numbers}.").format(numbers=numbers))
    said = tr("It does not pay: {numbers}.") if moment.idle else tr("It does not pay now: {numbers}.")
    return CompactionVerdict(False, said.format(numbers=numbers))
