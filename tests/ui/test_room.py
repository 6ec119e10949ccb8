"""A draft against the room there is: what the composer says of it, and what helps where it is too long."""

import pytest
from PySide6.QtCore import QPoint

from kvdesk.message import MessageId
from kvdesk.protocol.cache import ContextReady, OperationDone
from kvdesk.protocol.chat import ContextUse, Overflowed, TurnEnded, TurnPreview
from kvdesk.settings import Overflow
from kvdesk.ui.messages.room_help import RoomHelp, room_words
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.recording import Record
from tests.ui.samples import CONTEXT, ONE, STATS, append_message, message, show_messages

COST = "100 tokens from cache, 60 to compute"
FITS = TurnPreview(ONE, 100, 60, None, COST, n_ctx=1024, n_conversation=124, n_draft=40, n_answer=128, n_fitting=5)
TOO_LONG = replace(FITS, n_draft=958, refused="The conversation needs 1,082 tokens, but the context holds 1,024.")
NOTHING = replace(STATS, prompt_tokens=0)


@pytest.mark.parametrize(
    ("preview", "words", "tone"),
    [
        (FITS, COST, "secondary"),
        (replace(FITS, n_draft=850), "850 tokens: only 50 left for the answer", "warning"),
        (replace(TOO_LONG, n_draft=0, refused="Too long: far"), "Too long: far", "danger"),
        (TOO_LONG, "Too long: 958 tokens, and 772 fit with an answer", "danger"),
        (
            replace(TOO_LONG, n_conversation=1000),
            "Too long: the conversation alone takes 1,000 of 1,024 tokens",
            "danger",
        ),
        (
            replace(FITS, n_evicted_tokens=340, n_evicted_messages=2),
            "40 tokens: the 2 oldest messages (340 tokens) are removed from the context for it",
            "warning",
        ),
        (
            replace(FITS, n_evicted_tokens=90, n_evicted_messages=1),
            "40 tokens: the oldest message (90 tokens) is removed from the context for it",
            "warning",
        ),
        (
            replace(FITS, n_evicted_tokens=128),
            "40 tokens: the oldest tokens (128 tokens) are removed from the context for it",
            "warning",
        ),
    ],
)
def test_what_is_said(preview: TurnPreview, words: str, tone: str) -> None:
    assert room_words(preview) == (words, tone)


def typed(window: MainWindow, text: str, preview: TurnPreview) -> None:
    """Type, make a pause, and get the answer."""
    composer = window.chat.composer
    composer.set_text(text)
    composer._on_pause()
    window.store.apply(replace(preview, text=text))


def test_what_is_too_long_is_not_sent_and_stays(window: MainWindow, record: Record) -> None:
    sent = record(window.commands.conversations.send)
    typed(window, "hello world", TOO_LONG)
    composer = window.chat.composer
    assert composer.hint.full_text.startswith("Too long")
    assert composer.help.isVisible()
    composer.submit()
    assert (sent, composer.text) == ([], "hello world")
    composer.set_text("hello")
    composer.submit()
    assert sent == [(ONE, "hello")], "of a text that was changed since nothing is known yet"
    assert not composer.help.isVisible()


def test_a_draft_with_blank_space_after_it_is_priced(window: MainWindow, record: Record) -> None:
    sent = record(window.commands.conversations.send)
    composer = window.chat.composer
    composer.set_text("hello world \n")
    composer._on_pause()
    window.store.apply(replace(TOO_LONG, text="hello world"))
    assert composer.is_too_long
    composer.submit()
    assert not sent


def test_what_was_said_of_another_text_is_not_shown(window: MainWindow) -> None:
    typed(window, "hello world", TOO_LONG)
    composer = window.chat.composer
    composer.set_text("hello")
    assert (composer.is_too_long, composer.help.isVisible()) == (False, False)
    window.store.apply(replace(TOO_LONG, text="hello world"))  # asked before, answered late
    assert not composer.is_too_long
    assert composer.hint.full_text == "Enter sends  ·  Shift+Enter starts a new line"


@pytest.mark.usefixtures("styled")
def test_help_fits_into_the_narrowest_chat(window: MainWindow) -> None:
    window.resize(900, 600)
    typed(window, "hello world", TOO_LONG)
    assert window.chat.composer.help.minimumSizeHint().width() <= 300


def test_shorten_selects_what_is_too_much(window: MainWindow) -> None:
    typed(window, "he🙂lo world", TOO_LONG)
    window.chat.composer.help.links[0].click()
    assert window.chat.composer.edit.textCursor().selectedText() == " world"
    typed(window, "hello", replace(TOO_LONG, text="hello", n_fitting=0))
    assert not window.chat.composer.help.links[0].isVisible(), "no shorter text would fit"


def test_links_lead_to_a_larger_context_and_to_the_policies(window: MainWindow, record: Record) -> None:
    conversations = window.commands.conversations
    chosen, asked = record(conversations.choose_overflow), record(conversations.turns.preview)
    typed(window, "hello world", TOO_LONG)
    _, larger, policy = window.chat.composer.help.links
    policy.click()
    choice = window.chat.header.overflow
    assert choice.isVisible()
    link = policy.rect().translated(policy.mapToGlobal(QPoint()))
    assert link.adjusted(0, -1, 0, 1).intersects(choice.geometry()), "beside its link"
    choice.buttons[Overflow.SLIDE].click()
    window.action_set.run("chat.overflow")
    assert not link.adjusted(0, -1, 0, 1).intersects(choice.geometry()), "elsewhere for the menu"
    choice.buttons[Overflow.SLIDE].click()
    assert chosen == [(ONE, Overflow.SLIDE)] * 2
    assert len(asked) == 1
    window.chat.composer._pause.timeout.emit()
    assert asked[1:] == [(ONE, "hello world")], "the other policy is asked about at once"
    larger.click()
    page = window.rooms.settings
    assert page.isVisible()
    assert page.bar.apply.text() == "Apply and rebuild"


def test_another_context_is_asked_about_anew(window: MainWindow) -> None:
    typed(window, "hello world", TOO_LONG)
    window.store.apply(ContextReady(replace(CONTEXT, n_ctx=4096, n_ctx_seq=4096), rebuilt=True))
    assert not window.chat.composer.is_too_long
    assert window.chat.composer._pause.isActive()


def test_what_an_edit_costs_is_asked_again_for_another_context_and_policy(window: MainWindow, record: Record) -> None:
    show_messages(window, ONE, (message("q", "user", "Hello"),))
    window.chat.view.start_edit(MessageId("q"))
    editor = window.chat.view.widgets[0].editor
    editor._pause.stop()
    window.store.apply(ContextReady(replace(CONTEXT, n_ctx=4096, n_ctx_seq=4096), rebuilt=True))
    assert editor._pause.isActive()
    editor._pause.stop()
    record(window.commands.conversations.choose_overflow)
    window.action_set.run("chat.overflow")
    window.chat.header.overflow.buttons[Overflow.SLIDE].click()
    assert editor._pause.isActive()
    window.chat.view.end_edit()


def test_what_a_draft_costs_is_asked_again_after_cells_were_removed_by_hand(window: MainWindow) -> None:
    typed(window, "hello world", TOO_LONG)
    window.chat.composer._pause.stop()
    window.store.apply(OperationDone(1, 1.0, "decode", "", 8.0))
    assert not window.chat.composer._pause.isActive()
    window.store.apply(OperationDone(2, 1.0, "seq_rm", "", 0.1, ONE, emptied=True))
    assert window.chat.composer._pause.isActive()


def test_a_draft_that_was_too_long_is_asked_about_again_when_there_is_room(window: MainWindow, record: Record) -> None:
    """Messages were deleted, or a shorter branch is shown."""
    window.store.apply(ContextUse(ONE, 1000, 0, 1024))
    typed(window, "hello world", TOO_LONG)
    window.chat.composer._pause.stop()
    asked = record(window.commands.conversations.turns.preview)
    window.store.apply(ContextUse(ONE, 100, 0, 1024))
    assert window.chat.composer._pause.isActive()
    window.chat.composer._on_pause()
    assert asked == [(ONE, "hello world")]


def test_an_answer_that_did_not_fit_offers_what_helps(window: MainWindow) -> None:
    question, answer = message("q", "user", "far too long"), MessageId("a")
    reply = replace(message("a", "assistant", "", "streaming"), parent=question.id)
    show_messages(window, ONE, (question, reply))
    window.store.apply(Overflowed(ONE, answer, Overflow.STOP, "It needs 1,082 tokens."))
    widget = window.chat.view.widget_of(answer)
    assert not widget.findChildren(RoomHelp), "it has not ended yet"
    window.store.apply(TurnEnded(ONE, answer, "failed", NOTHING, "It needs 1,082 tokens."))
    [shown] = widget.findChildren(RoomHelp)
    assert shown.isVisible()
    shown.links[0].click()
    editor = window.chat.view.widgets[0].editor
    assert editor.text == "far too long"
    show_messages(window, ONE, (question, replace(reply, state="failed")))
    again = window.chat.view.widget_of(answer)
    assert not again._help.isHidden(), "it is offered when the chat is shown again"
    append_message(window, message("q2", "user", "shorter"))
    assert again._help.isHidden(), "only under the last answer"


@pytest.mark.usefixtures("fresh")
def test_an_answer_that_only_slid_needs_no_help(window: MainWindow) -> None:
    show_messages(window, ONE, (message("q", "user", "Go on"), message("a", "assistant", "", "streaming")))
    window.store.apply(Overflowed(ONE, MessageId("a"), Overflow.SLIDE, "The oldest message left.", (MessageId("q"),)))
    window.store.apply(TurnEnded(ONE, MessageId("a"), "complete", STATS))
    widget = window.chat.view.widget_of(MessageId("a"))
    assert widget._help is None
