"""The load meter: what it counts, how often it reads, what a reading costs."""

import sys
import threading
import time

import pytest

from kvdesk.policies import load
from kvdesk.policies.load import STALE_S, LoadMeter, busy_ticks, system_counter
from kvdesk.policies.tuned import LOAD_INTERVAL_S


def test_others_are_all_minus_our_own() -> None:
    busy, own = iter([10.0, 11.5]), iter([3.0, 4.0])
    meter = LoadMeter(lambda: next(busy), lambda: next(own))
    assert meter.read(0.0) is None
    assert meter.read(LOAD_INTERVAL_S / 2) is None
    assert meter.read(1.0) == pytest.approx(0.5)


def test_never_negative() -> None:
    busy, own = iter([1.0, 1.0]), iter([0.0, 0.1])
    meter = LoadMeter(lambda: next(busy), lambda: next(own))
    meter.read(0.0)
    assert meter.read(1.0) == 0.0


def test_a_stale_reading_says_no_more_than_what_runs_now() -> None:
    """Someone compiled a minute ago: the next question need not be answered with one thread."""
    busy, own, n_runnable = iter([0.0, 3.0, 21.0, 31.0, 41.0]), iter([0.0, 1.0, 1.0, 1.0, 1.0]), iter([0, 1, None])
    meter = LoadMeter(lambda: next(busy), lambda: next(own), lambda: next(n_runnable))
    assert meter.read(0.0) is None
    assert meter.read(STALE_S) == pytest.approx(2.0), "new enough"
    assert meter.read(STALE_S + 10) == 0.0, "nobody runs"
    assert meter.read(STALE_S + 20) == pytest.approx(1.0), "somebody does"
    assert meter.read(STALE_S + 30) == pytest.approx(1.0), "nobody knows what runs"


def test_what_others_took_while_this_process_waited_is_over() -> None:
    """A program that asks here and computes in between, in turns: its last burst has ended before each question."""
    busy, own, n_runnable = iter([0.0, 1.1, 2.0]), iter([0.0, 0.1, 0.9]), iter([0, 5])
    meter = LoadMeter(lambda: next(busy), lambda: next(own), lambda: next(n_runnable))
    assert meter.read(0.0) is None
    assert meter.read(0.5) == 0.0, "two cores in the half second before, and nobody now"
    assert meter.read(1.0) == pytest.approx(0.2), "beside this process, which computes"


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_own_threads_are_no_load() -> None:
    """However many of this process run: they are what it is asked for."""
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            pass

    def least() -> int:
        return min(n for n in (load._runnable_others() for _ in range(20)) if n is not None)

    before = least()  # the machine may be at work with something else
    threads = [threading.Thread(target=spin) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        found = least()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert found <= max(before, least()) + 1, "three threads were taken for others"


def test_idle_and_waiting_for_disks_is_not_busy() -> None:
    assert busy_ticks(b"cpu  10 20 30 4000 500 6 7 8 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\n") == 10 + 20 + 30 + 6 + 7 + 8


def test_a_reading_costs_less_than_a_fifth_of_a_millisecond() -> None:
    meter = LoadMeter(system_counter())
    times = []
    for i in range(200):
        start = time.process_time()
        meter.read(float(i))
        times.append(time.process_time() - start)
    assert sorted(times)[100] < 0.2e-3
