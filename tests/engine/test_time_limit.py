"""run_limited: results, errors and the end of what does not end."""

from __future__ import annotations

import threading
import time

import pytest

from kvdesk.engine.time_limit import run_limited


def _forever() -> None:
    while True:
        pass


def test_results_and_errors_come_through() -> None:
    assert run_limited(lambda: 42, 5) == 42
    with pytest.raises(ZeroDivisionError):
        run_limited(lambda: 1 // 0, 5)


def test_what_does_not_end_is_ended() -> None:
    start_s = time.monotonic()
    with pytest.raises(TimeoutError):
        run_limited(_forever, 0.05)
    assert time.monotonic() - start_s < 2
    for thread in threading.enumerate():
        if thread.name == "kvdesk-limited":
            thread.join(5)
            assert not thread.is_alive()


def test_a_close_race_never_hits_the_caller() -> None:
    """The limit and the end of the work at the same time, many times over: a result or TimeoutError, nothing else."""
    ends = {"result": 0, "late": 0}
    for i in range(300):
        seconds = 0.0001 + (i % 10) * 0.00005
        until = time.perf_counter() + seconds

        def work(until: float = until) -> bool:
            while time.perf_counter() < until:
                pass
            return True

        try:
            assert run_limited(work, seconds)
            ends["result"] += 1
        except TimeoutError:
            ends["late"] += 1
    assert sum(ends.values()) == 300
