from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLineEdit, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.protocol.chat import Working
from kvdesk.session import Commands, Store
from kvdesk.ui.shell import activity_strip
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.seen import stays


@pytest.fixture
def strip(theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[ActivityStrip]:
    monkeypatch.setattr(activity_strip, "READ_MS", 20)
    monkeypatch.setattr(activity_strip, "READ_MS_PER_CHARACTER", 1)
    monkeypatch.setattr(ActivityStrip, "underMouse", lambda _self: False)
    window = QWidget()
    qtbot.addWidget(window)
    column, strip = QVBoxLayout(window), ActivityStrip(theme, Store(), Commands())
    column.addWidget(QLineEdit())  # it has the keyboard
    column.addWidget(strip)
    window.show()
    yield strip
    window.close()


def test_a_notice_goes_by_itself(strip: ActivityStrip, qtbot: QtBot) -> None:
    strip.show_result("The chat was saved to caches.md.", "good")
    assert strip.text == "The chat was saved to caches.md."
    qtbot.waitUntil(lambda: strip.text == "")
    assert strip.isHidden()


def test_an_error_stays_also_when_it_follows_a_notice(strip: ActivityStrip, qtbot: QtBot) -> None:
    strip.show_result("Saved.", "good")
    strip.show_result("The disk is full.", "danger")
    assert strip.sentences == ("Saved.", "The disk is full."), "both can be read"
    qtbot.waitUntil(lambda: strip.sentences == ("The disk is full.",))
    assert stays(strip)
    strip.dismiss()
    assert strip.isHidden()


def test_a_notice_stays_under_the_pointer(strip: ActivityStrip, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = [True]
    monkeypatch.setattr(ActivityStrip, "underMouse", lambda _self: is_over[0])
    strip.show_result("Saved.", "good")
    qtbot.wait(60)
    assert strip.text == "Saved."
    is_over[0] = False
    qtbot.waitUntil(lambda: strip.text == "")


def test_more_than_three_wait_behind_the_newest(strip: ActivityStrip) -> None:
    for n in range(5):
        strip.show_result(f"File {n} could not be read.", "warning")
    assert strip.sentences == tuple(f"File {n} could not be read." for n in (2, 3, 4))
    strip.dismiss()
    assert strip.sentences == tuple(f"File {n} could not be read." for n in (1, 2, 3)), "it has not been read yet"
    strip.show_result("File 1 could not be read.", "warning")
    assert strip.sentences[-1] == "File 1 could not be read.", "the same sentence once only"
    assert len(strip.sentences) == 3


def test_what_takes_long_is_shown_over_results_and_ends_with_the_next(strip: ActivityStrip) -> None:
    strip.show_result("The disk is full.", "danger")
    strip.show_working(Working("Verifying", 32, 320))
    assert strip.sentences == ("Verifying: 32 of 320 tokens", "The disk is full.")
    strip.show_result("“caches” is exact.", "good")
    assert strip.sentences == ("The disk is full.", "“caches” is exact.")


@pytest.mark.usefixtures("styled")
def test_a_notice_moves_nothing(window: MainWindow, qtbot: QtBot) -> None:
    """It floats over the inspector, or without that over the messages, never over the message box."""
    places = window.inspector.size(), window.chat.view.size(), window.inspector.cell_map.size()
    window.store.notify(
        "The file “a.pdf” has no text that could be read; it may be a scan of a printed page.", "warning"
    )
    strip, inspector = window.activity, window.inspector
    assert (inspector.size(), window.chat.view.size(), inspector.cell_map.size()) == places
    centre = cast("QWidget", window.centralWidget())

    def inside(area: QWidget) -> bool:
        return area.rect().translated(area.mapTo(centre, QPoint())).contains(strip.geometry())

    assert inside(inspector)
    assert strip.height() >= strip.sizeHint().height(), "all of the sentence can be read"
    inspector.hide()
    qtbot.waitUntil(lambda: inside(window.chat.messages))
    assert strip.geometry().bottom() < window.chat.composer.mapTo(centre, QPoint()).y()
    window.rooms.show_room("lab")
    assert inside(window.rooms)
    window.rooms.show_chats()
    window.action_set.run("chat.escape")
    assert strip.isHidden(), "Esc dismisses it when there is nothing else to leave"


def test_the_folder_of_what_was_saved_is_shown(
    strip: ActivityStrip, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    strip.show_result("The chat was saved.", "good", str(tmp_path / "caches.md"))
    strip.show_result("Nothing was saved.", "warning")
    shown, hidden = [button for button in strip.findChildren(QPushButton) if button.text() == "Show"]
    assert hidden.isHidden()
    qtbot.mouseClick(shown, Qt.MouseButton.LeftButton)
    assert [Path(folder) for folder in opened] == [tmp_path]
