"""Several conversations in one batch: more tokens in the same time."""

from contextlib import closing

from kvdesk.errors import UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.benchmarks.baselines import BareLoop
from kvdesk.experiments.benchmarks.cache.scenario import ended, of
from kvdesk.experiments.benchmarks.requests import asked, prompt_of
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import ratio_at_least
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import TurnStats
from kvdesk.protocol.cache import SpeedSample
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
"""Runs of the four in a round, each beside one of the bare loop; neighbours differ by up to a tenth anyway."""
ANSWER = Sampling(temperature=0.0, max_tokens=96)


def four(bench: Bench) -> Outcome:
    """Four answers in one batch, beside the same four in one batch of the bare loop: only generation is timed.

    What four at once gain over one after another is the engine's: 1.2 to 1.35 for the bare loop itself on two cores.
    """
    together, apart, bare_together = [], [], []
    with bench.engine() as headless:
        prompts = [prompt_of(headless, asked(question, ANSWER)) for question in QUESTIONS]
        session = session_of(headless)
        with closing(BareLoop(session.loaded.model, session.runtime.context.settings, n_seq_max=len(prompts))) as bare:
            HeadlessChat(headless).answer("Hello.", ANSWER)  # warms up
            bare.together_tok_s(prompts, ANSWER.max_tokens)
            for number in range(PAIRS * bench.whole("rounds")):
                if number % 2:
                    together.append(_at_once(headless))
                bare_together.append(bare.together_tok_s(prompts, ANSWER.max_tokens))
                if not number % 2:
                    together.append(_at_once(headless))
                if not number % PAIRS:
                    apart.append(_in_turn(headless))
                bench.say(f"together {together[-1]:.1f} tok/s, the bare loop {bare_together[-1]:.1f} tok/s")
    return Outcome(
        [ratio_at_least("together_over_bare_loop", 0.93, together, bare_together)],
        {
            "together_over_one_after_another": [a / b for a, b in zip(together[::PAIRS], apart, strict=True)],
            "together_tok_s": together,
            "one_after_another_tok_s": apart,
            "bare_together_tok_s": bare_together,
        },
    )


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
    ended(headless, commands)
    if len(whole) < 2:
        raise UserError("The four answers were not computed in one batch.")
    return len(QUESTIONS) * (len(whole) - 1) / (whole[-1] - whole[0])


def _in_turn(headless: HeadlessEngine) -> float:
    """The same four answers, each alone: tokens a second of generation."""
    stats: list[TurnStats] = []
    for question in QUESTIONS:
        command = asked(question, ANSWER)
        headless.do(command)
        stats += ended(headless, [command])
    return sum(s.generated_tokens - 1 for s in stats) / sum((s.generated_tokens - 1) / s.decode_tok_s for s in stats)
