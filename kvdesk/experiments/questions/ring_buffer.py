"""A window that forgets instead of a cache that is tidied: what each policy of overflow costs, and what it loses."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from kvdesk.backends.local.llama.capabilities import capabilities
from kvdesk.backends.local.llama.params import planned
from kvdesk.backends.local.llama.traits import context_traits
from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.errors import UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_plain_attention
from kvdesk.experiments.long_text import Policy, Reading, Told, Window
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import exponential, figure, mean_figure, median, ratios
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
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

SURPRISE, TOKENS, SECONDS, ANSWER = "surprise", "tokens", "seconds", "log-probability of the answer"
FIRST, READ, TOLD_AT, MOVED, AGAIN = "first overflow", "messages read", "told in message", "moved", "read again"
CHANCE = "log-probability of a code that nobody told"
BEFORE, AFTER = "one token, ring", "one token, ring, then compacted"
KNOWN: Final = 1.0
"""Nats a token, on average, by which a code must be likelier than those that nobody told, to count as known."""
MUCH: Final = 1.15
"""Ratio of times, and of perplexities, from which one is said to be worse than another."""
AS_GOOD: Final = 1.05
"""Ratio of perplexities up to which moving is said to be as good as reading again."""
ASKED: Final = 64
"""Cells that are left free for a question and its answer."""
TIMED: Final = 16
"""Tokens that are timed before and after the compaction in each round."""
N_TOLD: Final = 6
UNTOLD: Final = (("Magpie", "83540"), ("Kestrel", "61294"), ("Bittern", "17059"))
"""Codes that are only asked for: how likely the digits of one are that was never told, after the same text."""
NAMES: Final = ("Osprey", "Heron", "Falcon", "Pelican", "Raven", "Swallow")
CODES: Final = ("58213", "90467", "31785", "74092", "26518", "49630")

PARAMETERS = (
    Parameter("window", marked("Window"), 512, 192, 32768, 256,
              marked("Cells of the context; 64 of them are for the questions")),
    Parameter("text", marked("Text"), 1024, 256, 131072, 512, marked("Tokens that are read at most")),
    Parameter("message", marked("Message"), 64, 8, 1024, 32, marked("Tokens of the text in each message")),
    Parameter("rounds", marked("Rounds"), 7, 2, 50, 3, marked("How often the text is read under each policy")),
)  # fmt: skip


class Text(NamedTuple):
    """A conversation: the tokens of each message, how many of them at its beginning tell something, and what."""

    messages: tuple[tuple[int, ...], ...]
    n_telling: tuple[int, ...]
    told: tuple[Told, ...]
    untold: tuple[Told, ...]


def _limit(values: Values) -> int:
    """Tokens that the window holds at most."""
    return int(values["window"]) // 64 * 64 - ASKED


def _settings(values: Values) -> ContextSettings:
    """For both contexts together: one as large as the window, one for the whole text and its facts."""
    n_ctx, n_batch = int(values["window"] + values["text"]) + 512, max(int(values["message"]) + ASKED, 256)
    return ContextSettings(n_ctx=n_ctx, n_seq_max=1, n_batch=n_batch, n_ubatch=256)


def _room(text: Text) -> int:
    """Cells for all of it."""
    return pad(sum(map(len, text.messages)) + ASKED, CTX_PAD)


def _measure(bench: Bench) -> Measuring:
    text, limit = _text(bench), _limit(bench.values)
    for number, told in enumerate(text.told):
        yield Sample(TOLD_AT, number, told.message)
    for at, (tokens, n_telling) in enumerate(zip(text.messages, text.n_telling, strict=True)):
        yield Sample(TOKENS, at, len(tokens) - n_telling)
    n_rounds = bench.whole("rounds") + 1
    with bench.context(n_ctx=_room(text)) as large, bench.context(n_ctx=bench.whole("window")) as small:
        _check(bench, small)
        for at, policy in enumerate(Policy):
            yield Progress(at, n_rounds * len(Policy), tr("{policy}: what is lost").format(policy=tr(policy)))
            context = large if policy is Policy.ALL else small
            window = Window(context, policy, None if policy is Policy.ALL else limit)
            yield from _judged(window, policy, text)
        for number in bench.rounds(bench.whole("rounds")):
            for at, policy in enumerate(Policy if number % 2 == 0 else reversed(Policy)):
                done = (number + 1) * len(Policy) + at
                what = tr("{policy}, round {n}").format(policy=tr(policy), n=number + 1)
                yield Progress(done, max(n_rounds, number + 2) * len(Policy), what)
                context = large if policy is Policy.ALL else small
                window = Window(context, policy, None if policy is Policy.ALL else limit)
                yield from _timed(window, policy, text, number)
                if policy is Policy.RING:
                    yield Sample(BEFORE, number, window.token_s(TIMED), number, unit="s")
                    context.compact()
                    yield Sample(AFTER, number, window.token_s(TIMED), number, unit="s")


def _judged(window: Window, policy: Policy, text: Text) -> Iterator[Sample]:
    """How surprising each message is, and the answers at the end."""
    reading = _read(window, text, judged=True)
    for at, surprise in enumerate(reading.surprise):
        yield Sample(f"{SURPRISE}: {policy}", at, float(np.nanmean(surprise[text.n_telling[at] :])), unit="nats")
    for number, told in enumerate(text.told):
        yield Sample(f"{ANSWER}: {policy}", number, window.answers(told), unit="nats")
    chance = [window.answers(told) for told in text.untold]
    yield Sample(f"{CHANCE}: {policy}", 0, sum(chance) / len(chance), unit="nats")
    yield Sample(f"{READ}: {policy}", 0, len(reading.seconds), unit="messages")
    yield Sample(f"{MOVED}: {policy}", 0, reading.moved, unit="cells")
    yield Sample(f"{AGAIN}: {policy}", 0, reading.read_again, unit="tokens")
    if reading.first is not None:
        yield Sample(f"{FIRST}: {policy}", 0, reading.first, unit="messages")


def _timed(window: Window, policy: Policy, text: Text, number: int) -> Iterator[Sample]:
    reading = _read(window, text, judged=False)
    for at, seconds in enumerate(reading.seconds):
        yield Sample(f"{SECONDS}: {policy}", at, seconds, number, unit="s")


def _read(window: Window, text: Text, *, judged: bool) -> Reading:
    for at, tokens in enumerate(text.messages):
        if not window.read(tokens, at, is_system=at == 0, judged=judged):
            break
    return window.reading


def _check(bench: Bench, context: RawContext) -> None:
    """Raises UserError if positions cannot be moved."""
    settings = bench.settings
    geometry = planned(bench.model, settings)
    traits = context_traits(bench.model.traits, geometry, settings, bench.model.vocab.n_tokens, context.said)
    found = capabilities(traits)["seq_add"]
    if not found.allowed:
        raise UserError(found.why)


def _text(bench: Bench) -> Text:
    """The text in messages, and codes that some of them tell. Raises UserError."""
    vocab, size = bench.model.vocab, bench.whole("message")

    def tokens(text: str, n: int) -> list[int]:
        return bench.ids(text) if vocab.has_text else bench.tokens(n)

    body = tokens(bench.text, bench.whole("text"))[: bench.whole("text")]
    if len(body) < 2 * _limit(bench.values):
        raise UserError(
            tr(
                "The text has {n:,} tokens, and a window of {window:,} needs twice as many: choose a smaller one."
            ).format(n=len(body), window=_limit(bench.values))
        )
    parts = [tuple(body[at : at + size]) for at in range(0, len(body), size)]
    if len(parts) < N_TOLD:
        raise UserError(
            tr("The text makes {n} messages, and {told} are needed: choose shorter ones, or a longer text.").format(
                n=len(parts), told=N_TOLD
            )
        )
    every = (len(parts) - 1) // (N_TOLD - 1)

    def asked(name: str, code: str, message: int) -> Told:
        return Told(message, tuple(tokens(f"\nThe secret code of the {name} is", 8)), tuple(tokens(f" {code}", 5)))

    told = [asked(name, code, n * every) for n, (name, code) in enumerate(zip(NAMES, CODES, strict=True))]
    untold = tuple(asked(name, code, -1) for name, code in UNTOLD)
    end = tokens(".\n", 2)
    telling = {each.message: (*each.question, *each.answer, *end) for each in told}
    if vocab.add_bos:
        telling[0] = (vocab.bos, *telling[0])
    messages = tuple((*telling.get(at, ()), *part) for at, part in enumerate(parts))
    first, longest = len(messages[0]), max(map(len, messages))
    if first + longest > _limit(bench.values):
        raise UserError(
            tr(
                "The first message stays and has {first:,} tokens; with the longest of {longest:,} it does not fit "
                "into {window:,}: choose shorter messages, or a larger window."
            ).format(first=first, longest=longest, window=_limit(bench.values))
        )
    return Text(messages, tuple(len(telling.get(at, ())) for at in range(len(parts))), tuple(told), untold)


# --- conclusion -------------------------------------------------------------------------------------------------------


class _Found:
    """What was measured of each policy. first: the first message that did not fit."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self.n_messages = int(self.of(READ, Policy.ALL))
        self.first = int(self.of(FIRST, Policy.SLIDE))
        self.later = range(self.first, self.n_messages)
        self.known = self._above_chance(Policy.ALL, range(N_TOLD))

    def of(self, what: str, policy: Policy, x: int = 0) -> float:
        return self._measured.one(f"{what}: {policy}", x)

    def told_at(self, number: int) -> int:
        return int(self._measured.one(TOLD_AT, number))

    def found(self, policy: Policy) -> list[int]:
        """Codes that are known at the end, of those that are known if nothing is removed."""
        return self._above_chance(policy, self.known)

    def _above_chance(self, policy: Policy, numbers: Iterable[int]) -> list[int]:
        return [n for n in numbers if self.of(ANSWER, policy, n) - self.of(CHANCE, policy) >= KNOWN]

    def reads_on(self, policy: Policy) -> bool:
        """Whether it read something after its first overflow."""
        return self.of(READ, policy) >= self.n_messages

    def perplexity(self, policy: Policy, over: Policy) -> Figure:
        """Ratio of the perplexities of what came after the first overflow, messages paired."""
        apart = [self.of(SURPRISE, policy, at) - self.of(SURPRISE, over, at) for at in self.later]
        mean = mean_figure("", apart, [self._measured.one(TOKENS, at) for at in self.later])
        return exponential(tr("perplexity, {policy} over {over}").format(policy=tr(policy), over=tr(over)), mean)

    def seconds(self, policy: Policy) -> list[list[float]]:
        """Of each round, for each message from the first overflow on."""
        return self._measured.by_round(f"{SECONDS}: {policy}", self.later)

    def longest(self, policy: Policy) -> float:
        """Median over the rounds of the longest wait for a message from the first overflow on."""
        return median([max(seconds) for seconds in self.seconds(policy)])

    def time(self, policy: Policy, over: Policy) -> Figure:
        name = tr("time, {policy} over {over}").format(policy=tr(policy), over=tr(over))
        return figure(name, ratios(*(list(map(sum, self.seconds(one))) for one in (policy, over))))

    def compacted(self) -> Figure:
        name = tr("a token in the ring, before over after a compaction")
        before, after = (list(map(sum, self._measured.by_round(series))) for series in (BEFORE, AFTER))
        return figure(name, ratios(before, after))


READERS: Final = (Policy.ALL, Policy.RING, Policy.SLIDE, Policy.SINKS, Policy.RECOMPUTE)


def _short(n_known: int, n_lost: int, ring: float, *, spoils: bool) -> str:
    if not n_known:
        return tr("With this model the codes tell nothing of what a window loses.")
    if not n_lost:
        return tr("A window forgets none of {n} codes; a bare ring reads on with {ring} times the perplexity.").format(
            n=n_known, ring=number_text(ring, 2)
        )
    if not spoils:
        said = tr("A window forgets {lost} of {n} codes; a bare ring reads on with {ring} times the perplexity.")
        return said.format(lost=n_lost, n=n_known, ring=number_text(ring, 2))
    return tr("A window forgets {lost} of {n} codes; a bare ring also raises the perplexity {ring} times.").format(
        lost=n_lost, n=n_known, ring=number_text(ring, 2)
    )


def _answer(values: Values, measured: Measured) -> Result:
    found = _Found(measured)
    quality = {policy: found.perplexity(policy, Policy.ALL) for policy in READERS[1:]}
    time = {policy: found.time(policy, Policy.SLIDE) for policy in READERS if policy is not Policy.SLIDE}
    time[Policy.RECOMPUTE] = time[Policy.RECOMPUTE].at_least(MUCH)
    ring = found.perplexity(Policy.RING, Policy.SLIDE).at_least(MUCH)
    moved = found.perplexity(Policy.SLIDE, Policy.RECOMPUTE).at_most(AS_GOOD)
    compacted = found.compacted().at_least(MUCH)
    lost = [n for n in found.known if n not in found.found(Policy.SLIDE)]
    keys = (
        "the codes tell nothing" if not found.known else f"a window {'forgets' if lost else 'forgets nothing'}",
        f"a bare ring {'spoils the text' if ring.holds else 'reads on as well'}",
        f"moving is {'as good as' if moved.holds else 'worse than'} reading again",
        f"reading again is {'slower' if time[Policy.RECOMPUTE].holds else 'as fast'}",
        f"compaction gains {'something' if compacted.holds else 'nothing'} in a full window",
    )
    n_known = len(found.known)
    counts = ", ".join(f"{tr(policy)} {len(found.found(policy))}" for policy in Policy)
    sentence = " ".join(
        (
            tr("{known} of {n} codes told in the text are known at its end where nothing is removed.").format(
                known=n_known, n=N_TOLD
            ),
            tr("Still known with a window of {n:,} tokens: {counts}.").format(n=_limit(values), counts=counts)
            if n_known
            else tr("With this model the codes therefore tell nothing of what a window loses."),
            tr(
                "The perplexity of the text after the first overflow is {ring} times that of sliding in a ring that"
                " keeps nothing of the beginning; sliding has {moved} times that of reading again, which takes {time}"
                " times as long."
            ).format(ring=ring, moved=moved, time=time[Policy.RECOMPUTE]),
            tr("A token in the full ring takes {compacted} times what it takes after a compaction.").format(
                compacted=compacted
            ),
        )
    )
    return Result(
        Verdict("; ".join(keys), sentence, _short(n_known, len(lost), ring.value, spoils=ring.holds)),
        figures=(*quality.values(), ring, moved, *time.values(), compacted),
        plots=(_plot(found),),
        tables=(_policies(found, quality), _codes(found)),
        remarks=(
            tr(
                "A code is known when its tokens are on average {n:g} nats likelier than those of codes nobody told."
            ).format(n=KNOWN),
            tr("Policies evict whole messages until an eighth of the window is free, as kvdesk does."),
        ),
    )


def _policies(found: _Found, quality: dict[Policy, Figure]) -> Table:
    def row(policy: Policy) -> dict[str, str]:
        reads = found.reads_on(policy)
        seconds = median([sum(each) for each in found.seconds(policy)]) if reads else 0.0
        return {
            tr("policy"): tr(policy),
            tr("messages read"): f"{found.of(READ, policy):.0f} / {found.n_messages}",
            tr("codes known"): f"{len(found.found(policy))} / {len(found.known)}",
            tr("perplexity over everything kept"): str(quality.get(policy, "1" if policy is Policy.ALL else "–")),
            tr("s after the first overflow"): f"{seconds:.2f}" if reads else "–",
            tr("longest wait, ms"): f"{1e3 * found.longest(policy):.0f}" if reads else "–",
            tr("cells moved"): f"{found.of(MOVED, policy):,.0f}",
            tr("tokens read again"): f"{found.of(AGAIN, policy):,.0f}",
        }

    return Table.of(tr("Policies"), map(row, Policy))


def _codes(found: _Found) -> Table:
    """Log-probability of each code, the mean over its tokens."""
    rows = [
        (str(number + 1), str(found.told_at(number)), *(f"{found.of(ANSWER, policy, number):.2f}" for policy in Policy))
        for number in range(N_TOLD)
    ]
    rows.append((tr("told by nobody"), "–", *(f"{found.of(CHANCE, policy):.2f}" for policy in Policy)))
    columns = (tr("code"), tr("told in message"), *(tr(policy) for policy in Policy))
    return Table(tr("Log-probability of a token of each code, nats"), columns, tuple(rows))


def _plot(found: _Found) -> Plot:
    def points(policy: Policy) -> Iterator[tuple[int, float]]:
        total = 0.0
        for n, at in enumerate(found.later, 1):
            total += found.of(SURPRISE, policy, at)
            yield at, float(np.exp(total / n))

    series = tuple(Series.of(tr(policy), points(policy)) for policy in READERS)
    title = tr("Perplexity of all that came after the first overflow")
    return Plot(title, tr("message"), tr("perplexity so far"), series)


EXPERIMENT = Experiment(
    id="ring-buffer",
    title=marked("Ring or window"),
    question=marked("Can a ring or a sliding window take the place of defragmentation, and what does it forget?"),
    supposed=marked("Keeping only the latest tokens bounds the cache and makes free space easy to use again."),
    parameters=PARAMETERS,
    settings=_settings,
    work=lambda values: Work(len(Policy) * (values["rounds"] + 1) * values["text"] * 1.5, 2 * TIMED * values["rounds"]),
    measure=_measure,
    answer=_answer,
    applies=needs_plain_attention(
        marked("This model's cache is not one of plain attention: its own windows already decide what it forgets.")
    ),
    takes_text=True,
)
