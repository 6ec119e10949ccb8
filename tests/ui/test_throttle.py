from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from kvdesk.ui.throttle import Throttle


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


def test_what_is_wanted_soon_does_not_wait_for_its_share(
    qtbot: QtBot,  # noqa: ARG001 - an application
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    done: list[int] = []

    def action() -> None:
        nonlocal now
        now += 0.005
        done.append(1)

    parent = QObject()
    throttle = Throttle(parent, 1000, action, share=0.001)
    throttle.request()
    now += 1.5
    throttle.request()
    assert len(done) == 1, "5 ms at a thousandth of a core: the interval is four times as long"
    before = throttle._timer.interval()
    throttle.request(soon=True)
    assert len(done) == 2
    throttle.request()
    assert throttle._timer.interval() > before
    throttle.request(soon=True)
    assert throttle._timer.interval() <= 1100


def test_a_request_soon_after_the_interval_acts_at_once_so_that_both_are_painted_together(
    qtbot: QtBot,  # noqa: ARG001 - an application
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    done: list[int] = []
    parent = QObject()
    throttle = Throttle(parent, 10_000, lambda: done.append(1))
    throttle.request()
    throttle.request()
    assert throttle._timer.interval() > 10_000, "the timer leaves the next batch of events some time"
    now += 10.001
    throttle.request()
    assert len(done) == 2
    assert not throttle._timer.isActive()
