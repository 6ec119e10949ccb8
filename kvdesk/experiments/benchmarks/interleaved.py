"""Requests in turns with the same in an empty cache without kvdesk: a yardstick on a machine whose speed drifts."""

from collections.abc import Sequence
from contextlib import closing

from kvdesk.errors import UserError
from kvdesk.experiments.benchmarks.baselines import BareLoop
from kvdesk.experiments.benchmarks.requests import REQUEST, answered, asked, prompt_of
from kvdesk.experiments.benchmarks.scheduler_delay import waited_s
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.settings import Sampling


def in_turns(headless: HeadlessEngine, requests: Sequence[str], sampling: Sampling) -> tuple[list[float], list[float]]:
    """Seconds that each request takes, and those of the bare loop before the first and after each, without what was
    waited for a processor. Raises UserError when the requests are not of one size: then they cannot be compared.
    """
    prompt = prompt_of(headless, asked(requests[0], sampling))
    session = session_of(headless)
    with closing(BareLoop(session.loaded.model, session.runtime.context.settings)) as bare:

        def yardstick() -> float:
            waited = waited_s()
            return bare.seconds(prompt, sampling.max_tokens) - (waited_s() - waited)

        yardstick()  # warms up
        seconds, sizes, empty = [], set(), [yardstick()]
        for request in requests:
            waited = waited_s()
            stats = answered(headless, request, sampling)
            taken = stats.ttft_ms / 1e3 + (stats.generated_tokens - 1) / stats.decode_tok_s
            seconds.append(taken - (waited_s() - waited))
            sizes.add((stats.prefilled_tokens, stats.generated_tokens))
            empty.append(yardstick())
    if len(sizes) != 1:
        raise UserError(f"The requests are not of equal size with this model: {sorted(sizes)}.")
    return seconds, empty


def six_requests(headless: HeadlessEngine, rounds: int, sampling: Sampling) -> list[tuple[list[float], list[float]]]:
    """Six independent requests of equal size (the seeds' failing program): rounds as `in_turns` gives them. Answers
    are cut before the model would end them.
    """
    requests = [f"Request {number}. {REQUEST}" for number in range(1, 7)]
    return [in_turns(headless, requests, sampling) for _ in range(rounds)]
