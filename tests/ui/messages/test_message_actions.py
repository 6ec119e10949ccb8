"""Under and over a message: why it ended, continue, edit the answer, pin, delete, copy."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QLabel, QMenu, QToolButton
from pytestqt.qtbot import QtBot

from kvdesk.message import FinishReason, Message, MessageId, MessageState
from kvdesk.protocol.chat import (
    BackendReady,
    ModelLoaded,
    Overflowed,
    PrefillProgress,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from kvdesk.protocol.features import MISSING, Feature
from kvdesk.settings import Overflow
from kvdesk.ui.markdown.plain_text import plain_text
from kvdesk.ui.messages.message_foot import MessageFoot
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.messages.pinned_bar import MOST_LISTED, one_line
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.controls import ElidedButton, ElidedLabel, IconButton
from kvdesk.values import replace
from kvdesk.viewmodel.cells.readout import stats_parts, stats_tip
from tests.ui.recording import Record, record
from tests.ui.samples import MODEL, ONE, STATS, append_message, message, remove_messages, show_messages, update_message
from tests.ui.seen import seen

QUESTION = message("q", "user", "Why?")
ANSWER = replace(message("a", "assistant", "Because of", stats=STATS), finish="limit", tokens=(1, 2))


def shown(window: MainWindow, *messages: Message) -> MessageWidget:
    """The widget of the last message; a model is open."""
    window.store.apply(ModelLoaded(MODEL))
    show_messages(window, ONE, messages or (QUESTION, ANSWER))
    return window.chat.view.widgets[-1]


def button(widget: MessageWidget, name: str) -> IconButton:
    (found,) = [b for b in widget.findChildren(IconButton) if b.accessibleName() == name]
    return found


def action(window: MainWindow, name: MessageId, text: str) -> QAction:
    menu = window.chat.view.menu(name)
    assert isinstance(menu, QMenu)
    (found,) = [a for a in menu.actions() if a.text() == text]
    return found


ENDS: tuple[tuple[MessageState, FinishReason, str, str], ...] = (
    ("complete", "end", "", ""),
    ("complete", "limit", "Ended at the limit of 9 tokens.", "Length limit reached"),
    ("complete", "", "Ended at the limit of 9 tokens.", "Length limit reached"),
    ("complete", "stop string", "", "Stop string reached"),
    ("stopped", "", "", "Stopped by you"),
    ("stopped", "context full", "It is full.", "Context full"),
    ("complete", "edited", "", "Edited by you"),
)
FAILURES: tuple[tuple[MessageState, str], ...] = (("interrupted", "It broke."), ("failed", "Too long."))


def said_under(widget: MessageWidget) -> str:
    """What a screen reader says of the line under an answer."""
    line = widget.findChild(ElidedLabel, "answerStats")
    return line.accessibleName() if line is not None else ""


def test_why_it_ended_is_under_every_answer(window: MainWindow) -> None:
    for state, finish, note, words in ENDS:
        widget = shown(window, QUESTION, replace(ANSWER, state=state, finish=finish, note=note))
        assert said_under(widget) == "  ·  ".join(filter(None, (words, *stats_parts(STATS))))
    for state, note in FAILURES:
        widget = shown(window, QUESTION, replace(ANSWER, state=state, finish="", note=note))
        assert widget.note == f"{state.capitalize()}. {note}", "a failure is said once"
        assert said_under(widget) == "  ·  ".join(stats_parts(STATS))


def test_continue_is_offered_where_an_answer_ended_early(window: MainWindow, qtbot: QtBot) -> None:
    widget = shown(window)
    asked = record(window.commands.conversations.turns.continue_answer)
    qtbot.mouseClick(button(widget, "Continue the answer"), Qt.MouseButton.LeftButton)
    assert asked == [(ONE,)]
    ended = shown(window, QUESTION, replace(ANSWER, finish="end"))
    assert button(ended, "Continue the answer").isHidden()
    why = action(window, ANSWER.id, "Continue the answer")
    assert not why.isEnabled()
    assert why.toolTip() == "This answer is already complete."
    earlier = shown(window, QUESTION, ANSWER, message("q2", "user", "And?"))
    assert earlier is not None
    first = window.chat.view.widget_of(ANSWER.id)
    assert first is not None
    assert button(first, "Continue the answer").isHidden(), "what follows was said after it"
    asked = record(window.commands.conversations.turns.continue_answer)
    action(window, ANSWER.id, "Continue the answer").trigger()
    assert asked[-1] == (ONE, "a")


def test_an_engine_that_cannot_continue_says_so(window: MainWindow) -> None:
    widget = shown(window)
    window.store.apply(BackendReady(frozenset({Feature.CHAT})))
    go_on = button(widget, "Continue the answer")
    assert not go_on.isEnabled()
    assert go_on.toolTip() == MISSING[Feature.CONTINUE]
    assert window.action_set["chat.continue"].refusal() == MISSING[Feature.CONTINUE]
    window.store.apply(BackendReady(frozenset(Feature)))
    assert go_on.isEnabled()


def test_a_continued_answer_shows_what_is_read_and_then_its_text(window: MainWindow, qtbot: QtBot) -> None:
    widget = shown(window)
    update_message(window, replace(ANSWER, state="streaming", finish="", note=""))
    assert button(widget, "Continue the answer").isHidden()
    window.store.apply(TurnStarted(ONE, ANSWER.id, 0, 900, 100))
    window.store.apply(PrefillProgress(ONE, ANSWER.id, 512, 800, 640.0))
    assert "512 of 800" in seen(widget._waiting)
    window.store.apply(TextDelta(ONE, ANSWER.id, " the cache", (3,)))
    qtbot.waitUntil(widget._waiting.isHidden)
    after = replace(STATS, earlier_prefilled=12, earlier_generated=40, prefilled_tokens=1)
    update_message(window, replace(ANSWER, text="Because of the cache", state="complete", finish="", stats=after))
    window.store.apply(TurnEnded(ONE, ANSWER.id, "complete", STATS))
    assert widget.message.stats == after, "what it cost in all is known better than the event tells"
    assert "in all 80 tokens of it, and 13 computed" in stats_tip(after)


def test_what_helps_against_a_full_context_is_offered_until_the_answer_goes_on(window: MainWindow) -> None:
    full = replace(ANSWER, state="stopped", finish="context full", note="It is full.")
    widget = shown(window, QUESTION, full)
    assert not widget._help.isHidden(), "also of an answer of an earlier run"
    update_message(window, replace(full, state="streaming", finish="", note=""))
    assert widget._help.isHidden()
    window.store.apply(Overflowed(ONE, ANSWER.id, Overflow.STOP, "It is full."))
    update_message(window, full)
    assert not widget._help.isHidden()
    update_message(window, replace(full, state="streaming", finish="", note=""))
    update_message(window, replace(full, state="complete", finish="end", note=""))
    assert widget._help.isHidden()


def test_while_an_answer_is_written_what_cannot_be_done_says_why(window: MainWindow) -> None:
    why = "An answer is being written; stop it first."
    first = message("q8", "user", "Why?"), replace(ANSWER, id=MessageId("a8"))
    shown(window, *first, message("q2", "user", "And?"), message("a2", "assistant", "", state="streaming"))
    question, answer = window.chat.view.widgets[:2]
    button(question, "Edit this message").click()
    assert question.editor is None
    assert window.activity.text == why
    for name in ("Edit the answer…", "Continue the answer", "Delete this message"):
        assert not action(window, answer.message.id, name).isEnabled()
        assert action(window, answer.message.id, name).toolTip() == why
    both, told = (answer.message.id, MessageId("other")), record(window.commands.conversations.turns.show_branch)
    window.store.show_forks(dict.fromkeys(both, both))
    window.activity.dismiss()
    later = button(answer, "The version after this one")
    later.click()
    assert told == []
    assert window.activity.text == why
    update_message(window, message("a2", "assistant", "Because."))
    later.click()
    assert told == [(ONE, "other")]


def test_the_line_under_an_answer_has_its_tip(window: MainWindow) -> None:
    widget = shown(window, QUESTION, replace(ANSWER, state="complete", finish="end"))
    line = widget.findChild(ElidedLabel, "answerStats")
    assert isinstance(line, ElidedLabel)
    assert not line.is_elided
    assert line.toolTip() == stats_tip(STATS)


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.matrix), 900])
@pytest.mark.usefixtures("fresh")
def test_the_buttons_under_an_answer_keep_their_places(window: MainWindow, qtbot: QtBot, width: int) -> None:
    """They are in one row with the way to other versions, and what comes and goes is behind the others."""
    window.resize(width, 800)
    complete, stopped = replace(ANSWER, finish="end"), replace(ANSWER, state="stopped", finish="stopped")
    widget = shown(window, QUESTION, complete)
    window.store.show_forks({ANSWER.id: (ANSWER.id, MessageId("b"))})

    def places() -> dict[str, tuple[int, int]]:
        foot = widget.findChild(MessageFoot)
        assert isinstance(foot, MessageFoot)
        found = {one.accessibleName(): one for one in foot.findChildren(IconButton) if one.isVisible()}
        at = {name: one.mapTo(widget, one.rect().center()) for name, one in found.items()}
        return {name: (place.x(), place.y()) for name, place in at.items()}

    qtbot.waitUntil(lambda: len(places()) == 5)
    before = places()
    update_message(window, stopped)
    qtbot.waitUntil(lambda: "Continue the answer" in places())
    after = places()
    assert {name: after[name][0] for name in before} == {name: x for name, (x, _) in before.items()}
    assert after["Continue the answer"][0] == max(x for x, _ in after.values())
    line = widget.findChild(ElidedLabel, "answerStats")
    assert isinstance(line, ElidedLabel)
    at = line.mapTo(widget, line.rect().center())
    (row,) = {y for _, y in after.values()}
    assert abs(at.y() - row) <= 1, "one row, with the line"
    assert at.x() > after["Continue the answer"][0]
    assert not line.is_elided, "less is said where there is less room"
    assert line.full_text.startswith("Stopped by you")
    assert line.accessibleName() == "  ·  ".join(("Stopped by you", *stats_parts(STATS)))


def test_pinned_messages_are_listed_and_a_click_goes_there(window: MainWindow, qtbot: QtBot) -> None:
    window.show()
    many = [
        message(f"m{i}", "user" if i % 2 == 0 else "assistant", f"# Text {i}\n\n" + "word " * 200) for i in range(40)
    ]
    shown(window, *many)
    asked = record(window.commands.conversations.turns.pin)
    action(window, MessageId("m39"), "Pin").trigger()
    assert asked[-1] == (ONE, "m39", True)
    bar = window.chat.pinned
    assert bar.isHidden()
    for i in range(MOST_LISTED + 2):
        update_message(window, replace(many[i], pinned=True))
    assert len(bar._shown) == MOST_LISTED + 2
    assert bar._shown[0][1].startswith("Text 0 word")
    buttons = [one for row in bar._rows for one in row.findChildren(ElidedButton)]
    assert len(buttons) == MOST_LISTED
    assert "does not keep it in the context" in buttons[0].toolTip()
    qtbot.mouseClick(buttons[0], Qt.MouseButton.LeftButton)
    first = window.chat.view.widget_of(MessageId("m0"))
    assert first is not None
    assert not first.visibleRegion().isEmpty()
    asked = record(window.commands.conversations.turns.pin)
    qtbot.mouseClick(button(first, "Unpin this message"), Qt.MouseButton.LeftButton)
    assert asked[-1] == (ONE, "m0", False)


def test_a_deleted_message_goes_and_can_come_back(window: MainWindow, qtbot: QtBot) -> None:
    window.show()
    more = [message("q2", "user", "And?"), message("a2", "assistant", "So.")]
    shown(window, QUESTION, ANSWER, *more)
    asked = record(window.commands.conversations.removals.delete)
    action(window, MessageId("q2"), "Delete this message").trigger()
    assert asked[-1] == (ONE, "q2", False)
    asked = record(window.commands.conversations.removals.delete)
    action(window, MessageId("a2"), "Delete question and answer").trigger()
    assert asked[-1] == (ONE, "a2", True)
    last = window.chat.view.widget_of(MessageId("a2"))
    remove_messages(window, ONE, [MessageId("q2")], [QUESTION, ANSWER, more[1]])
    assert [w.message.id for w in window.chat.view.widgets] == ["q", "a", "a2"]
    assert window.chat.view.widget_of(MessageId("a2")) is last, "the others stay as they are"
    assert window.chat.deleted.text == "1 message deleted."
    asked = record(window.commands.undelete_messages)
    append_message(window, message("next", "assistant", "", state="streaming"))
    qtbot.mouseClick(window.chat.deleted.button, Qt.MouseButton.LeftButton)
    assert asked == []
    assert window.activity.text == "An answer is being written; stop it first."
    update_message(window, message("next", "assistant", "Well."))
    qtbot.mouseClick(window.chat.deleted.button, Qt.MouseButton.LeftButton)
    assert asked[-1] == (ONE,)
    assert window.chat.deleted.text == ""
    assert not window.store.undeletable


@pytest.mark.usefixtures("fresh")
def test_a_deletion_can_be_undone_after_its_notice_went(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    window.show()
    back, chats_back = record(window.commands.undelete_messages), record(window.commands.undo_delete)
    shown(window, QUESTION, ANSWER)
    edit = window.chat.composer.edit
    edit.setFocus()
    undo = (Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.action_set["chat.undo"].refusal()
    action(window, ANSWER.id, "Delete this message").trigger()
    remove_messages(window, ONE, [ANSWER.id], [QUESTION])
    window.chat.deleted.hide()
    qtbot.keyClicks(edit, "word")
    qtbot.keyClick(edit, *undo)
    assert edit.toPlainText() == "", "typed text comes first"
    assert not back
    edit.clear()
    qtbot.keyClick(edit, *undo)
    assert back == [(ONE,)]
    remove_messages(window, ONE, [ANSWER.id], [QUESTION])
    window.store.show_deleted(["Puffins"])
    window.action_set.run("chat.undo")
    assert (len(back), len(chats_back)) == (1, 1), "what was deleted last"
    remove_messages(window, ONE, [QUESTION.id], [])
    append_message(window, message("next", "assistant", "", state="streaming"))
    window.action_set.run("chat.undo")
    assert (len(back), len(chats_back)) == (1, 1), "no chat in the place of the messages"
    update_message(window, message("next", "assistant", "Well."))
    window.action_set.run("chat.undo")
    assert (len(back), len(chats_back)) == (2, 1)
    assert any(line.text().startswith("Undo the deletion") for line in window.help.menu().actions())


def test_any_answer_can_be_made_again_while_none_is_written(window: MainWindow) -> None:
    later = message("a2", "assistant", "Because.")
    shown(window, QUESTION, ANSWER, message("q2", "user", "And?"), later)
    asked = record(window.commands.conversations.turns.regenerate)
    action(window, ANSWER.id, "Answer again").trigger()
    action(window, ANSWER.id, "Three more answers at once").trigger()
    action(window, later.id, "Answer again").trigger()
    assert asked == [(ONE, 1, ANSWER.id), (ONE, 3, ANSWER.id), (ONE, 1, later.id)]
    append_message(window, message("a3", "assistant", "", state="streaming"))
    assert not action(window, ANSWER.id, "Answer again").isEnabled()


def test_the_last_one_that_is_left_can_be_made_again(window: MainWindow) -> None:
    shown(window, QUESTION, ANSWER, message("q2", "user", "And?"))
    remove_messages(window, ONE, [MessageId("q2")], [QUESTION, ANSWER])
    widget = window.chat.view.widget_of(ANSWER.id)
    assert widget is not None
    assert not button(widget, "Continue the answer").isHidden()
    remove_messages(window, ONE, [QUESTION.id, ANSWER.id], [])
    assert window.chat.view.widgets == ()


def test_markdown_and_plain_text_are_copied(window: MainWindow) -> None:
    text = "# Title\n\n**Bold** and `code`, [here](http://x.y)"
    shown(window, QUESTION, replace(ANSWER, text=text))
    action(window, ANSWER.id, "Copy as Markdown").trigger()
    assert QGuiApplication.clipboard().text() == text
    action(window, ANSWER.id, "Copy as plain text").trigger()
    assert QGuiApplication.clipboard().text() == "Title\n\nBold and code, here (http://x.y)"


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("a\nb\n\nc", "a\nb\n\nc"),
        ("- one\n- two\n  - three\n\nend", "- one\n- two\n  - three\n\nend"),
        ("3. c\n4. d", "3. c\n4. d"),
        ("- one\n\n  more\n- two", "- one\n\n  more\n- two"),
        ("| a | b |\n|---|---|\n| 1 | **2** |\n\nend", "a\tb\n1\t2\n\nend"),
        ("x\n\n```py\nif a:\n    b\n```", "x\n\nif a:\n    b"),
        ("<b>tag</b> & <http://x.y>", "<b>tag</b> & http://x.y"),
        ("> quoted\n\n---", "quoted\n\n---"),
        ("", ""),
    ],
)
def test_markdown_becomes_text(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain


def test_a_pin_has_one_line() -> None:
    assert one_line("## A\n\nb  c") == "A b c"
    assert one_line("---") == "---"
    assert len(one_line("word " * 500)) <= 160


@pytest.mark.usefixtures("fresh")
def test_why_speaks_of_the_time_first_and_esc_closes_it(window: MainWindow) -> None:
    stats = replace(STATS, why="All was reused.", time_why="First token after 8.5 s: 259 tokens read at 30 tok/s.")
    widget = shown(window, QUESTION, replace(ANSWER, stats=stats))

    def said() -> str:
        shown = [one.text() for one in widget.findChildren(QLabel) if one.isVisible()]
        return next((text for text in shown if stats.why in text), "")

    assert said() == ""
    (ask,) = [b for b in widget.findChildren(QToolButton) if b.text() == "Why?"]
    ask.click()
    assert said().splitlines() == [stats.time_why, stats.why]
    window.action_set.run("chat.escape")
    assert said() == ""
    assert not ask.isChecked()
