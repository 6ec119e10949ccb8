"""What generation would be without any cache: everything computed again at each step, against one token a step."""

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import exponent, figure
from kvdesk.protocol.experiment import Parameter, Plot, Result, Sample, Table, Values, Verdict, number_text
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

WITH, WITHOUT = marked("with the cache"), marked("without")

PARAMETERS = (
    Parameter("longest", marked("Longest text"), 256, 16, 2048, 64,
              marked("Tokens written from one token on; also an eighth to a half")),
    Parameter("rounds", marked("Rounds"), 5, 2, 30, 3, marked("How often everything is repeated")),
)  # fmt: skip


def _lengths(values: Values) -> list[int]:
    return [int(values["longest"]) // part for part in (8, 4, 2, 1)]


def _settings(values: Values) -> ContextSettings:
    cells = max(256, pad(int(values["longest"] + 1), CTX_PAD))
    return ContextSettings(n_ctx=cells, n_seq_max=1, n_batch=cells, n_ubatch=min(cells, 512))


def _measure(bench: Bench) -> Measuring:
    lengths = _lengths(bench.values)
    (first,) = bench.tokens(1)
    with bench.context() as context:
        _write(context, first, lengths[0], cached=True)  # warms up
        for number in bench.rounds(bench.whole("rounds")):
            for i, length in enumerate(lengths):
                yield bench.progress(number, i, len(lengths), tr("{n:,} tokens").format(n=length))
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
        seconds += context.read(text[start:], start).seconds
        text.append(context.likeliest())
    return seconds


def _answer(values: Values, measured: Measured) -> Result:
    lengths, names = _lengths(values), (WITH, WITHOUT)
    ratios = [
        measured.ratio(tr("without over with, {n:,} tokens").format(n=n), (WITHOUT, n), (WITH, n)) for n in lengths
    ]
    shortest, longest = ratios[0], ratios[-1].at_least(1.0)
    cached, without = (
        figure(
            tr("exponent {name}").format(name=tr(name)),
            [exponent(lengths, seconds) for seconds in measured.by_round(name, lengths)],
        )
        for name in names
    )
    without = without.at_least(cached.value)
    rows = tuple(
        (tr(name), *(f"{number_text(measured.median(name, n))} s" for n in lengths), f"{power.value:.2f}")
        for name, power in zip(names, (cached, without), strict=True)
    )
    curves = tuple(measured.curve(name, lengths) for name in names)
    faster, steeper = longest.value > 1, without.value > cached.value
    answer = tr("Yes: without the cache {most:,} tokens take {ratio} of the time.")
    if faster:
        answer = tr("No: without the cache {most:,} tokens take {ratio} times as long.")
    return Result(
        Verdict(
            f"{'the cache' if faster else 'no cache'} is faster and grows {'less' if faster == steeper else 'more'}",
            tr(
                "{most:,} tokens take {longest} times as long without the cache, {least:,} tokens {shortest} "
                "times. Time grows as the length to the power {without} without and {cached} with it; 2 and "
                "1 are what counting tokens gives."
            ).format(
                most=lengths[-1], longest=longest, least=lengths[0], shortest=shortest, without=without, cached=cached
            ),
            answer.format(most=lengths[-1], ratio=number_text(longest.value, 2)),
        ),
        figures=(*ratios[:-1], longest, cached, without),
        plots=(Plot(tr("Seconds for a text"), tr("tokens written"), tr("seconds"), curves, log=True),),
        tables=(Table(tr("Medians"), ("", *(tr("{n:,} tokens").format(n=n) for n in lengths), tr("exponent")), rows),),
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
    answer=_answer,
)
