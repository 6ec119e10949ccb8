"""Requests of equal size, one after another: the last must not be slower than the first."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator
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
    requests = [f"Request {n:03}. {QUESTION}" for n in range(1, 101)]
    with bench.desk(CachePolicy()) as headless, _bare(headless) as bare:
        prompt = prompt_of(headless, asked(requests[0], SHORT))

        def yardstick() -> float:
            waited = waited_s()
            return bare.seconds(prompt, SHORT.max_tokens) - (waited_s() - waited)

        _request(headless, f"Request 000. {QUESTION}", SHORT)  # warms up
        yardstick()
        empty = [yardstick()]

        def measured() -> Iterator[str]:
            for request in requests:
                yield request
                empty.append(yardstick())

        seconds = _equal(headless, measured(), SHORT)
    spread, machine = _deciles(seconds), _deciles(empty)
    against = [taken / statistics.fmean(pair) for taken, pair in zip(seconds, itertools.pairwise(empty), strict=True)]
    return Outcome(
        {"slowest_over_fastest_decile": Bar(spread / machine, 1.10, at_least=False)},
        {
            "slowest_over_fastest_decile_with_the_machine": spread,
            "slowest_over_fastest_decile_of_the_machine": machine,
            "over_an_empty_cache": statistics.median(against),
            "last_ten_over_first_ten": statistics.median(against[-10:]) / statistics.median(against[:10]),
            "seconds": seconds,
            "seconds_in_an_empty_cache": empty,
        },
    )


def seeds(bench: Bench) -> Outcome:
    """The six requests that took 0.9 to 8.3 seconds in the program of the seeds: the median round is judged."""
    with bench.desk(CachePolicy()) as headless:
        _request(headless, f"Request 0. {REQUEST}", SEEDS)  # warms up
        six = [f"Request {n}. {REQUEST}" for n in range(1, 7)]
        rounds = [_equal(headless, six, SEEDS) for _ in range(bench.rounds)]
    ratios = [seconds[-1] / seconds[0] for seconds in rounds]
    return Outcome(
        {"last_over_first": Bar(statistics.median(ratios), 1.05, at_least=False)},
        {"last_over_first": ratios, "seconds": rounds},
    )


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


def _equal(headless: Headless, requests: Iterable[str], sampling: Sampling) -> list[float]:
    """Seconds that each request takes, without what was waited for a processor.

    Raises UserError when their sizes differ: then they cannot be compared.
    """
    seconds, sizes = [], set()
    for request in requests:
        waited = waited_s()
        stats = _request(headless, request, sampling)
        taken = stats.ttft_ms / 1e3 + (stats.generated_tokens - 1) / stats.decode_tok_s
        seconds.append(taken - (waited_s() - waited))
        sizes.add((stats.prefilled_tokens, stats.generated_tokens))
    if len(sizes) != 1:
        raise UserError(f"The requests are not of equal size with this model: {sorted(sizes)}.")
    return seconds


def _request(headless: Headless, request: str, sampling: Sampling) -> TurnStats:
    talk = Talk(headless)
    stats = talk.answer(request, sampling).stats
    headless.do(CloseConversation(talk.id))
    return stats
