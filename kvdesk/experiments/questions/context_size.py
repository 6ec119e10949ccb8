"""What a larger context costs when it is not full, and what n_batch and n_ubatch change for a prompt."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.errors import UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work
from kvdesk.experiments.measured import Measured, Place, curve
from kvdesk.experiments.raw_context import RawContext
from kvdesk.protocol.experiment import Figure, Parameter, Plot, Result, Sample, Table, Values, Verdict, number_text
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
    Parameter("n_ctx", marked("Largest context"), 16384, 2048, 131072, 8192,
              marked("Cells; also a half, a quarter, an eighth")),
    Parameter("used", marked("Cells in use"), 128, 16, 1024, 128, marked("Tokens before those that are timed")),
    Parameter("tokens", marked("Tokens"), 16, 4, 256, 8, marked("Written in each round in each context")),
    Parameter("prompt", marked("Prompt"), 512, 128, 2048, 256,
              marked("Tokens of the prompt that is read with each n_batch and n_ubatch")),
    Parameter("rounds", marked("Rounds"), 9, 2, 50, 5, marked("How often everything is repeated")),
)  # fmt: skip


def _sizes(values: Values) -> list[int]:
    """Those that hold what is read and written."""
    sizes = (int(values["n_ctx"]) // part // CTX_PAD * CTX_PAD for part in (8, 4, 2, 1))
    return [size for size in sizes if size >= values["used"] + values["tokens"]]


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


def _measure(bench: Bench) -> Measuring:
    text, sizes, n = bench.tokens(bench.whole("used")), _sizes(bench.values), bench.whole("tokens")
    if len(sizes) < 2:
        raise UserError(
            tr("Only one context has room for {n:,} tokens: choose a larger n_ctx, or fewer.").format(n=len(text) + n)
        )
    with ExitStack() as stack:
        contexts = {size: stack.enter_context(bench.context(n_ctx=size)) for size in sizes}
        for size, context in contexts.items():
            context.read(text, 0)
            allocated = context.buffers.get("KV", 0) + context.buffers.get("RS", 0)
            yield Sample(BYTES, size, allocated, unit="B")
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 0, 2, tr("one token, round {n}").format(n=number + 1))
            times = dict.fromkeys(sizes, 0.0)
            for i in range(n):
                for size, context in contexts.items():
                    times[size] += context.read(text[:1], len(text) + i).seconds / n
            for context in contexts.values():
                _set_back(context, text)
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
                yield Sample(series, size, context.read(prompt, 0).seconds, number, unit="s")


def _set_back(context: RawContext, text: list[int]) -> None:
    """What was written is removed; the text is read again in a memory that cannot give back a part."""
    if not context.seq_rm(0, len(text), -1):
        context.clear()
        context.read(text, 0)


def _answer(values: Values, measured: Measured) -> Result:
    sizes, n_prompt = _sizes(values), int(values["prompt"])
    ubatches, batches = _within(UBATCHES, values), _within(BATCHES, values)
    least, largest, most, whole = sizes[0], sizes[-1], ubatches[-1], batches[-1]
    over = {
        size: measured.ratio(
            tr("one token, {size:,} over {least:,} cells").format(size=size, least=least), (TOKEN, size), (TOKEN, least)
        )
        for size in sizes
    }
    cuts = {
        size: measured.ratio(
            tr("a prompt, n_ubatch {cut} over {most}").format(cut=size, most=most), (PROMPT, size), (PROMPT, most)
        )
        for size in ubatches
    }
    read = {size: (CALLS, size) for size in batches} | {whole: (PROMPT, UBATCH)}
    calls = {
        size: measured.ratio(
            tr("a prompt, n_batch {size} over {whole}").format(size=size, whole=whole), read[size], read[whole]
        )
        for size in batches
    }
    over[largest] = over[largest].at_least(MUCH)
    for judged in (cuts, calls):
        smallest = min(judged)
        judged[smallest] = judged[smallest].at_least(MUCH_READ)
    slower, cut_costs, calls_cost = over[largest].holds, cuts[ubatches[0]].holds, calls[batches[0]].holds
    megabytes = {size: measured.one(BYTES, size) / 1e6 for size in sizes}
    rows = tuple(
        (f"{size:,}", f"{megabytes[size]:,.1f}", number_text(1000 * measured.median(TOKEN, size)), str(ratio))
        for size, ratio in over.items()
    )
    answer = tr("No: {most:,} cells cost memory ({least_mb:,.1f} to {most_mb:,.1f} MB) and no time.")
    if slower:
        answer = tr("Yes: in {most:,} cells a token takes {over:.2g} times as long as in {least:,}.")
    told = {
        "used": values["used"],
        "most": largest,
        "least": least,
        "least_mb": megabytes[least],
        "most_mb": megabytes[largest],
        "prompt": n_prompt,
        "cut_over": cuts[ubatches[0]],
        "cut": ubatches[0],
        "largest_cut": most,
    }

    def prompt_table(title: str, varied: str, places: Mapping[int, Place], ratios: Mapping[int, Figure]) -> Table:
        """The prompt's tokens a second with each size of `varied`, and its time over that of the largest."""
        rows = tuple(
            (f"{n:,}", number_text(n_prompt / measured.median(*places[n]), 4), str(f)) for n, f in ratios.items()
        )
        return Table(title, (varied, "tok/s", tr("time over {n}").format(n=max(ratios))), rows)

    return Result(
        Verdict(
            f"a larger context is {'slower' if slower else 'as fast'};"
            f" small physical batches cost {'much' if cut_costs else 'little'};"
            f" a small n_batch costs {'much' if calls_cost else 'little or nothing'}",
            " ".join(
                (
                    tr(
                        "With {used:,.0f} cells in use a token takes {over} times as long in a context of {most:,} "
                        "cells as in one of {least:,}; the buffer of K and V grows from {least_mb:,.1f} to "
                        "{most_mb:,.1f} MB. A prompt of {prompt:,.0f} tokens takes {cut_over} times as long with "
                        "n_ubatch {cut} as with {largest_cut}."
                    ).format(over=over[largest], **told),
                    tr(
                        "Cut into calls by n_batch {n_batch} it takes {calls_over} times as long as in one call, with "
                        "n_ubatch {n_ubatch} in both."
                    ).format(n_batch=batches[0], calls_over=calls[batches[0]], n_ubatch=UBATCH),
                )
            ),
            answer.format(over=over[largest].value, **told),
        ),
        figures=tuple(
            f for ratios, base in ((over, least), (cuts, most), (calls, whole)) for n, f in ratios.items() if n != base
        ),
        plots=(
            Plot(
                tr("One token by size of the context"),
                tr("n_ctx (cells)"),
                tr("over {n:,} cells").format(n=least),
                (curve(tr(TOKEN), over.items()),),
            ),
        ),
        tables=(
            Table(
                tr("Contexts"),
                ("n_ctx", tr("MB of K and V"), tr("ms for a token"), tr("over {n:,}").format(n=least)),
                rows,
            ),
            prompt_table(tr("A prompt"), "n_ubatch", {n: (PROMPT, n) for n in ubatches}, cuts),
            prompt_table(
                tr("A prompt in calls of n_batch tokens, n_ubatch {n}").format(n=UBATCH), "n_batch", read, calls
            ),
        ),
    )


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
    answer=_answer,
)
