"""Under an answer that repeats itself Stop is offered, while it is written."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.protocol.chat import TextDelta, TurnEnded
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.samples import ONE, STATS, message, show_messages

LOOP = "I am a small model and I say this again. "


@pytest.fixture
def answer(window: MainWindow) -> MessageWidget:
    """An answer that is being written."""
    show_messages(window, ONE, (message("q", "user", "A story, please"), message("a", "assistant", "", "streaming")))
    widget = window.chat.view.widget_of(MessageId("a"))
    assert widget is not None
    return widget


def write(window: MainWindow, text: str) -> None:
    window.store.apply(TextDelta(ONE, MessageId("a"), text, ()))
    window.chat.view._render()


def test_a_loop_is_noticed_as_it_is_written_and_stop_stops(
    window: MainWindow, answer: MessageWidget, qtbot: QtBot, record: Callable[[object], list[tuple[object, ...]]]
) -> None:
    stopped = record(window.commands.conversations.stop)
    for _ in range(4):
        write(window, LOOP)
        assert answer._loop is None
    write(window, LOOP)
    notice = answer._loop
    assert notice.isVisible()
    assert not stopped, "nothing stops by itself"
    assert notice.stop.focusPolicy() & Qt.FocusPolicy.TabFocus
    qtbot.mouseClick(notice.stop, Qt.MouseButton.LeftButton)
    assert stopped == [(ONE,)]


def test_the_notice_goes_with_other_words(window: MainWindow, answer: MessageWidget) -> None:
    write(window, LOOP * 6)
    assert not answer._loop.isHidden()
    write(window, "But now for something entirely different.")
    assert answer._loop.isHidden()


def test_an_answer_that_has_ended_offers_nothing(window: MainWindow, answer: MessageWidget) -> None:
    write(window, LOOP * 6)
    window.store.apply(TurnEnded(ONE, MessageId("a"), "stopped", STATS))
    assert answer._loop.isHidden()
    show_messages(window, ONE, (message("b", "assistant", LOOP * 6),))
    assert window.chat.view.widgets[-1]._loop is None
