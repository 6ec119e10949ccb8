"""How many threads are best: one token and a prompt by thread count, on a quiet machine and beside busy processes."""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.busy import busy_processes
from kvdesk.experiments.experiment import Experiment, Measuring, Work
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.raw_context import RawContext
from kvdesk.protocol.experiment import (
    Parameter,
    Plot,
    Result,
    Sample,
    Table,
    Values,
    Verdict,
    number_text,
    series_title,
)
from kvdesk.settings import ContextSettings, default_threads
from kvdesk.translation import marked, tr

WRITTEN, READ = marked("one token"), marked("a prompt")
QUIET, ONE = marked("quiet"), marked("beside one busy process")
MUCH = 1.15
"""Ratio of times from which one number of threads is said to be better than another."""

PARAMETERS = (
    Parameter("tokens", marked("Tokens"), 16, 4, 256, 8, marked("Written in each round with each number of threads")),
    Parameter("prompt", marked("Prompt"), 256, 32, 2048, 128,
              marked("Tokens of the prompt that is read in each round")),
    Parameter("rounds", marked("Rounds"), 9, 2, 50, 5, marked("How often everything is repeated")),
)  # fmt: skip


def _counts() -> list[int]:
    """Thread counts: one, the physical cores, the logical ones, and more than there are."""
    cores, logical = default_threads(), os.cpu_count() or 1
    return sorted({1, max(1, cores // 2), cores, logical, 2 * logical})


def _measure(bench: Bench) -> Measuring:
    prompt, counts = bench.tokens(bench.whole("prompt")), _counts()
    with bench.context() as context:
        context.read(prompt, 0)  # warms up
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 0, 2, tr("{what}, round {n}").format(what=tr(QUIET), n=number + 1))
            yield from _round(context, bench, prompt, counts, QUIET, number)
        with busy_processes(1):
            for number in range(bench.whole("rounds")):
                yield bench.progress(number, 1, 2, tr("{what}, round {n}").format(what=tr(ONE), n=number + 1))
                yield from _round(context, bench, prompt, counts, ONE, number)


def _round(
    context: RawContext, bench: Bench, prompt: list[int], counts: Sequence[int], load: str, number: int
) -> Iterator[Sample]:
    """All thread counts in turn, every other round the other way round."""
    n = bench.whole("tokens")
    for count in counts if number % 2 == 0 else reversed(counts):
        context.set_threads(count)
        context.clear()
        yield Sample(f"{READ}, {load}", count, context.read(prompt, 0).seconds, number, unit="s")
        seconds = sum(context.read(prompt[:1], len(prompt) + i).seconds for i in range(n))
        yield Sample(f"{WRITTEN}, {load}", count, seconds / n, number, unit="s")
    context.set_threads(1)


def _answer(_values: Values, measured: Measured) -> Result:
    names = [f"{what}, {load}" for load in (QUIET, ONE) for what in (WRITTEN, READ)]
    counts = [int(count) for count in measured.xs(names[0])]
    best = {name: min(counts, key=lambda count, name=name: measured.median(name, count)) for name in names}  # type: ignore[misc]
    quiet, loaded = f"{WRITTEN}, {QUIET}", f"{WRITTEN}, {ONE}"
    most, logical = counts[-1], counts[-2] if len(counts) > 1 else counts[-1]
    over = {
        (name, count): measured.ratio(
            tr("{what}, {n} threads over the best").format(what=series_title(name), n=count),
            (name, count),
            (name, best[name]),
        )
        for name in names
        for count in counts
    }
    for judged in ((quiet, most), (loaded, logical)):
        over[judged] = over[judged].at_least(MUCH)
    rows = tuple(
        (series_title(name), str(count), number_text(1000 * measured.median(name, count)), str(ratio))
        for (name, count), ratio in over.items()
    )
    series = tuple(measured.curve(f"{WRITTEN}, {load}", counts, 1000, tr(load)) for load in (QUIET, ONE))
    beside = "as many are best"
    if over[loaded, logical].holds:
        beside = "fewer threads are faster" if best[loaded] < logical else "more threads are faster"
    return Result(
        Verdict(
            f"more threads than cores are {'slower' if over[quiet, most].holds else 'not slower'};"
            f" beside a busy process {beside}",
            tr(
                "A token is written fastest with {quiet} of {counts} threads on the quiet machine and with "
                "{loaded} beside one busy process; {most} threads, more than there are processors, take "
                "{most_over} times as long as the best, and {logical} beside a busy process {logical_over} "
                "times. A prompt is read fastest with {read_quiet} and {read_loaded}."
            ).format(
                quiet=best[quiet],
                counts=", ".join(map(str, counts)),
                loaded=best[loaded],
                most=most,
                most_over=over[quiet, most],
                logical=logical,
                logical_over=over[loaded, logical],
                read_quiet=best[f"{READ}, {QUIET}"],
                read_loaded=best[f"{READ}, {ONE}"],
            ),
            tr(
                "Tokens are written fastest with {quiet} threads on a quiet machine, {loaded} beside a busy one."
            ).format(quiet=best[quiet], loaded=best[loaded]),
        ),
        figures=tuple(f for (name, count), f in over.items() if count != best[name]),
        plots=(Plot(tr("One token by number of threads"), tr("threads"), "ms", series),),
        tables=(Table(tr("Medians"), (tr("what"), tr("threads"), "ms", tr("over the best")), rows),),
        remarks=(
            tr("Every number of threads was tried in turn within each round: {steps}.").format(steps=_steps(counts)),
        ),
    )


def _steps(counts: Sequence[int]) -> str:
    return ", ".join(tr("{a} to {b}").format(a=a, b=b) for a, b in pairwise(counts)) or str(counts[0])


EXPERIMENT = Experiment(
    id="threads",
    title=marked("Threads"),
    question=marked("How many threads are best, and what happens when something else computes too?"),
    supposed=marked("More threads write faster."),
    parameters=PARAMETERS,
    settings=lambda values: ContextSettings(
        n_ctx=pad(int(values["prompt"] + values["tokens"]), CTX_PAD), n_seq_max=1, n_batch=512
    ),
    work=lambda values: Work(
        2 * len(_counts()) * values["rounds"] * values["prompt"],
        4 * len(_counts()) * values["rounds"] * values["tokens"],
    ),
    measure=_measure,
    answer=_answer,
)
