"""Requests of equal size, one after another: the last must not be slower than the first."""

from __future__ import annotations

import statistics

from kvdesk.chat import TurnStats
from kvdesk.errors import UserError
from kvdesk.lab.bench_cache_desk import Bench, Outcome
from kvdesk.lab.bench_engine import QUESTION, REQUEST, Bar
from kvdesk.lab.talk import Headless, Talk
from kvdesk.messages import CloseConversation
from kvdesk.settings import CachePolicy, Sampling

SHORT = Sampling(temperature=0.0, max_tokens=16)
SEEDS = Sampling(temperature=0.0, max_tokens=32)


def hundred(bench: Bench) -> Outcome:
    """100 independent requests, each conversation closed after its answer; the cache is never cleared by hand."""
    with bench.desk(CachePolicy()) as headless:
        _request(headless, f"Request 000. {QUESTION}", SHORT)  # warms up
        requests = [f"Request {n:03}. {QUESTION}" for n in range(1, 101)]
        seconds = _equal(headless, requests, SHORT)
    ordered = sorted(seconds)
    slowest, fastest = statistics.median(ordered[-10:]), statistics.median(ordered[:10])
    return Outcome(
        {"slowest_over_fastest_decile": Bar(slowest / fastest, 1.10, at_least=False)},
        {
            "slowest_decile_s": slowest,
            "fastest_decile_s": fastest,
            "last_ten_over_first_ten": statistics.median(seconds[-10:]) / statistics.median(seconds[:10]),
            "seconds": seconds,
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


def _equal(headless: Headless, requests: list[str], sampling: Sampling) -> list[float]:
    """Seconds that each request takes. Raises UserError when their sizes differ: then they cannot be compared."""
    seconds, sizes = [], set()
    for request in requests:
        stats = _request(headless, request, sampling)
        seconds.append(stats.ttft_ms / 1e3 + (stats.generated_tokens - 1) / stats.decode_tok_s)
        sizes.add((stats.prefilled_tokens, stats.generated_tokens))
    if len(sizes) != 1:
        raise UserError(f"The requests are not of equal size with this model: {sorted(sizes)}.")
    return seconds


def _request(headless: Headless, request: str, sampling: Sampling) -> TurnStats:
    talk = Talk(headless)
    stats = talk.answer(request, sampling).stats
    headless.do(CloseConversation(talk.id))
    return stats
