"""Where chats are saved: one as Markdown, several as JSON, unless another format is chosen."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.message import ConversationId
from kvdesk.session import Store
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.recording import Recorder, record

HTML = "HTML, the branch that is shown (*.html)"


@pytest.fixture
def window(qapp: QApplication, qtbot: QtBot) -> MainWindow:
    window = MainWindow(qapp, Store(), Recorder())
    qtbot.addWidget(window)
    chats = [Conversation(ConversationId(name), f"Chat {name}/", 0) for name in "ab"]
    window.store.show_conversations(chats, chats[0].id)
    return window


@pytest.mark.parametrize(
    ("action", "proposed", "chosen", "kind", "saved", "ids"),
    [
        ("chat.export", "Chat a_.md", "x", "Markdown, the branch that is shown (*.md)", "x.md", ("a",)),
        ("chat.export", "Chat a_.md", "x.json", "Markdown, the branch that is shown (*.md)", "x.json", ("a",)),
        ("chat.export_all", "kvdesk chats.json", "y", HTML, "y.html", ("a", "b")),
        ("chat.export_all", "kvdesk chats.json", "", "", "", ()),
    ],
)
def test_export_asks_where(
    window: MainWindow,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    action: str,
    proposed: str,
    chosen: str,
    kind: str,
    saved: str,
    ids: tuple[str, ...],
) -> None:
    asked: list[str] = []

    def choose(_parent: object, _title: str, name: str, kinds: str) -> tuple[str, str]:
        asked.append(Path(name).name)
        assert "(*.json)" in kinds
        return (str(tmp_path / chosen) if chosen else "", kind)

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    told = record(window.commands.export)
    window.action_set.run(action)
    assert asked == [proposed]
    assert told == ([(tmp_path / saved, ids)] if saved else [])


def test_a_folder_is_exported_from_its_menu(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    chats = [Conversation(ConversationId(name), name, 0, folder="Sea" if name != "b" else "") for name in "abc"]
    window.store.show_conversations(chats, chats[0].id)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("x.json", ""))
    told = record(window.commands.export)
    menu = window.conversations.menu(window.conversations.view.model().index(0, 0))
    next(action for action in menu.actions() if action.text().startswith("Export")).trigger()
    assert told == [(Path("x.json"), ("a", "c"))]


def test_import_asks_for_files(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: (["/x/a.json", "/x/b.json"], ""))
    told = record(window.commands.import_chats)
    window.action_set.run("chat.import")
    assert told == [(Path("/x/a.json"), Path("/x/b.json"))]


def test_the_name_of_a_file_is_cut_at_whole_signs(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    vowel = "\u0ba8\u0bbf"
    long = Conversation(ConversationId("long"), "x" + vowel * 60, 0)
    window.store.show_conversations([long], long.id)
    asked: list[str] = []

    def choose(_parent: object, _title: str, name: str, _kinds: str) -> tuple[str, str]:
        asked.append(Path(name).name)
        return "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    window.action_set.run("chat.export")
    assert asked == ["x" + vowel * 39 + ".md"]
