"""Requests of equal size, one after another: the last must not be slower than the first."""

import statistics

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.benchmarks.interleaved import in_turns, six_requests
from kvdesk.experiments.benchmarks.requests import QUESTION, REQUEST
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import against, last_over_first, spread
from kvdesk.protocol.experiment import Figure
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
    with bench.engine(CachePolicy()) as headless:
        in_turns(headless, requests[:1], SHORT)  # warms up
        seconds, empty = in_turns(headless, requests[1:], SHORT)
    taken, machine, over = spread(seconds, 10), spread(empty, 10), against(seconds, empty)
    return Outcome(
        [Figure("slowest_over_fastest_decile_over_that_of_a_bare_loop", taken / machine).at_most(1.10)],
        {
            "slowest_over_fastest_decile": taken,
            "slowest_over_fastest_decile_of_a_bare_loop": machine,
            "over_a_bare_loop": statistics.median(over),
            "last_ten_over_first_ten": statistics.median(over[-10:]) / statistics.median(over[:10]),
            "seconds": seconds,
            "seconds_of_a_bare_loop": empty,
        },
    )


def seeds(bench: Bench) -> Outcome:
    """The six requests that took 0.9 to 8.3 seconds in the program of the seeds: the last over the first.

    Each over the same in an empty cache without kvdesk, before and after it, and the median round's over the spread of
    those, as in `hundred`: six requests cannot be more equal than the machine is.
    """
    with bench.engine(CachePolicy()) as headless:
        in_turns(headless, [f"Request 0. {REQUEST}"], SEEDS)  # warms up
        rounds = six_requests(headless, bench.whole("rounds"), SEEDS)
    ratio, machine = last_over_first(rounds)
    return Outcome(
        [Figure("last_over_first_over_spread_of_a_bare_loop", ratio / machine).at_most(1.05)],
        {
            "last_over_first": ratio,
            "spread_of_a_bare_loop": machine,
            "last_over_first_with_the_machine": [seconds[-1] / seconds[0] for seconds, _ in rounds],
            "seconds": [seconds for seconds, _ in rounds],
            "seconds_of_a_bare_loop": [empty for _, empty in rounds],
        },
    )
