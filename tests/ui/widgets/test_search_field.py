from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.ui.shell.main_window import MainWindow


def test_escape_clears_the_words_before_it_leaves_the_page(window: MainWindow, qtbot: QtBot) -> None:
    page = window.rooms.show_settings()
    page.search.setFocus()
    qtbot.keyClicks(page.search, "temp")
    qtbot.keyClick(page.search, Qt.Key.Key_Escape)
    assert page.search.text() == ""
    assert window.rooms.shown == "settings"
    qtbot.keyClick(page.search, Qt.Key.Key_Escape)
    assert window.rooms.shows_chats
