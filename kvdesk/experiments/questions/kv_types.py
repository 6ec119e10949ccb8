"""What quantized K and V cost and lose: memory, speed at several depths, and how far the next token changes.

The text is read in chunks and the second half of each is judged, as llama-perplexity does it with --kl-divergence
(llama.cpp, tools/perplexity/perplexity.cpp), with f16 for K and V in the place of its base model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.compare import STRONG_KL, divergence
from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.errors import ContextError, UserError
from kvdesk.experiments.bench import MOST_REPEATED, Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_attention
from kvdesk.experiments.long_text import surprise
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import exponential, mean_figure
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
from kvdesk.settings.context import EXACT_UBATCH
from kvdesk.translation import marked, tr

CHANGES_KL = 0.01
"""Mean divergence in nats from which the next token is said to change."""
BLOCK = 16
"""Tokens whose divergence is one sample, their mean: neighbours are alike, and intervals come from blocks."""
KL, NLL, TOP = marked("KL divergence"), marked("surprise"), marked("same likeliest token")
FIRST, BYTES = marked("first other token"), marked("bytes")
SECONDS, REFUSED = marked("one token"), marked("refused")


class Pair(NamedTuple):
    """Types of K and V, and the most tokens that are computed at once."""

    k: CacheType
    v: CacheType
    n_ubatch: int = 512

    def __str__(self) -> str:
        cut = "" if self.n_ubatch == BASE.n_ubatch else f", {self.n_ubatch} at once"
        return f"K {self.k.value}, V {self.v.value}{cut}"


F16 = CacheType.F16
BASE = Pair(F16, F16)
ROUNDING = Pair(F16, F16, EXACT_UBATCH)
"""The same types, summed up in another order: what differs is rounding."""
SAME = 2
"""Times the divergence of `ROUNDING` up to which types are not told apart from it; the verdict says this number."""
QUANTIZED = (CacheType.Q8_0, CacheType.Q4_0)
PAIRS = (BASE, ROUNDING, *(pair for kind in QUANTIZED for pair in (Pair(kind, F16), Pair(F16, kind), Pair(kind, kind))))

PARAMETERS = (
    Parameter("chunk", marked("Tokens in a chunk"), 512, 64, 4096, 256,
              marked("Of the text; the second half of each is judged")),
    Parameter("chunks", marked("Chunks"), 2, 1, 100, 2, marked("Of the text at most")),
    Parameter("written", marked("Tokens written"), 64, 1, 1024, 24, marked("After each chunk, always the likeliest")),
    Parameter("deepest", marked("Depth"), 2048, 64, 32768, 512,
              marked("Tokens before those that are timed; also a quarter, a half")),
    Parameter("rounds", marked("Rounds"), 15, 2, 100, 9,
              marked("Tokens that are timed at each depth, with all types in turn")),
)  # fmt: skip


def _depths(values: Values) -> list[int]:
    """The largest, and those from which the tokens that are timed do not reach the next."""
    found: list[int] = []
    for part in (1, 2, 4):
        depth = int(values["deepest"]) // part
        if not found or depth + values["rounds"] + MOST_REPEATED <= found[0]:
            found.insert(0, depth)
    return found


def _cells(values: Values) -> int:
    judged = values["chunk"] + values["written"]
    timed = values["deepest"] + values["rounds"] + MOST_REPEATED
    return pad(int(max(judged, timed)), CTX_PAD)


def _settings(values: Values) -> ContextSettings:
    cells = len(PAIRS) * _cells(values)
    return ContextSettings(n_ctx=cells, n_seq_max=1, n_batch=int(values["chunk"]), n_ubatch=512)


def _blocks(n_chunk: int) -> list[tuple[int, int]]:
    """Beginning and end of each block of judged places: those from the middle to the last but one (the last predicts
    a token that is not there).
    """
    first, end = n_chunk // 2, n_chunk - 1
    return [(at, min(at + BLOCK, end)) for at in range(first, end, BLOCK)]


def _measure(bench: Bench) -> Measuring:
    text, pairs = _text(bench), []
    for pair in PAIRS:
        try:
            with _context(bench, pair) as context:
                yield Sample(f"{pair}: {BYTES}", 0, context.buffers.get("KV", 0) / context.n_ctx, unit="B")
        except ContextError as error:
            if pair == BASE:
                raise
            yield Sample(f"{pair}: {REFUSED}", 0, 1, note=str(error))
            continue
        pairs.append(pair)
    yield from _judged(bench, pairs, text)
    with ExitStack() as stack:
        timed = {pair: stack.enter_context(_context(bench, pair)) for pair in pairs if pair != ROUNDING}
        yield from _timed(bench, timed, text)


def _context(bench: Bench, pair: Pair) -> AbstractContextManager[RawContext]:
    """Raises ContextError."""
    return bench.context(type_k=pair.k, type_v=pair.v, n_ubatch=pair.n_ubatch, n_ctx=_cells(bench.values))


def _text(bench: Bench) -> list[int]:
    """Token ids: of the text, or random ones for a model without a text tokenizer. Raises UserError, PromptError."""
    n, n_chunk = bench.whole("chunk") * bench.whole("chunks"), bench.whole("chunk")
    if not bench.model.vocab.has_text:
        return bench.tokens(n)
    tokens = bench.ids(bench.text, first=True)[:n]
    if len(tokens) < n_chunk:
        raise UserError(
            tr("The text has {n:,} tokens and a chunk takes {n_chunk:,}: choose a smaller one.").format(
                n=len(tokens), n_chunk=n_chunk
            )
        )
    return tokens


def _chunks(bench: Bench, text: list[int]) -> list[list[int]]:
    """Each begins as a text begins."""
    n, vocab = bench.whole("chunk"), bench.model.vocab
    found = [text[at : at + n] for at in range(0, len(text) - n + 1, n)]
    return [[vocab.bos, *chunk[1:]] for chunk in found] if vocab.add_bos else found


def _judged(bench: Bench, pairs: Sequence[Pair], text: list[int]) -> Measuring:
    """One context at a time: the logits of half a chunk are many."""
    chunks, n_chunk = _chunks(bench, text), bench.whole("chunk")
    first = n_chunk // 2
    for number, chunk in enumerate(chunks):
        base: NDArray[np.float32] | None = None
        told: list[int] = []
        for i, pair in enumerate(pairs):
            done, total = number * len(pairs) + i, len(chunks) * len(pairs)
            yield Progress(
                done,
                total,
                tr("{types} reads chunk {i} of {n}").format(types=_title(pair), i=number + 1, n=len(chunks)),
            )
            with _context(bench, pair) as context:
                logits = context.all_logits(chunk, first)
                written = context.write(bench.whole("written"), n_chunk)
            base = logits if base is None else base
            for start, end in _blocks(n_chunk):
                rows = slice(start - first, end - first)
                yield from _block(pair, start, number, base[rows], logits[rows], chunk[start + 1 : end + 1])
            told = told or written
            same = next((k for k, both in enumerate(zip(told, written, strict=True)) if both[0] != both[1]), None)
            note = "none" if same is None else ""
            yield Sample(f"{pair}: {FIRST}", number, len(told) if same is None else same, number, note, unit="tokens")


def _block(
    pair: Pair, start: int, number: int, base: NDArray[np.float32], logits: NDArray[np.float32], following: list[int]
) -> Iterator[Sample]:
    """The samples of one block: logits of shape (n_tokens, n_vocab), and the tokens that really follow."""
    p, q = base.astype(np.float64), logits.astype(np.float64)
    yield Sample(f"{pair}: {NLL}", start, float(surprise(logits, following).mean()), number, unit="nats")
    if pair != BASE:
        yield Sample(f"{pair}: {KL}", start, float(divergence(p, q).mean()), number, unit="nats")
        same = float((p.argmax(axis=1) == q.argmax(axis=1)).mean())
        yield Sample(f"{pair}: {TOP}", start, same, number, unit="share")


def _timed(bench: Bench, contexts: Mapping[Pair, RawContext], text: list[int]) -> Measuring:
    """Each single token goes on behind the one before, with the types in turn."""
    depths, reached = _depths(bench.values), 0
    for context in contexts.values():
        context.clear()
    for i, depth in enumerate(depths):
        for pair, context in contexts.items():
            yield Progress(
                i, len(depths), tr("{types} reads to depth {depth:,}").format(types=_title(pair), depth=depth)
            )
            context.read([text[k % len(text)] for k in range(reached, depth)], reached)
        reached = depth
        for number in bench.rounds(bench.whole("rounds")):
            yield Progress(
                i, len(depths), tr("one token at depth {depth:,}, round {n}").format(depth=depth, n=number + 1)
            )
            for pair, context in contexts.items():
                answer = context.read(text[:1], reached)
                yield Sample(f"{pair}: {SECONDS}", depth, answer.seconds, number, unit="s")
            reached += 1


class Found(NamedTuple):
    """What the samples say of one pair. over: times of a token over those with f16, by depth."""

    kl: Figure
    perplexity: Figure
    top: float
    first: list[float]
    over: dict[int, Figure]
    tok_s: dict[int, float]
    cell: float


def _answer(values: Values, measured: Measured) -> Result:
    refused = {s.series.partition(":")[0]: s.note for s in measured.samples if s.series.endswith(REFUSED)}
    found = {pair: _found(values, measured, pair) for pair in PAIRS if f"{pair}: {NLL}" in measured.series}
    both = [pair for pair in found if pair.k == pair.v != F16]
    _judge(found, both)
    deepest, base = _depths(values)[-1], found[BASE]
    rows = (
        {
            tr("types"): _title(pair),
            tr("bytes in a cell (over f16)"): f"{f.cell:,.0f} ({f.cell / base.cell:.2f})" if base.cell else "–",
            tr("tok/s at {n:,}").format(n=deepest): number_text(f.tok_s[deepest]) if f.tok_s else "–",
            tr("time over f16"): "–" if pair in (BASE, ROUNDING) else str(f.over[deepest]),
            tr("KL divergence"): "–" if pair == BASE else str(f.kl),
            tr("perplexity (over f16)"): number_text(f.perplexity.value, 4) if pair == BASE else str(f.perplexity),
            tr("same likeliest"): "–" if pair == BASE else f"{f.top:.1%}",
            tr("first other token written"): "–" if pair == BASE else _first(f.first, values["written"]),
        }
        for pair, f in found.items()
    )
    key, said = _verdict(found, both)
    return Result(
        Verdict(key, said, _short(found, both)),
        figures=tuple(f for pair in found if pair != BASE for f in (found[pair].kl, found[pair].perplexity)),
        plots=(_kl_plot(measured, found), _speed_plot(found)),
        tables=(Table.of(tr("Types of K and V"), rows),),
        remarks=tuple(
            tr("{types} is not possible with this model: {why}").format(types=pair, why=why)
            for pair, why in refused.items()
        ),
    )


def _found(values: Values, measured: Measured, pair: Pair) -> Found:
    def means(series: str, of: Pair = pair) -> list[float]:
        """Of all blocks, chunk by chunk."""
        return [y for ys in measured.by_round(f"{of}: {series}") for y in ys]

    own_surprise = means(NLL)
    blocks = [end - start for start, end in _blocks(int(values["chunk"]))]
    weights = blocks * (len(own_surprise) // len(blocks))
    if pair == BASE:
        kl, gap, top = Figure("", 0.0), own_surprise, 1.0
    else:
        kl = mean_figure(f"{tr(KL)}, {_title(pair)}", means(KL), weights, "nats")
        gap = [own - other for own, other in zip(own_surprise, means(NLL, BASE), strict=True)]
        top = float(np.average(means(TOP), weights=weights))
    log_ratio = mean_figure("", gap, weights)
    what = tr("perplexity") if pair == BASE else tr("perplexity over f16")
    perplexity = exponential(f"{what}, {_title(pair)}", log_ratio)
    own, base = f"{pair}: {SECONDS}", f"{BASE}: {SECONDS}"
    depths = [depth for depth in _depths(values) if (own, depth) in measured]
    over = {
        depth: measured.ratio(
            tr("{types}, depth {depth}").format(types=_title(pair), depth=depth), (own, depth), (base, depth)
        )
        for depth in depths
    }
    tok_s = {depth: 1 / measured.median(own, depth) for depth in depths}
    return Found(kl, perplexity, top, means(FIRST), over, tok_s, measured.one(f"{pair}: {BYTES}"))


def _judge(found: dict[Pair, Found], both: Sequence[Pair]) -> None:
    """Give each divergence that `_verdict` compares what it is compared with."""
    if not both:
        return
    rounding = SAME * found[ROUNDING].kl.value
    judged = {pair: [rounding, *(limit for limit in (CHANGES_KL, STRONG_KL) if limit > rounding)] for pair in both}
    kind = both[-1].k
    if (k_only := Pair(kind, F16)) in found and (v_only := Pair(F16, kind)) in found:
        judged[k_only] = [found[v_only].kl.value]
    for pair, limits in judged.items():
        found[pair] = found[pair]._replace(kl=found[pair].kl.at_most(*limits))


def _verdict(found: Mapping[Pair, Found], both: Sequence[Pair]) -> tuple[str, str]:
    if not both:
        return "not possible", tr("This model takes no quantized K and V together.")
    deepest = max(found[BASE].over)
    rounding = found[ROUNDING].kl
    words = {pair: _word(found[pair].kl.value, rounding.value) for pair in both}
    text = tr(
        "{type} for K and V: the next token {changes} (KL divergence {kl}), at {memory:.2f} of the "
        "memory and {time} times the time of a token at depth {depth:,}"
    )
    said = [
        text.format(
            type=pair.k.value,
            changes=tr(words[pair]),
            kl=found[pair].kl,
            memory=found[pair].cell / found[BASE].cell,
            time=found[pair].over[deepest],
            depth=deepest,
        )
        for pair in both
    ]
    key = ", ".join(f"{pair.k.value} {words[pair]}" for pair in both)
    kind = both[-1].k
    k_only, v_only = found.get(Pair(kind, F16)), found.get(Pair(F16, kind))
    if k_only is None or v_only is None:
        return key, f"{'; '.join(said)}."
    more = "K" if k_only.kl.value > v_only.kl.value else "V"
    apart = tr("with {type} for one of them, K gives {k} and V {v}: {more} matters more")
    apart = apart.format(type=kind.value, k=k_only.kl, v=v_only.kl, more=more)
    rest = tr("f16 in other batches, which is rounding alone, gives {kl}").format(kl=rounding)
    return f"{key}; {more} matters more", f"{'; '.join(said)}; {apart}; {rest}."


def _short(found: Mapping[Pair, Found], both: Sequence[Pair]) -> str:
    """The answer without intervals: what each type takes and changes, and of which of both it depends."""
    if not both:
        return tr("This model takes no quantized K and V together.")
    rounding, base = found[ROUNDING].kl.value, found[BASE].cell
    parts = []
    for pair in both:
        loss = tr("no measurable loss")
        if found[pair].kl.value > SAME * rounding:
            loss = tr("{kl} nats, and rounding changes nothing").format(kl=number_text(found[pair].kl.value, 2))
            if rounding > 0:
                loss = tr("{n} times the change of rounding").format(n=number_text(found[pair].kl.value / rounding, 2))
        said = tr("{type}: {share:.0%} of the memory, {loss}")
        parts.append(said.format(type=pair.k.value, share=found[pair].cell / base if base else 0.0, loss=loss))
    kind = both[-1].k
    k_only, v_only = found.get(Pair(kind, F16)), found.get(Pair(F16, kind))
    if k_only is None or v_only is None:
        return tr("{said}.").format(said=tr("; ").join(parts))
    more = "K" if k_only.kl.value > v_only.kl.value else "V"
    return tr("{parts}; {more} matters more.").format(parts=tr("; ").join(parts), more=more)


def _title(pair: Pair) -> str:
    """The pair in the person's language; `str(pair)` is the key of its samples."""
    types = f"K {pair.k.value}, V {pair.v.value}"
    return types if pair.n_ubatch == BASE.n_ubatch else tr("{types}, {n} at once").format(types=types, n=pair.n_ubatch)


def _word(kl: float, rounding: float) -> str:
    if kl <= SAME * rounding:
        return marked("changes at most twice as much as by rounding alone")
    if kl < CHANGES_KL:
        return marked("hardly changes")
    return marked("changes strongly") if kl >= STRONG_KL else marked("changes")


def _first(found: Sequence[float], written: float) -> str:
    return ", ".join(tr("none") if n >= written else f"{n + 1:.0f}" for n in found)


def _kl_plot(measured: Measured, found: Iterable[Pair]) -> Plot:
    """Over the places in the chunks."""

    def points(series: str) -> list[tuple[float, float]]:
        return [(x, max(float(np.mean(measured.all(series, x))), 1e-9)) for x in measured.xs(series)]

    series = tuple(Series.of(_title(pair), points(f"{pair}: {KL}")) for pair in found if pair != BASE)
    title = tr("How far the next token changes")
    return Plot(title, tr("place in the chunk (tokens)"), tr("KL (nats)"), series, log=True)


def _speed_plot(found: Mapping[Pair, Found]) -> Plot:
    series = tuple(curve(_title(pair), f.over.items()) for pair, f in found.items() if pair not in (BASE, ROUNDING))
    return Plot(tr("Time of a token over f16"), tr("depth (tokens)"), tr("over K and V f16"), series)


EXPERIMENT = Experiment(
    id="kv-types",
    title=marked("Types of K and V"),
    question=marked("What do quantized K and V save, cost and lose?"),
    supposed=marked("Quantized K and V need half the memory or less, and only a little quality is lost."),
    parameters=PARAMETERS,
    settings=_settings,
    work=lambda values: Work(
        len(PAIRS) * (values["chunk"] * values["chunks"] + values["deepest"]),
        len(PAIRS) * (values["written"] * values["chunks"] + values["rounds"] * len(_depths(values))),
    ),
    measure=_measure,
    answer=_answer,
    applies=needs_attention,
    takes_text=True,
)
