"""Whether 2 · layers · hidden size · cells · bytes is what a cache takes: the formula, an estimate, the engine."""

from kvdesk.errors import ContextError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work
from kvdesk.experiments.measured import Measured
from kvdesk.library.estimate import estimate
from kvdesk.library.ggml_types import BY_NAME
from kvdesk.library.hyper import read_hyper
from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Progress,
    Result,
    Sample,
    Series,
    Table,
    Values,
    Verdict,
    number_text,
)
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

NEAR = 0.02
"""Share by which a formula may miss what was allocated and still be called right."""
ALLOCATED = marked("allocated")
ESTIMATE = marked("kvdesk's estimate")
HIDDEN = marked("2 · layers · hidden size · cells · bytes")
KV_HEADS = marked("2 · layers · K/V heads · head size · cells · bytes")
FORMULAS = (HIDDEN, KV_HEADS, ESTIMATE)
REFUSED = marked("refused")

PARAMETERS = (
    Parameter("n_ctx", marked("Largest context"), 4096, 1024, 32768, 2048, marked("Cells; also a quarter and a half")),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A context that is made. x of its samples is its place in `_shapes`."""

    n_ctx: int
    kind: CacheType = CacheType.F16
    swa_full: bool = True

    def __str__(self) -> str:
        if self.swa_full:
            return tr("{n:,} cells, {type}").format(n=self.n_ctx, type=self.kind.value)
        return tr("{n:,} cells, {type}, small window cache").format(n=self.n_ctx, type=self.kind.value)


def _shapes(values: Values) -> list[Shape]:
    n = int(values["n_ctx"])
    quantized = [Shape(n, kind) for kind in (CacheType.Q8_0, CacheType.Q4_0)]
    return [Shape(n // 4), Shape(n // 2), Shape(n), Shape(n, swa_full=False), *quantized]


def _measure(bench: Bench) -> Measuring:
    hyper = read_hyper(bench.header)
    shapes = _shapes(bench.values)
    n_head, n_kv = (
        max((getattr(layer, name) for layer in hyper.layers), default=0) for name in ("n_head", "n_head_kv")
    )
    head = max((layer.head_k for layer in hyper.layers), default=0)
    for name, value in (
        (marked("layers"), len(hyper.layers)),
        ("heads", n_head),
        ("K/V heads", n_kv),
        ("head size", head),
    ):
        yield Sample(name, 0, value)
    for i, shape in enumerate(shapes):
        yield Progress(i, len(shapes), str(shape))
        kind = BY_NAME[shape.kind.value]
        wanted = ContextSettings(
            n_ctx=shape.n_ctx, n_seq_max=1, type_k=shape.kind, type_v=shape.kind, swa_full=shape.swa_full
        )
        try:
            with bench.context_of(wanted) as context:
                allocated = context.buffers.get("KV", 0) + context.buffers.get("RS", 0)
                cells = context.n_ctx
        except ContextError as error:
            if shape.kind is CacheType.F16:
                raise
            yield Sample(REFUSED, i, 1, note=str(error))
            continue
        each = 2 * len(hyper.layers) * cells * kind.size / kind.block
        needed = estimate(bench.header, wanted)
        yield Sample(ALLOCATED, i, allocated, note=str(shape), unit="B")
        yield Sample(HIDDEN, i, each * hyper.n_embd, unit="B")
        yield Sample(KV_HEADS, i, each * n_kv * head, unit="B")
        yield Sample(ESTIMATE, i, needed.k + needed.v + needed.r + needed.s, unit="B")


def _short(*, hidden: bool, kv_heads: bool) -> str:
    if hidden:
        return tr("Yes: the formula gives what is allocated.")
    if kv_heads:
        return tr("Only with K/V heads: with the hidden size it gives {hidden} times what is allocated.")
    return tr("No: it gives {hidden} times what is allocated, with K/V heads {kv_heads} times.")


def _answer(values: Values, measured: Measured) -> Result:
    shapes = {i: shape for i, shape in enumerate(_shapes(values)) if (ALLOCATED, i) in measured}
    ratios = {name: [measured.one(name, i) / max(1, measured.one(ALLOCATED, i)) for i in shapes] for name in FORMULAS}
    worst = {name: max(found, key=lambda ratio: abs(ratio - 1)) for name, found in ratios.items()}
    right = {name: abs(ratio - 1) <= NEAR for name, ratio in worst.items()}
    layers, heads, kv, head = (int(measured.one(name)) for name in ("layers", "heads", "K/V heads", "head size"))
    if right[HIDDEN]:
        key, why = "the formula is right", tr("every head has its own keys and values")
    elif right[KV_HEADS]:
        key, why = "right with K/V heads", tr("{heads} heads share the keys and values of {kv}")
    else:
        key = "neither"
        why = tr(
            "not every layer keeps every cell, or K and V of every head (sliding windows, recurrent layers, heads that "
            "differ, K and V compressed together)"
        )
    sentence = tr(
        "The formula with the hidden size gives {hidden:.2f} times what llama.cpp allocates, with "
        "K/V heads {kv_heads:.2f} times, kvdesk's estimate {estimate:.3f} times (each where it is "
        "worst, over {n} contexts of {layers} layers, head size {head}): {why}."
    ).format(
        hidden=worst[HIDDEN],
        kv_heads=worst[KV_HEADS],
        estimate=worst[ESTIMATE],
        n=len(shapes),
        layers=layers,
        head=head,
        why=why.format(heads=heads, kv=kv),
    )
    rows = tuple(
        (str(shape), *(f"{measured.one(name, i) / 1e6:,.2f}" for name in (ALLOCATED, *FORMULAS)))
        for i, shape in shapes.items()
    )
    by_cells = {i: shape for i, shape in shapes.items() if shape.kind is CacheType.F16 and shape.swa_full}
    series = tuple(
        Series.of(tr(name), ((shape.n_ctx, measured.one(name, i) / 1e6) for i, shape in by_cells.items()))
        for name in (ALLOCATED, *FORMULAS)
    )
    said = tr("{name} over allocated, where it is worst")
    return Result(
        Verdict(
            f"{key}; the estimate is {'right' if right[ESTIMATE] else 'wrong'}",
            sentence,
            _short(hidden=right[HIDDEN], kv_heads=right[KV_HEADS]).format(
                hidden=number_text(worst[HIDDEN], 2), kv_heads=number_text(worst[KV_HEADS], 2)
            ),
        ),
        figures=tuple(Figure(said.format(name=tr(name)), ratio) for name, ratio in worst.items()),
        plots=(Plot(tr("Bytes of a cache, f16"), tr("cells"), "MB", series),),
        tables=(Table("MB", (tr("context"), *map(tr, (ALLOCATED, *FORMULAS))), rows),),
        remarks=(
            tr("A cell of q8_0 takes 34 bytes for 32 numbers and one of q4_0 18: the formulas count that."),
            *(s.note for s in measured.samples if s.series == REFUSED),
        ),
    )


EXPERIMENT = Experiment(
    id="size-formula",
    title=marked("The size formula"),
    question=marked("Is 2 · layers · hidden size · cells · bytes the memory a KV cache takes?"),
    supposed=marked("Memory of the cache = 2 × layers × hidden size × length × batch × bytes of the data type."),
    parameters=PARAMETERS,
    settings=lambda values: ContextSettings(n_ctx=int(values["n_ctx"]), n_seq_max=1),
    work=lambda _values: Work(1, 1),
    measure=_measure,
    answer=_answer,
)
