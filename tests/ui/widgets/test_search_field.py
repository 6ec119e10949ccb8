from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.session import SettingsStore
from kvdesk.settings import Settings
from kvdesk.ui.settings.panel import SettingsPanel
from kvdesk.ui.widgets.theme import Theme


def test_escape_clears_the_words_before_it_closes_the_dialog(theme: Theme, qtbot: QtBot) -> None:
    panel = SettingsPanel(theme, SettingsStore(Settings()))
    qtbot.addWidget(panel)
    panel.show()
    qtbot.keyClicks(panel.search, "temp")
    qtbot.keyClick(panel.search, Qt.Key.Key_Escape)
    assert panel.search.text() == ""
    assert panel.isVisible()
    qtbot.keyClick(panel.search, Qt.Key.Key_Escape)
    assert not panel.isVisible()
