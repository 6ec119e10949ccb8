"""What a larger context costs when it is not full, and what n_batch and n_ubatch change for a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import Bench
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
)
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

TOKEN, BYTES = marked("one token"), marked("bytes")
PROMPT, CALLS = marked("a prompt"), marked("a prompt in calls")
MUCH = 1.15
"""Ratio of times from which a context is said to be slower than another."""
MUCH_READ = 1.5
"""The same for a prompt in small batches: physical ones cost 1.2 with the embedded model, too near to `MUCH`."""
UBATCHES = (8, 64, 512)
BATCHES = (64, 256, 2048)
"""llama_decode takes at most n_batch tokens, so that a longer prompt is read in calls."""
UBATCH = 64
"""n_ubatch with all of `BATCHES`: the least of them, since it is cut to n_batch (`kvdesk.cache.geometry.plan`)."""

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
        "prompt",
        marked("Prompt"),
        512,
        128,
        2048,
        256,
        marked("Tokens of the prompt that is read with each n_batch and n_ubatch"),
    ),
    Parameter("rounds", marked("Rounds"), 9, 2, 50, 5, marked("How often everything is repeated")),
)


def _sizes(values: Values) -> list[int]:
    return [int(values["n_ctx"]) // part // 256 * 256 for part in (8, 4, 2, 1)]


def _within(sizes: Iterable[int], values: Values) -> list[int]:
    """These sizes of batches, none larger than the prompt: a batch is never fuller than that."""
    return sorted({min(size, int(values["prompt"])) for size in sizes})


def _readings(values: Values) -> dict[tuple[str, int], tuple[int, int]]:
    """n_batch and n_ubatch with which the prompt is read, by the series and x of their samples.

    `UBATCH` in one call is among those of `PROMPT` and not measured again.
    """
    *smaller, whole = _within(BATCHES, values)
    by_ubatch = {(PROMPT, size): (whole, size) for size in _within(UBATCHES, values)}
    return by_ubatch | {(CALLS, size): (size, UBATCH) for size in smaller}


def _prompt_cells(values: Values) -> int:
    return pad(int(values["prompt"]), CTX_PAD)


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
        cells = _prompt_cells(bench.values)
        by_reading = {
            reading: stack.enter_context(bench.context(n_ctx=cells, n_batch=n_batch, n_ubatch=n_ubatch))
            for reading, (n_batch, n_ubatch) in _readings(bench.values).items()
        }
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 1, 2, tr("a prompt, round {n}").format(n=number + 1))
            for (series, size), context in by_reading.items():
                context.clear()
                yield Sample(series, size, context.append(prompt, 0).seconds, number, unit="s")


def _removed(contexts: Iterable[RawContext], n_text: int, reached: int) -> int:
    """What was written is removed where the memory can; else the next round goes on behind it. The next position."""
    done = [context.remove(0, n_text, -1) for context in contexts]
    return n_text if all(done) else reached


def _conclude(values: Values, samples: Sequence[Sample]) -> Result:
    by = {(s.series, int(s.x), s.round): s.y for s in samples}
    sizes, n_prompt = _sizes(values), int(values["prompt"])
    rounds = {name: sorted({n for series, _, n in by if series == name}) for name in (TOKEN, PROMPT)}
    least = sizes[0]
    over = {
        size: figure(
            tr("one token, {size:,} over {least:,} cells").format(size=size, least=least),
            [by[TOKEN, size, n] / by[TOKEN, least, n] for n in rounds[TOKEN]],
        )
        for size in sizes
    }
    read = {(series, x): [by[series, x, n] for n in rounds[PROMPT]] for series, x in _readings(values)}
    ubatches, batches = _within(UBATCHES, values), _within(BATCHES, values)
    most, whole = ubatches[-1], batches[-1]
    read[CALLS, whole] = read[PROMPT, UBATCH]
    cuts = {
        size: _over(
            tr("a prompt, n_ubatch {cut} over {most}").format(cut=size, most=most),
            read[PROMPT, size],
            read[PROMPT, most],
        )
        for size in ubatches
    }
    calls = {
        size: _over(
            tr("a prompt, n_batch {size} over {whole}").format(size=size, whole=whole),
            read[CALLS, size],
            read[CALLS, whole],
        )
        for size in batches
    }
    slower = over[sizes[-1]].value >= MUCH
    cut_costs = cuts[ubatches[0]].value >= MUCH_READ
    calls_cost = calls[batches[0]].value >= MUCH_READ
    megabytes = {size: by[BYTES, size, 0] / 1e6 for size in sizes}
    token_ms = {size: 1000 * median([by[TOKEN, size, n] for n in rounds[TOKEN]]) for size in sizes}
    rows = tuple((f"{size:,}", f"{megabytes[size]:,.1f}", f"{token_ms[size]:.3g}", str(over[size])) for size in sizes)
    points = tuple(Point(size, f.value, f.low, f.high) for size, f in over.items())
    return Result(
        Verdict(
            f"a larger context is {'slower' if slower else 'as fast'};"
            f" small physical batches cost {'much' if cut_costs else 'little'};"
            f" a small n_batch costs {'much' if calls_cost else 'little or nothing'}",
            " ".join(
                (
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
                        prompt=n_prompt,
                        cut_over=cuts[ubatches[0]],
                        cut=ubatches[0],
                        largest_cut=most,
                    ),
                    tr(
                        "Cut into calls by n_batch {n_batch} it takes {calls_over} times as long as in one call, with "
                        "n_ubatch {n_ubatch} in both."
                    ).format(n_batch=batches[0], calls_over=calls[batches[0]], n_ubatch=UBATCH),
                )
            ),
            (
                tr("Yes: in {most:,} cells a token takes {over:.2g} times as long as in {least:,}.")
                if slower
                else tr("No: {most:,} cells cost memory ({least_mb:,.1f} to {most_mb:,.1f} MB) and no time.")
            ).format(
                most=sizes[-1],
                least=least,
                over=over[sizes[-1]].value,
                least_mb=megabytes[least],
                most_mb=megabytes[sizes[-1]],
            ),
        ),
        figures=(
            *(f for size, f in over.items() if size != least),
            *(f for size, f in cuts.items() if size != most),
            *(f for size, f in calls.items() if size != whole),
        ),
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
            _prompt_table(tr("A prompt"), "n_ubatch", PROMPT, cuts, read, n_prompt),
            _prompt_table(
                tr("A prompt in calls of n_batch tokens, n_ubatch {n}").format(n=UBATCH),
                "n_batch",
                CALLS,
                calls,
                read,
                n_prompt,
            ),
        ),
        remarks=uncertain((over[sizes[-1]], MUCH), (cuts[ubatches[0]], MUCH_READ), (calls[batches[0]], MUCH_READ)),
    )


def _over(name: str, seconds: Sequence[float], least: Sequence[float]) -> Figure:
    return figure(name, [a / b for a, b in zip(seconds, least, strict=True)])


def _prompt_table(
    title: str,
    varied: str,
    series: str,
    over: Mapping[int, Figure],
    read: Mapping[tuple[str, int], Sequence[float]],
    n_prompt: int,
) -> Table:
    """A row for each size of `varied`: the prompt's tokens a second, and its time over that of the largest size."""
    rows = tuple((str(size), f"{n_prompt / median(read[series, size]):.4g}", str(f)) for size, f in over.items())
    return Table(title, (varied, "tok/s", tr("time over {n}").format(n=max(over))), rows)


EXPERIMENT = Experiment(
    id="context-size",
    title=marked("Size of the context"),
    question=marked("Is a smaller n_ctx faster, and what do n_batch and n_ubatch change?"),
    supposed=marked("A smaller context makes every request faster."),
    parameters=PARAMETERS,
    settings=lambda values: ContextSettings(
        n_ctx=max(2 * int(values["n_ctx"]), len(_readings(values)) * _prompt_cells(values)),
        n_seq_max=1,
        n_batch=2048,
        n_ubatch=512,
    ),
    work=lambda values: Work(
        4 * values["used"] + len(_readings(values)) * values["rounds"] * values["prompt"],
        4 * values["rounds"] * values["tokens"],
    ),
    measure=_measure,
    conclude=_conclude,
)
