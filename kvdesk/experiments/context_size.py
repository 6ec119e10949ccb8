"""What a larger context costs when it is not full: a token's time and bytes by n_ctx, and a prompt's by n_ubatch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Work
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import figure, median
from kvdesk.protocol.experiment import Parameter, Plot, Point, Progress, Result, Sample, Series, Table, Values, Verdict
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

TOKEN, PROMPT, BYTES = marked("one token"), marked("a prompt"), marked("bytes")
MUCH = 1.15
"""Ratio of times from which a context is said to be slower than another."""
MUCH_READ = 1.5
"""The same for a prompt in small physical batches, which cost 1.2 with the embedded model: too near to `MUCH`."""
UBATCHES = (8, 64, 512)

PARAMETERS = (
    Parameter(
        "n_ctx",
        marked("Largest context"),
        16384,
        2048,
        131072,
        8192,
        marked("Cells; also a half, a quarter, an eighth"),
    ),
    Parameter("used", marked("Cells in use"), 128, 16, 1024, 128, marked("Tokens before those that are timed")),
    Parameter("tokens", marked("Tokens"), 16, 4, 256, 8, marked("Written in each round in each context")),
    Parameter(
        "prompt", marked("Prompt"), 512, 64, 2048, 256, marked("Tokens of the prompt that is read with each n_ubatch")
    ),
    Parameter("rounds", marked("Rounds"), 9, 2, 50, 5, marked("How often everything is repeated")),
)


def _sizes(values: Values) -> list[int]:
    return [int(values["n_ctx"]) // part // 256 * 256 for part in (8, 4, 2, 1)]


def _measure(bench: Bench) -> Iterator[Progress | Sample]:
    text, sizes, n = bench.tokens(bench.whole("used")), _sizes(bench.values), bench.whole("tokens")
    with ExitStack() as stack:
        contexts = {size: stack.enter_context(bench.context(n_ctx=size)) for size in sizes}
        for size, context in contexts.items():
            context.append(text, 0)
            allocated = context.buffers.get("KV", 0) + context.buffers.get("RS", 0)
            yield Sample(BYTES, size, allocated, unit="B")
        reached = len(text)
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 0, 2, tr("one token, round {n}").format(n=number + 1))
            times = dict.fromkeys(sizes, 0.0)
            for i in range(n):
                for size, context in contexts.items():
                    times[size] += context.append(text[:1], reached + i).seconds / n
            reached = _removed(contexts.values(), len(text), reached + n)
            for size, seconds in times.items():
                yield Sample(TOKEN, size, seconds, number, unit="s")
    prompt = bench.tokens(bench.whole("prompt"))
    with ExitStack() as stack:
        cells = -(-len(prompt) // 256) * 256
        by_cut = {cut: stack.enter_context(bench.context(n_ctx=cells, n_ubatch=cut)) for cut in UBATCHES}
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 1, 2, tr("a prompt, round {n}").format(n=number + 1))
            for cut, context in by_cut.items():
                context.clear()
                yield Sample(PROMPT, cut, context.append(prompt, 0).seconds, number, unit="s")


def _removed(contexts: Iterable[RawContext], n_text: int, reached: int) -> int:
    """What was written is removed where the memory can; else the next round goes on behind it. The next position."""
    done = [context.remove(0, n_text, -1) for context in contexts]
    return n_text if all(done) else reached


def _conclude(values: Values, samples: Sequence[Sample]) -> Result:
    by = {(s.series, int(s.x), s.round): s.y for s in samples}
    sizes = _sizes(values)
    rounds = {name: sorted({n for series, _, n in by if series == name}) for name in (TOKEN, PROMPT)}
    least = sizes[0]
    over = {
        size: figure(
            tr("one token, {size:,} over {least:,} cells").format(size=size, least=least),
            [by[TOKEN, size, n] / by[TOKEN, least, n] for n in rounds[TOKEN]],
        )
        for size in sizes
    }
    cuts = {
        cut: figure(
            tr("a prompt, n_ubatch {cut} over {most}").format(cut=cut, most=UBATCHES[-1]),
            [by[PROMPT, cut, n] / by[PROMPT, UBATCHES[-1], n] for n in rounds[PROMPT]],
        )
        for cut in UBATCHES
    }
    slower = over[sizes[-1]].value >= MUCH
    cut_costs = cuts[UBATCHES[0]].value >= MUCH_READ
    megabytes = {size: by[BYTES, size, 0] / 1e6 for size in sizes}
    token_ms = {size: 1000 * median([by[TOKEN, size, n] for n in rounds[TOKEN]]) for size in sizes}
    rows = tuple((f"{size:,}", f"{megabytes[size]:,.1f}", f"{token_ms[size]:.3g}", str(over[size])) for size in sizes)
    cut_rows = tuple(
        (str(cut), f"{values['prompt'] / median([by[PROMPT, cut, n] for n in rounds[PROMPT]]):.4g}", str(f))
        for cut, f in cuts.items()
    )
    points = tuple(Point(size, f.value, f.low, f.high) for size, f in over.items())
    return Result(
        Verdict(
            f"a larger context is {'slower' if slower else 'as fast'};"
            f" small physical batches cost {'much' if cut_costs else 'little'}",
            tr(
                "With {used:.0f} cells in use a token takes {over} times as long in a context of {most:,} "
                "cells as in one of {least:,}; the buffer of K and V grows from {least_mb:,.1f} to "
                "{most_mb:,.1f} MB. A prompt of {prompt:.0f} tokens takes {cut_over} times as long with "
                "n_ubatch {cut} as with {largest_cut}."
            ).format(
                used=values["used"],
                over=over[sizes[-1]],
                most=sizes[-1],
                least=least,
                least_mb=megabytes[least],
                most_mb=megabytes[sizes[-1]],
                prompt=values["prompt"],
                cut_over=cuts[UBATCHES[0]],
                cut=UBATCHES[0],
                largest_cut=UBATCHES[-1],
            ),
        ),
        figures=(*(f for size, f in over.items() if size != least), *(cuts[cut] for cut in UBATCHES[:-1])),
        plots=(
            Plot(
                tr("One token by size of the context"),
                tr("n_ctx (cells)"),
                tr("over {n:,} cells").format(n=least),
                (Series(tr(TOKEN), points),),
            ),
        ),
        tables=(
            Table(
                tr("Contexts"),
                ("n_ctx", tr("MB of K and V"), tr("ms for a token"), tr("over {n:,}").format(n=least)),
                rows,
            ),
            Table(tr("A prompt"), ("n_ubatch", "tok/s", tr("time over {n}").format(n=UBATCHES[-1])), cut_rows),
        ),
    )


EXPERIMENT = Experiment(
    id="context-size",
    title=marked("Size of the context"),
    question=marked("Is a smaller n_ctx faster, and what do n_batch and n_ubatch change?"),
    supposed=marked("A smaller context makes every request faster."),
    parameters=PARAMETERS,
    settings=lambda values: ContextSettings(n_ctx=2 * int(values["n_ctx"]), n_seq_max=1, n_batch=2048, n_ubatch=512),
    work=lambda values: Work(
        4 * values["used"] + len(UBATCHES) * values["rounds"] * values["prompt"],
        4 * values["rounds"] * values["tokens"],
    ),
    measure=_measure,
    conclude=_conclude,
)
