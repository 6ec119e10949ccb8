"""Whether llama_memory_seq_rm gives memory back: cells in use and resident bytes before and after."""

import psutil

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_attention
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import figure
from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Progress,
    Result,
    Sample,
    Table,
    Values,
    Verdict,
    number_text,
)
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

STEPS = (
    *(marked("before the context"), marked("made"), marked("filled"), marked("removed"), marked("cleared")),
    *(marked("filled again"), marked("closed")),
)
FREES = 0.5
"""Share of the K and V of the filled cells from which removal is said to give memory back."""
LEAST_MB = 1.0
"""Fewest MB of K and V that can show it, because resident memory varies by about 0.1 MB anyway."""
BYTES, CELLS, KV = marked("private resident MB"), marked("cells in use"), marked("K and V MB")

PARAMETERS = (
    Parameter("n_ctx", marked("Context size"), 8192, 512, 65536, 4096, marked("Cells of the cache")),
    Parameter("fill", marked("Tokens"), 1024, 16, 65536, 256, marked("Tokens that are put in and removed")),
    Parameter("rounds", marked("Rounds"), 5, 1, 20, 3, marked("How often it is repeated")),
)


def _measure(bench: Bench) -> Measuring:
    n_rounds = bench.whole("rounds")
    tokens = bench.tokens(min(bench.whole("fill"), bench.whole("n_ctx") - 1))
    for number in range(n_rounds):
        yield Progress(number, n_rounds, tr("a context is made, filled, emptied, filled again and closed"))
        yield Sample(BYTES, 0, _resident_mb(), number, unit="MB")
        with bench.context(inspect=True) as context:
            yield Sample(KV, 0, context.buffers.get("KV", 0) / 1e6, number, unit="MB")
            yield Sample(BYTES, 1, _resident_mb(), number, unit="MB")
            for step in (2, 5):
                context.read(tokens, 0)
                yield Sample(BYTES, step, _resident_mb(), number, unit="MB")
                yield Sample(CELLS, step, _cells(context, len(tokens)), number, unit="cells")
                if step == 2:
                    context.seq_rm(0)
                    yield Sample(BYTES, 3, _resident_mb(), number, unit="MB")
                    yield Sample(CELLS, 3, _cells(context, 0), number, unit="cells")
                    context.clear(data=True)
                    yield Sample(BYTES, 4, _resident_mb(), number, unit="MB")
        yield Sample(BYTES, 6, _resident_mb(), number, unit="MB")


def _cells(context: RawContext, n: int) -> int:
    """Cells in use, as the engine says at the next decode; the token it takes is removed again."""
    slot = context.read([1], n).slot
    context.seq_rm(0, n, -1)
    return slot.used if slot else 0


def _resident_mb() -> float:
    """Resident memory that is this process's own: without the model file, which is mapped."""
    info = psutil.Process().memory_info()
    return float(info.rss - getattr(info, "shared", 0)) / 1e6


def _short(*, known: bool, frees: bool) -> str:
    if not known:
        return tr("The filled cells hold too little to tell ({held} MB); cells in use: {filled:,.0f} to {left:,.0f}.")
    if frees:
        return tr("Yes: it frees {freed} of {held} MB.")
    return tr("No: it frees {freed} of {held} MB.")


def _answer(values: Values, measured: Measured) -> Result:
    def change(name: str, before: int, after: int) -> Figure:
        pairs = zip(measured.all(BYTES, before), measured.all(BYTES, after), strict=True)
        return figure(name, [b - a for a, b in pairs], "MB")

    filled = measured.figure(tr("cells when filled"), CELLS, 2)
    left = measured.figure(tr("cells when removed"), CELLS, 3).at_most(filled.value)
    kv = measured.figure(tr("K and V of the context"), KV, unit="MB")
    share = 1 / pad(int(values["n_ctx"]), CTX_PAD)
    full = zip(measured.all(KV), measured.all(CELLS, 2), strict=True)
    held = figure(tr("K and V of the filled cells"), [mb * cells * share for mb, cells in full], "MB")
    freed, closed = change(tr("given back by removal"), 3, 2), change(tr("given back by closing"), 6, 5)
    grown, made = change(tr("taken by filling again"), 2, 5), change(tr("taken by making the context"), 0, 1)
    known = held.value >= LEAST_MB
    if known:
        freed = freed.at_least(FREES * held.value)
    frees = freed.value >= FREES * held.value
    memory = ("gives memory" if frees else "keeps memory") if known else "too little memory to tell"
    steps = {i: measured.figure(tr(name), BYTES, i, "MB") for i, name in enumerate(STEPS)}
    title, names = tr("Private resident memory"), tuple(map(tr, STEPS))
    return Result(
        Verdict(
            f"{'frees' if left.value < filled.value else 'keeps'} cells, {memory}",
            _said(known=known, frees=frees, whole=closed.value >= kv.value / 2).format(
                left=left.value,
                filled=filled.value,
                freed=freed,
                held=number_text(held.value),
                kv=number_text(kv.value),
                closed=closed,
                grown=grown,
            ),
            _short(known=known, frees=frees).format(
                freed=number_text(max(0.0, freed.value), 2),
                held=number_text(held.value, 2),
                filled=filled.value,
                left=left.value,
            ),
        ),
        figures=(filled, left, kv, held, made, freed, grown, closed),
        plots=(Plot(title, tr("when"), "MB", (curve("MB", steps.items()),), x_names=names),),
        tables=(Table(title, (tr("when"), "MB"), tuple((step.name, str(step)) for step in steps.values())),),
    )


def _said(*, known: bool, frees: bool, whole: bool) -> str:
    """known: the filled cells are enough to tell whether removal gives memory back, which `frees` says; whole: closing
    gives back what was taken.
    """
    if not known:
        return tr(
            "llama_memory_seq_rm leaves {left:,.0f} of {filled:,.0f} cells in use. Whether it gives memory back is "
            "unclear: the {held} MB of K and V in the filled cells are too few, because a process's memory varies "
            "anyway. Choose more tokens, or a larger model."
        )
    if frees:
        return tr(
            "llama_memory_seq_rm leaves {left:,.0f} of {filled:,.0f} cells in use and gives {freed} back, of {held} "
            "MB of K and V in the filled cells. Filled again it takes {grown} more than the first time; the end of the "
            "context gives {closed} back."
        )
    if whole:
        return tr(
            "llama_memory_seq_rm leaves {left:,.0f} of {filled:,.0f} cells in use and gives {freed} back, of {held} "
            "MB of K and V in the filled cells: the buffer of {kv} MB belongs to the context from its making to "
            "its end, which gives {closed} back. Filled again it grows by {grown}: what was removed is used again."
        )
    return tr(
        "llama_memory_seq_rm leaves {left:,.0f} of {filled:,.0f} cells in use and gives {freed} back, of {held} "
        "MB of K and V in the filled cells: the buffer of {kv} MB belongs to the context from its making to "
        "its end, which gives {closed} back; the rest stays with the C library, which keeps small blocks. "
        "Filled again it grows by {grown}: what was removed is used again."
    )


EXPERIMENT = Experiment(
    id="seq-rm-memory",
    title=marked("Memory and seq_rm"),
    question=marked("Does llama_memory_seq_rm free memory, or does it only mark cells as unused?"),
    supposed=marked("It only marks cells as unused, so that memory is left behind and slows later requests down."),
    parameters=PARAMETERS,
    stages=STEPS,
    settings=lambda values: ContextSettings(n_ctx=int(values["n_ctx"]), n_seq_max=1),
    work=lambda values: Work(2 * values["rounds"] * values["fill"], 2 * values["rounds"]),
    measure=_measure,
    answer=_answer,
    applies=needs_attention,
)
