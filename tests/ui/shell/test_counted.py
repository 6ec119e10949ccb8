"""How much the chats take: the meter of the composer, the ruler, and the cells in the list."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from kvdesk.chat import Conversation
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import ContextReady, Lease, MessageSpan, MessageSpans
from kvdesk.protocol.chat import ContextUse, TextDelta, TurnEnded, TurnStarted
from kvdesk.ui.chat_list.conversation_model import CELLS_ROLE
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.samples import CONTEXT, CONVERSATIONS, ONE, STATS, TWO, cache_view
from tests.ui.seen import seen


def test_the_shown_conversation_has_a_ruler_before_its_first_turn(window: MainWindow) -> None:
    window.store.apply(cache_view())
    three = ConversationId("three")
    window.store.show_conversations((*CONVERSATIONS, Conversation(three, "", 2)), three)
    window.store.count()
    rows = window.inspector.cache.instruments.rulers.rows
    assert [(row.title, row.range_text, row.next_text) for row in rows[-1:]] == [("New chat", "empty", "0")]
    assert "no sequence" in rows[-1].tip
    window.store.show_conversations(CONVERSATIONS, ONE)
    window.store.count()
    assert [row.title for row in window.inspector.cache.instruments.rulers.rows] == [row.title for row in rows[:-1]]


def test_without_the_inspector_the_turns_tell_what_the_cache_holds(window: MainWindow) -> None:
    window.store.settings.change(inspector_visible=False)
    window.store.apply(TurnEnded(ONE, MessageId("a"), "complete", STATS))
    assert "KV 2.1 of 12.0 MB" in seen(window.status)
    model = window.conversations.view.model()
    assert model.index(0, 0).data(CELLS_ROLE) == 180
    window.store.apply(ContextReady(CONTEXT, rebuilt=True))
    assert model.index(0, 0).data(CELLS_ROLE) == 0
    assert "KV 0.0 of 12.0 MB" in seen(window.status)


def meter(window: MainWindow) -> str:
    shown = window.chat.composer.meter
    return "" if shown.isHidden() else shown.number.text().removeprefix("≈ ")


def test_how_full_the_conversation_is_stands_in_the_composer_alone(window: MainWindow) -> None:
    assert meter(window) == "", "nobody has said"
    window.store.apply(ContextUse(ONE, 1082, 0, 1024))
    assert meter(window) == "1,082 / 1,024"
    header = window.chat.header
    texts = [w.text() for w in header.findChildren(QWidget) if isinstance(w, QLabel | QAbstractButton)]
    assert not any("%" in text or "1,024" in text for text in texts)
    window.store.apply(cache_view())
    window.store.count()
    assert meter(window) == "1,082 / 1,024", "cells in the cache do not fill a context"
    window.store.apply(ContextUse(ONE, 300, 180, 1024))
    assert meter(window) == "300 / 1,024"
    window.store.show_conversations(CONVERSATIONS, TWO)
    assert meter(window) == ""
    window.store.show_conversations(CONVERSATIONS, ONE)
    assert meter(window) == "300 / 1,024"
    window.store.apply(ContextReady(CONTEXT, rebuilt=True))
    assert meter(window) == "", "of another context nothing is known yet"


def test_the_meter_grows_with_the_answer(window: MainWindow) -> None:
    answer = MessageId("a")
    window.store.apply(TurnStarted(ONE, answer, 0, 100, 40))
    window.store.apply(TextDelta(ONE, answer, "yes and no", (5, 6, 7)))
    window.store.count()
    assert meter(window) == "103 / 1,024"
    spans = (MessageSpan(MessageId("q"), 0, 20, 4, ()), MessageSpan(answer, 20, 43, 24, ()))
    window.store.apply(MessageSpans(ONE, 0, spans))  # the oldest messages have left
    assert meter(window) == "43 / 1,024"
    window.store.apply(ContextUse(ONE, 100, 100, 1024))
    assert meter(window) == "43 / 1,024", "it was asked before the answer began"


def test_the_list_counts_the_cells_of_every_branch_once(window: MainWindow) -> None:
    """Which branch is shown changes nothing in the cache, so it changes no count of cells."""
    runs = ((0, 32, (0, 1), 0, 1), (32, 100, (0,), 32, 3), (100, 140, (1,), 32, 4))
    one_goes_on = (Lease(ONE, 0), Lease(ONE, 1, inactive=True))
    other_goes_on = (Lease(ONE, 1), Lease(ONE, 0, inactive=True))
    for leases in (one_goes_on, other_goes_on):
        window.store.apply(replace(cache_view(runs=runs), leases=leases))
        window.store.count()
        assert window.conversations.view.model().index(0, 0).data(CELLS_ROLE) == 140


def test_unwatched_a_chat_counts_the_cells_of_all_its_branches(window: MainWindow) -> None:
    def cells(row: int) -> str:
        model = window.conversations.view.model()
        return str(model.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole))

    assert STATS.prompt_tokens + STATS.generated_tokens == 180
    window.store.apply(TurnEnded(ONE, MessageId("a"), "complete", replace(STATS, cells_used=180)))
    assert "180 cells" in cells(0)
    window.store.apply(TurnEnded(ONE, MessageId("b"), "complete", replace(STATS, cells_used=220)))
    assert "220 cells" in cells(0), "the branch before is still there"
    window.store.apply(TurnEnded(TWO, MessageId("c"), "complete", replace(STATS, cells_used=400)))
    assert ("220 cells" in cells(0), "180 cells" in cells(1)) == (True, True)
