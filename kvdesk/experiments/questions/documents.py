"""Whether a document can be read once: its K and V, taken from one chat and put at another place of another one.

What the document's cells hold depends on what came before it. So the first n of its tokens are read again behind the
new beginning, the others are spliced in and moved, and what follows is compared with a chat that read everything.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.requantize import rounded, unrounded
from kvdesk.backends.local.llama.traits import Traits
from kvdesk.cache.compare import divergence
from kvdesk.cache.geometry import CTX_PAD, ModelFacts, pad
from kvdesk.cache.state.blob import Blob
from kvdesk.errors import RefusedCall
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_plain_attention
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.questions.forgetting import FACT_TOKENS, INTRO, facts, value_token
from kvdesk.experiments.questions.requantization import traits_of
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import mean_figure, share_figure
from kvdesk.protocol.experiment import Figure, Parameter, Progress, Result, Sample, Table, Values, Verdict, number_text
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

READ_AGAIN: Final = (0, 8, 32)
"""Tokens at the beginning of the document that are read again at its new place; the reference reads all."""
ALL: Final = -1
"""In the place of a number of them."""
ROUNDED: Final = -2
"""In the same place: as many as the last of `READ_AGAIN`, and what is spliced in was kept as q8_0."""
FASTER, AGREE = 10.0, 0.96
"""A splice counts as a success if the first token comes this many times as fast as after reading the document, and this
share of the answers is the same (48 of 50).
"""
WRITTEN: Final = 64
"""Tokens of an answer whose divergence is measured."""
FIRST_CHAT: Final = "You are a careful reader. Somebody has attached these notes.\n\n"
SECOND_CHAT: Final = (
    "This is a chat about holidays by the sea. The ferry leaves at seven, and it rains on most days in autumn.\n"
    "Question: What should I pack?\nAnswer: A coat, good shoes and a book.\nNow look at this file.\n\n"
)
KL, SAME, RIGHT, SECONDS = marked("KL divergence"), marked("same answer"), marked("right answer"), marked("first token")
_AROUND: Final = 256  # tokens of both beginnings, of a question and of what is written, about

PARAMETERS = (
    Parameter("document", marked("Tokens of the document"), 2000, 128, 32768, 512, marked("About, facts among prose")),
    Parameter("questions", marked("Questions"), 50, 2, 60, 12, marked("Each about a fact of the document")),
    Parameter("judged", marked("Answers judged"), 4, 1, 60, 2,
              marked("Questions whose next 64 tokens are compared")),
    Parameter("rounds", marked("Rounds"), 2, 1, 20, 1, marked("Of the time to the first token")),
)  # fmt: skip


def _settings(values: Values) -> ContextSettings:
    document = max(values["document"], values["questions"] * FACT_TOKENS)
    cells = pad(2 * int(document) + 2 * _AROUND, CTX_PAD)
    return ContextSettings(n_ctx=cells, n_seq_max=2, n_batch=512, n_ubatch=512)


def _work(values: Values) -> Work:
    asked = (len(READ_AGAIN) + 2) * (40 * values["questions"] + 2 * WRITTEN * values["judged"])
    return Work((1 + values["rounds"]) * values["document"] + asked, WRITTEN * values["judged"])


class _Chat(NamedTuple):
    """Token ids of the beginnings of both chats, of the document, and of each question with its answer's first one;
    `state`: of the first chat's sequence once it has read the document; `kept`: the same as q8_0, `traits`: for reading
    that back.
    """

    before: list[int]
    begin: list[int]
    document: list[int]
    questions: list[tuple[list[int], int]]
    state: bytes
    kept: Blob
    traits: Traits

    @property
    def end(self) -> int:
        """Where a question begins."""
        return len(self.begin) + len(self.document)

    def read(self, context: RawContext, n: int) -> None:
        """The second chat up to the end of the document, in an empty cache: the first `n` tokens of that are read, and
        the others spliced in; all are read where `n` is `ALL`.
        """
        context.clear()
        start, state = len(self.begin), self.state
        if n == ROUNDED:
            n, state = READ_AGAIN[-1], bytes(unrounded(self.kept, self.traits))
        context.read(self.begin + self.document[: n if n != ALL else None], 0)
        if n == ALL:
            return
        context.restore(1, state, self.before + self.document)
        if not context.seq_rm(1, 0, len(self.before) + n):
            raise RefusedCall(tr("This memory cannot remove a part of a sequence."))
        if by := start - len(self.before):
            context.seq_add(1, len(self.before) + n, -1, by)
        context.seq_cp(1, 0)
        context.seq_rm(1)


def _measure(bench: Bench) -> Measuring:
    """Whatever is asked is asked in the first round."""
    ways = (ALL, *READ_AGAIN, ROUNDED)
    with bench.context() as context:
        yield Progress(0, 1, tr("the first chat reads the document"))
        chat = _first_chat(bench, context)
        first = _Reference([], [])
        for number in bench.rounds(bench.whole("rounds")):
            for i, n in enumerate(ways):
                yield bench.progress(number, i, len(ways), _title(n))
                start = time.perf_counter()
                chat.read(context, n)
                context.read(chat.questions[0][0], chat.end)
                yield Sample(f"{n}: {SECONDS}", 0, time.perf_counter() - start, number, unit="s")
                context.take_back(chat.end)
                if not number:
                    yield from _asked(chat, context, n, first, bench.whole("judged"))


class _Reference(NamedTuple):
    """What the chat that read all says: the first token of each answer, and some answers with their logits."""

    answers: list[int]
    written: list[tuple[list[int], NDArray[np.float32]]]


def _asked(chat: _Chat, context: RawContext, n: int, first: _Reference, n_judged: int) -> Iterator[Sample]:
    """Ask all questions. `first` is filled by the chat that read all, and compared with by the others."""
    for number, (asked, value) in enumerate(chat.questions):
        answer = _answered(context, asked, chat.end)
        if n == ALL:
            first.answers.append(answer)
        yield Sample(f"{n}: {SAME}", number, float(answer == first.answers[number]))
        yield Sample(f"{n}: {RIGHT}", number, float(answer == value))
    for number, (asked, _) in enumerate(chat.questions[:n_judged]):
        if n == ALL:
            context.read(asked, chat.end)
            tokens = context.write(WRITTEN, chat.end + len(asked))
            context.take_back(chat.end)
            first.written.append((tokens, _logits(context, asked, tokens, chat.end)))
            continue
        tokens, base = first.written[number]
        p, q = (rows.astype(np.float64) for rows in (base, _logits(context, asked, tokens, chat.end)))
        for at, kl in enumerate(divergence(p, q)):
            yield Sample(f"{n}: {KL}", at, float(kl), number, unit="nats")


def _first_chat(bench: Bench, context: RawContext) -> _Chat:
    """Both chats, and what the first one keeps of the document. Raises PromptError."""
    ids, known, n = bench.ids, facts(bench.whole("questions")), bench.whole("document")
    lines = [ids(fact.text) for fact in known]
    prose = [ids(f"{sentence.strip()}.\n") for sentence in bench.text.replace("\n", " ").split(".") if sentence.strip()]
    before, begin, document = ids(FIRST_CHAT, first=True), ids(SECOND_CHAT, first=True), ids(INTRO)
    more = cycle(prose or [[]])
    for i, line in enumerate(lines, 1):
        document += line
        while prose and (missing := n * i // len(lines) - len(document)) > 0:
            document += next(more)[:missing]
    questions = [(ids(fact.asked), value_token(ids, fact)) for fact in known]
    context.read(before + document, 0)
    state, traits = context.saved(0), traits_of(bench, context)
    return _Chat(before, begin, document, questions, state, rounded(state, traits), traits)


def _answered(context: RawContext, asked: Sequence[int], end: int) -> int:
    """The likeliest token after the question; the cache is as before then."""
    context.read(asked, end)
    answer = context.likeliest()
    context.take_back(end)
    return answer


def _logits(context: RawContext, asked: list[int], answer: list[int], end: int) -> NDArray[np.float32]:
    """Of each token of the answer, shape (n_tokens, n_vocab); the cache is as before then."""
    found = context.all_logits(asked + answer[:-1], len(asked) - 1, end)
    context.take_back(end)
    return found


class Found(NamedTuple):
    """Of one n: the divergence, shares of the same and of right answers, seconds, and how much sooner than all."""

    kl: Figure
    same: Figure
    right: float
    seconds: float
    sooner: Figure

    @property
    def holds(self) -> bool:
        return self.same.holds and self.sooner.holds


def _answer(_values: Values, measured: Measured) -> Result:
    found = {n: _found(measured, n) for n in (*READ_AGAIN, ROUNDED) if f"{n}: {SAME}" in measured.series}
    reference = f"{ALL}: {RIGHT}"
    right = float(np.mean([measured.one(reference, x) for x in measured.xs(reference)]))
    holding = next((n for n in READ_AGAIN if found[n].holds), None)
    rows = [
        (_title(n), str(f.kl), f"{f.same.value:.1%}", f"{f.right:.1%}", number_text(f.seconds), str(f.sooner))
        for n, f in found.items()
    ]
    rows.append((_title(ALL), "–", "–", f"{right:.1%}", number_text(measured.median(f"{ALL}: {SECONDS}")), "1"))
    columns = (
        *(tr("of the document"), tr("KL of the next {n} tokens").format(n=WRITTEN), tr("same answer")),
        *(tr("right answer"), tr("first token (s)"), tr("times as soon")),
    )
    n = holding if holding is not None else READ_AGAIN[-1]
    best = found[n]
    numbers = tr(
        "the first token comes {sooner} times as soon, {same:.0%} of the answers are the same, and the next {n} tokens "
        "differ by {kl}"
    ).format(sooner=best.sooner, same=best.same.value, n=WRITTEN, kl=best.kl)
    if holding is not None:
        key = f"holds with {holding}"
        said = tr("A document is read once, with its first {n} tokens read again: {numbers}.")
        short = tr("A document can be read once: {sooner:.0f} times as soon, {same:.0%} of answers the same.")
    else:
        key = "does not hold"
        said = tr("A document should be read each time. With its first {n} tokens read again: {numbers}. {needed}")
        short = tr("A document should be read each time: {sooner:.0f} times as soon, {same:.0%} of answers the same.")
    needed = tr("At least {faster:.0f} times and {agree:.0%} are needed.").format(faster=FASTER, agree=AGREE)
    return Result(
        Verdict(
            key,
            said.format(n=n, numbers=numbers, needed=needed),
            short.format(sooner=best.sooner.value, same=best.same.value),
        ),
        figures=tuple(figure for f in found.values() for figure in (f.sooner, f.same, f.kl)),
        tables=(Table(tr("What is read again"), columns, tuple(rows)),),
        remarks=(
            tr(
                "An answer is the same where its first token is. The first token is counted from an empty cache: both "
                "read the beginning of the chat and the question."
            ),
        ),
    )


def _found(measured: Measured, n: int) -> Found:
    def values(series: str) -> list[float]:
        return [y for x in measured.xs(f"{n}: {series}") for y in measured.all(f"{n}: {series}", x)]

    answers, name = values(SAME), _title(n)
    kl = [float(np.mean(ys)) for ys in measured.by_round(f"{n}: {KL}")]
    sooner = measured.ratio(
        tr("{way}: times as soon").format(way=name), (f"{ALL}: {SECONDS}", 0), (f"{n}: {SECONDS}", 0)
    )
    return Found(
        mean_figure(tr("{way}: KL divergence").format(way=name), kl, [1.0] * len(kl), "nats"),
        share_figure(tr("{way}: same answers").format(way=name), [answer > 0 for answer in answers]).at_least(AGREE),
        float(np.mean(values(RIGHT))),
        measured.median(f"{n}: {SECONDS}"),
        sooner.at_least(FASTER),
    )


def _title(n: int) -> str:
    if n == ALL:
        return tr("all read")
    if n == ROUNDED:
        return tr("{n} read again, kept as q8_0").format(n=READ_AGAIN[-1])
    return tr("{n} read again").format(n=n)


def _applies(facts: ModelFacts) -> str:
    plain = needs_plain_attention(
        marked("This model's cache is not one of plain attention: a part of it cannot be moved.")
    )
    return plain(facts) or ("" if facts.can_shift else tr("Positions of this model's cells cannot be moved."))


EXPERIMENT = Experiment(
    id="documents",
    title=marked("Documents read once"),
    question=marked("Can a document be read once and used at another place?"),
    supposed=marked("K and V of a document are the same wherever it is attached, so it needs to be read only once."),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    answer=_answer,
    applies=_applies,
    takes_text=True,
)
