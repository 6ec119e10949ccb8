"""Several conversations in one batch: more tokens in the same time, and no long wait for any of them."""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import asdict, dataclass
from typing import NamedTuple

from kvdesk.benchmarks.baselines import BareLoop
from kvdesk.benchmarks.cache.scenario import STEADY, Bench, Outcome, of, text_of_tokens
from kvdesk.benchmarks.engine import QUESTION, ratio_at_least, standard_error
from kvdesk.benchmarks.requests import asked, prompt_of
from kvdesk.benchmarks.scheduler_delay import waited_s
from kvdesk.benchmarks.threshold import Threshold
from kvdesk.chat import TurnStats
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.policies.batch_times import TILE
from kvdesk.policies.batching import FAR_DEARER, LEAST_SHARE, LEAST_TOK_S, LONGEST_GAP_MS, STILL_FITS
from kvdesk.protocol.cache import RebuildContext, SpeedSample
from kvdesk.protocol.chat import CloseConversation, Generate, TextDelta, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.settings import Sampling

QUESTIONS = tuple(
    f"Explain to a curious child, in many sentences, {what}."
    for what in (
        "how a lighthouse keeper spends a stormy night",
        "how a glacier carves a valley over many years",
        "how a baker works through a cold night",
        "how bees in a hive get through a long winter",
    )
)
"""Answered at length: four answers are generated until the limit ends them all."""
PAIRS = 4
"""Runs of the four, each beside one of the bare loop, in a round: neighbours differ by up to a tenth by themselves."""
ANSWER = Sampling(temperature=0.0, max_tokens=96)
LONG_ANSWER = Sampling(temperature=0.0, max_tokens=3000)

ONE_TOKEN = Sampling(temperature=0.0, max_tokens=1)

N_PROMPT = 2000
ALONE_S = 2.0
PROMPT_OVER_ALONE = 1.4
OVER_PARTS = 1.05
"""Where the parts alone take longer than that: so many times these."""
MOST_NOISE = 0.05
"""By this share of it a bar may be missed at most: on a shared machine neighbouring readings differ by a tenth."""
OVER_CHUNK = 1.2
"""Where the longest gap cannot be kept: so many times what the chunk and a step take in the bare loop."""


def four(bench: Bench) -> Outcome:
    """Four answers in one batch, beside the same four in one batch of the bare loop: only generation is timed.

    What four at once gain over one after another is the engine's: 1.2 to 1.35 for the bare loop itself on two cores.
    """
    together, apart, bare_together = [], [], []
    with bench.engine() as headless:
        prompts = [prompt_of(headless, asked(question, ANSWER)) for question in QUESTIONS]
        session = session_of(headless)
        bare = BareLoop(session.loaded.model, session.runtime.context.settings, n_seq_max=len(prompts))
        try:
            HeadlessChat(headless).answer("Hello.", ANSWER)  # warms up
            bare.together_tok_s(prompts, ANSWER.max_tokens)
            for number in range(PAIRS * bench.rounds):
                if number % 2:
                    together.append(_at_once(headless))
                bare_together.append(bare.together_tok_s(prompts, ANSWER.max_tokens))
                if not number % 2:
                    together.append(_at_once(headless))
                if not number % PAIRS:
                    apart.append(_in_turn(headless))
                bench.say(f"together {together[-1]:.1f} tok/s, the bare loop {bare_together[-1]:.1f} tok/s")
        finally:
            bare.close()
    return Outcome(
        {"together_over_bare_loop": ratio_at_least(0.93, together, bare_together)},
        {
            "together_over_one_after_another": [a / b for a, b in zip(together[::PAIRS], apart, strict=True)],
            "together_tok_s": together,
            "one_after_another_tok_s": apart,
            "bare_together_tok_s": bare_together,
        },
    )


def beside_prefill(bench: Bench) -> Outcome:
    """A conversation generates while another one reads 2,000 tokens: how its answer goes on, and what the prompt takes.

    Each reading is judged over the same one alone, before and after it, in a context of its own, since where the memory
    of one lies is worth 10 %. How much dearer small chunks are than whole batches the processor decides: where these
    and the answer's tokens, each by itself, take more than the bar, that is the bar (`_parts`). Gaps are without what
    other processes took of the processor, where the system tells it, and of the longest ones the median round's counts:
    one hiccup of the system is nobody's fault.
    """
    settings = bench.settings.model_copy(update={"n_ctx": max(8192, bench.settings.n_ctx)})
    alone_s, beside, parts = list[tuple[float, float]](), list[_Beside](), list[_Parts]()
    with bench.engine(STEADY, settings=settings) as headless:
        text = text_of_tokens(headless, N_PROMPT)
        prompt = prompt_of(headless, asked(text, ONE_TOKEN))
        for _ in range(bench.rounds):
            headless.do(RebuildContext(settings))
            _read_alone(headless, text)  # warms up; the engine learns what prompts take
            before_s = _read_alone(headless, text)
            beside.append(_read_beside(headless, text))
            alone_s.append((before_s, _read_alone(headless, text)))
            session = session_of(headless)
            bare = BareLoop(session.loaded.model, settings, ctx=session.runtime.context.memory.ctx)
            parts.append(_parts(bare, prompt, beside[-1]))
            bare.close()
            told = " and ".join(f"{s:.2f}" for s in alone_s[-1])
            bench.say(f"{beside[-1]}, {told} s alone, the parts {parts[-1].read_s:.2f} s")
        headless.do(RebuildContext(settings))  # the mirror knows nothing of what the bare loop left
    step_ms = statistics.median(b.step_ms for b in beside)
    least = min(LEAST_TOK_S, LEAST_SHARE * 1e3 / step_ms)
    longest = statistics.median(p.longest_ms for p in parts)
    both = list(zip(beside, parts, map(statistics.fmean, alone_s), strict=True))
    over, parts_over = [b.read_s / s for b, _, s in both], [p.read_s / s for _, p, s in both]
    most = max(PROMPT_OVER_ALONE, OVER_PARTS * statistics.median(parts_over))
    return Outcome(
        {
            "prompt_over_alone": _at_most(most, over),
            "answer_tok_s": Threshold(statistics.median(b.tok_s for b in beside), least, at_least=True),
            "longest_gap_ms": _at_most(longest, [max(b.gaps_ms) for b in beside]),
        },
        {
            "prompt_over_alone": over,
            "read_alone_s": alone_s,
            "parts": [asdict(p) for p in parts],
            "decode_step_alone_ms": step_ms,
            "beside": [asdict(b) for b in beside],
        },
    )


def _at_most(bar: float, values: list[float]) -> Threshold:
    """Their median, give or take two of its standard errors: that of few is not known well, so MOST_NOISE at most."""
    noise = min(2 * standard_error(values), MOST_NOISE * bar)
    return Threshold(statistics.median(values), bar, at_least=False, noise=noise)


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
    _ended(headless, [command])
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


def _at_once(headless: HeadlessEngine) -> float:
    """Tokens a second of four answers while each of them has a token in every batch: before that those whose prompts
    have a beginning in common wait for one that reads it, and in the end some may be over sooner.
    """
    commands = [asked(question, ANSWER) for question in QUESTIONS]
    headless.events = []
    for command in commands:
        headless.host.submit(command)
    headless.host.run_until_idle()
    samples = of(headless.events, SpeedSample)
    whole = [s.at_s for s in samples if s.kind == "decode" and s.n_tokens == len(QUESTIONS)]
    _ended(headless, commands)
    if len(whole) < 2:
        raise UserError("The four answers were not computed in one batch.")
    return len(QUESTIONS) * (len(whole) - 1) / (whole[-1] - whole[0])


def _in_turn(headless: HeadlessEngine) -> float:
    """The same four answers, each alone: tokens a second of generation."""
    stats: list[TurnStats] = []
    for question in QUESTIONS:
        command = asked(question, ANSWER)
        headless.do(command)
        stats += _ended(headless, [command])
    return sum(s.generated_tokens - 1 for s in stats) / sum((s.generated_tokens - 1) / s.decode_tok_s for s in stats)


def _ended(headless: HeadlessEngine, commands: list[Generate]) -> list[TurnStats]:
    """How these answers ended; their conversations are closed."""
    ended = of(headless.events, TurnEnded)
    if len(ended) != len(commands) or any(e.state != "complete" for e in ended):
        raise UserError("; ".join(e.note for e in ended if e.note) or "An answer did not come to its end.")
    for command in commands:
        headless.do(CloseConversation(command.conversation))
    return [e.stats for e in ended]


def _step(headless: HeadlessEngine) -> list[Event]:
    """One step and its events."""
    headless.events = []
    headless.engine.step()
    session_of(headless).runtime.context.memory.settle()
    session_of(headless).runtime.context.memory.publish()
    for ended in of(headless.events, TurnEnded):
        raise UserError(f"The answer that is measured ended too early, after {ended.stats.generated_tokens} tokens.")
    return headless.events
