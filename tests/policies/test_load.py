"""The load meter: what it counts, how often it reads, what a reading costs."""

from __future__ import annotations

import time

import pytest

from kvdesk.policies.load import INTERVAL_S, LoadMeter, busy_ticks, system_counter


def test_others_are_all_minus_our_own() -> None:
    busy, own = iter([10.0, 11.5]), iter([3.0, 4.0])
    meter = LoadMeter(lambda: next(busy), lambda: next(own))
    assert meter.read(0.0) is None
    assert meter.read(INTERVAL_S / 2) is None
    assert meter.read(1.0) == pytest.approx(0.5)


def test_never_negative() -> None:
    busy, own = iter([1.0, 1.0]), iter([0.0, 0.1])
    meter = LoadMeter(lambda: next(busy), lambda: next(own))
    meter.read(0.0)
    assert meter.read(1.0) == 0.0


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
