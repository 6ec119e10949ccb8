"""The log: by level and by text, copied and saved as it is shown."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from kvdesk.protocol.chat import LogLine
from kvdesk.ui.shell.log_panel import LogPanel
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.seen import log_text

LINES = (
    LogLine("debug", "graph of 600 nodes"),
    LogLine("info", "llama_context: n_ctx = 4096"),
    LogLine("warning", "llama_kv_cache: something odd"),
    LogLine("error", "llama_decode: failed"),
)


@pytest.fixture
def panel(theme: Theme, qtbot: QtBot) -> LogPanel:
    panel = LogPanel(theme)
    qtbot.addWidget(panel)
    panel.resize(400, 300)
    panel.show()
    for line in LINES:
        panel.take(line)
    return panel


def button(panel: LogPanel, text: str) -> QPushButton:
    return next(b for b in panel.findChildren(QPushButton) if b.text() == text)


def test_levels_and_text_filter_the_lines(panel: LogPanel, qtbot: QtBot) -> None:
    assert log_text(panel).splitlines() == [line.text for line in LINES[1:]], "debug lines are not shown at first"
    panel.level_choice.setFocus()
    qtbot.keyClick(panel.level_choice, Qt.Key.Key_Down)
    assert log_text(panel).splitlines() == [line.text for line in LINES[2:]]
    qtbot.keyClick(panel.level_choice, Qt.Key.Key_Home)
    qtbot.keyClicks(panel.filter_field, "LLAMA_")
    assert log_text(panel).splitlines() == [line.text for line in LINES[1:]]
    panel.take(LogLine("info", "nothing of it"))
    panel.take(LogLine("info", "llama_more"))
    assert log_text(panel).splitlines()[-1] == "llama_more"
    assert len(panel.lines) == 6


def test_a_panel_that_is_hidden_waits_for_nothing(panel: LogPanel) -> None:
    panel.hide()
    assert not [timer for timer in panel.findChildren(QTimer) if timer.isActive()]
    panel.take(LogLine("info", "meanwhile"))
    panel.show()
    assert panel._text.toPlainText().splitlines()[-1] == "meanwhile"


def test_what_is_shown_is_copied_and_saved(
    panel: LogPanel, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qtbot.keyClicks(panel.filter_field, "odd")
    shown = "warning: llama_kv_cache: something odd\n"
    qtbot.mouseClick(button(panel, "Copy"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == shown
    file = tmp_path / "log.txt"
    monkeypatch.setattr("kvdesk.ui.shell.log_panel.ask_where_to_save", lambda *_: file)
    qtbot.mouseClick(button(panel, "Save…"), Qt.MouseButton.LeftButton)
    assert file.read_text(encoding="utf-8") == shown
    panel.save(tmp_path)
    assert "It could not be saved: Is a directory." in [label.text() for label in panel.findChildren(type(panel._said))]
