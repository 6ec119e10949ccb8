"""Several conversations in one batch: more text in the same time, and nobody who reads along waits long."""

from __future__ import annotations

import itertools
import statistics
import time

from kvdesk.chat import TurnStats
from kvdesk.errors import UserError
from kvdesk.lab.bar import Bar
from kvdesk.lab.bench_cache_desk import STEADY, Bench, Outcome, of, text_of_tokens
from kvdesk.lab.bench_engine import QUESTION
from kvdesk.lab.talk import Headless, Talk, asked, session_of
from kvdesk.lab.waits import waited_s
from kvdesk.messages import CloseConversation, Event, Generate, SpeedSample, TextDelta, TurnEnded
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

    Against the median gap while it was alone, which is stricter than that of its whole answer. What other processes
    took of the processor meanwhile is not counted where the system tells it; the raw numbers have both.
    """
    settings = bench.settings.model_copy(update={"n_ctx": max(8192, bench.settings.n_ctx)})
    with bench.desk(STEADY, settings=settings) as headless:
        reader = Talk(headless)
        reader.answer(text_of_tokens(headless, 300), ANSWER)  # the engine learns what prompts take
        headless.do(CloseConversation(reader.id))
        writing, reading = asked(QUESTION, LONG_ANSWER), asked(text_of_tokens(headless, N_PROMPT), ANSWER)
        engine, ends = headless.engine, list[tuple[float, float]]()
        engine.handle(writing)
        while not ends or ends[-1][0] - ends[0][0] < ALONE_S:
            ends += _token_ends(_step(headless), first="decode" if not ends else "")
        n_alone = len(ends)
        engine.handle(reading)
        first: list[TextDelta] = []
        while not first:
            events = _step(headless)
            ends += _token_ends(events)
            first = [event for event in of(events, TextDelta) if event.answer == reading.answer]
        read_s = ends[-1][0] - ends[n_alone - 1][0]
        engine.request_stop(writing.answer)
        while engine.busy:
            engine.step()
    gaps = [b[0] - a[0] for a, b in itertools.pairwise(ends)]
    alone, beside = gaps[: n_alone - 1], gaps[n_alone - 1 :]
    own = [b[0] - a[0] - (b[1] - a[1]) for a, b in itertools.pairwise(ends[n_alone - 1 :])]
    median = statistics.median(alone)
    return Outcome(
        {"longest_gap_over_median": Bar(max(own) / median, 5.0, at_least=False)},
        {
            "median_gap_alone_ms": median * 1e3,
            "median_gap_beside_ms": statistics.median(beside) * 1e3,
            "longest_gaps_beside_ms": [gap * 1e3 for gap in sorted(own)[-5:]],
            "longest_gaps_with_other_processes_ms": [gap * 1e3 for gap in sorted(beside)[-5:]],
            "longest_gap_alone_with_other_processes_ms": max(alone) * 1e3,
            "longest_over_median_of_all": max(own) / statistics.median(alone + beside),
            "longest_with_other_processes_over_median": max(beside) / median,
            "waited_for_a_processor_s": ends[-1][1] - ends[n_alone - 1][1],
            "read_s": read_s,
            "n_gaps": [len(alone), len(beside)],
        },
    )


def _at_once(headless: Headless) -> float:
    """Tokens a second of four answers that are generated together, from the first token of the first to the last."""
    commands = [asked(question, ANSWER) for question in QUESTIONS]
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
    for question in QUESTIONS:
        command = asked(question, ANSWER)
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


def _step(headless: Headless) -> list[Event]:
    """One step and its events."""
    headless.events = []
    headless.engine.step()
    session_of(headless).context.settle()
    session_of(headless).digest()
    for ended in of(headless.events, TurnEnded):
        raise UserError(f"The answer that is measured ended too early, after {ended.stats.generated_tokens} tokens.")
    return headless.events


def _token_ends(events: list[Event], first: str = "") -> list[tuple[float, float]]:
    """When each token of the answer that is generated was there, and what had been waited for a processor until then.

    Every decode since its prompt gives it one; `first`: of what kind the first is.
    """
    samples = of(events, SpeedSample)
    start = next((i for i, sample in enumerate(samples) if not first or sample.kind == first), len(samples))
    waited = waited_s() if samples[start:] else 0.0
    return [(sample.at_s, waited) for sample in samples[start:]]
