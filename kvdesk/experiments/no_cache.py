"""What generation would be without any cache: everything computed again at each step, against one token a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Work
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import exponent, figure
from kvdesk.protocol.experiment import Parameter, Plot, Point, Progress, Result, Sample, Series, Table, Values, Verdict
from kvdesk.settings import ContextSettings

WITH, WITHOUT = "with the cache", "without"

PARAMETERS = (
    Parameter(
        "longest", "Longest text", 256, 16, 2048, 64, "Tokens written from one token on; also an eighth to a half"
    ),
    Parameter("rounds", "Rounds", 5, 2, 30, 3, "How often everything is repeated"),
)


def _lengths(values: Values) -> list[int]:
    return [int(values["longest"]) // part for part in (8, 4, 2, 1)]


def _settings(values: Values) -> ContextSettings:
    cells = max(256, -(-int(values["longest"] + 1) // 256) * 256)
    return ContextSettings(n_ctx=cells, n_seq_max=1, n_batch=cells, n_ubatch=min(cells, 512))


def _measure(bench: Bench) -> Iterator[Progress | Sample]:
    lengths = _lengths(bench.values)
    (first,) = bench.tokens(1)
    with bench.context() as context:
        _write(context, first, lengths[0], cached=True)  # warms up
        for number in bench.rounds(bench.whole("rounds")):
            for i, length in enumerate(lengths):
                yield bench.progress(number, i, len(lengths), f"{length} tokens")
                for cached in (True, False):
                    seconds = _write(context, first, length, cached=cached)
                    yield Sample(WITH if cached else WITHOUT, length, seconds, number, unit="s")


def _write(context: RawContext, first: int, n: int, *, cached: bool) -> float:
    """Seconds in llama_decode for `n` tokens, each the likeliest."""
    context.clear()
    text, seconds = [first], 0.0
    for _ in range(n):
        if not cached:
            context.clear()
        start = len(text) - 1 if cached else 0
        seconds += context.append(text[start:], start).seconds
        text.append(context.likeliest())
    return seconds


def _conclude(values: Values, samples: Sequence[Sample]) -> Result:
    times = {(sample.series, int(sample.x), sample.round): sample.y for sample in samples}
    rounds = sorted({sample.round for sample in samples})
    lengths = _lengths(values)
    ratios = [
        figure(f"without over with, {n} tokens", [times[WITHOUT, n, i] / times[WITH, n, i] for i in rounds])
        for n in lengths
    ]
    powers = {
        name: figure(f"exponent {name}", [exponent(lengths, [times[name, n, i] for n in lengths]) for i in rounds])
        for name in (WITH, WITHOUT)
    }
    series = []
    rows = []
    for name in (WITH, WITHOUT):
        figures = [figure("", [times[name, length, n] for n in rounds], "s") for length in lengths]
        series.append(
            Series(name, tuple(Point(x, f.value, f.low, f.high) for x, f in zip(lengths, figures, strict=True)))
        )
        rows.append((name, *(f"{f.value:.3g} s" for f in figures), f"{powers[name].value:.2f}"))
    longest = ratios[-1]
    faster = longest.value > 1
    steeper = powers[WITHOUT].value > powers[WITH].value
    return Result(
        Verdict(
            f"{'the cache' if faster else 'no cache'} is faster and grows {'less' if faster == steeper else 'more'}",
            f"{lengths[-1]} tokens take {longest} times as long without the cache, {lengths[0]} tokens {ratios[0]}"
            f" times. Time grows as the length to the power {powers[WITHOUT]} without and {powers[WITH]} with it;"
            " 2 and 1 are what counting tokens gives.",
        ),
        figures=(*ratios, *powers.values()),
        plots=(Plot("Seconds for a text", "tokens written", "seconds", tuple(series), log=True),),
        tables=(Table("Medians", ("", *(f"{n} tokens" for n in lengths), "exponent"), tuple(rows)),),
    )


def _work(values: Values) -> Work:
    lengths = _lengths(values)
    return Work(values["rounds"] * sum(n * (n + 1) / 2 for n in lengths), values["rounds"] * sum(lengths))


EXPERIMENT = Experiment(
    id="no-cache",
    title="Without a cache",
    question="If a cache makes requests slow, would they be faster without one?",
    supposed="Without a cache each step computes the whole text again: N² against N, but steady.",
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    conclude=_conclude,
)
