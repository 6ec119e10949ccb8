"""A long conversation is verified while another one begins to write: how soon it begins, and how fast it writes."""

import time
from collections.abc import Callable

from kvdesk.errors import UserError
from kvdesk.experiments.bench import STEADY, Bench
from kvdesk.experiments.benchmarks.cache.scenario import of, text_of_tokens
from kvdesk.experiments.benchmarks.requests import QUESTION, asked
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import figure
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.protocol.cache import Verified, VerifyConversation
from kvdesk.protocol.chat import CloseConversation, Generate, TextDelta, TurnStarted
from kvdesk.protocol.messages import CommandFailed
from kvdesk.settings import Sampling

N_VERIFIED = 4000
ALONE_S = 3.0
HALF = 0.5
"""Of its speed alone: what an answer beside a job has at least."""
ONE_TOKEN = Sampling(temperature=0.0, max_tokens=1)
LONG_ANSWER = Sampling(temperature=0.0, max_tokens=8000)


def beside(bench: Bench) -> Outcome:
    """A conversation of 4,000 tokens is verified, and another one begins to write meanwhile."""
    settings = bench.settings.model_copy(update={"n_ctx": max(4 * N_VERIFIED, bench.settings.n_ctx)})
    steps, shares = list[float](), list[float]()
    with bench.engine(STEADY, settings=settings) as headless:
        session_of(headless).loaded.model.vocab.ignore_eog()
        for _ in range(bench.whole("rounds")):
            n_steps, meanwhile, alone = _reading(headless)
            steps.append(n_steps)
            shares.append(meanwhile / alone)
            bench.say(f"begun after {n_steps} steps, {meanwhile:.1f} tok/s meanwhile, {alone:.1f} alone")
    return Outcome(
        [figure("steps_until_it_begins", steps).at_most(1), figure("speed_over_alone", shares).at_least(HALF)],
        {"steps_until_it_begins": steps, "speed_over_alone": shares},
    )


def _reading(headless: HeadlessEngine) -> tuple[int, float, float]:
    """Steps until the other answer begins, its tokens a second until the conversation is verified, and those of the
    same answer afterwards. Raises UserError if it is not verified.
    """
    engine = headless.engine
    kept, writing = asked(text_of_tokens(headless, N_VERIFIED), ONE_TOKEN), asked(QUESTION, LONG_ANSWER)
    headless.do(kept)
    headless.events = []
    engine.handle(VerifyConversation(kept.conversation))
    engine.step()
    engine.handle(writing)
    n_steps = _step_until(headless, lambda: bool(of(headless.events, TurnStarted)))
    _step_until(headless, lambda: bool(of(headless.events, TextDelta)))
    meanwhile = _tok_s(headless, writing, lambda _: bool(of(headless.events, Verified)))
    alone = _tok_s(headless, writing, lambda seconds: seconds > ALONE_S)
    engine.request_stop(writing.answer)
    _step_until(headless, lambda: not engine.busy)
    for command in (kept, writing):
        headless.do(CloseConversation(command.conversation))
    return n_steps, meanwhile, alone


def _tok_s(headless: HeadlessEngine, writing: Generate, is_over: Callable[[float], bool]) -> float:
    """Tokens a second of the answer, until `is_over` says so of the seconds that have passed."""
    start, n_before = time.monotonic(), _n_tokens(headless, writing)
    _step_until(headless, lambda: is_over(time.monotonic() - start))
    return (_n_tokens(headless, writing) - n_before) / (time.monotonic() - start)


def _n_tokens(headless: HeadlessEngine, writing: Generate) -> int:
    sequence = session_of(headless).runtime.cache_manager.pool.get(writing.conversation)
    return len(sequence.tokens) if sequence is not None else 0


def _step_until(headless: HeadlessEngine, is_over: Callable[[], bool]) -> int:
    """The steps that it took. Raises UserError if something failed, or nothing is left to do."""
    n_steps = 0
    while not is_over():
        for failed in of(headless.events, CommandFailed):
            raise UserError(failed.sentence, failed.detail)
        if not headless.engine.busy:
            raise UserError("The answer that is measured ended too early.")
        headless.engine.step()
        n_steps += 1
    return n_steps
