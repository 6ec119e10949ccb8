"""Operations by hand reach the worker; forks become conversations; journals become files."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.cache.journal.file import load_journal
from kvdesk.message import MessageId
from kvdesk.protocol.cache import CacheView, ContextReady, Lease, TakeRecording, VerifyConversation
from kvdesk.protocol.chat import BackendReady, LoadModel
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import Capability, CopySequence, Operate, RemoveRange
from tests.app.conftest import Rig
from tests.app.test_controller import answer, say, stored
from tests.cache.journals import FACTS, Player
from tests.ui.samples import CONTEXT, cache_view


def test_commands_are_sent_as_they_are(rig: Rig) -> None:
    assert rig.controller.selected is not None
    verify = VerifyConversation(rig.controller.selected)
    commands: list[Command] = [Operate(RemoveRange(0, 4, -1)), verify, TakeRecording()]
    for command in commands:
        rig.window.commands.submit(command)
    assert rig.worker.commands[-3:] == commands
    rig.window.commands.cancel_work()
    assert rig.worker.cancelled == 1


def test_a_fork_has_the_messages_up_to_one_and_shares_its_cells(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "One")
    answer(rig, qtbot, asked, "First")
    answer(rig, qtbot, say(rig, "Two"), "Second")
    rig.window.commands.watch(True)  # who does not look gets no views
    leases = Lease(asked.conversation, 3), Lease(asked.conversation, 1, inactive=True)
    view = CacheView(cache_view().snapshot, leases)
    rig.worker.give(view)
    qtbot.waitUntil(lambda: rig.window.store.sequences == {asked.conversation: 3})
    first_answer = rig.window.chat.view.widgets[1].message.id
    rig.window.commands.fork(asked.conversation, first_answer, -1, 20)
    fork = rig.controller.selected
    assert fork is not None
    assert fork != asked.conversation
    assert rig.worker.commands[-1] == Operate(CopySequence(3, fork, -1, 20))
    copies = stored(rig, fork)
    assert [(m.text, m.tokens) for m in copies] == [("One", ()), ("First", (1, 2, 3))]
    assert len(stored(rig, asked.conversation)) == 4, "the old one is as it was"
    assert [m.text for m in say(rig, "Else").messages] == ["One", "First", "Else"]


def test_a_fork_of_what_is_not_in_the_cache_is_text_only(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "One")
    answer(rig, qtbot, asked, "First")
    before = len(rig.worker.commands)
    rig.window.commands.fork(asked.conversation, None)
    assert not any(isinstance(c, Operate) for c in rig.worker.commands[before:])
    assert [m.text for m in stored(rig, rig.controller.selected)] == ["One", "First"]  # type: ignore[arg-type]


@pytest.mark.parametrize("why", ["its place is not known", "the model cannot", "the engine has no cells"])
def test_a_fork_without_a_copy_of_cells_has_its_texts(rig: Rig, qtbot: QtBot, why: str) -> None:
    asked = say(rig, "One")
    answer(rig, qtbot, asked, "First")
    rig.window.commands.watch(True)
    rig.worker.give(CacheView(cache_view().snapshot, (Lease(asked.conversation, 3),)))
    qtbot.waitUntil(lambda: rig.window.store.sequences == {asked.conversation: 3})
    if why == "the model cannot":
        cannot = Capability("partial seq_cp", "no", "Its state cannot be cut.")
        rig.window.store.apply(ContextReady(CONTEXT, rebuilt=False, possible=(cannot,)))
        rig.window.store.apply(CacheView(cache_view().snapshot, (Lease(asked.conversation, 3),)))
    if why == "the engine has no cells":
        rig.window.store.apply(BackendReady(frozenset({Feature.CHAT})))
    before, first = len(rig.worker.commands), rig.window.chat.view.widgets[0].message.id
    rig.window.commands.fork(asked.conversation, first, -1, -1 if why == "its place is not known" else 12)
    assert not any(isinstance(c, Operate) for c in rig.worker.commands[before:])
    assert [m.text for m in stored(rig, rig.controller.selected)] == ["One"]  # type: ignore[arg-type]


def test_a_journal_is_saved_and_said(rig: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    player = Player(FACTS[0], unified=True, swa_full=True, n_seq_max=2, seed=1)
    player.play(20)
    file = tmp_path / "journal.jsonl"
    rig.window.show()
    rig.window.commands.save_recording(file, player.journal.recording())
    qtbot.waitUntil(lambda: "20 operations were saved" in rig.window.activity.text)
    _, recording = load_journal(file)
    assert recording.last == player.journal.recording().last
    rig.window.commands.save_recording(tmp_path / "no" / "such" / "x", player.journal.recording())
    qtbot.waitUntil(lambda: "could not be saved" in rig.window.activity.text)


def test_the_embedded_model_is_one_click_away(rig: Rig) -> None:
    rig.marker.embedded = Path("/embedded.gguf")
    rig.window.commands.open_embedded()
    command = rig.worker.commands[-1]
    assert isinstance(command, LoadModel)
    assert command.source == LocalFile(Path("/embedded.gguf"))


def test_an_unknown_message_is_not_edited(rig: Rig) -> None:
    asked = say(rig, "One")
    before = len(rig.worker.commands)
    rig.window.commands.conversations.turns.edit(asked.conversation, MessageId("nobody"), "Two")
    assert not any(isinstance(c, Operate) for c in rig.worker.commands[before:])
