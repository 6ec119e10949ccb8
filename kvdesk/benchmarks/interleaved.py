"""Requests in turns with the same in an empty cache without kvdesk: a yardstick on a machine whose speed drifts."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from kvdesk.benchmarks.baselines import BareLoop
from kvdesk.benchmarks.requests import asked, prompt_of
from kvdesk.benchmarks.scheduler_delay import waited_s
from kvdesk.chat import TurnStats
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.chat import CloseConversation
from kvdesk.settings import Sampling


def in_turns(headless: HeadlessEngine, requests: Sequence[str], sampling: Sampling) -> tuple[list[float], list[float]]:
    """Seconds that each request takes, and those of the bare loop before the first and after each, without what was
    waited for a processor. Raises UserError when the requests are not of one size: then they cannot be compared.
    """
    prompt = prompt_of(headless, asked(requests[0], sampling))
    session = session_of(headless)
    bare = BareLoop(session.loaded.model, session.runtime.context.settings)

    def yardstick() -> float:
        waited = waited_s()
        return bare.seconds(prompt, sampling.max_tokens) - (waited_s() - waited)

    try:
        yardstick()  # warms up
        seconds, sizes, empty = [], set(), [yardstick()]
        for request in requests:
            waited = waited_s()
            stats = _request(headless, request, sampling)
            taken = stats.ttft_ms / 1e3 + (stats.generated_tokens - 1) / stats.decode_tok_s
            seconds.append(taken - (waited_s() - waited))
            sizes.add((stats.prefilled_tokens, stats.generated_tokens))
            empty.append(yardstick())
    finally:
        bare.close()
    if len(sizes) != 1:
        raise UserError(f"The requests are not of equal size with this model: {sorted(sizes)}.")
    return seconds, empty


def against(seconds: list[float], empty: list[float]) -> list[float]:
    """Each request over the mean of the bare loop before and after it."""
    return [taken / statistics.fmean(pair) for taken, pair in zip(seconds, itertools.pairwise(empty), strict=True)]


def last_over_first(rounds: Sequence[tuple[list[float], list[float]]]) -> tuple[float, float]:
    """How many times as long the last request takes as the first, in the median round, and what of that the machine
    makes by itself: the slowest quarter of the bare loop's runs over the fastest.

    rounds: each as `in_turns` gives it. Requests are taken over the bare loop before and after them, and so are its own
    runs, so that a slow drift is in neither figure.
    """
    over = [against(seconds, empty) for seconds, empty in rounds]
    own = [ratio for _, empty in rounds for ratio in _own(empty)]
    return statistics.median(values[-1] / values[0] for values in over), spread(own, 4)


def slowest_over_fastest(rounds: Sequence[tuple[list[float], list[float]]]) -> tuple[float, float]:
    """Of the requests, each by its median over the rounds, and of the bare loop's runs between them in the same way.

    rounds: each as `in_turns` gives it. Both are taken over their neighbours, as in `last_over_first`.
    """
    ours = [statistics.median(same) for same in zip(*(against(*taken) for taken in rounds), strict=True)]
    own = [statistics.median(same) for same in zip(*(_own(empty) for _, empty in rounds), strict=True)]
    return max(ours) / min(ours), max(own) / min(own)


def spread(values: Sequence[float], n_parts: int) -> float:
    """The slowest of `n_parts` equal parts over the fastest, each by its median."""
    ordered, n = sorted(values), max(1, len(values) // n_parts)
    return statistics.median(ordered[-n:]) / statistics.median(ordered[:n])


def _own(empty: list[float]) -> list[float]:
    """Each run of the bare loop over the mean of the one before and the one after it; not the first and the last."""
    return [
        run / statistics.fmean((before, after)) for before, run, after in zip(empty, empty[1:], empty[2:], strict=False)
    ]


def _request(headless: HeadlessEngine, request: str, sampling: Sampling) -> TurnStats:
    chat = HeadlessChat(headless)
    stats = chat.answer(request, sampling).stats
    headless.do(CloseConversation(chat.id))
    return stats
