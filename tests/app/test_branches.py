"""Answers made again and questions edited: what is a branch, and how one gets from one to another."""

import time
from functools import partial

from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.message import Message, new_conversation_id, new_message_id
from kvdesk.protocol.chat import ModelLoaded, PreviewTurn, TextDelta, TurnEnded, TurnPreview, TurnStarted
from kvdesk.store.listener import read_tree
from kvdesk.ui.messages.message_editor import MessageEditor
from kvdesk.values import replace
from tests.app.conftest import Rig, over_both
from tests.app.test_controller import STATS, answer, say, stored
from tests.ui.samples import MODEL


def _stored(rig: Rig, n: int) -> Conversation:
    """A chat of `n` messages in the database, not opened yet."""
    names = [new_message_id() for _ in range(n)]
    chat = Conversation(new_conversation_id(), "Long", 0, names[-1])
    rig.store.put_conversation(chat)
    for i, name in enumerate(names):
        role = "assistant" if i % 2 else "user"
        rig.store.put_message(Message(name, chat.id, names[i - 1] if i else None, role, "Some words."))  # type: ignore[arg-type]
    rig.store.flush().result()
    return chat


def test_a_chat_of_2_000_messages_opens_like_one_of_40(rig: Rig) -> None:
    chats, service, view = rig.controller.chats, rig.controller.conversations, rig.window.chat.view
    spent: dict[int, float] = {}
    for n in (40, 2_000):
        chat = _stored(rig, n)
        service._known.put(chat)
        tries = []
        for _ in range(5):
            chats.new()
            rig.window.store.show_conversations(service.conversations, chat.id)
            service._known._trees.pop(chat.id, None)
            read = rig.store.ask(partial(read_tree, conversation=chat.id, leaf=chat.leaf))
            read.result()
            start_s = time.thread_time()
            chats._on_tree_read(chat.id, read)
            tries.append(time.thread_time() - start_s)
        spent[n] = min(tries)
        assert [w.message.id for w in view.widgets][-1] == chat.leaf
        assert len(service.branch(chat.id)) == n
    assert spent[2_000] < 4 * spent[40], "of the window's thread; everything else is done on the store's"


def shown(rig: Rig) -> list[str]:
    return [widget.message.text for widget in rig.window.chat.view.widgets]


def edited_at(rig: Rig, place: int) -> MessageEditor:
    """The editor of a message, by its place."""
    rig.window.store.apply(ModelLoaded(MODEL))
    widget = rig.window.chat.view.widgets[place]
    rig.window.chat.view.start_edit(widget.message.id)
    assert widget.editor is not None
    return widget.editor


def previews(rig: Rig) -> list[PreviewTurn]:
    return [command for command in rig.worker.commands if isinstance(command, PreviewTurn)]


@over_both
def test_a_second_answer_is_switched_from_and_back(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "First joke")
    rig.window.commands.conversations.turns.regenerate(asked.conversation, 1)
    answer(rig, qtbot, rig.worker.asked[-1], "Second joke")
    last = rig.window.chat.view.widgets[-1]
    assert last.switch._text.text() == "2/2"
    (last.switch._before, last.switch._after)[0].click()
    assert shown(rig) == ["Joke?", "First joke"]
    assert [m.text for m in stored(rig, asked.conversation)] == ["Joke?", "First joke"], "it stays so after a restart"
    assert rig.window.chat.view.widgets[-1].switch._text.text() == "1/2"
    assert [m.text for m in say(rig, "Another").messages] == ["Joke?", "First joke", "Another"]


@over_both
def test_an_edited_question_is_a_branch(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke about cats?")
    answer(rig, qtbot, asked, "Miaow")
    rig.window.chat.composer.set_text("a draft")
    editor = edited_at(rig, 0)
    assert editor.text == "Joke about cats?"
    editor.edit.setPlainText("Joke about dogs?")
    editor._save.click()
    assert rig.window.chat.composer.text == "a draft"
    edited = rig.worker.asked[-1]
    assert [m.text for m in edited.messages] == ["Joke about dogs?"]
    answer(rig, qtbot, edited, "Wuff")
    assert shown(rig) == ["Joke about dogs?", "Wuff"]
    first = rig.window.chat.view.widgets[0]
    assert first.switch._text.text() == "2/2"
    (first.switch._before, first.switch._after)[0].click()
    assert shown(rig) == ["Joke about cats?", "Miaow"]


@over_both
def test_an_edit_is_there_again_after_another_chat(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Question")
    answer(rig, qtbot, asked, "Answer")
    edited_at(rig, 0).edit.setPlainText("Another question")
    rig.window.commands.new_chat()
    assert not rig.window.chat.view.is_editing
    rig.window.commands.select(asked.conversation)
    editor = rig.window.chat.view.widgets[0].editor
    assert editor.text == "Another question"
    assert rig.window.chat.view.widgets[1].is_dim
    rig.window.action_set.run("chat.escape")
    assert not rig.window.chat.view.is_editing
    assert shown(rig) == ["Question", "Answer"]
    assert rig.window.chat.view.edits == {}


@over_both
def test_an_undo_after_another_chat_brings_the_edit_back(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Question")
    answer(rig, qtbot, asked, "Answer")
    edited_at(rig, 1).edit.setPlainText("Another answer")
    removals = rig.window.commands.conversations.removals
    removals.delete(asked.conversation, rig.window.chat.view.widgets[1].message.id, with_pair=False)
    rig.window.commands.new_chat()
    rig.window.commands.select(asked.conversation)
    removals.undo(asked.conversation)
    assert rig.window.chat.view.widgets[1].editor.text == "Another answer"


@over_both
def test_what_is_left_of_three_answers_can_be_stopped(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "First joke")
    rig.window.commands.conversations.turns.regenerate(asked.conversation, 3)
    first, *others = rig.worker.asked[1:]
    rig.worker.give(
        *(TurnStarted(command.conversation, command.answer, 0, 10, 0) for command in (first, *others)),
        TextDelta(first.conversation, first.answer, "Second joke", (1,)),
        TurnEnded(first.conversation, first.answer, "complete", STATS),
    )
    composer, store = rig.window.chat.composer, rig.window.store
    qtbot.waitUntil(lambda: len(rig.controller.conversations.answers_of(asked.conversation)) == 2)
    assert (composer.is_running, store.is_answering) == (True, True)
    rig.controller.chats.select(asked.conversation)
    assert store.is_answering, "shown again"
    rig.window.action_set.run("chat.escape")
    assert set(rig.worker.stopped) == {command.answer for command in others}
    rig.worker.give(*(TurnEnded(c.conversation, c.answer, "stopped", STATS) for c in others))
    qtbot.waitUntil(lambda: not composer.is_running)
    assert not store.is_answering


def test_what_is_typed_is_priced(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "First joke")
    edit = rig.window.chat.composer.edit
    qtbot.keyClicks(edit, "Another")
    qtbot.waitUntil(lambda: any(isinstance(c, PreviewTurn) for c in rig.worker.commands))
    preview = next(c for c in rig.worker.commands if isinstance(c, PreviewTurn))
    assert [m.text for m in preview.messages] == ["Joke?", "First joke", "Another"]
    rig.window.chat.composer.set_blocked("")
    sentence = "20 tokens from cache, 9 to compute, first token in about 0.1 s"
    rig.window.store.apply(TurnPreview(asked.conversation, 20, 9, 120.0, sentence, text="Another"))
    assert "9 to compute" in rig.window.chat.composer.hint.full_text


def test_an_edited_message_is_priced_in_its_place(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, say(rig, "Joke?"), "First joke")
    answer(rig, qtbot, say(rig, "Another"), "Second joke")
    editor = edited_at(rig, 2)
    editor.edit.setPlainText("Another, but short")
    question = rig.window.chat.view.widgets[2].message.id
    qtbot.waitUntil(lambda: "Another, but short" in [asked.text for asked in previews(rig)])
    preview = previews(rig)[-1]
    assert [m.text for m in preview.messages] == ["Joke?", "First joke", "Another, but short"]
    assert (preview.n_typed, preview.max_tokens) == (18, rig.controller.settings.sampling.max_tokens)
    assert preview.replaced == question
    found = TurnPreview(preview.conversation, 20, 9, 1_240.0, "", text=editor.text, replaced=question)
    rig.worker.give(found)
    qtbot.waitUntil(lambda: editor._cost.text() == "9 of 29 tokens to read: about 1.2 s")
    assert "29" not in rig.window.chat.composer.hint.full_text
    rig.worker.give(replace(found, refused="Too long.", n_ctx=8, n_conversation=0, n_draft=9, n_fitting=4))
    qtbot.waitUntil(lambda: not editor._save.isEnabled())
    editor.help.links[0].click()
    assert editor.edit.textCursor().selectedText() == "her, but short"


def test_an_edited_answer_is_priced_up_to_its_end(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, say(rig, "Joke?"), "First joke")
    answer(rig, qtbot, say(rig, "Another"), "Second joke")
    editor = edited_at(rig, 1)
    editor.edit.setPlainText("First joke, but better")
    qtbot.waitUntil(lambda: "First joke, but better" in [asked.text for asked in previews(rig)])
    preview = previews(rig)[-1]
    assert [(m.role, m.text) for m in preview.messages] == [("user", "Joke?"), ("assistant", "First joke, but better")]
    assert preview.replaced is not None
    full = TurnPreview(preview.conversation, 20, 9, None, "", text=editor.text, replaced=preview.replaced, refused="No")
    rig.worker.give(replace(full, refused=""))
    qtbot.waitUntil(lambda: editor._cost.text() == "9 of 29 tokens to read with your next message")
    assert [widget.is_dim for widget in rig.window.chat.view.widgets] == [False, False, True, True]


def test_the_tree_of_branches_leads_to_another_branch(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "First joke")
    rig.window.commands.conversations.turns.regenerate(asked.conversation, 1)
    answer(rig, qtbot, rig.worker.asked[-1], "Second joke")
    tree = rig.window.chat.branch_tree
    rig.window.show()
    rig.window.action_set.run("chat.branches")
    items = tree._items
    assert [item.text(0) for item in items] == ["You: Joke?", "Answer: First joke", "Answer: Second joke"]
    assert tree.tree.currentItem() is items[2]
    tree.tree.setCurrentItem(items[1])
    qtbot.waitUntil(lambda: shown(rig) == ["Joke?", "First joke"])
    answer(rig, qtbot, say(rig, "Another"), "Third joke")
    assert [tree._items[1].text(column) for column in (0, 1)] == ["Answer: First joke", "+2 more"]
    rig.window.commands.new_chat()
    assert not tree.isVisible(), "the new chat has one branch only"


@over_both
def test_of_two_answers_side_by_side_one_is_kept(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "Joke?")
    answer(rig, qtbot, asked, "First joke")
    rig.window.commands.conversations.turns.regenerate(asked.conversation, 1)
    second = rig.worker.asked[-1]
    rig.window.action_set.run("chat.compare")
    compared = rig.window.chat.alternatives
    assert [column.message.text for column in compared._columns] == ["First joke", ""]
    assert rig.window.chat.is_comparing
    answer(rig, qtbot, second, "Second joke")
    qtbot.waitUntil(lambda: [column.message.text for column in compared._columns] == ["First joke", "Second joke"])
    compared._columns[0].keep.click()
    assert not rig.window.chat.is_comparing
    assert shown(rig) == ["Joke?", "First joke"]
    assert [m.text for m in stored(rig, asked.conversation)] == ["Joke?", "First joke"]
