"""Which tokens a cache loses least by: those of a text that each overflow policy evicts, down to a quarter of them.

The policies are those of `kvdesk.policies.overflow`, asked for as much room as is to be free. What stays moves down as
it is. Then questions about the text are read, and each next token is compared with that of the whole cache.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.attention.second_context import SecondContext, second_settings
from kvdesk.backends.local.llama.params import planned
from kvdesk.cache.compare import divergence
from kvdesk.cache.geometry import CTX_PAD, Geometry, pad
from kvdesk.cache.state.excerpt import excerpt
from kvdesk.cache.take_out import take_out
from kvdesk.errors import UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_plain_attention
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.questions.forgetting import FACT_TOKENS, INTRO, OUTRO, Fact, facts, value_token
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import mean_figure, ratio_figure
from kvdesk.library.hyper import read_hyper
from kvdesk.library.key_norms import norms_by_position
from kvdesk.policies.overflow import N_RECENT, Abilities, Situation, Span, Tokens, Worth, plan_overflow
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
from kvdesk.settings import ContextSettings, Overflow
from kvdesk.translation import marked, tr

SLIDE, SINKS = marked("slide"), marked("sinks")
ATTENDED, LOW, HIGH = marked("least attended"), marked("low-norm keys"), marked("high-norm keys")
WAYS: Final = {
    SLIDE: Overflow.SLIDE,
    SINKS: Overflow.SINKS,
    ATTENDED: Overflow.LEAST_ATTENDED,
    LOW: Overflow.LOW_NORM_KEYS,
    HIGH: Overflow.LOW_NORM_KEYS,
}
"""Each with its policy. None keeps high-norm keys: that is low-norm keys the other way round, to see which are worth
more.
"""
KEPT: Final = (75, 50, 25)
"""Percent of the cells."""
UNTOUCHED = marked("untouched")
KL, SAID, MS, CELLS = marked("KL"), marked("says it"), marked("ms"), marked("cells")
_ASKED: Final = 24  # of a question at most, about

PARAMETERS = (
    Parameter("facts", marked("Facts"), 60, 48, 60, 48, marked("Of the text, one message each")),
    Parameter("questions", marked("Questions"), 20, 2, 60, 4, marked("About facts, from the first to the last")),
)


class _Text(NamedTuple):
    """parts: tokens of the beginning, of each fact, and of the end; tokens: all of them."""

    parts: list[list[int]]
    tokens: list[int]

    def situation(self, n_removed: int, worth: Worth | None) -> Situation:
        """A context that is full of it, and needs so much room. The beginning is its system prompt."""
        spans, start = list[Span](), 0
        for i, part in enumerate(self.parts):
            spans.append(Span(start, start + len(part), is_system=i == 0, first=start))
            start += len(part)
        return Situation(tuple(spans), start, n_removed, start, worth=worth)


def _settings(values: Values) -> ContextSettings:
    cells = pad(int(values["facts"]) * FACT_TOKENS + _ASKED + 32, CTX_PAD)
    return ContextSettings(n_ctx=cells, n_seq_max=1, n_batch=cells, n_ubatch=512)


def _work(values: Values) -> Work:
    n_kept = len(WAYS) * len(KEPT)
    return Work(values["facts"] * FACT_TOKENS + N_RECENT * len(KEPT) + (1 + n_kept) * values["questions"] * _ASKED, 0)


def _measure(bench: Bench) -> Measuring:
    ids, known = bench.ids, facts(bench.whole("facts"))
    parts = [ids(INTRO, first=True), *(ids(fact.text) for fact in known), ids(OUTRO)]
    text = _Text(parts, [token for part in parts for token in part])
    picks = np.unique(np.linspace(0, len(known) - 1, bench.whole("questions")).round().astype(int))
    asked = [(known[i], ids(known[i].asked), value_token(ids, known[i])) for i in picks]
    with bench.context() as context:
        context.read(text.tokens, 0)
        whole = context.saved(0)
        untouched = [_logits(context, question) for _, question, _ in asked]
        yield from _said(UNTOUCHED, 100, asked, untouched, untouched)
        for step, (way, percent) in enumerate((way, percent) for way in WAYS for percent in KEPT):
            yield Progress(step, len(WAYS) * len(KEPT), f"{tr(way)}, {percent} %")
            context.clear()
            context.restore(0, whole, text.tokens)
            start = time.perf_counter()
            removed = _removed(bench, way, text, whole, percent)
            take_out(context, 0, removed)
            yield Sample(f"{way}: {MS}", percent, (time.perf_counter() - start) * 1e3, unit="ms")
            yield Sample(f"{way}: {CELLS}", percent, len(text.tokens) - sum(p1 - p0 for p0, p1 in removed))
            logits = [_logits(context, question) for _, question, _ in asked]
            yield from _said(way, percent, asked, logits, untouched)


def _removed(bench: Bench, way: str, text: _Text, state: bytes, percent: int) -> tuple[Tokens, ...]:
    """The tokens that the policy evicts, so that this part of them stays. Raises UserError if it cannot."""
    n = len(text.tokens)
    worth = None
    if way == ATTENDED:
        worth = Worth(_attention(bench, state, text.tokens).tolist())
    elif way in (LOW, HIGH):
        norms = norms_by_position(state, _geometry(bench), read_hyper(bench.header), 0, n)
        worth = Worth((norms if way == HIGH else -norms).tolist())
    plan = plan_overflow(WAYS[way], text.situation(n - n * percent // 100, worth), Abilities())
    if plan.policy is not WAYS[way]:
        raise UserError(tr("The text is too short to keep {percent} % of it: {why}").format(
            percent=percent, why=plan.sentence
        ))  # fmt: skip
    return plan.removed


def _attention(bench: Bench, state: bytes, tokens: Sequence[int]) -> NDArray[np.float64]:
    """The share of each token in the attention of the last ones, decoded once more in a second context."""
    n, first = len(tokens), len(tokens) - N_RECENT
    second = SecondContext(bench.model, second_settings(bench.settings, n, N_RECENT))
    try:
        before = np.arange(first)
        choice = before, before.astype(np.int32)
        second.load(excerpt(state, _geometry(bench), [choice], whole=False))
        found = second.attend(tokens[first:], first, summed=True)
    finally:
        second.close()
    heads = np.concatenate([layer.weights[:, 0, :n] for layer in found.values()])
    return np.asarray(heads.mean(axis=0, dtype=np.float64) / N_RECENT)


def _geometry(bench: Bench) -> Geometry:
    return planned(bench.model, bench.settings)


def _logits(context: RawContext, question: Sequence[int]) -> NDArray[np.float32]:
    """Of the token after each of the question's, shape (tokens, n_vocab); the cache is as before then."""
    n = context.span(0)[1] + 1
    logits = context.all_logits(question, 0, n)
    context.take_back(n)
    return logits


def _said(
    way: str,
    percent: int,
    asked: Sequence[tuple[Fact, list[int], int]],
    logits: Sequence[NDArray[np.float32]],
    untouched: Sequence[NDArray[np.float32]],
) -> Iterator[Sample]:
    """Of each question: whether the fact is said, and how far its next tokens are from those of the whole cache."""
    for i, ((fact, _, value), rows, whole) in enumerate(zip(asked, logits, untouched, strict=True)):
        kl = divergence(whole.astype(np.float64), rows.astype(np.float64)).mean()
        yield Sample(f"{way}: {KL}", percent, float(kl), i, fact.text.strip(), "nats")
        yield Sample(f"{way}: {SAID}", percent, float(rows[-1].argmax() == value), i)


def _answer(_values: Values, measured: Measured) -> Result:
    lost = {way: np.mean([measured.all(f"{way}: {KL}", x) for x in KEPT], axis=0).tolist() for way in WAYS}
    ways = sorted((way for way in WAYS if way != HIGH), key=lambda way: sum(lost[way]))
    best, second = ways[:2]
    ratio = _ratio(lost, best, second)
    norms = _ratio(lost, LOW, HIGH)
    clear = ratio.high is not None and ratio.high < 1
    winner = tr(best) if clear else tr("{best} or {second}").format(best=tr(best), second=tr(second))
    key = f"least is lost with {best}" if clear else f"least is lost with {best} or {second}"
    if norms.high is not None and norms.high < 1:
        key += "; low norms are worth more"
        direction = tr("Keys of low norm are worth more than those of high norm")
    elif norms.low is not None and norms.low > 1:
        key += "; high norms are worth more"
        direction = tr("Keys of high norm are worth more than those of low norm")
    else:
        key += "; norms say nothing"
        direction = tr("The norm of a key does not say what it is worth")
    n = len(lost[best])
    sentence = tr(
        "Least is lost with {winner}: with 75, 50 and 25 % of the cells the next token is {best} nats from "
        "that of the whole cache, and {second} nats with {runner}, the next best. Asked for {n} facts, of which the "
        "whole cache says {before:.0f}, the model says {said}. {direction}: {low} nats where low norms are kept, "
        "{high} where high ones are."
    ).format(
        winner=winner,
        best=number_text(float(np.mean(lost[best]))),
        second=number_text(float(np.mean(lost[second]))),
        runner=tr(second),
        n=n,
        before=sum(measured.all(f"{UNTOUCHED}: {SAID}", 100)),
        said=_facts_said(measured, ways),
        direction=direction,
        low=number_text(float(np.mean(lost[LOW]))),
        high=number_text(float(np.mean(lost[HIGH]))),
    )
    means = [curve(tr(way), ((x, _mean(measured, way, x)) for x in reversed(KEPT))) for way in WAYS]
    plot = Plot(tr("Distance from the whole cache"), tr("cells kept (%)"), tr("KL (nats)"), tuple(means))
    return Result(
        Verdict(key, sentence, tr("Least is lost with {winner}.").format(winner=winner)),
        figures=(ratio, norms),
        plots=(plot,),
        tables=(_table(measured),),
        remarks=(
            tr(
                "ms: to find the tokens, to remove them and to renumber what stays. Rotating K afterwards costs the "
                "same for all."
            ),
            tr("High-norm keys are no policy: they show whether the norm says anything."),
        ),
    )


def _ratio(lost: dict[str, list[float]], over: str, under: str) -> Figure:
    """Of the divergences of two ways, by question."""
    name = tr("KL of {over} over that of {under}").format(over=tr(over), under=tr(under))
    return ratio_figure(name, lost[over], lost[under])


def _mean(measured: Measured, way: str, percent: int) -> Figure:
    values = measured.all(f"{way}: {KL}", percent)
    return mean_figure("", values, [1.0] * len(values), "nats")


def _facts_said(measured: Measured, ways: Sequence[str]) -> str:
    parts = []
    for way in ways:
        counts = ", ".join(f"{sum(measured.all(f'{way}: {SAID}', x)):.0f}" for x in KEPT)
        parts.append(tr("{counts} ({way})").format(counts=counts, way=tr(way)))
    return tr("; ").join(parts)


def _table(measured: Measured) -> Table:
    """Each way and size: cells, what is still said, the divergence, the cost."""
    n = len(measured.all(f"{UNTOUCHED}: {SAID}", 100))
    rows = (
        {
            tr("evicts"): tr(way),
            tr("kept"): f"{x} %",
            tr("cells"): f"{measured.one(f'{way}: {CELLS}', x):,.0f}",
            tr("facts said"): f"{sum(measured.all(f'{way}: {SAID}', x)):.0f} / {n}",
            tr("KL (nats)"): str(_mean(measured, way, x)),
            tr("ms"): number_text(measured.one(f"{way}: {MS}", x)),
        }
        for way in WAYS
        for x in KEPT
    )
    return Table.of(tr("What is lost, and what finding it costs"), rows)


EXPERIMENT = Experiment(
    id="eviction",
    title=marked("Eviction"),
    question=marked("Which tokens can a full cache lose at the least cost?"),
    supposed=marked("Tokens that get little attention, or whose keys are long, can leave before the oldest ones."),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    answer=_answer,
    applies=needs_plain_attention(
        marked("This model's cache is not one of plain attention, in which any token can leave.")
    ),
)
