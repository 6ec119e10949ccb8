"""Text that is selected selects its cells, and the reverse; both fill the form in. What is looked at lights up."""

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QEnterEvent, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from kvdesk.message import MessageId
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.samples import ONE, cache_view, message, show_messages

QUESTION, ANSWER = MessageId("q"), MessageId("a")


@pytest.fixture
def linked(window: MainWindow) -> MainWindow:
    """A question at positions 0 to 8, an answer "The **sea** is far." at 8 to 20 of sequence 0, cells as positions."""
    show_messages(window, ONE, (message("q", "user", "Where is it?"), message("a", "assistant", "The **sea** is far.")))
    ends = (3, 6, 9, 11, 14, 18, 19)  # The| **|sea|**| is| far|.
    spans = (MessageSpan(QUESTION, 0, 8, 3, (5, 8, 12)), MessageSpan(ANSWER, 8, 20, 11, ends))
    window.store.apply(MessageSpans(ONE, 0, spans))
    window.store.apply(cache_view())
    window.inspector.cache.instruments.operations.show_state()
    window.activateWindow()
    return window


def prose(window: MainWindow, message_id: MessageId) -> ProseView:
    widget = window.chat.view.widget_of(message_id)
    view = widget.findChild(ProseView)
    assert isinstance(view, ProseView)
    return view


def select(view: ProseView, word: str) -> None:
    first = view.toPlainText().index(word)
    cursor = QTextCursor(view.document())
    cursor.setPosition(first)
    cursor.setPosition(first + len(word), QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)


def test_selected_text_selects_its_cells(linked: MainWindow) -> None:
    select(prose(linked, ANSWER), "sea")
    linked._links._showing.now()
    (run,) = linked.inspector.cell_map._selection.runs
    assert run.cells.tolist() == [13], "the token that holds these letters"
    chosen = linked.inspector.cache.instruments.operations.chosen
    assert (chosen.p0, chosen.p1) == (13, 14)


def test_typed_text_too(linked: MainWindow) -> None:
    select(prose(linked, QUESTION), "is it")
    linked._links._showing.now()
    (run,) = linked.inspector.cell_map._selection.runs
    assert run.cells.tolist() == [4, 5]


def test_letting_go_of_the_text_lets_go_of_the_cells(linked: MainWindow) -> None:
    view = prose(linked, ANSWER)
    select(view, "sea")
    view.setTextCursor(QTextCursor(view.document()))
    linked._links._showing.now()
    assert linked.inspector.cell_map._selection.runs == ()


def marked(view: ProseView) -> str:
    return "".join(mark.cursor.selectedText() for mark in view.extraSelections())


def test_selected_cells_mark_their_text(linked: MainWindow) -> None:
    linked.inspector.cell_map.cells_selected.emit(0, 0, 13, 16)
    assert marked(prose(linked, ANSWER)) == "sea is"
    assert marked(prose(linked, QUESTION)) == ""
    chosen = linked.inspector.cache.instruments.operations.chosen
    assert (chosen.target.seq_id, chosen.p0, chosen.p1) == (0, 13, 16)
    linked.inspector.cell_map.cells_selected.emit(-1, -1, 0, 0)
    assert marked(prose(linked, ANSWER)) == ""


def test_cells_of_no_known_text_still_fill_the_form_in(linked: MainWindow) -> None:
    linked.inspector.cell_map.cells_selected.emit(0, 0, 200, 240)
    chosen = linked.inspector.cache.instruments.operations.chosen
    assert (chosen.target.seq_id, chosen.p0, chosen.p1) == (1, 32, 72)


def shown(window: MainWindow, message_id: MessageId) -> MessageWidget:
    widget = window.chat.view.widget_of(message_id)
    assert widget is not None
    return widget


def hover(widget: MessageWidget, *, over: bool) -> None:
    at = QPointF(1, 1)
    QApplication.sendEvent(widget, QEnterEvent(at, at, at) if over else QEvent(QEvent.Type.Leave))


def lit(window: MainWindow) -> list[int]:
    window._links._lighting.now()
    return [cell for run in window.inspector.cell_map._lit_runs for cell in run.cells.tolist()]


def test_the_cells_of_a_hovered_message_light_up(linked: MainWindow) -> None:
    hover(shown(linked, ANSWER), over=True)
    assert lit(linked) == list(range(8, 20))
    assert linked.inspector.cell_map._selection.runs == (), "nothing is selected"
    hover(shown(linked, ANSWER), over=False)
    hover(shown(linked, QUESTION), over=True)
    assert lit(linked) == list(range(8))
    hover(shown(linked, QUESTION), over=False)
    assert lit(linked) == []


def test_lit_cells_follow_their_message(linked: MainWindow) -> None:
    hover(shown(linked, ANSWER), over=True)
    lit(linked)
    spans = (MessageSpan(QUESTION, 0, 8, 3, (5, 8, 12)), MessageSpan(ANSWER, 8, 26, 11, (3, 6)))
    linked.store.apply(MessageSpans(ONE, 0, spans))
    linked.store.apply(cache_view(operation=9))
    assert lit(linked) == list(range(8, 26)), "it has grown"


def test_the_keyboard_lights_cells_and_a_screen_reader_hears_how_many(
    linked: MainWindow, said: list[tuple[str, bool]]
) -> None:
    linked.chat.composer.focus_edit()
    shown(linked, ANSWER).show_arrival()
    assert lit(linked) == list(range(8, 20))
    assert said[-1] == ("It has 12 cells of the map, 8 to 19.", False)
    linked.chat.composer.focus_edit()
    assert lit(linked) == []


def test_the_word_of_a_hovered_cell_is_marked_for_as_long_as_that(linked: MainWindow) -> None:
    view, cells = prose(linked, ANSWER), linked.inspector.cell_map
    cells.cells_selected.emit(0, 0, 14, 16)
    highlighted = marked(view)
    cells.pointed_at.emit(0, 0, 13)
    linked._links._pointing.now()
    assert marked(view) == f"{highlighted}sea", "what a click has highlighted stays"
    cells.pointed_at.emit(0, 0, 5)
    linked._links._pointing.now()
    assert marked(view) == highlighted
    assert marked(prose(linked, QUESTION)) == " it?"
    cells.pointed_at.emit(-1, -1, -1)
    assert marked(view) == highlighted
    assert marked(prose(linked, QUESTION)) == ""


def test_the_cursor_of_the_map_marks_words_too(linked: MainWindow) -> None:
    cells = linked.inspector.cell_map
    cells.refresh()
    cells.setFocus(Qt.FocusReason.TabFocusReason)
    for _ in range(13):
        QTest.keyClick(cells, Qt.Key.Key_Right)
    linked._links._pointing.now()
    assert marked(prose(linked, ANSWER)) == "sea"
    linked.chat.composer.focus_edit()
    assert marked(prose(linked, ANSWER)) == ""
