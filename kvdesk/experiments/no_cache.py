"""What generation would be without any cache: everything computed again at each step, against one token a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Work
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import exponent, figure, uncertain
from kvdesk.protocol.experiment import Parameter, Plot, Point, Progress, Result, Sample, Series, Table, Values, Verdict
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

WITH, WITHOUT = marked("with the cache"), marked("without")

PARAMETERS = (
    Parameter(
        "longest",
        marked("Longest text"),
        256,
        16,
        2048,
        64,
        marked("Tokens written from one token on; also an eighth to a half"),
    ),
    Parameter("rounds", marked("Rounds"), 5, 2, 30, 3, marked("How often everything is repeated")),
)


def _lengths(values: Values) -> list[int]:
    return [int(values["longest"]) // part for part in (8, 4, 2, 1)]


def _settings(values: Values) -> ContextSettings:
    cells = max(256, pad(int(values["longest"] + 1), CTX_PAD))
    return ContextSettings(n_ctx=cells, n_seq_max=1, n_batch=cells, n_ubatch=min(cells, 512))


def _measure(bench: Bench) -> Iterator[Progress | Sample]:
    lengths = _lengths(bench.values)
    (first,) = bench.tokens(1)
    with bench.context() as context:
        _write(context, first, lengths[0], cached=True)  # warms up
        for number in bench.rounds(bench.whole("rounds")):
            for i, length in enumerate(lengths):
                yield bench.progress(number, i, len(lengths), tr("{n} tokens").format(n=length))
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
        figure(
            tr("without over with, {n} tokens").format(n=n), [times[WITHOUT, n, i] / times[WITH, n, i] for i in rounds]
        )
        for n in lengths
    ]
    powers = {
        name: figure(
            tr("exponent {name}").format(name=tr(name)),
            [exponent(lengths, [times[name, n, i] for n in lengths]) for i in rounds],
        )
        for name in (WITH, WITHOUT)
    }
    series = []
    rows = []
    for name in (WITH, WITHOUT):
        figures = [figure("", [times[name, length, n] for n in rounds], "s") for length in lengths]
        series.append(
            Series(tr(name), tuple(Point(x, f.value, f.low, f.high) for x, f in zip(lengths, figures, strict=True)))
        )
        rows.append((tr(name), *(f"{f.value:.3g} s" for f in figures), f"{powers[name].value:.2f}"))
    longest = ratios[-1]
    faster = longest.value > 1
    steeper = powers[WITHOUT].value > powers[WITH].value
    return Result(
        Verdict(
            f"{'the cache' if faster else 'no cache'} is faster and grows {'less' if faster == steeper else 'more'}",
            tr(
                "{most} tokens take {longest} times as long without the cache, {least} tokens {shortest} "
                "times. Time grows as the length to the power {without} without and {cached} with it; 2 and "
                "1 are what counting tokens gives."
            ).format(
                most=lengths[-1],
                longest=longest,
                least=lengths[0],
                shortest=ratios[0],
                without=powers[WITHOUT],
                cached=powers[WITH],
            ),
            (
                tr("No: without the cache {most} tokens take {ratio:.2g} times as long.")
                if faster
                else tr("Yes: without the cache {most} tokens take {ratio:.2g} of the time.")
            ).format(most=lengths[-1], ratio=longest.value),
        ),
        figures=(*ratios, *powers.values()),
        plots=(Plot(tr("Seconds for a text"), tr("tokens written"), tr("seconds"), tuple(series), log=True),),
        tables=(
            Table(tr("Medians"), ("", *(tr("{n} tokens").format(n=n) for n in lengths), tr("exponent")), tuple(rows)),
        ),
        remarks=uncertain((longest, 1.0), (powers[WITHOUT], powers[WITH].value)),
    )


def _work(values: Values) -> Work:
    lengths = _lengths(values)
    return Work(values["rounds"] * sum(n * (n + 1) / 2 for n in lengths), values["rounds"] * sum(lengths))


EXPERIMENT = Experiment(
    id="no-cache",
    title=marked("Without a cache"),
    question=marked("If a cache makes requests slow, would they be faster without one?"),
    supposed=marked("Without a cache each step computes the whole text again: N² against N, but steady."),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    conclude=_conclude,
)
