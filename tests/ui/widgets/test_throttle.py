import time

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from kvdesk.ui.widgets.throttle import Throttle


def test_the_first_request_acts_at_once_and_many_become_one(qtbot: QtBot) -> None:
    calls: list[int] = []
    parent = QObject()
    throttle = Throttle(parent, 50, lambda: calls.append(len(calls)))
    for _ in range(100):
        throttle.request()
    assert calls == [0]
    qtbot.waitUntil(lambda: len(calls) == 2, timeout=2000)
    qtbot.wait(120)
    assert len(calls) == 2


def test_it_rests_when_nothing_is_asked(qtbot: QtBot) -> None:
    calls: list[int] = []
    parent = QObject()
    throttle = Throttle(parent, 20, lambda: calls.append(1))
    throttle.request()
    qtbot.wait(60)
    throttle.request()
    assert len(calls) == 2


def test_the_last_time_is_now(qtbot: QtBot) -> None:  # noqa: ARG001 - an application
    done: list[int] = []
    parent = QObject()
    throttle = Throttle(parent, 10_000, lambda: done.append(1))
    throttle.request()
    throttle.request()
    assert len(done) == 1, "the second waits"
    throttle.now()
    assert len(done) == 2
    assert not throttle._timer.isActive(), "nothing is left to be done"


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Clock:  # noqa: ARG001 - an application
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    return clock


def test_what_nobody_is_busy_for_does_not_wait_for_its_share(clock: Clock) -> None:
    done: list[int] = []
    busy = True

    def action() -> None:
        clock.now_s += 0.005
        done.append(1)

    parent = QObject()
    throttle = Throttle(parent, 1000, action, share=0.001, busy=lambda: busy)
    throttle.request()
    clock.now_s += 1.5
    throttle.request()
    assert len(done) == 1, "5 ms at a thousandth of a core: the interval is four times as long"
    before = throttle._timer.interval()
    busy = False
    throttle.request()
    assert len(done) == 2
    busy = True
    throttle.request()
    assert throttle._timer.interval() > before
    busy = False
    throttle.request()
    assert throttle._timer.interval() <= 1100


def test_a_request_soon_after_the_interval_acts_at_once_so_that_both_are_painted_together(clock: Clock) -> None:
    done: list[int] = []
    parent = QObject()
    throttle = Throttle(parent, 10_000, lambda: done.append(1))
    throttle.request()
    throttle.request()
    assert throttle._timer.interval() > 10_000, "the timer leaves the next batch of events some time"
    clock.now_s += 10.001
    throttle.request()
    assert len(done) == 2
    assert not throttle._timer.isActive()
