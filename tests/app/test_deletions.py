"""Deleting with undo, and arranging: from keys in the list to the database."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.app.chat.deletions import UNDO_MS
from kvdesk.app.engines import Engines
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.message import ConversationId, MessageId, system_message
from kvdesk.policies.swap import Limits, Placement, StateKind
from kvdesk.protocol.cache import MessageSpan, UsePolicy
from kvdesk.protocol.chat import CloseConversation, DropMessages, ModelLoaded
from kvdesk.protocol.messages import Command
from kvdesk.settings import CachePolicy
from tests.app.conftest import Rig
from tests.app.test_controller import answer, conversations, say, stored
from tests.app.whole import App
from tests.backends.scripted import ScriptedBackend


def listed(rig: Rig) -> list[str]:
    model = rig.window.conversations.view.model()
    return [str(model.index(row, 0).data()) for row in range(model.rowCount())]


def two_chats(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, say(rig, "Where do puffins live?"), "On cliffs.")
    rig.window.commands.new_chat()
    answer(rig, qtbot, say(rig, "What is a cache?"), "A store.")


def delete_shown(rig: Rig, qtbot: QtBot) -> None:
    view = rig.window.conversations.view
    rig.window.resize(1280, 800)
    with qtbot.waitActive(rig.window):
        rig.window.show()
        rig.window.activateWindow()
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Delete)


def test_a_chat_that_was_deleted_comes_back_with_ctrl_z(rig: Rig, qtbot: QtBot) -> None:
    two_chats(rig, qtbot)
    gone = rig.controller.selected
    assert gone is not None
    delete_shown(rig, qtbot)
    assert listed(rig) == ["Where do puffins live?"]
    assert rig.window.conversations.undo.text == "Deleted: “What is a cache?”"
    assert rig.controller.selected != gone
    assert [m.text for m in stored(rig, gone)] == ["What is a cache?", "A store."], "a crash would lose nothing"
    assert CloseConversation(gone) not in rig.worker.commands
    qtbot.keyClick(rig.window.conversations.view, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert rig.controller.selected == gone
    assert listed(rig) == ["What is a cache?", "Where do puffins live?"]
    assert [widget.message.text for widget in rig.window.chat.view.widgets] == ["What is a cache?", "A store."]
    assert rig.window.conversations.undo.text == ""
    rig.controller.deletions.finish()
    assert len(conversations(rig)) == 2


def test_after_some_seconds_it_is_gone_for_good(rig: Rig, qtbot: QtBot) -> None:
    two_chats(rig, qtbot)
    gone = rig.controller.selected
    assert gone is not None
    ending = rig.controller.deletions._ending
    assert (ending.interval(), ending.isActive()) == (UNDO_MS, False)
    ending.setInterval(0)
    delete_shown(rig, qtbot)
    qtbot.waitUntil(lambda: CloseConversation(gone) in rig.worker.commands)
    assert rig.window.conversations.undo.text == ""
    assert stored(rig, gone) == ()
    rig.window.commands.undo_delete()
    assert listed(rig) == ["Where do puffins live?"]


def test_closing_kvdesk_ends_the_time_for_undo(make_rig: Callable[..., Rig], qtbot: QtBot, tmp_path: Path) -> None:
    rig = make_rig()
    two_chats(rig, qtbot)
    gone = rig.controller.selected
    assert gone is not None
    delete_shown(rig, qtbot)
    rig.controller.shut_down()
    assert CloseConversation(gone) in rig.worker.commands
    files = [file for file in tmp_path.iterdir() if file.name.startswith("chats.sqlite3")]
    assert files
    assert not any(b"What is a cache" in file.read_bytes() for file in files), "nothing of it is on the disk"
    again = make_rig()
    assert listed(again) == ["Where do puffins live?"]
    assert stored(again, gone) == ()


def test_folder_pin_and_archive_are_stored(make_rig: Callable[..., Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    two_chats(rig, qtbot)
    cache, puffins = (known.id for known in conversations(rig))
    names = rig.window.commands
    names.conversations.arrangement.pin(puffins, pinned=True)
    names.move(cache, "Work")
    assert listed(rig) == ["Where do puffins live?", "Work", "What is a cache?"]
    names.conversations.arrangement.rename_folder("Work", "Job")
    names.archive(cache, archived=True)
    assert rig.controller.selected == puffins, "the chat that was put away is not shown any more"
    rig.controller.shut_down()
    again = make_rig()
    assert listed(again) == ["Where do puffins live?"]
    assert again.controller.selected == puffins
    again.window.commands.archive(cache, archived=False)
    assert listed(again) == ["Where do puffins live?", "Job", "What is a cache?"]


def test_the_chat_that_was_read_last_is_shown_at_the_next_start(make_rig: Callable[..., Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    two_chats(rig, qtbot)
    newest, oldest = (known.id for known in conversations(rig))
    written = rig.controller.selected
    read = oldest if written == newest else newest
    rig.window.commands.select(read)
    rig.window.close()
    again = make_rig(settings=rig.controller.settings)
    assert again.controller.selected == read
    again.window.close()
    gone = rig.controller.settings.model_copy(update={"chat": "of another home"})
    assert make_rig(settings=gone).controller.selected in (newest, oldest)


def test_a_move_that_is_not_seen_is_said(rig: Rig, qtbot: QtBot) -> None:
    two_chats(rig, qtbot)
    names, said, cache = rig.window.commands, rig.window.activity, rig.controller.selected
    assert cache is not None
    names.move(cache, "Work")
    assert said.text == "", "one sees it go"
    names.conversations.arrangement.pin(cache, pinned=True)
    names.move(cache, "Home")
    rig.window.store.settings.change(collapsed_folders=("Home",))
    other = next(known.id for known in conversations(rig) if known.id != cache)
    names.move(other, "Home")
    assert said.text == "“Where do puffins live?” is in the folder “Home” now."
    assert listed(rig) == ["Home"], "a pinned chat stays in its folder"


# --- saved states -----------------------------------------------------------------------------------------------------


def save_states(**chats: tuple[MessageId, ...]) -> None:
    """A state on disk for each chat, computed from these messages."""
    kind = StateKind("model", "engine", "f16", "f16", flash_attn=True, rope=(1.0, 1.0))
    with closing(SavedStateStore(paths.states_dir(), kind, Limits(0, 1 << 30))) as saved:
        for name, messages in chats.items():
            spans = tuple(MessageSpan(message, 10 * i, 10 * i + 10, 10 * i, ()) for i, message in enumerate(messages))
            saved.put(Placement("disk", (), (), ""), ConversationId(name), range(100), bytes(100), 1.0, spans=spans)


def saved_chats() -> list[str]:
    """The chats with a state in the folder, which holds nothing else."""
    rows = json.loads((paths.states_dir() / "index.json").read_bytes())
    files = [file.stem for file in paths.states_dir().glob("*.kvstate")]
    assert sorted(row["key"] for row in rows) == sorted(files)
    return [row["conversation"] for row in rows]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))


@pytest.mark.usefixtures("home")
def test_saved_states_that_a_killed_kvdesk_left_are_removed_at_the_start(qtbot: QtBot) -> None:
    """The database had deleted a chat, and messages of another, when it was killed; the engine had not heard of it."""
    app = App(qtbot, ScriptedBackend, until=ModelLoaded)
    app.ask("What is the sea?")
    whole = app.controller.selected
    assert whole is not None
    asked = tuple(message.id for message in app.controller.conversations.branch(whole))
    app.window.commands.new_chat()
    app.ask("And a lake?")
    part = app.controller.selected
    assert part is not None
    app.window.close()
    save_states(**{whole: (system_message(whole), *asked), part: (MessageId("deleted"),), "deleted": asked})
    assert len(saved_chats()) == 3
    again = App(qtbot, ScriptedBackend, until=ModelLoaded)
    assert saved_chats() == [whole]
    again.window.close()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", [CloseConversation, lambda chat: DropMessages(chat, (MessageId("q"),))])
def test_saved_states_are_removed_without_an_engine(command: Callable[[ConversationId], Command]) -> None:
    save_states(one=(MessageId("q"),), two=(MessageId("r"),))
    switch = Engines(lambda: True, lambda _: "").make(lambda _: None)
    switch.handle(UsePolicy(CachePolicy(), paths.states_dir()))
    switch.handle(command(ConversationId("one")))
    assert saved_chats() == ["two"]
