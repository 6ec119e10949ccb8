"""A conversation generates while another one reads a long prompt: how its answer goes on, and what the prompt takes.

How much dearer small chunks are than whole batches the processor decides: where these and the answer's tokens, each by
itself in a bare loop, take more than the bar, that is the bar (`_parts`). Gaps are without what other processes took of
the processor, where the system tells it, and of the longest ones the median round's counts: one hiccup of the system is
nobody's fault.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from kvdesk.benchmarks.baselines import BareLoop
from kvdesk.benchmarks.cache.scenario import STEADY, Bench, Outcome, ended, of, text_of_tokens
from kvdesk.benchmarks.engine import QUESTION, standard_error
from kvdesk.benchmarks.requests import asked, prompt_of
from kvdesk.benchmarks.scheduler_delay import waited_s
from kvdesk.benchmarks.threshold import Threshold
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.policies.batch_times import TILE
from kvdesk.policies.batching import FAR_DEARER, LEAST_SHARE, LEAST_TOK_S, LONGEST_GAP_MS, STILL_FITS
from kvdesk.protocol.cache import RebuildContext, SpeedSample
from kvdesk.protocol.chat import CloseConversation, Generate, TextDelta, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.settings import ContextSettings, Sampling

ANSWER = Sampling(temperature=0.0, max_tokens=96)
LONG_ANSWER = Sampling(temperature=0.0, max_tokens=3000)
ONE_TOKEN = Sampling(temperature=0.0, max_tokens=1)

N_PROMPT = 2000
N_OTHERS, OTHER_TOKENS = 3, 1100
ALONE_S = 2.0
PROMPT_OVER_ALONE = 1.4
OVER_PARTS = 1.05
"""Where the parts alone take longer than that: so many times these."""
MOST_NOISE = 0.05
"""By this share of it a bar may be missed at most: on a shared machine neighbouring readings differ by a tenth."""
OVER_CHUNK = 1.2
"""Where the longest gap cannot be kept: so many times what the chunk and a step take in the bare loop."""


def in_empty_cache(bench: Bench) -> Outcome:
    """A conversation generates while another one reads 2,000 tokens.

    Each reading is judged over the same one alone, before and after it, in a context of its own, since where the memory
    of one lies is worth 10 %.
    """
    settings = _settings(bench)
    readings: list[_Reading] = []
    with bench.engine(STEADY, settings=settings) as headless:
        text = text_of_tokens(headless, N_PROMPT)
        prompt = prompt_of(headless, asked(text, ONE_TOKEN))
        for _ in range(bench.rounds):
            headless.do(RebuildContext(settings))
            _read_alone(headless, text)  # warms up; the engine learns what prompts take
            beside, alone_s = _read_both(headless, text)
            bare = _bare(headless, settings)
            parts = _parts(bare, prompt, beside)
            bare.close()
            readings.append(_Reading(beside, parts, alone_s, parts.read_s / statistics.fmean(alone_s)))
            bench.say(str(readings[-1]))
        headless.do(RebuildContext(settings))  # the mirror knows nothing of what the bare loop left
    return _judged(readings)


def among_others(bench: Bench) -> Outcome:
    """The same in a cache that holds 3,300 tokens of three other conversations, which attention may skip.

    All readings are in one context, and what they are compared with in the bare loop comes after them.
    """
    settings = _settings(bench)
    with bench.engine(STEADY, settings=settings) as headless:
        text = text_of_tokens(headless, N_PROMPT)
        prompt = prompt_of(headless, asked(text, ONE_TOKEN))
        _read_alone(headless, text)
        others = [asked(f"{i}. {text_of_tokens(headless, OTHER_TOKENS)}", ONE_TOKEN) for i in range(N_OTHERS)]
        for command in others:
            headless.do(command)
        taken = []
        for _ in range(bench.rounds):
            taken.append(_read_both(headless, text))
            bench.say(f"{taken[-1][0]}, {_both_s(taken[-1][1])} s alone")
        bare = _bare(headless, settings)
        for sequence, command in enumerate(others, 1):
            bare.hold(prompt_of(headless, command), sequence)
        readings = []
        for beside, alone_s in taken:
            parts = _parts(bare, prompt, beside)
            whole_s = sum(bare.read_ms(prompt, settings.n_batch)) / 1e3
            readings.append(_Reading(beside, parts, alone_s, parts.read_s / whole_s))
            bench.say(f"the parts {parts.read_s:.2f} s, in whole batches {whole_s:.2f} s")
        bare.close()
        headless.do(RebuildContext(settings))
    return _judged(readings)


# --- private ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Beside:
    """One reading beside an answer. step_ms: between two tokens of the answer before; tok_s: of the answer meanwhile.

    gaps_ms: the longest ones between its tokens, without what was waited for a processor, `waited_s` in all.
    """

    read_s: float
    tok_s: float
    step_ms: float
    gaps_ms: list[float]
    n_tokens: int
    waited_s: float

    def __str__(self) -> str:
        return f"read in {self.read_s:.2f} s beside {self.tok_s:.1f} tok/s, longest gap {max(self.gaps_ms):.0f} ms"


@dataclass(frozen=True, slots=True)
class _Parts:
    """What one reading can take: each chunk and each of the answer's tokens by itself, and the gap that it allows."""

    read_s: float
    longest_ms: float


@dataclass(frozen=True, slots=True)
class _Reading:
    """alone_s: the same before and after; parts_over: what its parts take over a reading in whole batches."""

    beside: _Beside
    parts: _Parts
    alone_s: tuple[float, float]
    parts_over: float

    @property
    def over(self) -> float:
        """Its time over that alone."""
        return self.beside.read_s / statistics.fmean(self.alone_s)

    def __str__(self) -> str:
        return f"{self.beside}, {_both_s(self.alone_s)} s alone, the parts {self.parts.read_s:.2f} s"


def _settings(bench: Bench) -> ContextSettings:
    return bench.settings.model_copy(update={"n_ctx": max(8192, bench.settings.n_ctx)})


def _judged(readings: Sequence[_Reading]) -> Outcome:
    step_ms = statistics.median(r.beside.step_ms for r in readings)
    least = min(LEAST_TOK_S, LEAST_SHARE * 1e3 / step_ms)
    longest = statistics.median(r.parts.longest_ms for r in readings)
    most = max(PROMPT_OVER_ALONE, OVER_PARTS * statistics.median(r.parts_over for r in readings))
    return Outcome(
        {
            "prompt_over_alone": _at_most(most, [r.over for r in readings]),
            "answer_tok_s": Threshold(statistics.median(r.beside.tok_s for r in readings), least, at_least=True),
            "longest_gap_ms": _at_most(longest, [max(r.beside.gaps_ms) for r in readings]),
        },
        {
            "prompt_over_alone": [r.over for r in readings],
            "parts_over_alone": [r.parts_over for r in readings],
            "read_alone_s": [r.alone_s for r in readings],
            "parts": [asdict(r.parts) for r in readings],
            "decode_step_alone_ms": step_ms,
            "beside": [asdict(r.beside) for r in readings],
        },
    )


def _at_most(bar: float, values: list[float]) -> Threshold:
    """Their median, give or take two of its standard errors: that of few is not known well, so MOST_NOISE at most."""
    noise = min(2 * standard_error(values), MOST_NOISE * bar)
    return Threshold(statistics.median(values), bar, at_least=False, noise=noise)


def _both_s(alone_s: tuple[float, float]) -> str:
    return " and ".join(f"{s:.2f}" for s in alone_s)


def _bare(headless: HeadlessEngine, settings: ContextSettings) -> BareLoop:
    """The bare loop in the engine's own context, emptied. The mirror knows nothing of what it does there."""
    session = session_of(headless)
    bare = BareLoop(session.loaded.model, settings, ctx=session.runtime.context.memory.ctx)
    bare.clear()
    return bare


def _read_both(headless: HeadlessEngine, text: str) -> tuple[_Beside, tuple[float, float]]:
    """One reading beside an answer, and what it takes alone before and after."""
    before_s = _read_alone(headless, text)
    beside = _read_beside(headless, text)
    return beside, (before_s, _read_alone(headless, text))


def _parts(bare: BareLoop, prompt: list[int], beside: _Beside) -> _Parts:
    """`prompt` in the bare loop in tiled chunks, and in halves of those that do not keep the longest gap; where halves
    are far dearer no chunk is right, and the gap may be as long as the tiled one needs (`kvdesk.policies.batching`).
    """
    longest = gap_ms = max(LONGEST_GAP_MS, 2 * beside.step_ms)
    tiles = bare.read_ms(prompt, TILE)
    if max(tiles) + beside.step_ms > STILL_FITS * longest:
        halves = bare.read_ms(prompt, TILE // 2)
        for i, tile_ms in enumerate(tiles):
            halved_ms, needed = sum(halves[2 * i : 2 * i + 2]), tile_ms + beside.step_ms
            if needed <= STILL_FITS * longest:
                continue
            if halved_ms >= FAR_DEARER * tile_ms:
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


def _read_beside(headless: HeadlessEngine, text: str) -> _Beside:
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
    return _Beside(read_s, n / read_s, step_ms, sorted(gaps)[-5:], n, last.waited_s - first.waited_s)


class _Now(NamedTuple):
    """So many tokens of the answer's conversation were in the cache at `at_s`, of which `waited_s` were waited."""

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
    """One step and its events."""
    headless.events = []
    headless.engine.step()
    session_of(headless).runtime.context.memory.settle()
    session_of(headless).runtime.context.memory.publish()
    for over in of(headless.events, TurnEnded):
        raise UserError(f"The answer that is measured ended too early, after {over.stats.generated_tokens} tokens.")
    return headless.events
