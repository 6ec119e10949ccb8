"""What drafts cost apart from luck: guesses are made to hold as often as is chosen, on the batch costs of this machine.

Of each share of right guesses three ways write as many tokens in turns: one token at a time; batches of always the same
size, as programs draft that do not know what a batch costs; and what kvdesk's own policy chooses, which knows how
often guesses hold. Then tokens are computed alone and among guesses, of which half are wrong and removed again, and
their logits compared. At last kvdesk answers with exact answers, with drafts and without.
"""

import random
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.compare import divergence
from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import STEADY, Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_no_state
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.raw_context import RawContext, taken
from kvdesk.experiments.statistics import share_figure
from kvdesk.headless import HeadlessChat
from kvdesk.policies.drafting import SIZES, Chance, DraftSize
from kvdesk.protocol.cache import UsePolicy
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
from kvdesk.settings import ContextSettings, Sampling
from kvdesk.translation import marked, tr

BATCH = marked("a batch")
PLAIN, FIXED, CHOSEN = marked("one at a time"), marked("always 8"), marked("as kvdesk chooses")
WAYS = (PLAIN, FIXED, CHOSEN)
EXACT, USUAL = marked("exact answers"), marked("as usual")
BITS, TOP, KL = marked("same bits"), marked("same likeliest token"), marked("KL divergence")
SIZE, SAME, WHY = marked("tokens of a batch"), marked("the same answer"), marked("drafts of the answer")
ACCEPTED = (0.0, 0.25, 0.5, 1.0)
N_FIXED = 8
COSTS = 0.98
"""Speed over that of one token at a time: an interval wholly below is a cost."""
N_PROMPT = 32
"""Tokens before those that are compared."""
ASKED = "Say this again, word for word: {words}"
WORDS = "The harbour wakes before the town does, and the boats come in one by one with the tide. "

PARAMETERS = (
    Parameter("depth", marked("Depth"), 512, 16, 16384, 128, marked("Tokens before those that are written")),
    Parameter("tokens", marked("Tokens"), 64, 8, 1024, 24, marked("Written each way in each round")),
    Parameter("answers", marked("Answers"), 20, 1, 1000, 2, marked("Written alone and among guesses")),
    Parameter("written", marked("Tokens of an answer"), 100, 4, 1000, 40, marked("At most")),
    Parameter("rounds", marked("Rounds"), 7, 2, 50, 3, marked("How often everything is repeated")),
)  # fmt: skip


def _settings(values: Values) -> ContextSettings:
    longest = max(values["depth"] + values["tokens"], N_PROMPT + values["written"])
    cells = pad(int(longest) + 2 * SIZES[-1], CTX_PAD)
    return ContextSettings(n_ctx=cells, n_seq_max=1)


def _work(values: Values) -> Work:
    written = values["tokens"] * (1 + 2 * len(ACCEPTED)) + len(SIZES) * 4
    return Work(values["depth"], values["rounds"] * written + 6 * values["answers"] * values["written"])


def _measure(bench: Bench) -> Measuring:
    depth, size = bench.whole("depth"), DraftSize()
    with bench.context() as context:
        context.read(bench.tokens(depth), 0)
        for n in (1, *SIZES):
            _batch(context, bench.tokens(n), depth)  # warms up
            context.take_back(depth)
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 0, 2, tr("batches, round {n}").format(n=number + 1))
            for n in (1, *SIZES):
                seconds = _batch(context, bench.tokens(n), depth)
                size.took(1, n, seconds * 1e3)
                yield Sample(BATCH, n, seconds, number, unit="s")
                context.take_back(depth)
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 1, 2, tr("answers, round {n}").format(n=number + 1))
            for held in ACCEPTED:
                turn = number % len(WAYS)
                for way in WAYS[turn:] + WAYS[:turn]:
                    yield from _written(bench, context, way, held, size, number)
    for mode in (EXACT, USUAL):
        with bench.context(exact=mode == EXACT) as context:
            for i in range(bench.whole("answers")):
                yield Progress(i, bench.whole("answers"), tr("{what}, text {n}").format(what=tr(mode), n=i + 1))
                yield from _compared(bench, context, mode, i)
    if bench.model.vocab.has_text:
        yield from _exact(bench)


def _batch(context: RawContext, tokens: Sequence[int], start: int) -> float:
    """Seconds of one batch, with the logits of each of its tokens. Raises ContextError."""
    n = len(tokens)
    return taken(context.decode(tokens, range(start, start + n), n_logits=n), n).seconds


def _written(
    bench: Bench, context: RawContext, way: str, held: float, size: DraftSize, number: int
) -> Iterator[Sample]:
    """Seconds per token for `n` tokens that are written after the depth and removed again. All ways that guess have the
    same luck in a round.
    """
    luck = random.Random(f"{bench.seed} {number} {held}")
    depth, most = bench.whole("depth"), bench.whole("tokens")
    n = 1
    if way == FIXED:
        n = N_FIXED
    elif way == CHOSEN:
        (n,) = size.choose([Chance(held, SIZES[-1])], context.n_batch, lambda _: None).sizes
    tokens, at, seconds = bench.tokens(n), depth, 0.0
    while at < depth + most:
        seconds += _batch(context, tokens, at)
        right = next((i for i in range(n - 1) if luck.random() >= held), n - 1)
        at += right + 1
        if right + 1 < n:
            context.take_back(at)
    yield Sample(way, held, seconds / (at - depth), number, unit="s")
    if way == CHOSEN:
        yield Sample(SIZE, held, n, number, unit="tokens")
    context.take_back(depth)


def _compared(bench: Bench, context: RawContext, mode: str, number: int) -> Iterator[Sample]:
    """The likeliest tokens behind a text, computed one by one, and again in batches of `N_FIXED` with guesses of which
    half are right.
    """
    luck, written = random.Random(f"{bench.seed} {number}"), bench.whole("written")
    context.clear()
    context.read(bench.tokens(N_PROMPT), 0)
    tokens, alone = [context.likeliest()], list[NDArray[np.float32]]()
    for at in range(N_PROMPT, N_PROMPT + written):
        context.read(tokens[-1:], at)
        alone.append(context.logits())
        tokens.append(int(alone[-1].argmax()))
    context.take_back(N_PROMPT)
    among: list[NDArray[np.float32]] = []
    while (i := len(among)) < written:
        guesses = [token if luck.random() < 0.5 else token ^ 1 for token in tokens[i + 1 : i + N_FIXED]]
        n = 1 + next((k for k, guess in enumerate(guesses) if guess != tokens[i + 1 + k]), len(guesses))
        rows = context.all_logits([tokens[i], *guesses], 0, N_PROMPT + i)
        among += list(rows[:n])
        if n <= len(guesses):
            context.take_back(N_PROMPT + i + n)
    p, q = np.stack(alone), np.stack(among[:written])
    yield Sample(f"{BITS}: {mode}", number, float((p == q).all(axis=1).mean()))
    yield Sample(f"{TOP}: {mode}", number, float((p.argmax(axis=1) == q.argmax(axis=1)).mean()))
    kl = divergence(p.astype(np.float64), q.astype(np.float64))
    yield Sample(f"{KL}: {mode}", number, float(kl.mean()), unit="nats")


def _exact(bench: Bench) -> Measuring:
    """Answers of an engine with exact answers, which repeat what they were asked, without drafts and with them."""
    n, greedy = bench.whole("answers"), Sampling(temperature=0.0, max_tokens=bench.whole("written"))
    cells = pad(2 * bench.whole("written") + 1024, CTX_PAD)
    settings = ContextSettings(n_ctx=cells, n_seq_max=2, exact=True)
    with bench.engine(settings=settings) as engine:
        for i in range(n):
            yield Progress(i, n, tr("exact answer {n}").format(n=i + 1))
            told = []
            for drafts in (False, True):
                engine.do(UsePolicy(STEADY.model_copy(update={"drafts": drafts})))
                chat = HeadlessChat(engine)
                ended = chat.answer(ASKED.format(words=f"{i + 1}. {WORDS * 3}"), greedy)
                told.append(chat.last.tokens)
            yield Sample(SAME, i, float(told[0] == told[1]))
            yield Sample(WHY, i, ended.stats.drafted_tokens, note=ended.stats.draft_why, unit="tokens")


def break_even(n: int, steps: float) -> float | None:
    """How likely a guess must be right for a batch of `n` tokens, the cost of `steps` single ones, to give as many:
    (1 - p^n) / (1 - p) = steps. None: it costs more than if all were right.
    """
    if steps > n:
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if Chance(middle, n).expected(n) < steps else (low, middle)
    return high


def _answer(_values: Values, measured: Measured) -> Result:
    steps = {n: measured.ratio(tr("a batch of {n}, in steps").format(n=n), (BATCH, n), (BATCH, 1)) for n in SIZES}
    even = {n: break_even(n, figure.value) for n, figure in steps.items()}
    gains = {way: {p: _gain(measured, way, p) for p in ACCEPTED} for way in (FIXED, CHOSEN)}
    sizes = {p: measured.median(SIZE, p) for p in ACCEPTED}
    free = all((gain.high or gain.value) >= COSTS for gain in gains[CHOSEN].values())
    answers = [measured.one(SAME, x) for x in measured.xs(SAME)] if SAME in measured.series else []
    n_same, n_drafted = sum(answers), sum(measured.one(WHY, x) for x in range(len(answers)))
    least = min((p for p in even.values() if p is not None), default=None)
    costs, pays = (
        _value(steps[N_FIXED]),
        tr("never") if least is None else tr("from {p:.0%} right guesses on").format(p=least),
    )
    key = "drafts cost nothing" if free else "drafts cost"
    short = tr("A batch of {n} costs {steps} steps; drafts pay {least}.").format(n=N_FIXED, steps=costs, least=pays)
    sentence = tr(
        "Here a batch of {n} tokens costs {steps} steps of one token. Drafts can pay {least}. "
        "With none right, always drafting {n} is {fixed} of the speed without, and what kvdesk chooses is {chosen}; "
        "with all right {all_fixed} and {all_chosen}."
    ).format(
        n=N_FIXED,
        steps=steps[N_FIXED],
        least=pays,
        fixed=gains[FIXED][0.0],
        chosen=gains[CHOSEN][0.0],
        all_fixed=gains[FIXED][1.0],
        all_chosen=gains[CHOSEN][1.0],
    )
    figures: list[Figure] = [*steps.values(), *gains[FIXED].values(), *gains[CHOSEN].values()]
    if answers:
        same = n_same == len(answers)
        key += "; exact answers are the same" if same else "; exact answers differ"
        said = tr("With exact answers {same:.0f} of {n} are the same with drafts and without ({drafted:,.0f} guesses).")
        sentence += " " + said.format(same=n_same, n=len(answers), drafted=n_drafted)
        share = share_figure(tr("exact answers that are the same"), [answer > 0 for answer in answers])
        figures.append(share.at_least(1.0))
    modes = [mode for mode in (EXACT, USUAL) if f"{BITS}: {mode}" in measured.series]
    compared = tuple((tr(mode), *(_mean(measured, f"{of}: {mode}") for of in (BITS, TOP, KL))) for mode in modes)
    whys = {sample.note: None for sample in measured.samples if sample.series == WHY and not sample.y}
    rows = tuple((f"{n}", _value(steps[n]), tr("never") if even[n] is None else f"{even[n]:.0%}") for n in SIZES)
    chosen = tuple((f"{p:.0%}", str(gains[FIXED][p]), str(gains[CHOSEN][p]), f"{sizes[p]:.0f}") for p in ACCEPTED)
    speeds = tuple(curve(tr(way), of.items()) for way, of in gains.items())
    return Result(
        Verdict(key, sentence, short),
        figures=tuple(figures),
        plots=(Plot(tr("Speed over one token at a time"), tr("share of right guesses"), tr("times as fast"), speeds),),
        tables=(
            Table(tr("Batches"), (tr("tokens"), tr("steps"), tr("pays from")), rows),
            Table(tr("Speed over one at a time"), (tr("right"), tr(FIXED), tr(CHOSEN), tr(SIZE)), chosen),
            Table(tr("Tokens among guesses and alone"), (tr("context"), tr(BITS), tr(TOP), tr(KL)), compared),
        ),
        remarks=tuple(whys),
    )


def _gain(measured: Measured, way: str, p: float) -> Figure:
    name = tr("{way}, {p:.0%} right, over one at a time").format(way=tr(way), p=p)
    found = measured.ratio(name, (PLAIN, p), (way, p))
    return found.at_least(COSTS) if way == CHOSEN else found


def _mean(measured: Measured, series: str) -> str:
    return f"{sum(measured.one(series, x) for x in measured.xs(series)) / len(measured.xs(series)):.3g}"


def _value(figure: Figure) -> str:
    return number_text(figure.value, 2)


EXPERIMENT = Experiment(
    id="drafts",
    title=marked("Drafts"),
    question=marked("What do guessed tokens cost, when do they pay, and do they change the text?"),
    supposed=marked("Speculative decoding makes answers faster, and never slower."),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    answer=_answer,
    applies=needs_no_state(marked("This model has a recurrent state, which cannot give back what was guessed wrong.")),
)
