from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from kvdesk.ui.shell import activity_strip
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.widgets.theme import Theme


@pytest.fixture
def strip(theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> ActivityStrip:
    monkeypatch.setattr(activity_strip, "READ_MS", 20)
    monkeypatch.setattr(activity_strip, "READ_MS_PER_CHARACTER", 1)
    monkeypatch.setattr(ActivityStrip, "underMouse", lambda _self: False)
    strip = ActivityStrip(theme)
    qtbot.addWidget(strip)
    return strip


def test_a_notice_goes_by_itself(strip: ActivityStrip, qtbot: QtBot) -> None:
    strip.show_result("The chat was saved to caches.md.", "good")
    assert strip.text == "The chat was saved to caches.md."
    qtbot.waitUntil(lambda: strip.text == "")


def test_an_error_stays_also_when_it_follows_a_notice(strip: ActivityStrip, qtbot: QtBot) -> None:
    strip.show_result("Saved.", "good")
    strip.show_result("The disk is full.", "danger")
    qtbot.wait(60)
    assert strip.text == "The disk is full."


def test_a_notice_stays_under_the_pointer(strip: ActivityStrip, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = [True]
    monkeypatch.setattr(ActivityStrip, "underMouse", lambda _self: is_over[0])
    strip.show_result("Saved.", "good")
    qtbot.wait(60)
    assert strip.text == "Saved."
    is_over[0] = False
    qtbot.waitUntil(lambda: strip.text == "")


def test_the_folder_of_what_was_saved_is_shown(
    strip: ActivityStrip, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    strip.show_result("The chat was saved.", "good", str(tmp_path / "caches.md"))
    qtbot.mouseClick(strip.show_button, Qt.MouseButton.LeftButton)
    assert [Path(folder) for folder in opened] == [tmp_path]
    strip.show_result("Nothing was saved.", "warning")
    assert strip.show_button.isHidden()
