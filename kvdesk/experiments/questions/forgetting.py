"""Whether a model forgets what is removed from its cache: the next token after a question about it, three ways.

Each fact of a text is removed separately. The cells after it were computed while it was there and may contain it (arXiv
2606.17107). So the edited cache is compared with one that has never read the fact, and with one from which nothing was
removed.
"""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.compare import KNOWN_KL, divergence
from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.cache.take_out import take_out
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_prefixes
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import mean_figure, ratio_figure
from kvdesk.protocol.experiment import Figure, Parameter, Progress, Result, Sample, Table, Values, Verdict
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, plural, tr

NAMES: Final = (
    "Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Greta", "Henry", "Irene", "Jonas",
    "Karen", "Louis", "Maria", "Nils", "Olga", "Peter", "Rosa", "Simon", "Tilda", "Viktor",
)  # fmt: skip
THINGS: Final = (
    ("favourite colour", ("green", "blue", "red", "yellow", "purple", "orange", "white", "black", "brown", "pink")),
    ("pet", ("dog", "cat", "horse", "rabbit", "parrot", "turtle", "snake", "mouse", "goat", "duck")),
    ("home town", ("Paris", "Rome", "Berlin", "London", "Madrid", "Vienna", "Dublin", "Oslo", "Athens", "Prague")),
)
"""Each of these of every name: 60 facts."""
INTRO: Final = "These are notes about some people.\n"
OUTRO: Final = "That is all that is known about them.\n"
ERRATUM: Final = "Correction: what was said about {name}'s {thing} was wrong; nobody knows {name}'s {thing}.\n"
QUESTION: Final = "Question: What is {name}'s {thing}?\n"
REPLY: Final = "Answer: {name}'s {thing} is"
GHOST, CURED = marked("ghost share"), marked("ghost share after an erratum")
UNTOUCHED, EDITED, ERRATA = marked("untouched"), marked("edited"), marked("edited, with an erratum")
SAID, READ = marked("says it"), marked("tokens")
RECOMPUTED = marked("recomputed")
WAYS: Final = (UNTOUCHED, EDITED, ERRATA, RECOMPUTED)
FORGOTTEN, REMEMBERED = 0.1, 0.5
"""Ghost shares below which a fact counts as forgotten, and above which as remembered."""
FACT_TOKENS: Final = 14
"""Of a fact at most, about."""
_ASKED: Final = 40  # of a question and of an erratum at most, about

PARAMETERS = (
    Parameter("facts", marked("Facts"), 40, 2, 40, 8, marked("Of the text; each is removed and asked for separately")),
    Parameter(
        "asked_before",
        marked("Asked before"),
        0,
        0,
        1,
        0,
        marked("1: the question is read before the fact is removed, so that its cells have seen the fact"),
    ),
)


class Fact(NamedTuple):
    """`text` says that the `thing` of `name` is `value`."""

    name: str
    thing: str
    value: str

    @property
    def text(self) -> str:
        return f"{self.name}'s {self.thing} is {self.value}.\n"

    @property
    def question(self) -> str:
        return QUESTION.format(name=self.name, thing=self.thing)

    @property
    def reply(self) -> str:
        """The beginning of an answer to the question; the value comes next."""
        return REPLY.format(name=self.name, thing=self.thing)

    @property
    def asked(self) -> str:
        """Both."""
        return self.question + self.reply

    @property
    def erratum(self) -> str:
        return ERRATUM.format(name=self.name, thing=self.thing)


def facts(n: int) -> list[Fact]:
    """Different ones, the same each time: no two neighbours have the same value."""
    found = []
    for i in range(n):
        thing, values = THINGS[i // len(NAMES)]
        found.append(Fact(NAMES[i % len(NAMES)], thing, values[(7 * i + i // len(values)) % len(values)]))
    return found


def value_token(ids: Callable[[str], list[int]], fact: Fact) -> int:
    """The token that says the fact behind its reply. Both are one text here, because some tokenizers put a space in
    front of every text. Raises PromptError.
    """
    reply, whole = ids(fact.reply), ids(f"{fact.reply} {fact.value}")
    return next(said for asked, said in zip_longest(reply, whole) if asked != said)


def _cells(values: Values) -> int:
    return pad(int(values["facts"]) * FACT_TOKENS + 2 * _ASKED + 32, CTX_PAD)


def _settings(values: Values) -> ContextSettings:
    cells = _cells(values)
    return ContextSettings(n_ctx=cells, n_seq_max=1, n_batch=cells, n_ubatch=512)


def _work(values: Values) -> Work:
    n = values["facts"]
    return Work(n * FACT_TOKENS + n * (4 * _ASKED + n * FACT_TOKENS / 2), 0)


def _measure(bench: Bench) -> Measuring:
    ids, known, asked_before = bench.ids, facts(bench.whole("facts")), bool(bench.whole("asked_before"))
    parts = [ids(INTRO, first=True), *(ids(fact.text) for fact in known), ids(OUTRO)]
    text = [token for part in parts for token in part]
    with bench.context() as context:
        context.read(text, 0)
        whole = kept(bench, context)
        end = len(parts[0])
        for i, (fact, part) in enumerate(zip(known, parts[1:-1], strict=True)):
            yield Progress(i, len(known), fact.text.strip())
            start, end = end, end + len(part)
            before, asked = (ids(fact.question), ids(fact.reply)) if asked_before else ([], ids(fact.asked))
            erratum = ids(fact.erratum)
            rest = text[end:] + before
            restore(context, whole, text, before)
            untouched = _said(context, asked)
            take_out(context, 0, [(start, end)])
            edited, edited_erratum = _said(context, asked), _said(context, erratum + asked)
            restore(context, whole, text)
            context.seq_rm(0, start, -1)
            context.read(rest, start)
            never, never_erratum = _said(context, asked), _said(context, erratum + asked)
            value = value_token(ids, fact)
            for way, said, reference, price in (
                (UNTOUCHED, untouched, never, 0),
                (EDITED, edited, never, 0),
                (ERRATA, edited_erratum, never_erratum, len(erratum)),
                (RECOMPUTED, never, never, len(rest)),
            ):
                kl = float(divergence(said, reference)[0])
                yield Sample(way, i, kl, note=fact.text.strip(), unit="nats")
                yield Sample(f"{way}: {SAID}", i, float(said.argmax() == value))
                yield Sample(f"{way}: {READ}", i, price, unit="tokens")


def kept(bench: Bench, context: RawContext) -> bytes | None:
    """The state of what was read; None with sliding windows. Of those it has only what is seen from its end
    (llama_kv_cache::state_write), so that nothing could be read again behind an earlier place.
    """
    return None if bench.model.facts.n_swa else context.saved(0)


def restore(context: RawContext, state: bytes | None, tokens: Sequence[int], more: Sequence[int] = ()) -> None:
    """The text as it was read, or reading it again, and what is read behind it."""
    context.clear()
    if state is None:
        context.read(tokens, 0)
    else:
        context.restore(0, state, tokens)
    if more:
        context.read(more, len(tokens))


def _said(context: RawContext, more: Sequence[int]) -> NDArray[np.float64]:
    """Logits of the token after these, behind what is in the cache, shape (1, n_vocab); the cache is as before then."""
    n = context.span(0)[1] + 1
    context.read(more, n)
    said = context.logits().astype(np.float64)[None]
    context.take_back(n)
    return said


def _answer(_values: Values, measured: Measured) -> Result:
    of = {way: [measured.one(way, x) for x in measured.xs(way)] for way in WAYS}
    judged = [i for i, kl in enumerate(of[UNTOUCHED]) if kl >= KNOWN_KL]
    if not judged:
        sentence = tr("No fact was known in the first place: this model's answers do not depend on what the text says.")
        return Result(Verdict("nothing was known", sentence, sentence), figures=(), tables=(_table(measured),))
    weights = [of[UNTOUCHED][i] for i in judged]
    ghost, cured = (
        mean_figure(tr(name), [of[way][i] / of[UNTOUCHED][i] for i in judged], weights)
        for name, way in ((GHOST, EDITED), (CURED, ERRATA))
    )
    n, still = len(judged), [sum(measured.one(f"{way}: {SAID}", i) for i in judged) for way in WAYS]
    before, edited, errata, recomputed = still
    share = tr("What is removed is forgotten in part: {share:.0%} of its effect stays.")
    key = "removed is half forgotten"
    if ghost.value < FORGOTTEN:
        key, share = "removed is forgotten", tr("What is removed is forgotten: {share:.0%} of its effect stays.")
    elif ghost.value > REMEMBERED:
        key, share = (
            "removed is not forgotten",
            tr("What is removed is not forgotten: {share:.0%} of its effect stays."),
        )
    if ghost.value > 1:  # what is left says neither what the fact said nor what is said without it
        share = tr("What is removed is not forgotten: answers are farther from those without it than before.")
    after, before_it = ([of[way][i] for i in judged] for way in (ERRATA, EDITED))
    helps = ratio_figure(tr("ghost share, with an erratum over without"), after, before_it).at_most(1.0)
    helped = helps.value < 1
    key += "; an erratum helps" if helped else "; an erratum does not help"
    sentence = tr(
        "After its cells are removed, {share:.0%} of what a fact does to the next token is still there (ghost share "
        "{low:.2f} to {high:.2f}, {n} facts). Asked for it, the model says it in {edited:.0f} of {n} cases, "
        "{before:.0f} before and {recomputed:.0f} when it has never read it. Reading again what follows costs "
        "{suffix:.0f} tokens and leaves nothing; an erratum costs {erratum:.0f}, leaves {cured:.0%}, and it is said in "
        "{errata:.0f} cases."
    )
    if ghost.value > 1:
        sentence = tr(
            "After its cells are removed, the next token is {times:.2f} times as far from that of a cache without the "
            "fact as before (ghost share {low:.2f} to {high:.2f}, {n} facts). Asked for it, the model says it in "
            "{edited:.0f} of {n} cases, {before:.0f} before and {recomputed:.0f} when it has never read it. Reading "
            "again what follows costs {suffix:.0f} tokens and leaves nothing; an erratum costs {erratum:.0f}."
        )
    sentence = sentence.format(
        times=ghost.value,
        share=ghost.value, low=_or(ghost.low, ghost), high=_or(ghost.high, ghost), n=n,
        edited=edited, before=before, recomputed=recomputed,
        suffix=_price(measured, RECOMPUTED), erratum=_price(measured, ERRATA), cured=cured.value, errata=errata,
    )  # fmt: skip
    figures = (
        ghost.at_most(FORGOTTEN, REMEMBERED),
        cured,
        helps,
        Figure(tr("facts that counted"), n),
        Figure(tr("said after removal"), edited / n),
        Figure(tr("said without it"), recomputed / n),
    )
    meaning = tr(
        "Ghost share: KL(edited, recomputed) over KL(untouched, recomputed) of the next token, summed over the facts. "
        "1: as if nothing had been removed; 0: as if it had never been there. After an erratum both have that."
    )
    left_out = len(of[UNTOUCHED]) - n
    less = plural(
        "1 fact made less than {kl} nats of difference, and does not count.",
        "%n facts made less than {kl} nats of difference, and do not count.",
        left_out,
    ).format(kl=KNOWN_KL)
    return Result(
        Verdict(key, sentence, share.format(share=ghost.value)),
        figures=figures,
        tables=(_table(measured),),
        remarks=(meaning, *([less] if left_out else [])),
    )


def _or(edge: float | None, figure: Figure) -> float:
    """The edge of an interval; of a single fact, which has none, what was measured."""
    return figure.value if edge is None else edge


def _price(measured: Measured, way: str) -> float:
    """Tokens that were read for it, the mean of all facts."""
    series = f"{way}: {READ}"
    return float(np.mean([measured.one(series, x) for x in measured.xs(series)]))


def _table(measured: Measured) -> Table:
    """Each fact, with what the three caches make of it."""
    notes = {sample.x: sample.note for sample in measured.samples if sample.series == UNTOUCHED}
    rows = tuple(
        (
            note,
            *(f"{measured.one(way, x):.3g}" for way in WAYS[:3]),
            ", ".join(tr(way) for way in WAYS if measured.one(f"{way}: {SAID}", x)) or "–",
        )
        for x, note in sorted(notes.items())
    )
    heads = (tr("fact"), *(tr("{way} (nats)").format(way=tr(way)) for way in WAYS[:3]), tr("said by"))
    return Table(tr("Divergence from the recomputed cache"), heads, rows)


EXPERIMENT = Experiment(
    id="forgetting",
    title=marked("Forgetting"),
    question=marked("Does a model forget what is removed from its cache, and what helps?"),
    supposed=marked("Removing the cells of a passage makes the model forget it, as if it had never been read."),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    answer=_answer,
    applies=needs_prefixes,
)
