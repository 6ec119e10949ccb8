"""Requests of equal size, one after another: the last must not be slower than the first."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kvdesk.chat import TurnStats
from kvdesk.errors import UserError
from kvdesk.lab.baselines import BareLoop
from kvdesk.lab.bench_cache_desk import Bench, Outcome, asked, prompt_of, session_of
from kvdesk.lab.bench_engine import QUESTION, REQUEST, Bar
from kvdesk.lab.talk import Headless, Talk
from kvdesk.lab.waits import waited_s
from kvdesk.messages import CloseConversation
from kvdesk.settings import CachePolicy, Sampling

SHORT = Sampling(temperature=0.0, max_tokens=16)
SEEDS = Sampling(temperature=0.0, max_tokens=32)


def hundred(bench: Bench) -> Outcome:
    """100 independent requests, each conversation closed after its answer; the cache is never cleared by hand.

    In turns with the same request in an empty cache without kvdesk: a machine's speed may drift by a quarter within
    a minute, and that is not what is asked. So the spread of the requests is judged over that of the machine, each
    without what other processes took of the processor where the system tells it.
    """
    requests = [f"Request {n:03}. {QUESTION}" for n in range(101)]
    with bench.desk(CachePolicy()) as headless, _bare(headless) as bare:
        _in_turns(headless, bare, requests[:1], SHORT)  # warms up
        seconds, empty = _in_turns(headless, bare, requests[1:], SHORT)
    spread, machine, against = _deciles(seconds), _deciles(empty), _against(seconds, empty)
    return Outcome(
        {"slowest_over_fastest_decile_over_that_of_a_bare_loop": Bar(spread / machine, 1.10, at_least=False)},
        {
            "slowest_over_fastest_decile": spread,
            "slowest_over_fastest_decile_of_a_bare_loop": machine,
            "over_a_bare_loop": statistics.median(against),
            "last_ten_over_first_ten": statistics.median(against[-10:]) / statistics.median(against[:10]),
            "seconds": seconds,
            "seconds_of_a_bare_loop": empty,
        },
    )


def seeds(bench: Bench) -> Outcome:
    """The six requests that took 0.9 to 8.3 seconds in the program of the seeds: the median round is judged.

    Each over the same in an empty cache without kvdesk, before and after it, as in `hundred`.
    """
    six = [f"Request {n}. {REQUEST}" for n in range(1, 7)]
    with bench.desk(CachePolicy()) as headless, _bare(headless) as bare:
        _in_turns(headless, bare, [f"Request 0. {REQUEST}"], SEEDS)  # warms up
        rounds = [_in_turns(headless, bare, six, SEEDS) for _ in range(bench.rounds)]
    against = [_against(seconds, empty) for seconds, empty in rounds]
    ratios = [values[-1] / values[0] for values in against]
    return Outcome(
        {"last_over_first": Bar(statistics.median(ratios), 1.05, at_least=False)},
        {
            "last_over_first": ratios,
            "last_over_first_with_the_machine": [seconds[-1] / seconds[0] for seconds, _ in rounds],
            "seconds": [seconds for seconds, _ in rounds],
            "seconds_of_a_bare_loop": [empty for _, empty in rounds],
        },
    )


def _in_turns(
    headless: Headless, bare: BareLoop, requests: Sequence[str], sampling: Sampling
) -> tuple[list[float], list[float]]:
    """Seconds that each request takes, and those of the bare loop before the first and after each, without what was
    waited for a processor. Raises UserError when the requests are not of one size: then they cannot be compared.
    """
    prompt = prompt_of(headless, asked(requests[0], sampling))

    def yardstick() -> float:
        waited = waited_s()
        return bare.seconds(prompt, sampling.max_tokens) - (waited_s() - waited)

    seconds, sizes, empty = [], set(), [yardstick()]
    for request in requests:
        waited = waited_s()
        stats = _request(headless, request, sampling)
        taken = stats.ttft_ms / 1e3 + (stats.generated_tokens - 1) / stats.decode_tok_s
        seconds.append(taken - (waited_s() - waited))
        sizes.add((stats.prefilled_tokens, stats.generated_tokens))
        empty.append(yardstick())
    if len(sizes) != 1:
        raise UserError(f"The requests are not of equal size with this model: {sorted(sizes)}.")
    return seconds, empty


def _against(seconds: list[float], empty: list[float]) -> list[float]:
    """Each request over the mean of the bare loop before and after it."""
    return [taken / statistics.fmean(pair) for taken, pair in zip(seconds, itertools.pairwise(empty), strict=True)]


def _deciles(values: list[float]) -> float:
    """The slowest tenth over the fastest, each by its median."""
    ordered, n = sorted(values), len(values) // 10
    return statistics.median(ordered[-n:]) / statistics.median(ordered[:n])


@contextmanager
def _bare(headless: Headless) -> Iterator[BareLoop]:
    session = session_of(headless)
    bare = BareLoop(session.model, session.context.settings)
    try:
        yield bare
    finally:
        bare.close()


def _request(headless: Headless, request: str, sampling: Sampling) -> TurnStats:
    talk = Talk(headless)
    stats = talk.answer(request, sampling).stats
    headless.do(CloseConversation(talk.id))
    return stats
