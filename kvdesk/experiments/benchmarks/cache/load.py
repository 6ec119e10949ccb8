"""Other processes keep the processor busy: the engine against fixed numbers of threads, in slices that take turns."""

import itertools
import statistics
import time
from contextlib import ExitStack

from kvdesk.errors import UserError
from kvdesk.experiments.bench import STEADY, Bench
from kvdesk.experiments.benchmarks.cache.scenario import of
from kvdesk.experiments.benchmarks.requests import QUESTION, asked
from kvdesk.experiments.busy import busy_processes
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import ratio_at_least
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.protocol.cache import LoadSample
from kvdesk.protocol.chat import CloseConversation, TextDelta, TurnEnded
from kvdesk.settings import CachePolicy, ContextSettings, Sampling, default_threads

SLICE_S = 2.0
SLICES = 3
"""Of each way in a round: beside busy processes single ones differ by a fifth, as the system happens to place them."""
FOLLOWING = "following"
ANSWER = Sampling(temperature=0.0, max_tokens=512)


def one_busy(bench: Bench) -> Outcome:
    """One other process computes all the time."""
    return _under_load(bench, 1)


def two_busy(bench: Bench) -> Outcome:
    """Two other processes compute all the time."""
    return _under_load(bench, 2)


def _under_load(bench: Bench, n_busy: int) -> Outcome:
    """Each way has a separate engine, so that what one has learned about the load stays with it."""
    most = default_threads()
    fixed = {str(n): n for n in sorted({1, 2, most}) if n <= most}
    if most < 2:
        raise UserError("This machine has one core: there is no number of threads to choose.")
    speeds: dict[str, list[float]] = {FOLLOWING: [], **{name: [] for name in fixed}}
    with ExitStack() as stack:
        engines = {
            name: stack.enter_context(bench.engine(STEADY, settings=_threads(bench, n))) for name, n in fixed.items()
        }
        engines[FOLLOWING] = stack.enter_context(bench.engine(CachePolicy(), settings=_threads(bench, most)))
        stack.enter_context(busy_processes(n_busy))
        for way in speeds:
            _slice_tok_s(engines[way])  # warms up; the policy looks around
        orders = itertools.cycle(itertools.permutations(speeds))  # so that none always follows the same other
        for order in itertools.islice(orders, SLICES * bench.whole("rounds")):
            for way in order:
                speeds[way].append(_slice_tok_s(engines[way]))
        reason = session_of(engines[FOLLOWING]).runtime.threads.reason
        n_threads = session_of(engines[FOLLOWING]).runtime.context.memory.n_threads
        others = [load.others for load in of(engines[FOLLOWING].events, LoadSample)]
    tok_s = {way: statistics.median(values) for way, values in speeds.items()}
    best = max(fixed, key=lambda n: tok_s[n])
    over_fixed = {n: tok_s[FOLLOWING] / tok_s[n] for n in fixed}  # how much worse a wrong number is, the system decides
    bench.say(", ".join(f"{over:.2f} times {n} threads" for n, over in over_fixed.items()))
    return Outcome(
        [ratio_at_least("over_best_fixed", 0.9, speeds[FOLLOWING], speeds[best])],
        {
            "tok_s": tok_s,
            "over_fixed": over_fixed,
            "slices_tok_s": speeds,
            "n_threads": n_threads,
            "reason": reason,
            "others_cores": others,
        },
    )


def _threads(bench: Bench, n: int) -> ContextSettings:
    return bench.settings.model_copy(update={"n_threads": n, "n_threads_batch": n})


def _slice_tok_s(headless: HeadlessEngine) -> float:
    """Decode speed of one answer that is stopped after SLICE_S."""
    command, engine = asked(QUESTION, ANSWER), headless.engine
    headless.events = []
    engine.handle(command)
    began = 0.0
    while engine.busy:
        engine.step()
        if not began and of(headless.events, TextDelta):
            began = time.monotonic()
        if began and time.monotonic() - began > SLICE_S:
            engine.request_stop(command.answer)
    stats = of(headless.events, TurnEnded)[0].stats
    headless.do(CloseConversation(command.conversation))
    return stats.decode_tok_s
