"""Everything measured since the model was opened: what graphs, numbers and exports show. No Qt.

The event router calls the `add_` methods; widgets compare `revision` by a timer and draw when it has risen.
"""

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from kvdesk.cache.metrics import n_kv
from kvdesk.message import FEW_TOKENS, TurnStats
from kvdesk.protocol import cache as events
from kvdesk.translation import marked
from kvdesk.values import dataclass
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.graphs.cell_metrics import DRAWN
from kvdesk.viewmodel.graphs.graph_spec import Curve, GraphSpec
from kvdesk.viewmodel.graphs.idle import ActiveTime
from kvdesk.viewmodel.graphs.percentiles import Gaps, Percentiles, of_values
from kvdesk.viewmodel.graphs.series import Rate, Series

MAX_MARKS: Final = 1000
_PER_TOKEN: Final = ("decode", "prefill")  # operations that are no marks: they are the curve itself
_LATENCY_EVERY_S: Final = 0.25
_LOAD_GAP_S: Final = 5.0  # a longer pause between two samples is drawn as a gap
_DRAFTS: Final = 8  # batches whose guesses are one reading
_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Mark:
    """An operation on the time axis; `colour`: of its conversation, None without one."""

    operation: events.OperationDone
    colour: int | None


@dataclass(slots=True)
class CacheBytes:
    """K or V in bytes: allocated = all cells; occupied = used cells; live = the n_kv cells attention walks over."""

    allocated: float = 0.0
    occupied: float = 0.0
    live: float = 0.0


@dataclass(slots=True)
class Moved:
    """The last operation that moved K and V, such as a compaction. `after`: ms per token (P50) since then."""

    operation: events.OperationDone
    before: float | None
    after: float | None = None

    @property
    def gb_s(self) -> float | None:
        """Gigabytes per second: bytes moved over the time of the whole operation."""
        effect, ms = self.operation.effect, self.operation.ms
        return effect.bytes_moved / ms / _MB if effect and ms > 0 else None


class Named(NamedTuple):
    """A series as exports call it."""

    name: str
    unit: str
    series: Series


class Measurements:
    """Bounded: series are thinned when they grow (`Series`), marks end at `MAX_MARKS`. `clock`: time.monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.revision = 0
        self.prefill, self.decode = Rate(least=FEW_TOKENS), Rate()
        self.p50, self.p95, self.p99 = Series(), Series(), Series()
        self.token_ms, self.token_n_kv = Series(), Series()  # appended together: one point per token
        self.cells = {metric.name: Series() for metric in DRAWN}
        self.k_mb, self.kv_mb, self.live_mb = Series(), Series(), Series()
        self.hit, self.hits = Series(), Series()  # per request, cumulative; in %
        self.right = Series()  # of the tokens guessed last; in %
        self.own, self.others, self.threads = Series(), Series(), Series()
        self.marks: deque[Mark] = deque(maxlen=MAX_MARKS)
        self.active = ActiveTime()
        self.graphs = self._make_graphs()
        self.forget()

    def forget(self) -> None:
        """Another model: nothing was measured of it yet. The series stay the objects that are drawn."""
        for named in self.all_series():
            named.series.clear()
        for rate in (self.prefill, self.decode):
            rate.clear()
        self.marks.clear()
        self.active.clear()
        self.start_s: float | None = None  # of the first reading: 0 on every time axis
        self.latest_s = 0.0
        self.gaps = Gaps()
        self.k_bytes, self.v_bytes = CacheBytes(), CacheBytes()
        self.turn: TurnStats | None = None
        self.n_turns, self.prompt_tokens, self.reused_tokens = 0, 0, 0
        self.codes: Counter[int] = Counter()
        self.ledger: tuple[events.LedgerRow, ...] = ()
        self.n_refused = 0
        self.last_decode: events.SpeedSample | None = None
        self.n_decodes, self.n_split = 0, 0
        self.n_flushes, self.flushed_ms, self.flushed_cells = 0, 0.0, 0
        self.moved: Moved | None = None
        self._since_moved: deque[float] = deque(maxlen=64)
        self._drafts: deque[tuple[int, int]] = deque(maxlen=_DRAFTS)  # guessed, right
        self._n_running = 0
        self._writes = False  # answers that run have tokens
        self._token_s: float | None = None  # when the token before came
        self._latency_s = 0.0
        self._load_s: float | None = None
        self.revision += 1

    # --- what is reported ---------------------------------------------------------------------------------------------

    def add_speed(self, sample: events.SpeedSample) -> None:
        """One llama_decode. Only those that computed tokens count as speed."""
        self.codes[sample.rc] += 1
        self.last_decode = sample
        self.n_decodes += 1
        self.n_split += sample.n_ubatches > 1
        if sample.n_shifted:
            self.n_flushes += 1
            self.flushed_ms += sample.ms
            self.flushed_cells += sample.n_shifted
        if sample.rc == 0 and sample.kind == "prefill":
            self.prefill.add(sample.at_s, sample.n_tokens, sample.ms)
            if self._n_running == 1:  # with others under way, they wait for this prompt: a gap between their tokens
                self._token_s = sample.at_s
        elif sample.rc == 0 and sample.kind == "decode":
            self.prefill.finish()
            self.decode.add(sample.at_s, sample.n_tokens, sample.ms)
            self._writes = True
            self._add_token(sample)
            if sample.n_drafted:
                self._drafts.append((sample.n_drafted, sample.n_accepted))
                n_drafted, n_right = map(sum, zip(*self._drafts, strict=True))
                self.right.append(sample.at_s, 100 * n_right / n_drafted)
        self._touch(sample.at_s)
        self.active.note(sample.at_s - sample.ms / 1e3, sample.at_s)

    def start_turn(self) -> None:
        """An answer begins: gaps between its tokens count from its prompt on."""
        if not self._n_running:
            self._token_s = None
        self._n_running += 1

    @property
    def is_running(self) -> bool:
        """Whether an answer is being written."""
        return self._n_running > 0

    @property
    def tok_s(self) -> float | None:
        """Decode speed of the answers that are written now; None before their first token, and after their last."""
        return self.decode.series.last if self._writes else None

    def end_prefill(self) -> None:
        """A prompt has been read: its speed is one reading."""
        self.prefill.finish()
        self.revision += 1

    def add_turn(self, stats: TurnStats, at_s: float | None = None) -> None:
        """An answer is over, at `at_s` (now by default). Turns that never began (no prompt) say nothing."""
        at_s = self._clock() if at_s is None else at_s
        if stats.prompt_tokens:
            self._n_running = max(self._n_running - 1, 0)
            if not self._n_running:
                self._writes = False
                self._end_tokens(at_s)
            self.turn = stats
            self.n_turns += 1
            self.prompt_tokens += stats.prompt_tokens
            self.reused_tokens += stats.reused_tokens
            self.hit.append(at_s, 100 * stats.reused_tokens / stats.prompt_tokens)
            self.hits.hold(at_s, 100 * self.reused_tokens / self.prompt_tokens)
            self.active.note(at_s, at_s)
        self._touch(at_s)

    def add_view(
        self, view: events.CacheView, context: events.ContextInfo | None = None, at_s: float | None = None
    ) -> None:
        """The cache as it is. With a context, bytes too.

        In a sliding-window model a cell of the base cache is taken to be as large as one of the window's.
        """
        at_s = self._clock() if at_s is None else at_s
        first = view.snapshot.maps[0].streams if view.snapshot.maps else ()
        for metric in DRAWN:
            if metric.over_time is not None:
                self.cells[metric.name].hold(at_s, metric.over_time(metric.read(cells) for cells in first))
        streams = [cells for cache in view.snapshot.maps for cells in cache.streams]
        capacity = sum(cells.size for cells in streams)
        if context is not None and capacity:
            used, live = sum(cells.used for cells in streams), sum(n_kv(cells) for cells in streams)
            for part, size in ((self.k_bytes, context.k_bytes), (self.v_bytes, context.v_bytes)):
                part.allocated, part.occupied, part.live = size, size * used / capacity, size * live / capacity
            both = self.k_bytes.occupied + self.v_bytes.occupied
            self.k_mb.hold(at_s, self.k_bytes.occupied / _MB)
            self.kv_mb.hold(at_s, both / _MB)
            self.live_mb.hold(at_s, (self.k_bytes.live + self.v_bytes.live) / _MB)
        self._touch(at_s)

    def add_operation(self, operation: events.OperationDone, colour: int | None = None) -> None:
        """An operation on the cache, with the colour of its conversation."""
        if operation.name in _PER_TOKEN:
            return
        self.marks.append(Mark(operation, colour))
        if operation.effect is not None and operation.effect.bytes_moved:
            rolling = self.gaps.rolling()
            self.moved = Moved(operation, rolling.p50 if rolling else None)
            self._since_moved.clear()
        self._touch(operation.at_s)
        self.active.note(operation.at_s - operation.ms / 1e3, operation.at_s)

    def add_load(self, sample: events.LoadSample) -> None:
        if self._load_s is not None and sample.at_s - self._load_s > _LOAD_GAP_S:
            for series in (self.own, self.others):
                series.lift()
        self._load_s = sample.at_s
        self.own.append(sample.at_s, sample.own)
        self.others.append(sample.at_s, sample.others)
        self.threads.hold(sample.at_s, sample.n_threads)
        self._touch(sample.at_s)

    def add_refused_call(self) -> None:
        """A call was refused before it was made: llama.cpp would have aborted, or done harm."""
        self.n_refused += 1
        self.revision += 1

    def set_ledger(self, ledger: events.MemoryLedger) -> None:
        """The memory of model and context."""
        self.ledger = ledger.rows
        self.revision += 1

    # --- what is asked ------------------------------------------------------------------------------------------------

    @property
    def hit_ratio(self) -> float | None:
        """Reused over prompt tokens of all turns, 0 to 1; None before the first."""
        return self.reused_tokens / self.prompt_tokens if self.prompt_tokens else None

    def rolling(self) -> Percentiles | None:
        return self.gaps.rolling()

    def all_series(self) -> tuple[Named, ...]:
        """Every series, by name and unit: those of the graphs, and two that are drawn against each other."""
        drawn = ((curve, spec) for spec in self.graphs for curve in spec.curves)
        return (
            *(Named(curve.export or curve.name, curve.unit or spec.unit, curve.series) for curve, spec in drawn),
            Named("time per token", "ms", self.token_ms),
            Named("n_kv of the token", "cells", self.token_n_kv),
        )

    # --- private ------------------------------------------------------------------------------------------------------

    def _make_graphs(self) -> tuple[GraphSpec, ...]:
        """Every graph over time, from top to bottom: the one list that the graphs, their legends and exports read."""

        def row(unit: str, *curves: tuple[str, str, Series]) -> GraphSpec:
            inks = (palette.BLUE, palette.ORANGE, palette.SILVER)
            drawn = zip(curves, inks, strict=True)
            return GraphSpec(unit, tuple(Curve(name, series, ink, export=full) for (name, full, series), ink in drawn))

        hits = (
            Curve(marked("prefix hits"), self.hit, palette.ORANGE, "points", "prefix hit of the request"),
            Curve(marked("cumulative"), self.hits, palette.SILVER, export="prefix hit cumulative"),
            Curve(marked("guesses right"), self.right, palette.BLUE),
        )
        processors = (
            Curve("kvdesk", self.own, palette.BLUE, export="processor, this process"),
            Curve(marked("others"), self.others, palette.ORANGE, export="processor, others"),
            Curve(marked("threads"), self.threads, palette.SILVER, unit=marked("threads")),
        )
        cells = tuple(
            GraphSpec(
                unit,
                tuple(Curve(m.name, self.cells[m.name], m.ink, export=m.export) for m in DRAWN if m.unit == unit),
                under_map=unit == "cells",
            )
            for unit in dict.fromkeys(metric.unit for metric in DRAWN)
        )
        return (
            GraphSpec(
                marked("tok/s"),
                (Curve(marked("prefill"), self.prefill.series, palette.ORANGE, "dots"),),
                under_map=True,
            ),
            GraphSpec(marked("tok/s"), (Curve(marked("decode"), self.decode.series, palette.BLUE),), under_map=True),
            row(
                "ms",
                (marked("between tokens P50"), "inter-token latency P50", self.p50),
                ("P95", "inter-token latency P95", self.p95),
                ("P99", "inter-token latency P99", self.p99),
            ),
            *cells,
            row(
                "MB",
                ("K", "K occupied", self.k_mb),
                (marked("K and V"), "K and V occupied", self.kv_mb),
                (marked("up to n_kv"), "K and V up to n_kv", self.live_mb),
            ),
            GraphSpec("%", hits, top=100.0),
            GraphSpec(marked("cores"), processors),
        )

    def _add_token(self, sample: events.SpeedSample) -> None:
        if sample.n_tokens == 1 and not sample.n_drafted:
            self.token_ms.append(sample.at_s, sample.ms)
            self.token_n_kv.append(sample.at_s, sample.n_kv)
        before, self._token_s = self._token_s, sample.at_s if self._n_running else None
        if before is None:
            return
        gap = (sample.at_s - before) * 1e3
        for i in range(sample.n_tokens):  # one for each answer; right guesses come at the same moment
            self.gaps.add(gap if i < max(1, sample.n_tokens - sample.n_accepted) else 0.0)
        if self.moved is not None:
            self._since_moved.append(gap)
            self.moved.after = of_values(self._since_moved).p50
        if sample.at_s - self._latency_s >= _LATENCY_EVERY_S:
            self._add_latency(sample.at_s)

    def _end_tokens(self, at_s: float) -> None:
        """Nothing is being answered any more: what comes next is drawn apart."""
        self.prefill.finish()
        self.decode.finish()
        self.right.lift()
        self._drafts.clear()
        self._add_latency(at_s)
        self._token_s = None
        for series in (self.p50, self.p95, self.p99):
            series.lift()

    def _add_latency(self, at_s: float) -> None:
        rolling = self.gaps.rolling()
        if rolling is not None and self._token_s is not None:
            for series, value in zip((self.p50, self.p95, self.p99), rolling, strict=True):
                series.append(at_s, value)
        self._latency_s = at_s

    def _touch(self, at_s: float) -> None:
        if self.start_s is None:
            self.start_s = at_s
        self.latest_s = max(self.latest_s, at_s)
        self.revision += 1
