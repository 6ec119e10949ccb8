"""Whether a scattered cache is slower: the same text in cells side by side, apart, behind holes, compacted, rebuilt."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import product
from typing import NamedTuple

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.errors import ContextError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_plain_attention
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import median
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
    series_title,
)
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

SLOWER = 1.5
"""Time of a token over that in a compact cache from which attention of a kind is said to be slower."""
N_FILLERS = 63
"""Sequences that hold the other cells while the text is placed; with the text's, the most that a context has."""
N_TEXT = 2 * N_FILLERS
"""Tokens of the text: two cells in every run of other cells."""
HIGH_WATER = marked("high-water mark") + ": "
COMPACT, SCATTERED = marked("side by side"), marked("scattered")
BEHIND, COMPACTED = marked("behind holes"), marked("scattered, then compacted")
REBUILT, REFUSED = marked("rebuilt"), marked("refused")
"""A new context reads the text again."""
LAYOUTS = (COMPACT, SCATTERED, BEHIND, COMPACTED, REBUILT)
CURES = {COMPACTED: "compaction", REBUILT: "a rebuild"}
"""What the verdict's key calls them."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Of attention. Without flash attention V stays f16: llama.cpp refuses a quantized one (`llama.params.planned`)."""

    name: str
    flash_attn: bool
    type_k: CacheType = CacheType.F16
    type_v: CacheType = CacheType.F16


KINDS = (
    Kind(marked("flash attention, f16"), flash_attn=True),
    Kind(marked("flash attention, q8_0"), flash_attn=True, type_k=CacheType.Q8_0, type_v=CacheType.Q8_0),
    Kind(marked("no flash attention, f16"), flash_attn=False),
    Kind(marked("no flash attention, K q8_0"), flash_attn=False, type_k=CacheType.Q8_0),
)

PARAMETERS = (
    Parameter("per_filler", marked("Cells in a run"), 64, 32, 256, 64,
              marked("Cells that each of 63 other sequences takes at most")),
    Parameter("tokens", marked("Tokens"), 16, 4, 64, 8, marked("Tokens that are timed in each round")),
    Parameter("rounds", marked("Rounds"), 9, 2, 30, 5, marked("How often everything is repeated")),
)  # fmt: skip


def _cells(values: Values) -> int:
    return pad(N_FILLERS * int(values["per_filler"]) + N_TEXT + int(values["tokens"]), CTX_PAD)


def _sizes(values: Values) -> list[int]:
    """Cells that each other sequence takes, from few holes to many."""
    return [int(values["per_filler"]) // part for part in (8, 4, 2, 1)]


def _measure(bench: Bench) -> Measuring:
    sizes = _sizes(bench.values)
    text, filler = bench.tokens(N_TEXT), bench.tokens(sizes[-1])
    steps = len(KINDS) * len(sizes)
    for i, kind in enumerate(KINDS):
        changes = {"flash_attn": kind.flash_attn, "type_k": kind.type_k, "type_v": kind.type_v}
        settings = bench.settings.model_copy(update={"n_ctx": _cells(bench.values), **changes})
        with ExitStack() as stack:
            try:
                used = {
                    layout: stack.enter_context(bench.context_of(settings, inspect=True))
                    for layout in LAYOUTS
                    if layout != REBUILT
                }
            except ContextError as error:
                if not i:
                    raise
                yield Sample(f"{kind.name}: {REFUSED}", 0, 1, note=str(error))
                continue
            for k, size in enumerate(sizes):
                done = i * len(sizes) + k
                what = tr("{kind}: the text is placed among {n} times {size} cells")
                yield Progress(done, steps, what.format(kind=tr(kind.name), n=N_FILLERS, size=size))
                parts = _read(used[COMPACT], text, filler[:size])
                for layout, context in used.items():
                    _place(context, layout, *parts)
                with bench.context_of(settings, inspect=True) as new:
                    new.read(text, 0)
                    contexts = {**used, REBUILT: new}
                    for number in bench.rounds(bench.whole("rounds")):
                        what = tr("{kind}, {size} cells, round {n}")
                        yield Progress(done, steps, what.format(kind=tr(kind.name), size=size, n=number + 1))
                        yield from _round(contexts, kind, text, bench.whole("tokens"), size, number)


def _round(
    contexts: Mapping[str, RawContext], kind: Kind, text: list[int], n: int, size: int, number: int
) -> Iterator[Sample]:
    for layout, context in contexts.items():
        seconds, high_water = _timed(context, text, n)
        yield Sample(f"{kind.name}: {layout}", size, seconds, number, unit="s")
        if number == 0:
            yield Sample(f"{HIGH_WATER}{kind.name}: {layout}", size, high_water, unit="cells")


class Part(NamedTuple):
    """Tokens from position 0 on, and the saved state of a sequence of them."""

    tokens: list[int]
    state: bytes


def _read(context: RawContext, text: list[int], filler: list[int]) -> tuple[Part, Part]:
    """The text and what the other sequences hold, read once for all layouts."""
    context.clear()
    context.read(text, 0)
    context.read(filler, 0, 1)
    return Part(text, context.saved(0)), Part(filler, context.saved(1))


def _place(context: RawContext, layout: str, text: Part, filler: Part) -> None:
    """The text in sequence 0, and nothing else in the cache at the end."""
    context.clear()
    if layout == COMPACT:
        context.restore(0, text.state, text.tokens)
        return
    for seq_id in range(1, N_FILLERS + 1):
        context.restore(seq_id, filler.state, filler.tokens)
    if layout != BEHIND:
        for seq_id in range(1, N_FILLERS + 1):
            for at in (0, len(filler.tokens) // 2):
                context.seq_rm(seq_id, at, at + 1)
    context.restore(0, text.state, text.tokens)
    for seq_id in range(1, N_FILLERS + 1):
        context.seq_rm(seq_id)
    if layout == COMPACTED:
        context.compact()


def _timed(context: RawContext, text: list[int], n: int) -> tuple[float, int]:
    """Median seconds of one token behind the text, which is removed each time; cells up to the last in use."""
    seconds, high_water = [], 0
    for _ in range(n):
        answer = context.read(text[:1], len(text))
        seconds.append(answer.seconds)
        high_water = answer.slot.high_water if answer.slot else 0
        context.seq_rm(0, len(text), -1)
    return median(seconds), high_water


def _answer(values: Values, measured: Measured) -> Result:
    sizes, kinds = _sizes(values), [kind for kind in KINDS if f"{kind.name}: {COMPACT}" in measured.series]
    refused = [(s.series.partition(":")[0], s.note) for s in measured.samples if s.series.endswith(f": {REFUSED}")]
    most, compact = sizes[-1], {kind: f"{kind.name}: {COMPACT}" for kind in kinds}
    ratios: dict[tuple[Kind, str, int], Figure] = {}
    rows, series = [], []
    for kind, layout in product(kinds, LAYOUTS):
        name = f"{kind.name}: {layout}"
        water = {size: measured.one(HIGH_WATER + name, size) for size in sizes}
        of_size = {size: measured.ratio(series_title(name), (name, size), (compact[kind], size)) for size in sizes}
        ratios |= {(kind, layout, size): ratio for size, ratio in of_size.items()}
        holes = f"{1 - N_TEXT / water[most]:.2f}" if water[most] else "–"
        ms = f"{measured.median(name, most) * 1e3:.2f}"
        rows.append(
            {
                tr("attention"): tr(kind.name),
                tr("cells of the text"): tr(layout),
                tr("high-water mark"): f"{water[most]:,.0f}",
                tr("hole ratio"): holes,
                "ms": ms,
                tr("over side by side"): str(of_size[most]),
            }
        )
        if layout == SCATTERED:
            series.append(curve(tr(kind.name), [(water[size], ratio) for size, ratio in of_size.items()]))
    largest = {(kind, layout): ratios[kind, layout, most] for kind in kinds for layout in LAYOUTS}
    worst = {kind: max((SCATTERED, BEHIND), key=lambda at, kind=kind: largest[kind, at].value) for kind in kinds}  # type: ignore[misc]
    for key in ((kind, layout) for kind in kinds for layout in (worst[kind], *CURES)):
        largest[key] = largest[key].at_least(SLOWER)
    slower = {kind: largest[kind, layout] for kind, layout in worst.items()}
    names = [kind.name for kind, ratio in slower.items() if ratio.holds]
    heals = {layout: not any(largest[kind, layout].holds for kind in kinds) for layout in CURES}
    said = "; ".join(
        f"{tr(kind.name)}: {', '.join(f'{largest[kind, layout]} {tr(layout)}' for layout in LAYOUTS[1:])}"
        for kind in kinds
    )
    sentence = tr("A scattered cache is nowhere {n:g} times slower.")
    answer = tr("No: a scattered cache is at most {ratio:.2g} times slower.")
    if names:
        sentence = tr("A scattered cache is at least {n:g} times slower with {kinds}.")
        answer = tr("Yes: a scattered cache is up to {ratio:.2g} times slower ({kinds}).")
    named = tr("; ").join(map(tr, names))
    rest = tr("A token with {n} cells in use, over the same with its cells side by side — {said}.")
    return Result(
        Verdict(
            f"slower: {' and '.join(names) or 'none'}; "
            + "; ".join(f"{name} {'heals' if heals[layout] else 'does not heal'}" for layout, name in CURES.items()),
            f"{sentence.format(n=SLOWER, kinds=named)} {rest.format(n=N_TEXT, said=said)}",
            answer.format(ratio=max(ratio.value for ratio in slower.values()), kinds=named),
        ),
        figures=tuple(ratio for (_, layout), ratio in largest.items() if layout != COMPACT),
        plots=(
            Plot(
                tr("A token with its text scattered"),
                tr("high-water mark (cells)"),
                tr("over side by side"),
                tuple(series),
            ),
        ),
        tables=(Table.of(tr("One token behind the text, with most holes"), rows),),
        remarks=tuple(
            tr("{types} is not possible with this model: {why}").format(types=tr(kind), why=why)
            for kind, why in refused
        ),
    )


EXPERIMENT = Experiment(
    id="fragmentation",
    title=marked("Fragmentation"),
    question=marked("Does a scattered cache slow down, and does compaction help?"),
    supposed=marked("Cells marked unused are scattered over the buffer, are still read, and must be tidied up."),
    parameters=PARAMETERS,
    settings=lambda values: ContextSettings(
        n_ctx=len(LAYOUTS) * _cells(values), n_seq_max=N_FILLERS + 1, n_batch=256, n_ubatch=64
    ),
    work=lambda values: Work(
        4 * len(KINDS) * (2 * N_TEXT + values["per_filler"]),  # REBUILT reads the text a second time
        8 * len(KINDS) * len(LAYOUTS) * values["rounds"] * values["tokens"],
    ),
    measure=_measure,
    answer=_answer,
    applies=needs_plain_attention(
        marked("This model's cache is not one of plain attention: parts of its sequences cannot be removed freely.")
    ),
)
