"""Mixed use for minutes to hours: does an engine get slower, larger or more scattered with time?"""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from random import Random
from typing import NamedTuple

import numpy as np
import psutil
from numpy.typing import NDArray

from kvdesk.cache.metrics import stream_metrics
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.soak_use import MixedUse, Rate
from kvdesk.experiments.statistics import figure, median, percentiles, slope_figure
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Progress,
    Result,
    Sample,
    Series,
    Table,
    Values,
    Verdict,
    number_text,
)
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

PROBE, MEMORY = marked("a token of a new chat over a bare context"), marked("resident memory")
STORES = marked("saved states and undo")
P50, P95, P99 = marked("gap P50"), marked("gap P95"), marked("gap P99")
HOLES, RUNS, USED = marked("hole ratio"), marked("free runs"), marked("cells used")
OWN, MOVED, COPIED = marked("cores used"), marked("bytes moved"), marked("bytes a copy moves")
SPEED, TOKENS = marked("bytes moved a second"), marked("tokens written")
ACTS = marked("done")
N_PROBES = 3
SLOWER, LARGER, SCATTERED = 0.05, 0.02, 0.1
"""Growth over the whole time from which it counts, if its interval excludes none: share of a token's time, share of the
memory, difference of the hole ratio. Where it does not count and the interval reaches so much, it cannot be told."""
WARM = 0.2
"""Share of the time at the beginning that does not count for memory: what is made once is made then."""
COPY_BYTES = 64 * 2**20
SHOW_S = 0.3
PARTS = 6

PARAMETERS = (
    Parameter("minutes", marked("Minutes"), 30, 0.1, 600, 1.6, marked("How long it is used"), whole=False),
    Parameter("n_ctx", marked("n_ctx"), 2048, 512, 65536, 1024, marked("Cells of its cache")),
    Parameter("looks", marked("Looks"), 30, 4, 1000, 20, marked("How often everything is looked at")),
    Parameter("tokens", marked("Tokens"), 24, 4, 256, 16, marked("Of each answer by which the speed is compared")),
)


def _settings(values: Values) -> ContextSettings:
    return ContextSettings(n_ctx=int(values["n_ctx"]), n_seq_max=6)


def _measure(bench: Bench) -> Measuring:
    settings = bench.settings.model_copy(update={"n_ctx": bench.whole("n_ctx")})
    n_looks = bench.whole("looks")
    window_s = 60 * bench.values["minutes"] / n_looks
    use = MixedUse(bench.path, settings, Random(bench.seed))
    with closing(use), bench.context(n_ctx=512, n_seq_max=1) as bare:
        weights, cell, me = _read_bytes(bench.header), use.cell_bytes, psutil.Process()
        source = np.ones(COPY_BYTES // 8)
        target = np.empty_like(source)
        _probe(bench, use, bare, 0)  # warms up
        use.take_gaps()
        rate, began, shown = Rate(), time.perf_counter(), 0.0
        for number in bench.rounds(n_looks):
            yield Progress(number, max(n_looks, number + 1), tr("{n:,} things done").format(n=sum(use.counts.values())))
            until = time.perf_counter() + window_s
            while (now := time.perf_counter()) < until:
                use.act()
                if now - shown > SHOW_S:
                    bench.show(use.snapshot())
                    shown = now
            minutes = (time.perf_counter() - began) / 60
            yield Sample(OWN, minutes, rate.take(), number, unit="cores")
            yield Sample(MEMORY, minutes, me.memory_info().rss - use.store_bytes, number, unit="B")
            yield Sample(STORES, minutes, use.store_bytes, number, unit="B")
            yield from _cells(use.snapshot(), minutes, number)
            yield from _gaps(use, weights, cell, minutes, number)
            yield Sample(COPIED, minutes, _copy_bytes_s(source, target), number, unit="B/s")
            for _ in range(N_PROBES):
                yield Sample(PROBE, minutes, _probe(bench, use, bare, number + 1), number)
            rate.take()  # what was measured is no part of the use
        for name, n in sorted(use.counts.items()):
            yield Sample(f"{ACTS}: {name}", 0, n)


def _probe(bench: Bench, use: MixedUse, bare: RawContext, number: int) -> float:
    """A token of an answer in a new chat over one in an empty context without anything, before it and after it."""
    n = bench.whole("tokens")
    before = _bare_ms(bench, bare, n)
    ours = use.probe_ms(number, n)
    return 2 * ours / (before + _bare_ms(bench, bare, n))


def _bare_ms(bench: Bench, bare: RawContext, n: int) -> float:
    text = bench.tokens(32)
    bare.clear()
    bare.read(text, 0)
    return 1e3 * median([bare.read(text[:1], len(text) + i).seconds for i in range(n)])


def _cells(snapshot: CacheSnapshot, minutes: float, number: int) -> Iterator[Sample]:
    """Of the stream that is the most scattered; nothing in a memory without cells."""
    streams = [stream_metrics(stream) for cache in snapshot.maps for stream in cache.streams]
    if streams:
        worst = max(streams, key=lambda stream: stream.hole_ratio)
        yield Sample(HOLES, minutes, worst.hole_ratio, number)
        yield Sample(RUNS, minutes, worst.n_free_runs, number)
        yield Sample(USED, minutes, sum(stream.used for stream in streams), number)


def _gaps(use: MixedUse, weights: int, cell: float, minutes: float, number: int) -> Iterator[Sample]:
    """Between two tokens of an answer, and the bytes a token moved: all weights, and K and V of the attention span."""
    gaps, n_kv = use.take_gaps()
    yield Sample(TOKENS, minutes, len(gaps), number)
    if not gaps:
        return
    for name, ms in zip((P50, P95, P99), percentiles(gaps), strict=True):
        yield Sample(name, minutes, ms, number, unit="ms")
    moved = len(gaps) * weights + cell * sum(n_kv)
    yield Sample(MOVED, minutes, moved / len(gaps), number, unit="B")
    yield Sample(SPEED, minutes, 1e3 * moved / sum(gaps), number, unit="B/s")


def _read_bytes(header: GgufHeader) -> int:
    """Bytes of weights that a token reads: of an embedding that is not the output too, it reads one row."""
    tensors = {tensor.name: tensor.n_bytes for tensor in header.tensors}
    apart = "output.weight" in tensors
    return sum(n for name, n in tensors.items() if not (apart and name == "token_embd.weight"))


def _copy_bytes_s(source: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """Bytes a second of a plain copy on one thread, read and written; the best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best


# --- what follows from it ---------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """A growth with the bar from which it counts. word: of the verdict, if it does; said: that bar as text."""

    growth: Figure
    word: str
    said: str

    @property
    def grows(self) -> bool:
        return self.growth.holds and self.growth.low is not None and self.growth.low > 0

    @property
    def undecided(self) -> bool:
        """Whether it cannot be told: it does not count, and the interval reaches one that would."""
        return not self.grows and self.growth.high is not None and self.growth.bars[0].holds(self.growth.high)

    def __str__(self) -> str:
        if self.undecided:
            return f"cannot be told whether {self.word}"
        return self.word if self.grows else f"not {self.word}"


def _short(judged: Sequence[Judged], minutes: float) -> str:
    grows = [tr(part.word) for part in judged if part.grows]
    if grows:
        said = tr("Yes: in {minutes} minutes it becomes {words}.")
        return said.format(minutes=number_text(minutes, 2), words=tr(", ").join(grows))
    if unknown := [tr(part.word) for part in judged if part.undecided]:
        said = tr("In {minutes} minutes it cannot be told whether it becomes {words}.")
        return said.format(minutes=number_text(minutes, 2), words=tr(" or ").join(unknown))
    return tr("No: in {minutes} minutes nothing grows with time.").format(minutes=number_text(minutes, 2))


def _answer(_values: Values, measured: Measured) -> Result:
    by: dict[str, list[Sample]] = defaultdict(list)
    for sample in measured.samples:
        by[sample.series].append(sample)
    end = max(sample.x for sample in by[PROBE])
    warm = [s for s in by[MEMORY] if s.x >= WARM * end]
    speed = _growth(tr("growth of a token's time"), by[PROBE], end, relative=True).at_least(SLOWER)
    memory = _growth(tr("growth of the memory"), warm, end, relative=True).at_least(LARGER)
    judged = [
        Judged(speed, marked("slower"), f"{100 * SLOWER:g} %"),
        Judged(memory, marked("larger"), f"{100 * LARGER:g} %"),
    ]
    holes = None
    if by[HOLES]:
        holes = _growth(tr("growth of the hole ratio"), by[HOLES], end, relative=False).at_least(SCATTERED)
        judged.append(Judged(holes, marked("more scattered"), f"{SCATTERED:g}"))
    *firsts, last = [str(part) for part in judged]
    gaps = {name: median([s.y for s in by[name]]) for name in (P50, P95, P99)}
    used = figure(tr("share of a copy's bandwidth"), _shares(by))
    return Result(
        Verdict(
            f"{', '.join(firsts)} and {last} with time",
            " ".join(
                (
                    _grown(holes).format(
                        minutes=number_text(end), speed=_percent(speed), memory=_percent(memory), holes=holes
                    ),
                    *_not_told(judged),
                    tr(
                        "Tokens came every {p50} ms (median; P95 {p95}, P99 {p99}). A token moved "
                        "{mb:,.0f} MB, at {share} of the speed of a plain copy on one thread."
                    ).format(
                        p50=number_text(gaps[P50]),
                        p95=number_text(gaps[P95]),
                        p99=number_text(gaps[P99]),
                        mb=median([s.y for s in by[MOVED]]) / 1e6,
                        share=used,
                    ),
                )
            ),
            _short(judged, end),
        ),
        figures=tuple(f for f in (speed, memory, holes, used) if f is not None),
        plots=(
            _plot(tr("A token of a new chat over a bare context"), tr("times as long"), by, (PROBE,)),
            _plot(tr("Gaps between two tokens"), "ms", by, (P50, P95, P99)),
            _plot(tr("Memory"), "MB", by, (MEMORY, STORES), 1e-6),
            _plot(tr("Share of cells below the high-water mark that are free"), tr(HOLES), by, (HOLES,)),
            _plot(tr("Bytes moved"), "GB/s", by, (SPEED, COPIED), 1e-9),
            _plot(tr("Processor time"), tr("cores"), by, (OWN,)),
        ),
        tables=(_over_time(by, end), _acts(by)),
        remarks=tuple(tr(remark).format(warm=WARM) for remark in REMARKS),
    )


def _grown(holes: Figure | None) -> str:
    if holes is None:
        return tr("Over {minutes} minutes of mixed use a token's time grew by {speed} and the memory by {memory}.")
    return tr(
        "Over {minutes} minutes of mixed use a token's time grew by {speed} and the memory by "
        "{memory}, the hole ratio by {holes}."
    )


def _not_told(judged: Sequence[Judged]) -> tuple[str, ...]:
    """What cannot be told, and what would help, in a sentence."""
    names = [f"{part.growth.name} ({part.said})" for part in judged if part.undecided]
    if not names:
        return ()
    said = tr(
        "Cannot be told from this run: {names}. The interval reaches beyond the value in brackets, from which growth"
        " counts; a longer run would make it narrower."
    )
    return (said.format(names=", ".join(names)),)


def _growth(name: str, samples: Sequence[Sample], end: float, *, relative: bool) -> Figure:
    """Of a straight line over the whole time; as a share of the median where it is `relative`.

    A look is one point: what is measured several times in it has the same disturbance.
    """
    points = _points(samples, 1 / median([s.y for s in samples]) if relative else 1.0)
    return slope_figure(name, [x / end for x, _ in points], [y for _, y in points])


def _percent(growth: Figure) -> str:
    low, high = growth.low or 0.0, growth.high or 0.0
    return tr("{value} % (95 %: {low} to {high})").format(
        value=number_text(100 * growth.value, 2), low=number_text(100 * low, 2), high=number_text(100 * high, 2)
    )


def _shares(by: dict[str, list[Sample]]) -> list[float]:
    """Bytes moved over those that a copy moves in the same time, in each part of the time."""
    copied = {s.round: s.y for s in by[COPIED]}
    return [s.y / copied[s.round] for s in by[SPEED]]


def _plot(title: str, unit: str, by: dict[str, list[Sample]], names: Sequence[str], scale: float = 1.0) -> Plot:
    series = [Series.of(tr(name), _points(by[name], scale)) for name in names if by[name]]
    return Plot(title, tr("minutes"), unit, tuple(series))


def _points(samples: Sequence[Sample], scale: float) -> list[tuple[float, float]]:
    """The median at each time."""
    at: dict[float, list[float]] = defaultdict(list)
    for sample in samples:
        at[sample.x].append(sample.y * scale)
    return [(x, median(ys)) for x, ys in at.items()]


def _over_time(by: dict[str, list[Sample]], end: float) -> Table:
    """Medians of each sixth of the time."""
    columns = {
        P50: 1.0, P95: 1.0, P99: 1.0, PROBE: 1.0, MEMORY: 1e-6, HOLES: 1.0, RUNS: 1.0, USED: 1.0, OWN: 1.0,
        SPEED: 1e-9, COPIED: 1e-9,
    }  # fmt: skip
    heads = (
        *(
            "P50 ms",
            "P95 ms",
            "P99 ms",
            tr("over bare"),
            tr("memory MB"),
            tr(HOLES),
            tr(RUNS),
            tr("cells"),
            tr("cores"),
        ),
        *("GB/s", tr("copy GB/s")),
    )
    rows = []
    for part in range(PARTS):
        low, high = end * part / PARTS, end * (part + 1) / PARTS
        cells = []
        for name, scale in columns.items():
            ys = [s.y * scale for s in by[name] if low < s.x <= high]
            cells.append(number_text(median(ys), 4) if ys else "–")
        rows.append((tr("{low:.3g} to {high:.3g}").format(low=low, high=high), *cells))
    return Table(tr("Over time"), (tr("minutes"), *heads), tuple(rows))


def _acts(by: dict[str, list[Sample]]) -> Table:
    rows = [
        (name.removeprefix(f"{ACTS}: "), f"{found[0].y:,.0f}") for name, found in by.items() if name.startswith(ACTS)
    ]
    tokens = sum(s.y for s in by[TOKENS])
    return Table(tr("What was done"), (tr("what"), tr("times")), (*rows, (tr(TOKENS), f"{tokens:,.0f}")))


REMARKS = (
    marked(
        "A token's time is that of an answer in a new chat beside all others, over one in an empty context without"
        " kvdesk, before it and after it; a machine that becomes slower changes both."
    ),
    marked(
        "The memory is without saved states and undo, which fill up to their own limits, and"
        " without the first {warm:.0%} of the time."
    ),
    marked(
        "Bytes moved are all weights, and K and V of the whole attention span: flash attention skips cells that are"
        " masked, so that a token may move less."
    ),
)


EXPERIMENT = Experiment(
    id="soak",
    title=marked("Hours of mixed use"),
    question=marked("Does it get slower, larger or more scattered when it is used for hours?"),
    supposed=marked("Over hours fragmentation builds up, memory grows and requests become slower."),
    parameters=PARAMETERS,
    settings=_settings,
    work=lambda values: Work(0.0, 3 * values["looks"] * N_PROBES * values["tokens"], 60 * values["minutes"]),
    measure=_measure,
    answer=_answer,
)
