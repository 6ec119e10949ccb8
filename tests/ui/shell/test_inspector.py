"""The pages of the inspector are those of one tuple."""

import pytest
from PySide6.QtWidgets import QLabel, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.protocol.features import Feature
from kvdesk.ui.shell import inspector
from kvdesk.ui.shell.inspector import PAGES, Inspector
from kvdesk.ui.widgets.kit import Kit, Page


def test_one_line_makes_a_page_with_its_tab(kit: Kit, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[QWidget] = []

    def make(kit: Kit) -> QWidget:
        made.append(QLabel(f"{len(kit.store.conversations)} conversations"))
        return made[-1]

    monkeypatch.setattr(inspector, "PAGES", (*PAGES, Page("Chats", None, make, late=True)))
    shown = Inspector(kit)
    qtbot.addWidget(shown)
    shown.show_all(True)
    assert made == [], "a late page is made when it is first shown"
    shown.show_tab("Chats")
    shown.show_tab("Cache")
    shown.show_tab("Chats")
    assert [page.isVisibleTo(shown) for page in made] == [True]
    assert "Chats" in [button.text() for button in shown.findChildren(QToolButton)]
    assert not shown.shows_cache


def test_pages_without_a_cache_need_none(kit: Kit, qtbot: QtBot) -> None:
    shown = Inspector(kit)
    qtbot.addWidget(shown)
    for page in PAGES:
        shown.show_tab(page.label)
        assert shown.shows_cache is (page.needs is Feature.CACHE_VIEW)
