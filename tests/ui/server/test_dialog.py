"""The dialog of serving other programs: what it says is wanted, what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from kvdesk.chat import ConversationId, MessageId
from kvdesk.ui.server.dialog import ServeChoice, ServerDialog
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.viewmodel.curl import curl_line
from kvdesk.viewmodel.requests import RequestRow

Record = Callable[[object], list[tuple[object, ...]]]
CHOICE = ServeChoice(8099, others=False, shared=True, inspects=False)


def row(n: int, why: str = "") -> RequestRow:
    state = "complete" if why else "streaming"
    return RequestRow(MessageId(f"a{n}"), ConversationId(f"c{n}"), f"program {n}", 0.0, n, 40, 30, 5, state, why)  # type: ignore[arg-type]


@pytest.fixture
def dialog(window: MainWindow, qtbot: QtBot) -> Iterator[ServerDialog]:
    made: list[ServerDialog] = []
    window.server_dialog_made.connect(made.append)
    window.action_set.run("app.serve")
    (shown,) = made
    shown.show_choice(CHOICE, "sk-kvdesk-secret")
    qtbot.waitExposed(shown)
    yield shown
    shown.close()


def test_the_switch_asks_with_what_is_chosen(dialog: ServerDialog, qtbot: QtBot) -> None:
    with qtbot.waitSignal(dialog.start_requested) as asked:
        dialog.serve.click()
    assert asked.args == [CHOICE]
    dialog.show_serving("http://127.0.0.1:8099/v1")
    assert (dialog.address, dialog.serve.isChecked()) == ("http://127.0.0.1:8099/v1", True)
    with qtbot.waitSignal(dialog.stop_requested):
        dialog.serve.click()
    dialog.show_stopped("The port is taken.")
    assert (dialog.address, dialog.status, dialog.serve.isChecked()) == ("", "The port is taken.", False)


def test_an_invalid_port_is_not_served(dialog: ServerDialog, qtbot: QtBot, record: Record) -> None:
    asked = record(dialog.start_requested)
    for port in ("99999", "80,5", "8o80"):
        dialog.port.selectAll()
        qtbot.keyClicks(dialog.port.lineEdit(), port)
        dialog.serve.click()
        assert port in dialog.status
        assert not dialog.serve.isChecked()
    assert asked == []
    dialog.port.setValue(CHOICE.port)
    dialog.serve.click()
    assert asked == [(CHOICE,)]


def test_the_key_is_hidden_and_can_be_copied(dialog: ServerDialog) -> None:
    assert "secret" not in dialog.key_field.displayText()
    dialog.copy_key.click()
    assert QGuiApplication.clipboard().text() == "sk-kvdesk-secret"


def test_a_command_for_a_terminal_is_copied_with_the_key_and_shown_without(dialog: ServerDialog) -> None:
    assert not dialog.copy_curl.isEnabled()
    dialog.show_serving("http://127.0.0.1:8099/v1")
    assert "http://127.0.0.1:8099/v1/chat/completions" in dialog.curl.text()
    assert "secret" not in dialog.curl.text()
    dialog.copy_curl.click()
    assert QGuiApplication.clipboard().text() == curl_line("http://127.0.0.1:8099/v1", "sk-kvdesk-secret")
    dialog.show_stopped()
    assert (dialog.curl.text(), dialog.copy_curl.isEnabled()) == ("", False)


def test_the_window_shows_that_it_serves_and_leads_to_the_dialog(window: MainWindow, qtbot: QtBot) -> None:
    chip = window.status.findChild(QPushButton, "servingChip")
    assert chip is not None
    assert chip.isHidden()
    window.show_serving("http://127.0.0.1:8099/v1", 0)
    assert (chip.isVisible(), chip.accessibleName()) == (True, "Serving 127.0.0.1:8099")
    window.show_serving("http://127.0.0.1:8099/v1", 2)
    assert chip.accessibleName() == "Serving 127.0.0.1:8099 · 2 running"
    chip.setFocus(Qt.FocusReason.TabFocusReason)
    assert window.focusWidget() is chip, "Tab leads there"
    with qtbot.waitSignal(window.server_dialog_made):
        qtbot.keyClick(chip, Qt.Key.Key_Space)
    window.show_serving("", 0)
    assert chip.isHidden()


def test_a_port_does_not_touch_its_frame(dialog: ServerDialog) -> None:
    line = dialog.port.lineEdit()
    picture = dialog.port.grab().toImage()
    left = line.mapTo(dialog.port, line.rect().topLeft()).x()
    inner = picture.copy(3, 8, picture.width() - 6, picture.height() - 16)
    ground = inner.pixelColor(1, 1)
    inked = [x for x in range(inner.width()) for y in range(inner.height()) if inner.pixelColor(x, y) != ground]
    assert left >= 0
    assert min(inked) + 3 >= 8, "as in other fields"


def test_a_request_is_a_row_with_its_why(dialog: ServerDialog) -> None:
    requests = dialog.requests
    assert requests.why == "No program has asked yet."
    dialog.show_requests((row(1, "Because of one."),))
    dialog.show_requests((row(2), row(1, "Because of one.")))
    model = requests.table.model()
    assert [model.index(i, 1).data() for i in range(model.rowCount())] == ["program 2", "program 1"]
    assert model.index(1, 3).data() == "30 of 40 (75 %)"
    assert model.index(1, 2).data(Qt.ItemDataRole.DecorationRole).isValid()
    assert "is being answered" in requests.why
    requests.table.selectRow(1)
    assert requests.why == "Because of one."
    dialog.show_requests((row(3), row(2, "Because of two."), row(1, "Because of one.")))
    assert requests.table.currentIndex().row() == 2, "the row that is chosen stays chosen"
    assert requests.why == "Because of one."
