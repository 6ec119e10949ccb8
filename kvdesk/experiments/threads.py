"""How many threads are best: one token and a prompt by thread count, on a quiet machine and beside busy processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.busy import busy_processes
from kvdesk.experiments.experiment import Experiment, Work
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import figure, median, uncertain
from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Point,
    Progress,
    Result,
    Sample,
    Series,
    Table,
    Values,
    Verdict,
    series_title,
)
from kvdesk.settings import ContextSettings, default_threads
from kvdesk.translation import marked, tr

WRITTEN, READ = marked("one token"), marked("a prompt")
QUIET, ONE = marked("quiet"), marked("beside one busy process")
MUCH = 1.15
"""Ratio of times from which one number of threads is said to be better than another."""
START_S = 0.5  # until a busy process computes

PARAMETERS = (
    Parameter("tokens", marked("Tokens"), 16, 4, 256, 8, marked("Written in each round with each number of threads")),
    Parameter(
        "prompt", marked("Prompt"), 256, 32, 2048, 128, marked("Tokens of the prompt that is read in each round")
    ),
    Parameter("rounds", marked("Rounds"), 9, 2, 50, 5, marked("How often everything is repeated")),
)


def _counts() -> list[int]:
    """Thread counts: one, the physical cores, the logical ones, and more than there are."""
    cores, logical = default_threads(), os.cpu_count() or 1
    return sorted({1, max(1, cores // 2), cores, logical, 2 * logical})


def _measure(bench: Bench) -> Iterator[Progress | Sample]:
    prompt, counts = bench.tokens(bench.whole("prompt")), _counts()
    with bench.context() as context:
        context.append(prompt, 0)  # warms up
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 0, 2, tr("{what}, round {n}").format(what=tr(QUIET), n=number + 1))
            yield from _round(context, bench, prompt, counts, QUIET, number)
        with busy_processes(1):
            time.sleep(START_S)
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
        yield Sample(f"{READ}, {load}", count, context.append(prompt, 0).seconds, number, unit="s")
        seconds = sum(context.append(prompt[:1], len(prompt) + i).seconds for i in range(n))
        yield Sample(f"{WRITTEN}, {load}", count, seconds / n, number, unit="s")
    context.set_threads(1)


def _conclude(_values: Values, samples: Sequence[Sample]) -> Result:
    by = {(s.series, int(s.x), s.round): s.y for s in samples}
    counts = sorted({int(s.x) for s in samples})
    n_rounds = {load: sorted({n for series, _, n in by if series == f"{WRITTEN}, {load}"}) for load in (QUIET, ONE)}
    best: dict[str, int] = {}
    over: dict[tuple[str, int], Figure] = {}
    series, rows = [], []
    for load in (QUIET, ONE):
        for what in (WRITTEN, READ):
            name = f"{what}, {load}"
            times = {count: [by[name, count, n] for n in n_rounds[load]] for count in counts}
            best[name] = min(counts, key=lambda count, times=times: median(times[count]))  # type: ignore[misc]
            for count in counts:
                ratios = [mine / least for mine, least in zip(times[count], times[best[name]], strict=True)]
                over[name, count] = figure(_over_best(name, count), ratios)
            points = [figure("", [1000 * t for t in times[count]]) for count in counts]
            if what == WRITTEN:
                series.append(
                    Series(
                        tr(load), tuple(Point(c, p.value, p.low, p.high) for c, p in zip(counts, points, strict=True))
                    )
                )
            rows += [
                (series_title(name), str(count), f"{1000 * median(times[count]):.3g}", str(over[name, count]))
                for count in counts
            ]
    quiet, loaded = f"{WRITTEN}, {QUIET}", f"{WRITTEN}, {ONE}"
    most, logical = counts[-1], counts[-2] if len(counts) > 1 else counts[-1]
    slower = over[quiet, most].value >= MUCH
    beside = "as many are best"
    if over[loaded, logical].value >= MUCH:
        beside = "fewer threads are faster" if best[loaded] < logical else "more threads are faster"
    return Result(
        Verdict(
            f"more threads than cores are {'slower' if slower else 'not slower'}; beside a busy process {beside}",
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
        plots=(Plot(tr("One token by number of threads"), tr("threads"), "ms", tuple(series)),),
        tables=(Table(tr("Medians"), (tr("what"), tr("threads"), "ms", tr("over the best")), tuple(rows)),),
        remarks=(
            tr("Every number of threads was tried in turn within each round: {steps}.").format(steps=_steps(counts)),
            *uncertain((over[quiet, most], MUCH), (over[loaded, logical], MUCH)),
        ),
    )


def _over_best(name: str, count: int) -> str:
    return tr("{what}, {n} threads over the best").format(what=series_title(name), n=count)


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
    conclude=_conclude,
)
