import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.errors import NO_TOKENIZER
from kvdesk.message import MessageId
from kvdesk.protocol.chat import ModelLoaded, PrefillProgress, TextDelta, TurnEnded, TurnStarted
from kvdesk.ui.markdown.code_block import CodeBlock
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.messages.chat_view import RENDER_INTERVAL_MS
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.messages.thinking import CollapsedThinking
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.controls import IconButton
from kvdesk.values import replace
from tests.ui.recording import record
from tests.ui.samples import MODEL, ONE, STATS, TWO, append_message, message, show_messages, update_message
from tests.ui.seen import seen

ANSWER = MessageId("a")


def begin(window: MainWindow) -> MessageWidget:
    """A question and an answer that has begun."""
    append_message(window, message("q", "user", "Why?"))
    append_message(window, message("a", "assistant", "", state="streaming"))
    return window.chat.view.widgets[-1]


def words(widget: QWidget) -> str:
    return "\n".join(view.toPlainText() for view in widget.findChildren(ProseView))


def button(widget: QWidget, name: str) -> QToolButton:
    return next(b for b in widget.findChildren(QToolButton) if b.accessibleName() == name)


def test_an_answer_streams_and_ends(window: MainWindow, qtbot: QtBot) -> None:
    widget = begin(window)
    window.store.apply(TurnStarted(ONE, ANSWER, 0, 140, 128))
    for piece in ("Because ", "**of", " the cache**", "."):
        window.store.apply(TextDelta(ONE, ANSWER, piece, (1,)))
    qtbot.waitUntil(lambda: words(widget) == "Because of the cache.", timeout=2000)
    window.store.apply(TurnEnded(ONE, ANSWER, "complete", STATS))
    assert widget.message.text == "Because **of the cache**."
    assert widget.message.stats == STATS
    assert not window.chat.composer.is_running


@pytest.mark.usefixtures("fresh")  # nothing was drawn a moment ago
def test_text_is_drawn_at_most_ten_times_a_second(window: MainWindow, qtbot: QtBot) -> None:
    widget = begin(window)
    assert RENDER_INTERVAL_MS >= 100
    window.store.apply(TextDelta(ONE, ANSWER, "first", (1,)))
    assert words(widget) == "first"  # the first token is seen at once
    window.store.apply(TextDelta(ONE, ANSWER, " second", (1,)))
    assert words(widget) == "first"
    qtbot.waitUntil(lambda: words(widget) == "first second", timeout=2000)


def test_the_end_of_a_turn_draws_what_is_left(window: MainWindow) -> None:
    widget = begin(window)
    for piece in ("a", "b", "c"):
        window.store.apply(TextDelta(ONE, ANSWER, piece, (1,)))
    window.store.apply(TurnEnded(ONE, ANSWER, "stopped", STATS, "You stopped it"))
    assert words(widget) == "abc"


@pytest.mark.usefixtures("fresh")
def test_reading_the_prompt_shows_progress(window: MainWindow) -> None:
    widget = begin(window)
    window.store.apply(TurnStarted(ONE, ANSWER, 0, 900, 100))
    window.store.apply(PrefillProgress(ONE, ANSWER, 512, 800, 640.0))
    assert "512 of 800 tokens" in seen(widget._waiting)
    window.store.apply(TextDelta(ONE, ANSWER, "x", (1,)))
    assert widget._waiting.isHidden()


def test_events_of_another_conversation_change_no_message(window: MainWindow) -> None:
    widget = begin(window)
    window.store.apply(TextDelta(TWO, ANSWER, "elsewhere", (1,)))
    assert words(widget) == ""


def test_an_update_with_the_same_values_changes_nothing(window: MainWindow) -> None:
    widget = begin(window)
    window.store.apply(TextDelta(ONE, ANSWER, "yes", (1,)))
    window.store.apply(TurnEnded(ONE, ANSWER, "complete", STATS))
    update_message(window, widget.message)
    assert words(widget) == "yes"
    assert len(window.chat.view.widgets) == 2


@pytest.mark.usefixtures("fresh")
def test_code_is_highlighted_and_copied(window: MainWindow) -> None:
    show_messages(window, ONE, (message("a", "assistant", "see\n```python\nfor x in y:\n    pass\n```\n"),))
    (block,) = window.chat.findChildren(CodeBlock)
    edit = block.findChild(QPlainTextEdit)
    assert isinstance(edit, QPlainTextEdit)
    assert edit.toPlainText() == "for x in y:\n    pass"
    assert edit.document().begin().layout().formats(), "no colours"
    button(block, "Copy this code").click()
    assert QGuiApplication.clipboard().text() == "for x in y:\n    pass"


def thinking(window: MainWindow) -> CollapsedThinking:
    (found,) = window.chat.findChildren(CollapsedThinking)
    return found


@pytest.mark.usefixtures("fresh")
def test_reasoning_is_open_while_it_is_written_and_then_says_how_long_it_took(
    window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("kvdesk.ui.messages.message_widget.time.monotonic", lambda: now)
    widget = begin(window)
    window.store.apply(TextDelta(ONE, ANSWER, "<think>\nlet me ", (1,)))
    assert thinking(window).is_open
    assert thinking(window)._fold.button.full_text == "Thinking…"
    now = 112.2
    window.store.apply(TextDelta(ONE, ANSWER, "see\n</think>\n\nYes.", (1,)))
    qtbot.waitUntil(lambda: thinking(window)._fold.button.full_text == "Thought for 12 s", timeout=2000)
    assert not thinking(window).is_open
    assert words(widget).endswith("Yes.")
    qtbot.mouseClick(thinking(window).findChildren(QPushButton)[0], Qt.MouseButton.LeftButton)
    assert thinking(window).is_open
    window.store.apply(TurnEnded(ONE, ANSWER, "complete", STATS))
    assert thinking(window).is_open, "it stays as the person wants it"
    assert "let me see" in words(thinking(window))


def test_reasoning_that_is_stopped_is_no_longer_being_written(window: MainWindow) -> None:
    begin(window)
    window.store.apply(TextDelta(ONE, ANSWER, "<think>one two three", (1,)))
    window.store.apply(TurnEnded(ONE, ANSWER, "stopped", STATS))
    assert thinking(window)._fold.button.full_text == "Thought, 3 words"


@pytest.mark.usefixtures("fresh")
def test_reasoning_is_folded_until_asked_for(window: MainWindow) -> None:
    answer = replace(message("a", "assistant", "let me see\n</think>\nYes."), thought_ms=83_400)
    show_messages(window, ONE, (answer,))
    assert not thinking(window).is_open
    assert thinking(window)._fold.button.full_text == "Thought for 1 min 23 s"
    qtbot_button = thinking(window).findChildren(QPushButton)[0]
    assert qtbot_button.accessibleDescription() == "collapsed"
    qtbot_button.click()
    assert "let me see" in words(thinking(window))


@pytest.mark.usefixtures("fresh")
def test_reasoning_does_not_fold_for_one_who_reads_above(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, tuple(message(f"m{i}", "user", f"line\n\n{i}\n" * 5) for i in range(8)))
    begin(window)
    window.store.apply(TextDelta(ONE, ANSWER, "<think>" + "long\n\n" * 40, (1,)))
    qtbot.waitUntil(lambda: thinking(window).is_open, timeout=2000)
    bar = window.chat.view.verticalScrollBar()
    bar.setValue(bar.maximum() - 300)
    window.store.apply(TextDelta(ONE, ANSWER, "</think>" + "Yes.\n\n" * 40, (1,)))
    value = bar.value()
    qtbot.waitUntil(lambda: "Yes." in words(window.chat.view), timeout=2000)
    assert thinking(window).is_open
    assert bar.value() == value


def test_only_the_last_answer_can_be_made_again(window: MainWindow) -> None:
    first, last = message("a1", "assistant", "one"), message("a2", "assistant", "two")
    show_messages(window, ONE, (first, last))
    shown = [button(widget, "Answer again").isVisible() for widget in window.chat.view.widgets]
    assert shown == [False, True]


def test_enter_sends_and_shift_enter_breaks_the_line(window: MainWindow, qtbot: QtBot) -> None:
    edit = window.chat.composer.edit
    qtbot.keyClicks(edit, "two")
    qtbot.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(edit, "lines")
    sent = record(window.commands.conversations.send)
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert sent[-1] == (ONE, "two\nlines")
    assert edit.toPlainText() == ""


def test_enter_while_an_answer_is_written_hands_the_message_on(window: MainWindow, qtbot: QtBot) -> None:
    begin(window)
    edit = window.chat.composer.edit
    qtbot.keyClicks(edit, "next")
    assert window.chat.composer.hint.full_text == "Enter queues it  ·  Esc stops the answer"
    sent = record(window.commands.conversations.send)
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert sent[-1] == (ONE, "next"), "whoever hears of it queues it"
    assert edit.toPlainText() == ""


def test_escape_stops(window: MainWindow, qtbot: QtBot) -> None:
    begin(window)
    sent = record(window.commands.conversations.stop)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Escape)
    assert sent[-1] == (ONE,)


def test_drafts_stay_with_their_conversation(window: MainWindow) -> None:
    from tests.ui.samples import CONVERSATIONS

    window.chat.composer.set_text("half a thought")
    window.store.show_conversations(CONVERSATIONS, TWO)
    assert window.chat.composer.text == ""
    window.store.show_conversations(CONVERSATIONS, ONE)
    assert window.chat.composer.text == "half a thought"


def test_page_keys_scroll_the_messages_while_one_types(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, tuple(message(f"m{i}", "user", f"line\n\n{i}\n" * 5) for i in range(8)))
    bar = window.chat.view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 500 and bar.value() == bar.maximum(), timeout=5000)
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_PageUp)
    assert bar.value() < bar.maximum() - 100


def test_one_who_reads_above_is_not_pulled_down(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, tuple(message(f"m{i}", "user", f"line\n\n{i}\n" * 5) for i in range(8)))
    begin(window)
    bar = window.chat.view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() > 0, timeout=5000)
    bar.setValue(100)
    window.store.apply(TextDelta(ONE, ANSWER, "long\n\n" * 40, (1,)))
    qtbot.wait(50)
    assert bar.value() == 100


def test_a_model_that_cannot_chat_has_no_composer_and_one_story(window: MainWindow) -> None:
    """In the empty page, or where the composer would be; never both."""
    show_messages(window, ONE, ())
    window.store.apply(ModelLoaded(replace(MODEL, has_text=False)))
    chat = window.chat

    def said() -> list[str]:
        labels = (label for label in chat.findChildren(QLabel) if label.isVisible())
        return [label.text() for label in labels if "tokenizer" in label.text()]

    assert said() == [NO_TOKENIZER]
    assert not chat.composer.isVisible()
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "Hi.")))
    assert said() == [NO_TOKENIZER]
    pencil = next(b for b in chat.view.widgets[0].findChildren(IconButton) if b.accessibleName() == "Edit this message")
    assert not pencil.isVisible(), "what is edited could not be sent"
    asked = record(window.commands.conversations.turns.regenerate)
    window.action_set.run("chat.regenerate")
    assert asked == []
    window.store.apply(ModelLoaded(MODEL))
    assert chat.composer.isVisible()
    assert pencil.isVisible()
    window.action_set.run("chat.regenerate")
    assert asked == [(ONE, 1)]


def test_a_long_message_shows_whole_lines_beside_the_button(window: MainWindow, qtbot: QtBot) -> None:
    composer = window.chat.composer
    edit = composer.edit
    attach = next(one for one in composer.findChildren(IconButton) if one.accessibleName() == "Attach files")
    composer.set_text("one")
    line = edit.cursorRect()
    at = attach.mapTo(composer, attach.rect().center()).y()
    assert abs(edit.viewport().mapTo(composer, line.center()).y() - at) <= 1
    composer.set_text("\n".join(map(str, range(30))))
    qtbot.waitUntil(lambda: edit.height() > 4 * line.height())
    assert edit.viewport().height() % line.height() <= 2


@pytest.mark.usefixtures("styled")
@pytest.mark.parametrize("zoom", [*(pytest.param(n, marks=pytest.mark.matrix) for n in (110, 125, 150, 175)), 100, 200])
def test_a_message_that_fits_is_not_scrolled(window: MainWindow, zoom: int) -> None:
    edit = window.chat.composer.edit
    window.store.settings.change(zoom=zoom)
    for text in ("", "one", "one\ntwo", "一\n😀\ntwo"):
        window.chat.composer.set_text(text)
        QApplication.processEvents()
        assert edit.verticalScrollBar().maximum() == 0, text
