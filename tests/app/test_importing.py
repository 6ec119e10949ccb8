"""Import in the window: what a file has is told first; then all of it is there, or none."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.conversations.porting import formats, reader_process
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.store import addition
from kvdesk.store.store import Store
from kvdesk.ui.chat_list.import_dialog import ImportDialog
from tests.app.conftest import Rig
from tests.conversations.porting.samples import chatgpt_conversation, lm_studio_conversation, written
from tests.ui.drops import drop


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "conversations.json", [chatgpt_conversation()])


def opened(rig: Rig, qtbot: QtBot, path: Path) -> ImportDialog:
    """The dialog, once the file is read or refused."""
    rig.window.commands.import_chats(path)
    dialog = rig.controller.imports.dialog
    assert dialog is not None
    qtbot.waitUntil(lambda: bool(dialog.facts) or dialog.close_button.text() == "Close", timeout=20_000)
    return dialog


def titles(rig: Rig) -> list[str]:
    return [known.title for known in rig.controller.conversations.conversations if known.leaf is not None]


def stored_titles(rig: Rig) -> list[str]:
    return [known.title for known in rig.store.ask(Store.conversations).result()]


def test_a_file_is_told_of_and_then_imported(rig: Rig, qtbot: QtBot, file: Path) -> None:
    dialog = opened(rig, qtbot, file)
    assert dialog.facts["Chats"] == "1"
    assert dialog.facts["Messages"] == "3"
    assert dialog.facts["Branches"] == "2"
    assert dialog.facts["Left out"].startswith("pictures: 1")
    assert "unverified" in dialog.facts["Format"]
    assert titles(rig) == []
    assert dialog.import_button.text() == "Import one chat"
    dialog.import_button.click()
    qtbot.waitUntil(lambda: titles(rig) == ["Tides"])
    assert stored_titles(rig) == ["Tides"]
    assert dialog.isHidden()
    assert rig.window.activity.text == "One chat was imported."
    qtbot.waitUntil(lambda: len(rig.window.chat.view.widgets) == 2)
    shown = rig.window.chat.view.widgets[0].message
    assert shown.text.endswith("Why are there tides?")


def test_the_same_file_again_is_noticed(rig: Rig, qtbot: QtBot, file: Path) -> None:
    opened(rig, qtbot, file).import_button.click()
    qtbot.waitUntil(lambda: titles(rig) == ["Tides"])
    dialog = opened(rig, qtbot, file)
    assert dialog.facts["Chats"] == "1, 1 of them here already"
    assert not dialog.import_button.isEnabled()
    assert dialog.import_button.text() == "Nothing to import"
    dialog.copies.setChecked(True)
    assert dialog.import_button.text() == "Import one chat"
    dialog.import_button.click()
    qtbot.waitUntil(lambda: titles(rig) == ["Tides", "Tides"])
    assert stored_titles(rig) == ["Tides", "Tides"]


def test_a_file_that_is_refused_says_why(rig: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"mapping": {}}, 7]', "utf-8")
    dialog = opened(rig, qtbot, path)
    assert dialog._sentence.text().startswith("This file is no export that kvdesk knows")
    assert dialog.import_button.isHidden()
    dialog.close_button.click()
    assert stored_titles(rig) == []


def never_ends(_path: Path) -> list[str]:
    return [sys.executable, "-c", "import time; time.sleep(99)"]


def test_reading_can_be_cancelled_and_begun_again(
    rig: Rig, qtbot: QtBot, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = rig.controller.imports
    with monkeypatch.context() as patch:
        patch.setattr(reader_process, "reader_command", never_ends)
        rig.window.commands.import_chats(file)
        first = imports.dialog
        rig.window.commands.import_chats(file)
        assert imports.dialog is first, "one at a time"
        first.close_button.click()
        assert first.isHidden()
        imports._background.wait()
    assert opened(rig, qtbot, file).facts


def test_saving_can_be_cancelled(rig: Rig, qtbot: QtBot, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addition, "PIECE", 1)
    dialog = opened(rig, qtbot, file)
    run = rig.controller.imports._run
    run.cancelled.set()
    dialog.import_button.click()
    dialog.close_button.click()
    rig.controller.imports._background.wait()
    assert stored_titles(rig) == []
    assert rig.store.ask(Store.leftover).result() is None
    assert titles(rig) == []


def test_a_cancel_that_came_too_late_leaves_the_next_import_alone(rig: Rig, qtbot: QtBot, file: Path) -> None:
    first, imports = opened(rig, qtbot, file), rig.controller.imports
    first.import_button.click()
    imports._background._join(None)  # it is stored, and nobody was told
    first.close_button.click()
    rig.window.commands.import_chats(file)
    second = imports.dialog
    qtbot.waitUntil(lambda: titles(rig) == ["Tides"])
    assert second.isVisible()
    qtbot.waitUntil(lambda: bool(second.facts), timeout=20_000)
    second.close_button.click()


def test_a_full_disk_imports_nothing(rig: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    chat = lm_studio_conversation()
    chat["messages"][0]["versions"][0]["content"][0]["text"] = "long " * 50_000
    dialog = opened(rig, qtbot, written(tmp_path / "1.conversation.json", chat))
    rig.store.ask(lambda store: store._connection.pragma("max_page_count", 1)).result()
    dialog.import_button.click()
    qtbot.waitUntil(lambda: dialog.close_button.text() == "Close")
    assert dialog._sentence.text() == "The disk is full: the conversation cannot be saved."
    assert stored_titles(rig) == []
    assert titles(rig) == []


def test_closing_the_window_ends_an_import(rig: Rig, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "reader_command", never_ends)
    rig.window.commands.import_chats(file)
    rig.controller.shut_down()
    assert not any(thread.is_alive() for thread in rig.controller.imports._background._threads)


def test_what_a_crash_left_is_removed_after_the_start(
    make_rig: Callable[..., Rig], qtbot: QtBot, tmp_path: Path
) -> None:
    left = Store(tmp_path / "chats.sqlite3")
    messages = (Message(MessageId("m"), ConversationId("c"), None, "user", "Hi"),)
    left.begin_addition([Conversation(ConversationId("c"), "Half", 0, messages[0].id, messages=messages)]).step()
    left.close()
    rig = make_rig()
    assert titles(rig) == []
    qtbot.waitUntil(lambda: rig.store.ask(Store.leftover).result() is None)
    assert stored_titles(rig) == []


def _dropped(rig: Rig, file: Path) -> list[str]:
    asked: list[str] = []
    rig.controller.imports.start = lambda *paths: asked.extend(path.name for path in paths)  # type: ignore[method-assign]
    assert drop(rig.window, file) == bool(asked)
    return asked


def test_files_of_chats_may_be_dropped_on_the_window(rig: Rig, file: Path, tmp_path: Path) -> None:
    assert _dropped(rig, file) == ["conversations.json"]
    assert _dropped(rig, written(tmp_path / "1.conversation.json", lm_studio_conversation())) == ["1.conversation.json"]
    other = written(tmp_path / "package.json", {"name": "x", "scripts": {}})
    assert _dropped(rig, other) == []
    assert _dropped(rig, tmp_path) == [tmp_path.name]
    (tmp_path / "empty").mkdir()
    assert _dropped(rig, tmp_path / "empty") == []


def test_all_chats_are_exported_and_come_back(rig: Rig, qtbot: QtBot, file: Path, tmp_path: Path) -> None:
    opened(rig, qtbot, file).import_button.click()
    qtbot.waitUntil(lambda: titles(rig) == ["Tides"])
    ids = tuple(known.id for known in rig.controller.conversations.conversations if known.leaf is not None)
    rig.window.commands.export(tmp_path / "all.json", ids)
    qtbot.waitUntil(lambda: rig.window.activity.text == f"The chat was saved to {tmp_path / 'all.json'}.")
    assert "Show" in [
        button.text() for button in rig.window.activity.findChildren(QPushButton) if not button.isHidden()
    ]
    [found] = formats.read(tmp_path / "all.json")
    assert found.conversation.messages == rig.controller.conversations.all_messages(ids[0])
