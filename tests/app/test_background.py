"""Background: what comes back from another thread, in which order, and what does not."""

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk.app.background import Background
from kvdesk.errors import KvdeskError, UserError, unexpected


@pytest.fixture
def background(qapp: QApplication) -> Iterator[Background]:
    assert qapp is not None
    made = Background("test")
    yield made
    made.close()


def test_a_result_comes_back_on_the_thread_that_asked(background: Background, qtbot: QtBot) -> None:
    found: list[object] = []

    def work() -> str:
        return threading.current_thread().name

    background.run(work, lambda name: found.extend((name, threading.current_thread())))
    qtbot.waitUntil(lambda: bool(found))
    assert found == ["kvdesk-test", threading.main_thread()]


@pytest.mark.parametrize("error", [UserError("Choose another file.", "why"), OSError(28, "No space left on device")])
def test_an_error_is_a_sentence(background: Background, error: Exception) -> None:
    def work() -> None:
        raise error

    failed: list[KvdeskError] = []
    background.run(work, lambda _result: failed.clear(), failed.append)
    background.wait()
    (told,) = failed
    assert told is error or (str(told), told.detail) == (unexpected(error), repr(error))


def test_progress_comes_in_order_and_before_the_result(background: Background) -> None:
    found: list[int] = []

    def work() -> int:
        for n in range(100):
            background.tell(found.append, n)
        return 100

    background.run(work, found.append)
    background.wait()
    assert found == list(range(101))


def test_what_a_receiver_raises_keeps_nothing_from_the_others(background: Background, qtbot: QtBot) -> None:
    found: list[str] = []
    with qtbot.captureExceptions() as raised:
        background.run(lambda: 1, lambda one: one / 0)
        background.run(lambda: "after it", found.append)
        qtbot.waitUntil(lambda: bool(found))
    assert [kind for kind, _error, _trace in raised] == [ZeroDivisionError]


def test_work_takes_turns(background: Background) -> None:
    found: list[int] = []
    running = threading.Semaphore(1)

    def work(n: int) -> int:
        assert running.acquire(blocking=False)
        running.release()
        return n

    for n in range(20):
        background.run(lambda n=n: work(n), found.append)  # type: ignore[misc]
    background.wait()
    assert found == list(range(20))


def test_several_run_at_once() -> None:
    background, meeting = Background("test", at_once=2), threading.Barrier(2)
    found: list[int] = []
    for _ in range(2):
        background.run(lambda: meeting.wait(10.0), found.append, lambda _error: found.append(-1))
    background.wait()
    assert sorted(found) == [0, 1]


def test_a_cancelled_task_gives_nothing_and_does_not_begin(background: Background) -> None:
    found: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        go_on.wait(10.0)
        return "cancelled while it ran"

    running = background.run(work, found.append)
    waiting = background.run(lambda: found.append("begun"))
    background.run(lambda: "the last", found.append)
    assert begun.wait(10.0)
    running.cancel()
    waiting.cancel()
    go_on.set()
    background.wait()
    assert found == ["the last"]


def test_closing_drops_results_and_what_has_not_begun(background: Background, qtbot: QtBot) -> None:
    found: list[str] = []
    begun = threading.Event()
    seen = threading.Event()

    def work() -> str:
        begun.set()
        while not background.is_closing:
            pass
        background.tell(found.append, "progress")
        seen.set()
        return "result"

    background.run(work, found.append)
    background.run(lambda: found.append("begun"))
    assert begun.wait(10.0)
    assert background.close()
    assert seen.is_set()
    assert background.run(lambda: found.append("after")).cancelled.is_set()
    qtbot.wait(1)
    assert found == []


def test_closing_does_not_wait_for_ever(background: Background) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(10.0)

    background.run(work)
    assert begun.wait(10.0)
    assert not background.close(wait_s=0.05)
    go_on.set()
    assert background.close()
