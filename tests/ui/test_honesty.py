"""What the window says is so: names, captions, empty titles, an engine that is gone, and small windows."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import EngineDied, ModelLoaded, TurnEnded
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.controls import ElidedButton, ElidedLabel
from kvdesk.values import replace
from tests.tour.caption import Caption
from tests.ui.map.cell_rect import cell_rect
from tests.ui.recording import Record
from tests.ui.samples import (
    CONTEXT,
    CONVERSATIONS,
    MODEL,
    ONE,
    STATS,
    append_message,
    cache_view,
    message,
    show_messages,
)

NEW = ConversationId("new")


def texts(widget: QWidget) -> list[str]:
    return [part.text() for part in widget.findChildren(QLabel) if part.isVisible()]


def box(window: MainWindow, widget: QWidget) -> QRect:
    return QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())


def test_answers_keep_the_name_of_the_model_that_made_them(window: MainWindow) -> None:
    old = message("old", "assistant", "from a time when it was not kept")
    one, two = (replace(message(name[0], "assistant", name), model=name) for name in ("Tiny", "Other"))
    show_messages(window, ONE, (old, one, two))
    window.store.apply(ModelLoaded(replace(MODEL, name="Third")))
    assert [widget.accessibleName().split(":")[0] for widget in window.chat.view.widgets] == ["Answer", "Tiny", "Other"]


def test_a_new_chat_has_a_name(window: MainWindow) -> None:
    window.store.show_conversations((*CONVERSATIONS, Conversation(NEW, "", 2)), NEW)
    model = window.conversations.view.model()
    assert model.index(2, 0).data() == "New chat"
    (title,) = [part for part in window.chat.findChildren(ElidedLabel) if part.full_text == "New chat"]
    assert title.property("tone") == "secondary"
    window.store.show_conversations(CONVERSATIONS, ONE)
    assert title.full_text == "A village far away"
    assert not title.property("tone")


def test_a_turn_that_never_began_has_no_numbers(window: MainWindow) -> None:
    append_message(window, message("a", "assistant", "", state="streaming"))
    none = replace(STATS, prompt_tokens=0, reused_tokens=0, prefilled_tokens=0, generated_tokens=0)
    window.store.apply(TurnEnded(ONE, MessageId("a"), "failed", none, "The prompt is too long."))
    assert not any("reused" in text for text in texts(window.chat.view))


def test_a_dead_engine_leaves_nothing_to_press(window: MainWindow, record: Record) -> None:
    show_messages(window, ONE, (message("a", "assistant", "yes"),))
    window.store.apply(cache_view())
    commands = window.commands
    asked = [record(one) for one in (commands.rebuild, commands.conversations.turns.regenerate, commands.submit)]
    window.store.apply(EngineDied("The engine stopped. Restart kvdesk; your chats are saved.", "Traceback"))
    show_messages(window, ONE, (message("a", "assistant", "yes"),))
    offered = [b.text() for b in window.chat.findChildren(QPushButton) if b.isVisible() and b.isEnabled()]
    assert not any("Open" in text for text in offered)
    assert window.chat.composer.blocked
    assert not window.inspector.cache.forget.isEnabled()
    assert not window.inspector.cache.rebuild.isEnabled()
    again = [b for b in window.chat.findChildren(QToolButton) if b.accessibleName() == "Answer again"]
    assert not any(b.isVisible() for b in again)
    (audit,) = [b for b in window.status.findChildren(QToolButton) if b.text() == "Audit"]
    assert not audit.isEnabled()
    assert audit.toolTip() == "There is no context to compare with."
    window.action_set.run("chat.regenerate")
    assert asked == [[], [], []]
    show_messages(window, ONE, ())
    assert any("Restart kvdesk" in text for text in texts(window.chat))


@pytest.mark.usefixtures("styled")
def test_the_caption_covers_the_composer_only(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, (message("q", "user", "a"), message("a", "assistant", "word " * 2000, stats=STATS)))
    caption = Caption(window)
    caption.show_text("The second question reuses 128 tokens: look at the line under the answer")
    qtbot.wait(50)
    assert caption.isVisible()
    assert not box(window, caption).intersects(box(window, window.chat.view))
    window.resize(900, 600)
    qtbot.wait(50)
    assert not box(window, caption).intersects(box(window, window.chat.view))
    assert box(window, window.chat).contains(box(window, caption))


@pytest.mark.usefixtures("styled")
def test_a_small_window_elides(window: MainWindow, qtbot: QtBot) -> None:
    window.store.apply(
        ModelLoaded(
            replace(
                MODEL, name="A model with quite a long name and yet more of it, and more, and still some of it, Q4_1"
            )
        )
    )
    show_messages(window, ONE, (message("q", "user", "x" * 9000), message("a", "assistant", "yes", stats=STATS)))
    window.store.apply(cache_view())
    for size in ((900, 600), (1024, 640)):
        window.resize(*size)
        qtbot.wait(50)
        assert (window.width(), window.height()) == size
        (title,) = [part for part in window.chat.findChildren(ElidedLabel) if part.full_text == "A village far away"]
        assert title.width() >= 64
        model = next(part for part in window.chat.findChildren(ElidedButton) if part.full_text.startswith("A model"))
        assert model.text().endswith("…")
        for widget in window.chat.view.widgets:
            assert box(window, widget).right() <= box(window, window.chat.view).right(), "nothing is cut off"


@pytest.mark.usefixtures("styled", "fresh")
def test_the_head_is_whole_at_the_first_cell(window: MainWindow, qtbot: QtBot, qapp: QApplication) -> None:
    view = cache_view()
    cells = view.snapshot.maps[0].streams[0]
    maps = (replace(view.snapshot.maps[0], streams=(replace(cells, head=0),)),)
    window.store.apply(ContextReady(CONTEXT, rebuilt=False))
    window.store.apply(replace(view, snapshot=replace(view.snapshot, maps=maps)))
    qtbot.wait(100)
    qapp.processEvents()
    cell_map = window.inspector.cell_map
    image = cell_map.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    rect = cell_rect(cell_map, 0, 0)
    left, top = rect.left() - 1, rect.top() - 1  # the frame stands around the cell
    edge = np.array([[image.pixelColor(left + x, top + y).lightness() for x in range(8)] for y in range(8)])
    assert (edge[:2, :5].max(axis=0) > 180).all(), "the upper side"
    assert (edge[:5, :2].max(axis=1) > 180).all(), "the left side"
