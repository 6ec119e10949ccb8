"""Several conversations in one batch: more text in the same time, and nobody who reads along waits long."""

from __future__ import annotations

import itertools
import statistics
import time

from kvdesk.chat import TurnStats
from kvdesk.errors import UserError
from kvdesk.lab.bench_cache_desk import STEADY, Bench, Outcome, asked, of, session_of, text_of_tokens
from kvdesk.lab.bench_engine import QUESTION, Bar
from kvdesk.lab.talk import Headless, Talk
from kvdesk.messages import CloseConversation, Generate, SpeedSample, TextDelta, TurnEnded
from kvdesk.settings import Sampling

TOPICS = ("a lighthouse", "a glacier", "a railway", "a beehive")
ANSWER = Sampling(temperature=0.0, max_tokens=96)
LONG_ANSWER = Sampling(temperature=0.0, max_tokens=3000)

N_PROMPT = 2000
ALONE_S = 3.0


def four(bench: Bench) -> Outcome:
    """Four answers at once against the same four one after another; only the time of generation counts."""
    together, apart = [], []
    with bench.desk() as headless:
        Talk(headless).answer("Hello.", ANSWER)  # warms up
        for _ in range(bench.rounds):
            together.append(_at_once(headless))
            apart.append(_in_turn(headless))
            bench.say(f"together {together[-1]:.1f} tok/s, one after another {apart[-1]:.1f} tok/s")
    ratio = statistics.median(a / b for a, b in zip(together, apart, strict=True))
    return Outcome(
        {"together_over_one_after_another": Bar(ratio, 1.25, at_least=True)},
        {"together_tok_s": together, "one_after_another_tok_s": apart},
    )


def beside_prefill(bench: Bench) -> Outcome:
    """A conversation generates while another one reads 2,000 tokens: its longest gap between two tokens.

    Against the median gap while it was alone, which is stricter than that of its whole answer.
    """
    settings = bench.settings.model_copy(update={"n_ctx": max(8192, bench.settings.n_ctx)})
    with bench.desk(STEADY, settings=settings) as headless:
        reader = Talk(headless)
        reader.answer(text_of_tokens(headless, 300), ANSWER)  # the engine learns what prompts take
        headless.do(CloseConversation(reader.id))
        writing, reading = asked(QUESTION, LONG_ANSWER), asked(text_of_tokens(headless, N_PROMPT), ANSWER)
        engine, headless.events = headless.engine, []
        engine.handle(writing)
        while sum(alone := _gaps(headless)) < ALONE_S:
            _step(headless)
        engine.handle(reading)
        while not any(started.answer == reading.answer for started in of(headless.events, TextDelta)):
            _step(headless)
        beside = _gaps(headless)[len(alone) :]
        engine.request_stop(writing.answer)
        while engine.busy:
            engine.step()
    longest, median = max(beside), statistics.median(alone)
    return Outcome(
        {"longest_gap_over_median": Bar(longest / median, 5.0, at_least=False)},
        {
            "longest_gap_ms": longest * 1e3,
            "median_gap_alone_ms": median * 1e3,
            "median_gap_beside_ms": statistics.median(beside) * 1e3,
            "longest_gaps_beside_ms": [gap * 1e3 for gap in sorted(beside)[-5:]],
            "longest_gap_alone_ms": max(alone) * 1e3,
            "longest_over_median_of_all": longest / statistics.median(alone + beside),
            "n_gaps": [len(alone), len(beside)],
        },
    )


def _at_once(headless: Headless) -> float:
    """Tokens a second of four answers that are generated together, from the first token of the first to the last."""
    commands = [asked(f"Explain to a child, in many sentences, what {topic} is.", ANSWER) for topic in TOPICS]
    headless.events = []
    start = time.perf_counter()
    for command in commands:
        headless.engine.handle(command, start)
    while headless.engine.busy:
        headless.engine.step()
    stats = _ended(headless, commands)
    begins = min(s.ttft_ms for s in stats) / 1e3
    ends = max(s.ttft_ms / 1e3 + (s.generated_tokens - 1) / s.decode_tok_s for s in stats)
    return sum(s.generated_tokens - 1 for s in stats) / (ends - begins)


def _in_turn(headless: Headless) -> float:
    """The same four answers, each alone: tokens a second of generation."""
    stats: list[TurnStats] = []
    for topic in TOPICS:
        command = asked(f"Explain to a child, in many sentences, what {topic} is.", ANSWER)
        headless.do(command)
        stats += _ended(headless, [command])
    return sum(s.generated_tokens - 1 for s in stats) / sum((s.generated_tokens - 1) / s.decode_tok_s for s in stats)


def _ended(headless: Headless, commands: list[Generate]) -> list[TurnStats]:
    """How these answers ended; their conversations are closed."""
    ended = of(headless.events, TurnEnded)
    if len(ended) != len(commands) or any(e.state != "complete" for e in ended):
        raise UserError("; ".join(e.note for e in ended if e.note) or "An answer did not come to its end.")
    for command in commands:
        headless.do(CloseConversation(command.conversation))
    return [e.stats for e in ended]


def _step(headless: Headless) -> None:
    headless.engine.step()
    for ended in of(headless.events, TurnEnded):
        raise UserError(f"The answer that is measured ended too early, after {ended.stats.generated_tokens} tokens.")


def _gaps(headless: Headless) -> list[float]:
    """Seconds between the tokens of the answer that is generated: every decode since its prompt gives it one."""
    session_of(headless).context.settle()
    samples = of(headless.events, SpeedSample)
    first = next((i for i, sample in enumerate(samples) if sample.kind == "decode"), len(samples))
    return [b.at_s - a.at_s for a, b in itertools.pairwise(samples[first:])]
