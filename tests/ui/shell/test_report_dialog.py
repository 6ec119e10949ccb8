"""The dialog before a report is written: what it says, and what is ticked at first."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.session.commands import ReportChoice
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.recording import record


def test_it_says_what_is_in_it_and_asks_where(
    window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = record(window.commands.report_problem)
    window.action_set.run("help.report")
    dialog = window.help.report
    assert dialog.choice == ReportChoice(logs=True, journal=True, texts=False, folders=False)
    qtbot.mouseClick(
        dialog._boxes["folders"], Qt.MouseButton.LeftButton, pos=dialog._boxes["folders"].rect().center() / 4
    )
    target = "kvdesk.ui.shell.report_dialog.ask_where_to_save"
    monkeypatch.setattr(target, lambda *_: None)
    qtbot.mouseClick(dialog.save_button, Qt.MouseButton.LeftButton)
    assert asked == []
    monkeypatch.setattr(target, lambda *_: tmp_path / "r.zip")
    qtbot.mouseClick(dialog.save_button, Qt.MouseButton.LeftButton)
    assert asked == [(tmp_path / "r.zip", ReportChoice(folders=True))]
