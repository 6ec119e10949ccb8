"""Converts K and V to other types instead of reading again, and measures how much faster that is and what it loses.

A text is read with f16. kvdesk converts its state and puts it into a context of the other types; another context of
those types reads the text again. The following tokens are then read in each and compared with f16's, as in `kv_types`.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.memory import state
from kvdesk.backends.local.llama.params import planned
from kvdesk.backends.local.llama.requantize import requantize
from kvdesk.backends.local.llama.traits import Traits, context_traits
from kvdesk.cache.compare import divergence
from kvdesk.cache.geometry import CTX_PAD, ModelFacts, pad
from kvdesk.cache.state.blob import parse_seq_state
from kvdesk.errors import ContextError, UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_attention
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.moved_states import timed
from kvdesk.experiments.questions.kv_types import BLOCK
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import mean_figure, ratio_figure
from kvdesk.library.hyper import read_hyper
from kvdesk.protocol.experiment import Figure, Parameter, Progress, Result, Sample, Table, Values, Verdict, number_text
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.translation import marked, tr

TARGETS: Final = (CacheType.Q8_0, CacheType.Q4_0)
FASTER, MOST_KL = 20.0, 1.1
"""A conversion must be this many times as fast as reading again, and its divergence at most this many times as large.
"""
FIRST: Final = 64
"""Tokens of which the first layer is compared."""
AGAIN, CONVERT, REFUSED = marked("read again"), marked("converted"), marked("refused")
KL, OTHER = marked("KL divergence"), marked("bytes of the first layer that differ")

PARAMETERS = (
    Parameter("text", marked("Tokens"), 2000, 64, 32768, 256, marked("Whose K and V are converted")),
    Parameter("judged", marked("Tokens judged"), 256, 16, 2048, 64, marked("Behind them, in one batch")),
    Parameter("rounds", marked("Rounds"), 2, 1, 50, 2, marked("Of reading again and of converting")),
)


def _cells(values: Values) -> int:
    return pad(int(values["text"] + values["judged"]), CTX_PAD)


def _settings(values: Values) -> ContextSettings:
    n_batch = max(512, int(values["judged"]))
    return ContextSettings(n_ctx=3 * _cells(values), n_seq_max=1, n_batch=n_batch, n_ubatch=512)


def _measure(bench: Bench) -> Measuring:
    read, judged = _texts(bench)
    yield from _first_layer(bench, read)
    rounds = bench.whole("rounds")
    with _context(bench, CacheType.F16) as f16:
        yield Progress(0, rounds, tr("{type} reads the text").format(type="f16"))
        f16.read(read, 0)
        held = f16.saved(0)
        base = f16.all_logits(judged, 0, len(read))
        f16.clear()
        f16.restore(0, held)
        for i, kind in enumerate(TARGETS):
            try:
                with _context(bench, kind) as target:
                    for number in bench.rounds(rounds):
                        said = tr("{type} reads the text again").format(type=kind.value)
                        yield Progress(i * rounds + min(number, rounds - 1), len(TARGETS) * rounds, said)
                        for series, fill in (
                            (AGAIN, lambda: target.read(read, 0)),
                            (CONVERT, lambda: _convert(bench, f16, target)),
                        ):
                            target.clear()
                            yield Sample(f"{kind.value}: {series}", 0, timed(fill), number, unit="s")
                            if not number:
                                logits = target.all_logits(judged, 0, len(read))
                                yield from _blocks(f"{kind.value}: {series}", base, logits)
            except ContextError as error:
                yield Sample(f"{kind.value}: {REFUSED}", 0, 1, note=str(error))


def _context(bench: Bench, kind: CacheType) -> AbstractContextManager[RawContext]:
    """Of K and V of this type. Raises ContextError."""
    return bench.context(type_k=kind, type_v=kind, n_ctx=_cells(bench.values))


def _texts(bench: Bench) -> tuple[list[int], list[int]]:
    """The tokens that are read, and those that are judged behind them: the end of the text, which does not come before.
    What is before is repeated where it is too short. Raises UserError.
    """
    n, n_judged, vocab = bench.whole("text"), bench.whole("judged"), bench.model.vocab
    if not vocab.has_text:
        return bench.tokens(n), bench.tokens(n_judged)
    tokens = bench.ids(bench.text, first=True)
    before = tokens[: len(tokens) - n_judged]
    if len(before) < n_judged:
        raise UserError(
            tr("The text has {n:,} tokens, and twice the {judged:,} that are judged are needed.").format(
                n=len(tokens), judged=n_judged
            )
        )
    return [before[i % len(before)] for i in range(n)], tokens[len(before) :]


def traits_of(bench: Bench, context: RawContext) -> Traits:
    """What decides how the context stores K and V."""
    model, settings = bench.model, context.settings
    return context_traits(model.traits, planned(model, settings), settings, model.vocab.n_tokens, context.said)


def _convert(bench: Bench, source: RawContext, target: RawContext) -> None:
    """The sequence of `source`, put into `target`. Raises ContextError."""
    n_bytes = state.seq_state_size(source.ctx, 0)
    blob = state.room(n_bytes)
    state.get_seq_state(source.ctx, 0, blob)
    sides = (traits_of(bench, context) for context in (source, target))
    if not state.set_seq_state(target.ctx, 0, requantize(blob, *sides, whole=False)):
        raise ContextError(tr("llama.cpp did not take the converted state."))


def _first_layer(bench: Bench, tokens: list[int]) -> Iterator[Sample]:
    """K and V of the first layer depend on the tokens alone: converted from f32, they are to be those that llama.cpp
    quantizes itself. How many bytes of them are not.
    """
    n = min(len(tokens), FIRST)  # in one graph
    with _context(bench, CacheType.F32) as exact:
        exact.read(tokens[:n], 0)
        for kind in TARGETS:
            try:
                with _context(bench, kind) as own, _context(bench, kind) as converted:
                    own.read(tokens[:n], 0)
                    _convert(bench, exact, converted)
                    found = [_first_rows(bench, context) for context in (own, converted)]
            except ContextError:
                continue
            differ = sum(int(np.count_nonzero(a != b)) for a, b in zip(*found, strict=True))
            yield Sample(f"{kind.value}: {OTHER}", 0, differ, unit="bytes")


def _first_rows(bench: Bench, context: RawContext) -> list[NDArray[np.uint8]]:
    """Bytes of K and of V of the first layer that has them. With a window it is in the second cache."""
    blob = context.saved(0)
    first = next(layer for layer in read_hyper(bench.header).layers if layer.k_width)
    stored = parse_seq_state(blob, planned(bench.model, context.settings)).caches[int(first.has_window)][0].sections
    firsts = [next((s for s in stored if s.kind == kind), None) for kind in ("k", "v")]
    return [np.frombuffer(blob, np.uint8, s.n_bytes, s.offset) for s in firsts if s is not None]


def _blocks(series: str, base: NDArray[np.float32], logits: NDArray[np.float32]) -> Iterator[Sample]:
    for at in range(0, len(base), BLOCK):
        p, q = (rows[at : at + BLOCK].astype(np.float64) for rows in (base, logits))
        yield Sample(f"{series}: {KL}", at, float(divergence(p, q).mean()), unit="nats")


class Found(NamedTuple):
    """Of one type: seconds of both, how much faster the conversion is, the divergences and their ratio, and bytes."""

    again: Figure
    convert: Figure
    faster: Figure
    kl_again: Figure
    kl: Figure
    more: Figure
    differ: float


def _answer(values: Values, measured: Measured) -> Result:
    refused = [s.note for s in measured.samples if s.series.endswith(f": {REFUSED}")]
    found = {
        kind: _found(values, measured, kind.value) for kind in TARGETS if (f"{kind.value}: {CONVERT}", 0) in measured
    }
    if not found:
        return Result(
            Verdict("not possible", tr("This model takes no quantized K and V."), tr("Not possible with this model.")),
            remarks=tuple(refused),
        )
    rows = (
        {
            tr("from f16 to"): kind.value,
            tr("read again (s)"): number_text(f.again.value),
            tr("converted (s)"): number_text(f.convert.value),
            tr("times as fast"): str(f.faster),
            tr("KL, read again"): str(f.kl_again),
            tr("KL, converted"): str(f.kl),
            tr("over reading again"): str(f.more),
            tr("bytes that differ"): f"{f.differ:,.0f}",
        }
        for kind, f in found.items()
    )
    key, said = _verdict(values, found)
    return Result(
        Verdict(key, said, _short(found)),
        figures=tuple(figure for f in found.values() for figure in (f.faster, f.more)),
        tables=(Table.of(tr("{n:,} tokens").format(n=int(values["text"])), rows),),
        remarks=(
            *refused,
            tr(
                "Bytes that differ: K and V of the first layer, converted from f32, against those that llama.cpp "
                "quantized itself when it read the same tokens."
            ),
        ),
    )


def _found(values: Values, measured: Measured, kind: str) -> Found:
    again, convert = f"{kind}: {AGAIN}", f"{kind}: {CONVERT}"
    n = int(values["judged"])
    weights = [min(BLOCK, n - at) for at in range(0, n, BLOCK)]
    kl = [[measured.one(f"{series}: {KL}", at) for at in range(0, n, BLOCK)] for series in (again, convert)]
    means = [mean_figure(tr(KL), blocks, weights, "nats") for blocks in kl]
    faster = measured.ratio(tr("converted to {type}, times as fast").format(type=kind), (again, 0), (convert, 0))
    more = ratio_figure(
        tr("KL of {type}, converted over read again").format(type=kind),
        *([block * weight for block, weight in zip(blocks, weights, strict=True)] for blocks in reversed(kl)),
    )
    return Found(
        measured.figure("", again, unit="s"),
        measured.figure("", convert, unit="s"),
        faster.at_least(FASTER),
        means[0],
        means[1],
        more.at_most(MOST_KL),
        measured.one(f"{kind}: {OTHER}"),
    )


def _verdict(values: Values, found: dict[CacheType, Found]) -> tuple[str, str]:
    keys, said = [], []
    for kind, f in found.items():
        fast, good = f.faster.holds, f.more.holds
        keys.append(f"{kind.value} {_word(fast=fast, good=good)}")
        text = tr(
            "f16 to {type}: converting {n:,} tokens is {faster} times as fast as reading them again, and its KL "
            "divergence from f16 is {more:.2f} times that ({kl} against {again}); {bytes}"
        )
        same = tr("the first layer is bit for bit what llama.cpp quantizes")
        differ = tr("{n:,.0f} bytes of the first layer are not what llama.cpp quantizes").format(n=f.differ)
        said.append(
            text.format(
                type=kind.value,
                n=int(values["text"]),
                faster=f.faster,
                more=f.more.value,
                kl=f.kl,
                again=f.kl_again,
                bytes=differ if f.differ else same,
            )
        )
    return "; ".join(keys), f"{'; '.join(said)}."


def _word(*, fast: bool, good: bool) -> str:
    if good:
        return "pays and loses no more" if fast else "loses no more, and hardly pays"
    return "pays and loses more" if fast else "does not pay"


def _short(found: dict[CacheType, Found]) -> str:
    said = tr("{type} {faster:,.0f} times as fast at {more:.2f} of the loss")
    parts = [said.format(type=k.value, faster=f.faster.value, more=f.more.value) for k, f in found.items()]
    return tr("Converting, not reading: {parts}.").format(parts=tr("; ").join(parts))


def _applies(facts: ModelFacts) -> str:
    if why := needs_attention(facts):
        return why
    if facts.mla or facts.has_other_keys:
        return tr("K and V of this kind of memory are not converted.")
    return ""


EXPERIMENT = Experiment(
    id="requantization",
    title=marked("K and V converted"),
    question=marked("Can K and V get other types without reading the text again?"),
    supposed=marked("Another type of K or V needs a new context, and that reads everything again."),
    parameters=PARAMETERS,
    settings=_settings,
    work=lambda values: Work(
        (1 + len(TARGETS) * values["rounds"]) * values["text"] + (1 + 2 * len(TARGETS)) * values["judged"], 0
    ),
    measure=_measure,
    answer=_answer,
    applies=_applies,
    takes_text=True,
)
