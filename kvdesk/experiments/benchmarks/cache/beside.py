"""A conversation generates while another one reads a long prompt: how its answer continues, and how long the prompt
takes.

The processor decides how much more expensive small chunks are than whole batches. If these and the answer's tokens,
each alone in a bare loop, exceed the bar, then their sum is the bar (`_parts`). Gaps leave out the processor time of
other processes, if the system reports it. Of the longest gaps the median reading's counts, because a single hiccup of
the system is nobody's fault. There are as many readings as requested, and up to twice as many if they differ much.
"""

import itertools
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

from kvdesk.errors import UserError
from kvdesk.experiments.bench import STEADY, Bench
from kvdesk.experiments.benchmarks.baselines import BareLoop
from kvdesk.experiments.benchmarks.cache.scenario import ended, of, text_of_tokens
from kvdesk.experiments.benchmarks.requests import QUESTION, asked, prompt_of
from kvdesk.experiments.benchmarks.scheduler_delay import waited_s
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import figure, most_rounds, standard_error
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.policies.batching import AIM
from kvdesk.policies.tuned import LEAST_SHARE, LEAST_TOK_S, LONGEST_GAP_MS, TILE
from kvdesk.protocol.cache import RebuildContext, SpeedSample
from kvdesk.protocol.chat import CloseConversation, Generate, TextDelta, TurnEnded
from kvdesk.protocol.experiment import Figure
from kvdesk.protocol.messages import Event
from kvdesk.settings import ContextSettings, Sampling
from kvdesk.values import asdict, dataclass

ANSWER = Sampling(temperature=0.0, max_tokens=96)
LONG_ANSWER = Sampling(temperature=0.0, max_tokens=3000)
ONE_TOKEN = Sampling(temperature=0.0, max_tokens=1)

N_PROMPT = 2000
N_OTHERS, OTHER_TOKENS = 3, 1100
ALONE_S = 2.0
PROMPT_OVER_ALONE = 1.4
OVER_PARTS = 1.05
"""If the parts alone take longer than that: the bar, as a factor on them."""
MOST_NOISE = 0.05
"""Share by which a bar may be missed; on a shared machine neighbouring readings differ by a tenth."""
SURE = 0.025
"""Standard error of a median, as a share of it, that is small enough to judge it."""
OVER_CHUNK = 1.2
"""If the longest gap cannot be kept: the bar, as a factor on a chunk and a step in the bare loop."""
NEIGHBOURS = 2
"""Chunks before and after one with which it is compared in the bare loop."""


@dataclass(frozen=True, slots=True)
class Beside:
    """One reading beside an answer. step_ms: between two tokens of the answer before; tok_s: of the answer meanwhile.

    gaps_ms: the longest ones between its tokens, without what was waited for a processor.
    """

    read_s: float
    tok_s: float
    step_ms: float
    gaps_ms: list[float]
    n_tokens: int

    def __str__(self) -> str:
        return f"read in {self.read_s:.2f} s beside {self.tok_s:.1f} tok/s, longest gap {max(self.gaps_ms):.0f} ms"


class Both(NamedTuple):
    """One reading beside an answer, and the seconds that the same took alone before and after it."""

    beside: Beside
    alone_s: tuple[float, float]

    @property
    def over(self) -> float:
        """Its time over that alone."""
        return self.beside.read_s / statistics.fmean(self.alone_s)

    def __str__(self) -> str:
        return f"{self.beside}, {self.alone_s[0]:.2f} and {self.alone_s[1]:.2f} s alone"


def in_empty_cache(bench: Bench) -> Outcome:
    """A conversation generates while another one reads 2,000 tokens.

    Each reading is judged over the same one alone, before and after it, in a separate context, since where the memory
    of one lies is worth 10 %.
    """
    settings = _settings(bench)
    readings: list[_Reading] = []
    with bench.engine(STEADY, settings=settings) as headless:
        session_of(headless).loaded.model.vocab.ignore_eog()
        text = text_of_tokens(headless, N_PROMPT)
        prompt = prompt_of(headless, asked(text, ONE_TOKEN))
        while wanted(bench.whole("rounds"), [r.both for r in readings]):
            headless.do(RebuildContext(settings))
            _read_alone(headless, text)  # warms up; the engine learns what prompts take
            both = _read_both(headless, text)
            bare = _bare(headless, settings)
            parts = _parts(bare, prompt, both.beside)
            bare.close()
            readings.append(_Reading(both, parts, parts.read_s / statistics.fmean(both.alone_s)))
            bench.say(f"{both}, the parts {parts.read_s:.2f} s")
        headless.do(RebuildContext(settings))  # the mirror knows nothing of what the bare loop left
    return _judged(readings)


def among_others(bench: Bench) -> Outcome:
    """The same in a cache that holds 3,300 tokens of three other conversations, which attention may skip.

    All readings are in one context, and what they are compared with in the bare loop comes after them.
    """
    settings = _settings(bench)
    with bench.engine(STEADY, settings=settings) as headless:
        session_of(headless).loaded.model.vocab.ignore_eog()
        text = text_of_tokens(headless, N_PROMPT)
        prompt = prompt_of(headless, asked(text, ONE_TOKEN))
        _read_alone(headless, text)
        others = [asked(f"{i}. {text_of_tokens(headless, OTHER_TOKENS)}", ONE_TOKEN) for i in range(N_OTHERS)]
        for command in others:
            headless.do(command)
        taken: list[Both] = []
        while wanted(bench.whole("rounds"), taken):
            taken.append(_read_both(headless, text))
            bench.say(str(taken[-1]))
        bare = _bare(headless, settings)
        for sequence, command in enumerate(others, 1):
            bare.hold(prompt_of(headless, command), sequence)
        readings = []
        for both in taken:
            parts = _parts(bare, prompt, both.beside)
            whole_s = sum(bare.read_ms(prompt, settings.n_batch)) / 1e3
            readings.append(_Reading(both, parts, parts.read_s / whole_s))
            bench.say(f"the parts {parts.read_s:.2f} s, in whole batches {whole_s:.2f} s")
        bare.close()
        headless.do(RebuildContext(settings))
    return _judged(readings)


def wanted(rounds: int, taken: Sequence[Both]) -> bool:
    """Whether another reading is to be made."""
    if len(taken) < rounds:
        return True
    judged = [both.over for both in taken], [max(both.beside.gaps_ms) for both in taken]
    sure = all(standard_error(values) <= SURE * statistics.median(values) for values in judged)
    return not sure and len(taken) < most_rounds(rounds)


def most_over_neighbours(chunks_ms: Sequence[float]) -> float:
    """Times as long as its neighbours (their median, itself among them) that one chunk took at most: what the machine's
    hiccups are, whoever computes. `AIM` leaves room for 1 / AIM.
    """
    around = (chunks_ms[max(0, i - NEIGHBOURS) : i + NEIGHBOURS + 1] for i in range(len(chunks_ms)))
    return max(ms / statistics.median(near) for ms, near in zip(chunks_ms, around, strict=True))


# --- private ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parts:
    """The costs of one reading: each chunk and each of the answer's tokens alone, and the gap that it allows."""

    read_s: float
    longest_ms: float


@dataclass(frozen=True, slots=True)
class _Reading:
    """parts_over: what its parts take over a reading in whole batches."""

    both: Both
    parts: _Parts
    parts_over: float


def _settings(bench: Bench) -> ContextSettings:
    return bench.settings.model_copy(update={"n_ctx": max(8192, bench.settings.n_ctx)})


def _judged(readings: Sequence[_Reading]) -> Outcome:
    over, beside = [r.both.over for r in readings], [r.both.beside for r in readings]
    parts_over = [r.parts_over for r in readings]
    step_ms = statistics.median(b.step_ms for b in beside)
    least = min(LEAST_TOK_S, LEAST_SHARE * 1e3 / step_ms)
    longest = statistics.median(r.parts.longest_ms for r in readings)
    most = max(PROMPT_OVER_ALONE, OVER_PARTS * statistics.median(parts_over))
    return Outcome(
        [
            _at_most("prompt_over_alone", most, over),
            figure("answer_tok_s", [b.tok_s for b in beside]).at_least(least),
            _at_most("longest_gap_ms", longest, [max(b.gaps_ms) for b in beside]),
        ],
        {
            "prompt_over_alone": over,
            "parts_over_alone": parts_over,
            "read_alone_s": [r.both.alone_s for r in readings],
            "parts": [asdict(r.parts) for r in readings],
            "decode_step_alone_ms": step_ms,
            "beside": [asdict(b) for b in beside],
        },
    )


def _at_most(name: str, bar: float, values: list[float]) -> Figure:
    """Their median, give or take two of its standard errors: that of few is not known well, so MOST_NOISE at most."""
    return figure(name, values).at_most(bar, noise=min(2 * standard_error(values), MOST_NOISE * bar))


def _bare(headless: HeadlessEngine, settings: ContextSettings) -> BareLoop:
    """The bare loop in the engine's own context, emptied. The mirror knows nothing of what it does there."""
    session = session_of(headless)
    bare = BareLoop(session.loaded.model, settings, ctx=session.runtime.context.memory.ctx)
    bare.clear()
    return bare


def _read_both(headless: HeadlessEngine, text: str) -> Both:
    before_s = _read_alone(headless, text)
    beside = _read_beside(headless, text)
    return Both(beside, (before_s, _read_alone(headless, text)))


def _parts(bare: BareLoop, prompt: list[int], beside: Beside) -> _Parts:
    """Read `prompt` in the bare loop in tiled chunks, and in half chunks if the longest gap is exceeded. If halves are
    far more expensive, no chunk fits, and the gap may be as long as the tiled one needs while it grows by less than the
    prompt's time would (`kvdesk.policies.batching`).
    """
    longest = max(LONGEST_GAP_MS, 2 * beside.step_ms)
    tiles = bare.read_ms(prompt, TILE)
    gap_ms = longest * max(1.0, AIM * most_over_neighbours(tiles[: len(prompt) // TILE]))
    if max(tiles) + beside.step_ms > AIM * longest:
        halves = bare.read_ms(prompt, TILE // 2)
        for i, tile_ms in enumerate(tiles):
            halved_ms, needed = sum(halves[2 * i : 2 * i + 2]), tile_ms + beside.step_ms
            if needed <= AIM * longest:
                continue
            if halved_ms >= tile_ms * max(2.0, needed / (AIM * longest)):
                gap_ms = max(gap_ms, OVER_CHUNK * needed)
            else:
                tiles[i] = halved_ms
    return _Parts((sum(tiles) + beside.n_tokens * beside.step_ms) / 1e3, gap_ms)


def _read_alone(headless: HeadlessEngine, text: str) -> float:
    """Seconds until the first token."""
    command, start = asked(text, ONE_TOKEN), time.monotonic()
    headless.do(command)
    taken = time.monotonic() - start
    ended(headless, [command])
    return taken


def _read_beside(headless: HeadlessEngine, text: str) -> Beside:
    """The prompt is read while another conversation generates, which has done so alone for `ALONE_S` seconds."""
    engine = headless.engine
    writing, reading = asked(QUESTION, LONG_ANSWER), asked(text, ANSWER)
    engine.handle(writing)
    alone: list[float] = []
    while not alone or alone[-1] - alone[0] < ALONE_S:
        alone += [s.at_s for s in of(_step(headless), SpeedSample) if s.kind == "decode"]
    there = [_now(headless, writing)]
    engine.handle(reading)
    events: list[Event] = []
    while not any(delta.answer == reading.answer for delta in of(events, TextDelta)):
        events = _step(headless)
        there.append(_now(headless, writing))
    for command in (writing, reading):
        engine.request_stop(command.answer)
    while engine.busy:
        engine.step()
    for command in (writing, reading):
        headless.do(CloseConversation(command.conversation))
    first, last = there[0], there[-1]
    tokens = [first, *(b for a, b in itertools.pairwise(there) if b.n_tokens > a.n_tokens)]
    read_s, n = last.at_s - first.at_s, last.n_tokens - first.n_tokens
    gaps = [(b.own_s - a.own_s) * 1e3 for a, b in itertools.pairwise([*tokens, last])]
    step_ms = statistics.median(b - a for a, b in itertools.pairwise(alone)) * 1e3
    return Beside(read_s, n / read_s, step_ms, sorted(gaps)[-5:], n)


class _Now(NamedTuple):
    """`n_tokens` tokens of the answer's conversation were in the cache at `at_s`; `waited_s` of that was waiting."""

    n_tokens: int
    at_s: float
    waited_s: float

    @property
    def own_s(self) -> float:
        return self.at_s - self.waited_s


def _now(headless: HeadlessEngine, command: Generate) -> _Now:
    sequence = session_of(headless).runtime.cache_manager.pool.get(command.conversation)
    assert sequence is not None
    return _Now(len(sequence.tokens), time.monotonic(), waited_s())


def _step(headless: HeadlessEngine) -> list[Event]:
    headless.events = []
    headless.engine.step()
    session_of(headless).runtime.context.memory.settle()
    session_of(headless).runtime.context.memory.publish()
    for over in of(headless.events, TurnEnded):
        raise UserError(f"The answer that is measured ended too early, after {over.stats.generated_tokens} tokens.")
    return headless.events
