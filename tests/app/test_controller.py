"""Intents of the window become commands and rows; events become messages. On a scripted worker and a real store."""

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.chat import Conversation
from kvdesk.conversations.tree import Tree
from kvdesk.message import ConversationId, Message, MessageId, TurnStats
from kvdesk.protocol.cache import AuditCache, ContextInfo, ContextReady, Forget, RebuildContext
from kvdesk.protocol.chat import Generate, LoadModel, ModelLoaded, ModelLoading, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.messages import CommandFailed, SubscriptionDropped
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings
from kvdesk.store.settings_file import load_settings
from kvdesk.store.store import Store
from kvdesk.ui.widgets.controls import ElidedButton
from kvdesk.values import replace
from tests.app.conftest import Rig, over_both
from tests.ui.samples import MODEL

CONTEXT = ContextInfo(4096, 4096, 8, 512, 32, 1, "f16", "f16", True, True, 1 << 20, 1 << 20)
STATS = TurnStats(10, 4, 6, 2, 120.0, 50.0, 20.0, 0, 12, 12, 256)


def say(rig: Rig, text: str) -> Generate:
    """Send as a person does; returns what the worker was asked."""
    assert rig.controller.selected is not None
    rig.window.commands.conversations.send(rig.controller.selected, text)
    return rig.worker.asked[-1]


def answer(rig: Rig, qtbot: QtBot, asked: Generate, text: str, state: str = "complete") -> None:
    """The worker answers."""
    rig.worker.give(
        TextDelta(asked.conversation, asked.answer, text[:3], (1, 2)),
        TextDelta(asked.conversation, asked.answer, text[3:], (3,)),
        TurnEnded(asked.conversation, asked.answer, state, STATS),  # type: ignore[arg-type]
    )
    qtbot.waitUntil(lambda: rig.controller.conversations.answer_of(asked.conversation) is None)


def stored(rig: Rig, conversation: ConversationId) -> tuple[Message, ...]:
    """The branch that the database says is shown."""
    leaf = next((c.leaf for c in conversations(rig) if c.id == conversation), None)
    return tuple(Tree(rig.store.ask(lambda store: store.all_messages(conversation)).result()).branch(leaf))


def conversations(rig: Rig) -> tuple[Conversation, ...]:
    return rig.store.ask(Store.conversations).result()


@over_both
def test_a_window_that_was_dropped_has_the_whole_answer_all_the_same(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Go")
    where, name = asked.conversation, asked.answer
    rig.worker.give(TextDelta(where, name, "half ", (5,)))
    qtbot.waitUntil(lambda: rig.controller.conversations.branch(where)[-1].text == "half ")
    rig.worker.give(
        SubscriptionDropped("It was too slow."),
        TurnStarted(where, name, 0, 4, 0),
        TextDelta(where, name, "half of it", (5, 6, 7)),
        TextDelta(where, name, " and more", (8,)),
    )
    qtbot.waitUntil(lambda: rig.controller.conversations.branch(where)[-1].text == "half of it and more")
    assert rig.window.chat.view.widgets[-1].message.text == "half of it and more"
    assert rig.window.chat.banner.sentence == "It was too slow."
    rig.worker.give(TurnEnded(where, name, "complete", STATS))
    qtbot.waitUntil(lambda: rig.controller.conversations.answer_of(where) is None)
    assert stored(rig, where)[-1].tokens == (5, 6, 7, 8)


@over_both
def test_closing_in_mid_answer_marks_it_interrupted(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    asked = say(rig, "Go")
    rig.worker.give(TextDelta(asked.conversation, asked.answer, "half", (5,)))
    rig.window.close()
    assert not rig.worker.running
    again = make_rig()
    assert again.controller.selected == asked.conversation
    reply = stored(again, asked.conversation)[-1]
    assert (reply.text, reply.state) == ("half", "interrupted")


@over_both
def test_drafts_outlive_a_process_that_is_killed(make_rig: Callable[..., Rig], qtbot: QtBot) -> None:
    """What is typed is in the database a moment later; nothing is told when the process ends."""
    first = make_rig()
    answer(first, qtbot, say(first, "Hello"), "Hello to you.")
    first.window.chat.composer.set_text("half a")
    first.window.chat.composer.set_text("half a thought")
    first.window.commands.new_chat()
    first.window.chat.composer.set_text("of a new chat")
    old, new = "half a thought", "of a new chat"
    qtbot.waitUntil(lambda: {c.draft for c in conversations(first)} == {old, new})
    assert [c.title for c in conversations(first)] == ["", "Hello"]
    first.controller.shut_down()

    second = make_rig()
    assert second.window.chat.composer.text == new
    second.window.commands.select(conversations(second)[1].id)
    assert second.window.chat.composer.text == old


@over_both
def test_messages_that_are_being_edited_are_so_after_a_restart(make_rig: Callable[..., Rig], qtbot: QtBot) -> None:
    first = make_rig()
    for n in (1, 2):
        answer(first, qtbot, say(first, f"Question {n}"), f"Answer {n}")
    view = first.window.chat.view
    question, _, _, reply = (widget.message.id for widget in view.widgets)
    for name, text in ((question, "Question one"), (reply, "Answer two")):
        view.start_edit(name)
        view.widget_of(name).editor.edit.setPlainText(text)
    edits = {question: "Question one", reply: "Answer two"}
    qtbot.waitUntil(lambda: [dict(c.edits) for c in conversations(first)] == [edits])
    view.start_edit(view.widgets[1].message.id)
    view.widgets[1].editor.edit.setPlainText("Just typed")
    first.window.close()

    second = make_rig()
    qtbot.waitUntil(lambda: len(second.window.chat.view.widgets) == 4)
    second.window.chat.view.widgets[1].end_edit()
    assert second.window.chat.view.edits == edits
    assert second.controller.selected is not None
    second.window.commands.conversations.removals.delete(second.controller.selected, reply, with_pair=False)
    second.window.close()
    assert [dict(c.edits) for c in conversations(make_rig())] == [{question: "Question one"}]


@over_both
def test_a_draft_that_is_sent_or_emptied_is_kept_no_longer(rig: Rig, qtbot: QtBot) -> None:
    composer = rig.window.chat.composer
    composer.set_text("Hello")
    qtbot.waitUntil(lambda: [c.draft for c in conversations(rig)] == ["Hello"])
    composer.set_text("")
    qtbot.waitUntil(lambda: conversations(rig) == ())  # an empty chat without a draft is nothing to keep
    composer.set_text("Hello")
    qtbot.waitUntil(lambda: [c.draft for c in conversations(rig)] == ["Hello"])
    rig.window.store.apply(ModelLoaded(MODEL))
    composer.submit()
    assert [(c.title, c.draft) for c in conversations(rig)] == [("Hello", "")]


@over_both
def test_a_finishing_answer_leaves_the_list_as_it_is(rig: Rig, qtbot: QtBot) -> None:
    first = say(rig, "Hello")
    rig.window.commands.new_chat()
    second = say(rig, "And you?")
    for asked in (first, second):
        answer(rig, qtbot, asked, "Hello to you.")
        model = rig.window.conversations.view.model()
        assert [model.index(row, 0).data() for row in (0, 1)] == ["And you?", "Hello"]


@over_both
def test_two_conversations_have_two_colours_and_their_own_messages(rig: Rig, qtbot: QtBot) -> None:
    first = say(rig, "One")
    answer(rig, qtbot, first, "Answer one")
    rig.window.commands.new_chat()
    second = say(rig, "Two")
    assert second.conversation != first.conversation
    assert [m.text for m in second.messages] == ["Two"]
    a, b = conversations(rig)
    assert a.colour != b.colour
    rig.window.commands.new_chat()
    rig.window.commands.new_chat()  # an empty one is there already
    assert len(rig.controller.conversations) == 3


@over_both
def test_a_chat_is_exported_as_markdown(rig: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    rig.worker.give(ModelLoaded(replace(MODEL, name="Tiny")))
    qtbot.waitUntil(lambda: rig.controller.conversations.turns.model_name == "Tiny")
    asked = say(rig, "Where do puffins live?")
    answer(rig, qtbot, asked, "On **cliffs**.\nMostly.")
    file = tmp_path / "chat.md"
    rig.window.commands.export(file, (asked.conversation,))
    rig.controller.exports.wait()
    text = "# Where do puffins live?\n\n## You\n\nWhere do puffins live?\n\n## Tiny\n\nOn **cliffs**.\nMostly.\n"
    assert file.read_text(encoding="utf-8") == text
    rig.window.commands.export(tmp_path / "no" / "chat.md", (asked.conversation,))
    qtbot.waitUntil(lambda: "could not be written" in rig.window.activity.text)
    assert stored(rig, asked.conversation)[-1].model == "Tiny", "kept with the answer"


@over_both
def test_a_chat_that_was_not_opened_since_the_start_is_exported_whole(
    make_rig: Callable[..., Rig], qtbot: QtBot, tmp_path: Path
) -> None:
    rig = make_rig()
    asked = say(rig, "Where do puffins live?")
    answer(rig, qtbot, asked, "On cliffs.")
    rig.window.commands.new_chat()
    answer(rig, qtbot, say(rig, "Something else"), "Indeed.")
    rig.controller.shut_down()
    again = make_rig()
    assert again.controller.selected != asked.conversation
    again.window.commands.export(tmp_path / "chat.md", (asked.conversation,))
    again.controller.exports.wait()
    assert "On cliffs." in (tmp_path / "chat.md").read_text(encoding="utf-8")


def test_forget_rebuild_and_model_become_commands(rig: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    rig.worker.give(ContextReady(CONTEXT, rebuilt=False))
    qtbot.waitUntil(lambda: rig.controller._has_context)
    asked = say(rig, "Hi")
    rig.window.commands.submit(Forget(asked.conversation))
    rig.window.commands.rebuild(rig.controller.settings.context, "nothing")
    rig.window.commands.open_model(tmp_path / "a.gguf")
    assert rig.worker.commands[-3:] == [
        Forget(asked.conversation),
        RebuildContext(rig.controller.settings.context),
        LoadModel(LocalFile(tmp_path / "a.gguf"), rig.controller.settings.context),
    ]


def test_a_model_that_is_going_to_be_opened_is_named_at_once(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    """Before the back end says a word: "Open a model" would be what one is told to do."""
    rig = make_rig()
    rig.controller.open_model(tmp_path / "tiny.gguf")
    button = rig.window.chat.findChild(QPushButton, "modelButton")
    assert isinstance(button, ElidedButton)
    assert button.full_text == "Loading tiny…"
    assert not any(
        b.text() == "Open a model…" and b.isVisibleTo(rig.window) for b in rig.window.findChildren(QPushButton)
    )


def test_the_open_model_is_not_opened_again(ready: Rig, qtbot: QtBot) -> None:
    """That would lose its cells."""
    assert isinstance(MODEL.source, LocalFile)
    ready.worker.give(ContextReady(CONTEXT, rebuilt=False))
    qtbot.waitUntil(lambda: ready.controller._has_context)
    ready.window.rooms.show_models()
    before = len(ready.worker.commands)
    ready.window.commands.open_model(MODEL.source.path)
    assert not any(isinstance(command, LoadModel) for command in ready.worker.commands[before:])
    assert ready.window.chat.isVisible()
    ready.window.store.apply(ModelLoading(LocalFile(Path("/m/another.gguf")), 0.0))
    ready.window.commands.open_model(MODEL.source.path)
    assert isinstance(ready.worker.commands[-1], LoadModel), "another one is being loaded in its place"


def test_another_model_ends_the_load_of_the_first(rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[object] = []
    monkeypatch.setattr(rig.worker.host, "cancel", lambda: cancelled.append(rig.worker.commands[-1]))
    first, second = Path("/m/first.gguf"), Path("/m/second.gguf")
    rig.window.commands.open_model(first)
    assert cancelled == []
    rig.window.commands.open_model(second)
    assert cancelled == [LoadModel(LocalFile(first), rig.controller.settings.context)], "before the second is sent"
    assert rig.worker.commands[-1] == LoadModel(LocalFile(second), rig.controller.settings.context)
    with qtbot.waitSignal(rig.controller.event_applied):
        rig.worker.give(CommandFailed(cancelled[0], "Loading first was stopped."))  # type: ignore[arg-type]
    assert rig.marker.unfinished() == str(second), "the next start heeds an unfinished load"


def test_the_action_for_an_audit_reaches_the_engine(ready: Rig, qtbot: QtBot) -> None:
    """Actions are made with the window, before there is an engine."""
    ready.worker.give(ContextReady(CONTEXT, rebuilt=False))
    qtbot.waitUntil(lambda: ready.window.store.context is not None)
    ready.window.kit.actions.run("cache.audit")
    assert AuditCache() in ready.worker.commands


@over_both
def test_other_settings_do_not_rebuild(rig: Rig) -> None:
    before = len(rig.worker.commands)
    rig.window.store.settings.change(system_prompt="Be kind.")
    assert len(rig.worker.commands) == before
    assert load_settings(paths.settings_file())[0].system_prompt == "Be kind."


def test_a_context_is_kept_only_when_it_could_be_made(rig: Rig, qtbot: QtBot) -> None:
    rig.worker.give(ContextReady(CONTEXT, rebuilt=False))
    qtbot.waitUntil(lambda: rig.controller._has_context)
    small, huge = ContextSettings(n_ctx=2048), ContextSettings(n_ctx=1_000_000)
    rig.window.commands.rebuild(huge, "tokens")
    assert rig.worker.commands[-1] == RebuildContext(huge, "tokens")
    assert rig.window.store.rebuilding
    before = rig.controller.settings.context
    rig.worker.give(ContextReady(CONTEXT, rebuilt=True))  # that from before, made again
    rig.worker.give(CommandFailed(rig.worker.commands[-1], "It does not fit."))
    qtbot.waitUntil(lambda: rig.controller._wanted is None and rig.controller.settings.context == before)
    rig.window.commands.rebuild(small, "nothing")
    rig.worker.give(ContextReady(CONTEXT, rebuilt=True))
    qtbot.waitUntil(lambda: rig.controller.settings.context == small)
    assert load_settings(paths.settings_file())[0].context == small
    rig.worker.give(ContextReady(CONTEXT, rebuilt=True, back_to=before))
    qtbot.waitUntil(lambda: rig.controller.settings.context == before)


@over_both
def test_settings_load_the_model_again_when_there_is_no_context(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    rig = make_rig(model=model)
    small = ContextSettings(n_ctx=512)
    rig.window.commands.rebuild(small, "nothing")
    assert rig.worker.commands[-1] == LoadModel(LocalFile(model), small)


@over_both
def test_a_message_sent_before_the_chat_was_read_follows_it(make_rig: Callable[..., Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    asked = say(rig, "First")
    answer(rig, qtbot, asked, "Answer")
    rig.controller.shut_down()
    again = make_rig()
    again.window.commands.conversations.send(asked.conversation, "Second")  # the database has not answered yet
    qtbot.waitUntil(lambda: len(again.worker.asked) == 1)
    assert [m.text for m in again.worker.asked[0].messages] == ["First", "Answer", "Second"]


@over_both
def test_a_load_that_fails_is_not_marked_as_unfinished(rig: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    model = tmp_path / "broken.gguf"
    rig.window.commands.open_model(model)
    assert rig.marker.unfinished() == str(model)
    command = rig.worker.commands[-1]
    rig.worker.give(CommandFailed(command, "It is broken."))
    qtbot.waitUntil(lambda: rig.marker.unfinished() == "")


@over_both
def test_an_unknown_answer_is_ignored(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Hi")
    rig.worker.give(TextDelta(asked.conversation, MessageId("nobody"), "x", (1,)))
    answer(rig, qtbot, asked, "Hello")
    assert stored(rig, asked.conversation)[-1].text == "Hello"


@over_both
def test_a_widget_that_fails_costs_no_token_and_no_event(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = say(rig, "Go")
    said: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: said.append(str(error)))

    def fail(*_: object) -> None:
        raise RuntimeError("a widget failed")

    monkeypatch.setattr(rig.window.chat.view, "append_text", fail)
    monkeypatch.setattr(rig.window.store.measured, "add_turn", fail)
    answer(rig, qtbot, asked, "All of it")
    assert (stored(rig, asked.conversation)[-1].text, said) == ("All of it", ["a widget failed"] * 3)
    assert not rig.window.store.is_answering


@over_both
def test_the_store_is_closed_whatever_fails_before(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = say(rig, "Go")
    said: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: said.append(str(error)))

    def fail() -> None:
        raise RuntimeError("no engine to close")

    monkeypatch.setattr(rig.worker, "shut_down", fail)
    monkeypatch.setattr(rig.window.chat.view, "update_message", lambda _: fail())
    rig.worker.give(TextDelta(asked.conversation, asked.answer, "half", (5,)))
    rig.controller.shut_down()
    assert said == ["no engine to close"] * 2
    assert not rig.store._thread.is_alive()
    with closing(Store(rig.store._path)) as store:
        assert [(m.text, m.state) for m in store.all_messages(asked.conversation)][-1] == ("half", "interrupted")
