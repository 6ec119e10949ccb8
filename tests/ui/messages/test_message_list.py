import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from kvdesk.message import MessageId
from kvdesk.protocol.chat import TextDelta
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.messages.chat_view import ChatView
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.samples import ONE, message, show_messages
from tests.ui.wheel import NOTCH, turned

pytestmark = pytest.mark.usefixtures("styled")  # where messages lie
N = 300


@pytest.fixture
def view(window: MainWindow) -> ChatView:
    """The end of a long conversation, its last answer not complete."""
    texts = [f"number {i}\n\n" + "some words of it " * (i % 40) for i in range(N - 1)]
    messages = [message(f"m{i}", "user" if i % 2 == 0 else "assistant", text) for i, text in enumerate(texts)]
    show_messages(window, ONE, (*messages, message("last", "assistant", "It begins", state="streaming")))
    return window.chat.view


def turn_wheel(view: ChatView, steps: int) -> None:
    for _ in range(abs(steps)):
        QApplication.sendEvent(view.viewport(), turned(view.viewport(), NOTCH if steps > 0 else -NOTCH))
        QApplication.processEvents()


def y_in_column(view: ChatView, widget: QWidget) -> int:
    column = view.widget()
    assert column is not None
    return widget.mapTo(column, QPoint(0, 0)).y()


def text_at_top(view: ChatView) -> tuple[str, int]:
    """The prose at the upper edge of what is seen, and how far above the edge it begins."""
    top = view.verticalScrollBar().value()
    for widget in view.widgets:
        for prose in widget.findChildren(ProseView):
            y = y_in_column(view, prose)
            if y + prose.height() > top:
                return prose.toPlainText(), y - top
    raise AssertionError("nothing is seen")


def test_only_messages_near_what_is_seen_have_widgets(view: ChatView, qtbot: QtBot) -> None:
    assert view.widgets[-1].message.text == "It begins", "the end is there at once"
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum() > N * 40, "all of them have room"
    qtbot.wait(300)
    assert len(view.widgets) < 60
    bar.setValue(0)
    assert view.widgets[0].message.id == "m0", "and are made where one scrolls"
    qtbot.wait(300)
    assert len(view.widgets) < 130

    def tops() -> list[int]:
        return [widget.y() for widget in view.widgets]

    qtbot.waitUntil(lambda: tops() == sorted(tops()))  # those made last have their place
    assert all(a.geometry().bottom() < b.y() for a, b in zip(view.widgets, view.widgets[1:], strict=False))


def test_what_one_reads_stays_while_one_scrolls_into_what_had_no_widgets(view: ChatView) -> None:
    seen = []
    for _ in range(60):
        before, above = text_at_top(view)
        value = view.verticalScrollBar().value()
        turn_wheel(view, 1)
        for widget in view.widgets:
            for prose in widget.findChildren(ProseView):
                if prose.toPlainText() == before:
                    moved = y_in_column(view, prose) - view.verticalScrollBar().value() - above
        seen.append(moved)
        assert view.verticalScrollBar().value() != value
    assert len(set(seen)) == 1, "each turn of the wheel moves the text by the same"


def test_what_lay_at_the_edge_may_be_gone_when_messages_go(view: ChatView) -> None:
    turn_wheel(view, 5)
    gone = QWidget()
    view._anchor = gone, 0
    delete(gone)
    view.remove([MessageId("m0")])
    assert "m0" not in [place.id for place in view._places]


def test_an_answer_that_grows_moves_nothing_for_one_who_reads_above(
    view: ChatView, window: MainWindow, qtbot: QtBot
) -> None:
    turn_wheel(view, 5)
    before = text_at_top(view)
    for _ in range(5):
        window.store.apply(TextDelta(ONE, MessageId("last"), "\n\nmore and more " * 30, (1,)))
        qtbot.wait(120)
    assert text_at_top(view) == before
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    window.store.apply(TextDelta(ONE, MessageId("last"), "\n\nthe end " * 30, (1,)))
    qtbot.wait(200)
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum(), "at the end one stays there"


def test_what_grows_above_moves_nothing_either(view: ChatView, window: MainWindow, qtbot: QtBot) -> None:
    qtbot.wait(200)
    turn_wheel(view, 8)
    seen = text_at_top(view)
    above = next(
        widget for widget in reversed(view.widgets) if widget.geometry().bottom() < view.verticalScrollBar().value()
    )
    window.chat.view.update_message(message(above.message.id, above.message.role, "now much longer\n\n" * 20))
    qtbot.wait(50)
    assert text_at_top(view) == seen


def test_a_message_far_away_can_be_shown_and_marked(view: ChatView) -> None:
    assert view.widget_of(MessageId("m7")) is None
    view.highlight(MessageId("m7"), 0, 6)
    widget = view.widget_of(MessageId("m7"))
    assert not widget.visibleRegion().isEmpty()
    assert widget.findChildren(ProseView)[0].extraSelections()


def test_text_of_an_answer_without_a_widget_is_there_when_one_comes_back(view: ChatView, window: MainWindow) -> None:
    show_messages(
        window,
        ONE,
        (
            message("a", "assistant", "It began", state="streaming"),
            *(message(f"m{i}", "user", "x\n" * 40) for i in range(40)),
        ),
    )
    assert view.widget_of(MessageId("a")) is None
    window.store.apply(TextDelta(ONE, MessageId("a"), " and went on", (1,)))
    view.verticalScrollBar().setValue(0)
    widget = view.widget_of(MessageId("a"))
    assert widget.findChildren(ProseView)[0].toPlainText() == "It began and went on"


def test_messages_made_step_by_step_are_whole(window: MainWindow, qtbot: QtBot) -> None:
    text = "first\n\n```py\nx = 1\n```\n\nsecond\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nlast"
    show_messages(window, ONE, tuple(message(f"m{i}", "assistant", text) for i in range(40)))
    view = window.chat.view
    shown = len(view.widgets)
    qtbot.waitUntil(lambda: len(view.widgets) > shown, timeout=5000)
    assert view.widget_at(view.widgets[0].message.id) is not None, "also the one that is being made"
    turn_wheel(view, 30)
    seen = [widget for widget in view.widgets if not widget.visibleRegion().isEmpty()]
    assert seen
    for widget in seen:
        assert [prose.toPlainText().strip() for prose in widget.findChildren(ProseView)][0::2] == [
            "first",
            "a\nb\n1\n2",
        ]
        assert widget.findChildren(ProseView)[-1].toPlainText().strip() == "last"
