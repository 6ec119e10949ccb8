"""Text that is selected selects its cells, and the reverse; both fill the form in."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QTextCursor

from kvdesk.chat import MessageId
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.samples import ONE, cache_view, message

QUESTION, ANSWER = MessageId("q"), MessageId("a")


@pytest.fixture
def linked(window: MainWindow) -> MainWindow:
    """A question at positions 0 to 8, an answer "The **sea** is far." at 8 to 20 of sequence 0, cells as positions."""
    window.show_messages(ONE, (message("q", "user", "Where is it?"), message("a", "assistant", "The **sea** is far.")))
    ends = (3, 6, 9, 11, 14, 18, 19)  # The| **|sea|**| is| far|.
    spans = (MessageSpan(QUESTION, 0, 8, 3, (5, 8, 12)), MessageSpan(ANSWER, 8, 20, 11, ends))
    window.apply_event(MessageSpans(ONE, 0, spans))
    window.apply_event(cache_view())
    window.inspector.cache.operations.show_state(window._state)
    return window


def prose(window: MainWindow, message_id: MessageId) -> ProseView:
    widget = window.chat.view.widget_of(message_id)
    assert widget is not None
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
    (run,) = linked.inspector.cell_map.selection
    assert run.cells.tolist() == [13], "the token that holds these letters"
    chosen = linked.inspector.cache.operations.chosen
    assert (chosen.p0, chosen.p1) == (13, 14)


def test_typed_text_too(linked: MainWindow) -> None:
    select(prose(linked, QUESTION), "is it")
    (run,) = linked.inspector.cell_map.selection
    assert run.cells.tolist() == [4, 5]


def test_letting_go_of_the_text_lets_go_of_the_cells(linked: MainWindow) -> None:
    view = prose(linked, ANSWER)
    select(view, "sea")
    view.setTextCursor(QTextCursor(view.document()))
    linked._links._showing.now()
    assert linked.inspector.cell_map.selection == ()


def marked(view: ProseView) -> str:
    return "".join(mark.cursor.selectedText() for mark in view.extraSelections())


def test_selected_cells_mark_their_text(linked: MainWindow) -> None:
    linked.inspector.cell_map.cells_selected.emit(0, 0, 13, 16)
    assert marked(prose(linked, ANSWER)) == "sea is"
    assert marked(prose(linked, QUESTION)) == ""
    chosen = linked.inspector.cache.operations.chosen
    assert chosen.target is not None
    assert (chosen.target.seq_id, chosen.p0, chosen.p1) == (0, 13, 16)
    linked.inspector.cell_map.cells_selected.emit(-1, -1, 0, 0)
    assert marked(prose(linked, ANSWER)) == ""


def test_cells_of_no_known_text_still_fill_the_form_in(linked: MainWindow) -> None:
    linked.inspector.cell_map.cells_selected.emit(0, 0, 200, 240)
    chosen = linked.inspector.cache.operations.chosen
    assert chosen.target is not None
    assert (chosen.target.seq_id, chosen.p0, chosen.p1) == (1, 32, 72)
