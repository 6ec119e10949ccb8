"""What happens when the context is full: chosen in the menu of the header, shaded and announced in the chat."""

import pytest
from PySide6.QtWidgets import QApplication

from kvdesk.chat import EvictedMessages
from kvdesk.message import MessageId
from kvdesk.policies.overflow import policy_of
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import MessageRetention, Overflowed, TurnEnded
from kvdesk.protocol.operations import Capability
from kvdesk.settings import CachePolicy, Overflow, Settings
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.recording import record
from tests.ui.samples import CONTEXT, CONVERSATIONS, ONE, STATS, TWO, message, show_messages

ANSWER = MessageId("a2")
CANNOT = "No part of a recurrent state can be removed."
MESSAGES = (
    message("q1", "user", "One?"),
    message("a1", "assistant", "One."),
    message("q2", "user", "Two?"),
    message("a2", "assistant", "", state="streaming"),
)


def retention(*words: str) -> MessageRetention:
    return MessageRetention(ONE, tuple(zip((m.id for m in MESSAGES), words, strict=True)))  # type: ignore[arg-type]


def shown(window: MainWindow) -> list[str]:
    words = [widget._retention for widget in window.chat.view.widgets]
    return ["" if word is None or word.isHidden() else word.text() for word in words]


def test_every_policy_is_explained_where_it_is_chosen(window: MainWindow) -> None:
    choice = window.chat.header.overflow
    window.action_set.run("chat.overflow")
    assert choice.isVisible()
    for overflow in Overflow:
        assert choice._reasons[overflow].text() == policy_of(overflow).description
    sent = record(window.commands.conversations.choose_overflow)
    choice.buttons[Overflow.SLIDE].click()
    assert sent[-1] == (ONE, Overflow.SLIDE)
    assert not choice.isVisible()


def test_it_is_as_wide_as_the_size_of_the_text_asks_for(window: MainWindow) -> None:
    choice, widths = window.chat.header.overflow, []
    for zoom in (100, 150):
        window.store.settings.change(zoom=zoom)
        window.action_set.run("chat.overflow")
        widths.append((choice.width(), window.theme.px(400)))
        choice.close()
    assert all(width == wanted for width, wanted in widths)
    assert widths[1] > widths[0]


def test_what_the_model_cannot_do_says_why(window: MainWindow) -> None:
    rows = (Capability("partial seq_rm", "no", CANNOT), Capability("seq_add", "yes", "It can."))
    window.store.apply(ContextReady(CONTEXT, rebuilt=False, possible=rows))
    choice = window.chat.header.overflow
    enabled = [overflow for overflow in Overflow if choice.buttons[overflow].isEnabled()]
    assert enabled == [Overflow.STOP, Overflow.RECOMPUTE]
    assert CANNOT in choice._reasons[Overflow.SINKS].text()
    window.store.apply(ContextReady(CONTEXT, rebuilt=True))
    assert choice.buttons[Overflow.SINKS].isEnabled()


def test_each_conversation_has_its_own(window: MainWindow) -> None:
    conversations = (replace(CONVERSATIONS[0], overflow="sinks"), CONVERSATIONS[1])
    window.store.show_conversations(conversations, ONE)
    assert window.chat.header.overflow.buttons[Overflow.SINKS].isChecked()
    window.store.show_conversations(conversations, TWO)
    assert window.chat.header.overflow.buttons[Overflow.STOP].isChecked()
    window.store.settings.change(**dict(Settings(cache=CachePolicy(overflow=Overflow.RECOMPUTE))))
    assert "Recompute" in window.chat.header.overflow.accessibleName(), "nothing was chosen: as the settings say"


def test_the_menu_offers_it_where_a_context_exists(empty_window: MainWindow) -> None:
    def offered() -> bool:
        lines = empty_window.help.menu().actions()
        return any(line.text() == "When the context is full…" and line.isEnabled() for line in lines)

    empty_window.store.show_conversations(CONVERSATIONS, ONE)
    assert not offered()
    empty_window.store.apply(ContextReady(CONTEXT, rebuilt=False))
    assert offered()


def test_messages_that_are_evicted_are_faint_and_say_so(window: MainWindow) -> None:
    show_messages(window, ONE, MESSAGES)
    window.store.apply(retention("evicted", "evicted", "next", "in the cache"))
    words = ["not in context", "not in context", "removed next", ""]
    assert shown(window) == words
    window.store.show_conversations(CONVERSATIONS, TWO)
    show_messages(window, TWO, ())
    window.store.show_conversations(CONVERSATIONS, ONE)
    show_messages(window, ONE, MESSAGES)
    assert shown(window) == words
    window.store.apply(retention(*["in the cache"] * 4))
    assert shown(window) == [""] * 4


def test_the_policy_is_announced_where_it_acts(window: MainWindow) -> None:
    show_messages(window, ONE, MESSAGES)
    widget = window.chat.view.widgets[-1]
    sentence = "The context of 256 tokens was full: the oldest message was removed."
    window.store.apply(Overflowed(ONE, ANSWER, Overflow.SLIDE, sentence, (MESSAGES[0].id,)))
    assert widget.note == sentence
    window.store.apply(TurnEnded(ONE, ANSWER, "complete", STATS, f"{sentence} Ended."))
    assert widget.note == f"{sentence} Ended."


def test_what_was_evicted_before_a_restart_is_faint_from_the_start(window: MainWindow) -> None:
    evicted = EvictedMessages(frozenset({MESSAGES[0].id, MESSAGES[1].id}))
    window.store.show_conversations((replace(CONVERSATIONS[0], evicted=evicted), CONVERSATIONS[1]), ONE)
    show_messages(window, ONE, MESSAGES)
    assert shown(window) == ["not in context", "not in context", "", ""]
    window.store.apply(retention(*["in the cache"] * 4))
    assert shown(window) == [""] * 4


@pytest.mark.usefixtures("styled")
def test_its_lines_are_as_far_apart_at_first_as_ever_after(window: MainWindow) -> None:
    choice = window.chat.header.overflow
    heights = set()
    for _ in range(2):
        choice.choose()
        QApplication.processEvents()
        assert choice.layout() is not None
        heights.add(choice.height())
        assert choice.height() == choice.layout().totalHeightForWidth(choice.width())
        choice.close()
    assert len(heights) == 1
