from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.message import MessageId
from kvdesk.protocol.cache import ContextReady, Forget, OperationDone, RebuildContext, SpeedSample, TokenTexts
from kvdesk.protocol.chat import (
    BackendReady,
    Generate,
    LoadModel,
    LogLine,
    ModelLoaded,
    ModelLoading,
    TurnEnded,
    TurnPreview,
    TurnStarted,
)
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings, Sampling, Settings, ThemeChoice
from kvdesk.ui.chat_list.conversation_model import CELLS_ROLE
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.access.reading_order import in_reading_order
from kvdesk.ui.widgets.controls import ElidedButton, ElidedLabel
from kvdesk.values import replace
from kvdesk.viewmodel.cells.readout import stats_parts
from kvdesk.viewmodel.graphs.cell_metrics import GAPS, HIGH_WATER, USED
from tests.ui.layout_child import too_high_px
from tests.ui.recording import Record, record
from tests.ui.samples import (
    CONTEXT,
    CONVERSATIONS,
    MODEL,
    ONE,
    STATS,
    TWO,
    append_message,
    cache_view,
    message,
    show_messages,
)
from tests.ui.seen import log_text, seen


def test_an_empty_window_says_what_to_do(empty_window: MainWindow, record: Record) -> None:
    sent = record(empty_window.commands.conversations.send)
    empty_window.chat.composer.set_text("hello")
    empty_window.chat.composer.submit()
    assert sent == [], "nothing can be sent without a model"
    assert empty_window.chat.composer.text == "hello", "what was typed stays"


def test_what_is_typed_stays_while_no_chat_is_shown(empty_window: MainWindow, record: Record) -> None:
    sent = record(empty_window.commands.conversations.send)
    empty_window.store.apply(ModelLoading(LocalFile(Path("/m/tiny.gguf")), 0.4))
    empty_window.store.apply(ModelLoaded(MODEL))
    empty_window.chat.composer.set_text("hello")
    empty_window.chat.composer.submit()
    assert sent == []
    assert empty_window.chat.composer.text == "hello"


def test_keys(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    show_messages(window, ONE, [message("q", "user", "Hello"), message("a", "assistant", "Hello to you.")])
    new, again = record(window.commands.new_chat), record(window.commands.conversations.turns.regenerate)
    qtbot.keyClick(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    assert again == [(ONE, 1)], "one more answer"
    qtbot.keyClick(window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert new == [()]


@pytest.mark.parametrize("field", ["composer", "search"])
def test_keys_of_the_window_work_while_one_types(window: MainWindow, qtbot: QtBot, field: str) -> None:
    widget = window.chat.composer.edit if field == "composer" else window.conversations.search
    window.chat.composer.set_text("draft")
    window.chat.composer.edit.moveCursor(QTextCursor.MoveOperation.Start)
    widget.setFocus()
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.keyClick(widget, Qt.Key.Key_K, control)
    assert window.conversations.search.hasFocus()
    assert window.chat.composer.text == "draft"
    widget.setFocus()
    told = record(window.commands.new_chat)
    qtbot.keyClick(widget, Qt.Key.Key_N, control)
    assert told == [()]
    qtbot.keyClick(widget, Qt.Key.Key_I, control)
    assert not window.inspector.isVisible()


class _Greedy(QLineEdit):
    """As Qt's fields are on X11, which take Ctrl+E for themselves."""

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)


def test_a_key_of_the_window_is_left_to_it_by_every_field(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    new = record(window.commands.new_chat)
    show_messages(window, ONE, [message("q", "user", "Hello"), message("a", "assistant", "Hello to you.")])
    field = _Greedy(window)
    field.show()
    window.activateWindow()
    field.setFocus()
    qtbot.keyClick(field, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert new == [], "others are its own"
    qtbot.keyClick(field, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert window.chat.view.widgets[0].editor is not None
    field.deleteLater()


def test_a_new_chat_ends_the_search_that_would_hide_it(window: MainWindow, qtbot: QtBot) -> None:
    window.conversations.search.setText("lighthouse")
    qtbot.keyClick(window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert window.conversations.search.text() == ""
    assert window.conversations.view.isVisible()


def test_panes_fold(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    watched = record(window.commands.watch)
    qtbot.keyClick(window, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    assert not window.conversations.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
    assert not window.inspector.isVisible()
    last = window.store.settings.current
    assert (last.sidebar_visible, last.inspector_visible) == (False, False)
    assert watched[-1] == (False,)
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert window.conversations.isVisible(), "searching shows the list"


def test_cells_are_watched_again_when_what_hid_them_is_gone(window: MainWindow, record: Record) -> None:
    watched = record(window.commands.watch)
    window.chat_parameters.open()
    window.store.settings.change(theme=ThemeChoice.DARK)
    window.chat_parameters.close()
    assert watched == [(False,), (True,)]
    window.resize(700, 600)
    assert (window.inspector.isHidden(), watched[2:]) == (True, [(False,)])
    window.resize(1280, 800)
    assert watched[3:] == [(True,)]


def test_snapshots_are_asked_for_only_while_somebody_looks(empty_window: MainWindow) -> None:
    sent = record(empty_window.commands.watch)
    empty_window.store.settings.change(**dict(Settings(theme=ThemeChoice.DARK, inspector_visible=False)))
    assert sent[-1] == (False,)
    sent = record(empty_window.commands.watch)
    empty_window.store.settings.change(**dict(Settings(theme=ThemeChoice.DARK)))
    assert sent[-1] == (True,)
    sent = record(empty_window.commands.watch)
    empty_window.hide()
    assert sent[-1] == (False,)


def test_selecting_renaming_and_deleting(window: MainWindow, record: Record) -> None:
    selected, renamed = record(window.commands.select), record(window.commands.conversations.rename)
    view = window.conversations.view
    view.setCurrentIndex(view.model().index(1, 0))
    assert selected == [(TWO,)]
    view.model().setData(view.model().index(0, 0), "  New   name ")
    assert renamed == [(ONE, "New name")]
    view.model().setData(view.model().index(0, 0), "   ")
    assert len(renamed) == 1, "a title is not emptied"


def test_being_told_what_is_selected_asks_for_nothing(window: MainWindow, record: Record) -> None:
    selected = record(window.commands.select)
    window.store.show_conversations(CONVERSATIONS, TWO)
    window.store.show_conversations((), None)
    window.store.show_conversations(CONVERSATIONS, ONE)
    assert selected == []
    assert window.store.selected == ONE


def test_messages_of_a_conversation_that_is_not_shown_are_ignored(window: MainWindow) -> None:
    show_messages(window, TWO, (message("q", "user", "hidden", conversation=TWO),))
    assert window.chat.view.widgets == ()


@pytest.mark.usefixtures("fresh")
def test_forget_and_rebuild(window: MainWindow, record: Record) -> None:
    forget, rebuild = record(window.commands.submit), record(window.commands.rebuild)
    button = window.inspector.cache.forget
    assert not button.isEnabled(), "nothing to forget yet"
    window.store.apply(cache_view())
    button.click()
    assert forget == [(Forget(ONE),)]
    window.inspector.cache.rebuild.click()
    window.inspector.cache.instruments.question._buttons["nothing"].click()
    assert rebuild == [(ContextSettings(), "nothing")]
    window.store.begin_rebuild()
    assert window.inspector.cache.rebuild.text() == "Rebuilding…"
    assert not window.inspector.cache.rebuild.isEnabled()
    window.store.apply(ContextReady(CONTEXT, rebuilt=True))
    assert window.inspector.cache.rebuild.text() == "Rebuild context"
    assert window.inspector.cache.rebuild.isEnabled()
    assert "llama_memory_seq_rm" in button.toolTip()
    assert "llama_init_from_model" in window.inspector.cache.rebuild.toolTip()


def test_a_failed_rebuild_is_said_inline(window: MainWindow) -> None:
    window.verbs.ask_rebuild()
    window.store.apply(CommandFailed(RebuildContext(ContextSettings()), "Not enough memory. Lower n_ctx.", "ENOMEM"))
    assert window.chat.banner.sentence == "Not enough memory. Lower n_ctx."
    assert window.inspector.cache.rebuild.isEnabled()


def test_a_model_that_cannot_be_opened_leaves_the_old_one(window: MainWindow) -> None:
    window.store.apply(ModelLoading(LocalFile(Path("/m/bad.gguf")), 0.1))
    window.store.apply(
        CommandFailed(LoadModel(LocalFile(Path("/m/bad.gguf")), ContextSettings()), "This is no GGUF file.")
    )
    assert window.chat.banner.sentence == "This is no GGUF file."
    assert not window.chat.composer.blocked


def test_a_failed_turn_frees_the_composer(window: MainWindow) -> None:
    answer = message("a", "assistant", "", state="streaming")
    append_message(window, answer)
    assert window.chat.composer.is_running
    window.store.apply(CommandFailed(Generate(ONE, answer.id, (), Sampling()), "The prompt is too long."))
    assert not window.chat.composer.is_running


@pytest.mark.usefixtures("fresh")
def test_the_cache_is_shown_everywhere(window: MainWindow, qtbot: QtBot) -> None:
    window.store.apply(TokenTexts({3: " sea"}))
    window.store.apply(cache_view())
    assert "map verified at operation 7" in seen(window.status)
    assert "2 threads" in seen(window.status)
    assert "KV 2.6 of 12.0 MB" in seen(window.status)
    numbers = window.inspector.cache.instruments.numbers._figures
    qtbot.waitUntil(lambda: numbers[USED]._value.text() == "220", timeout=2000)
    assert numbers[HIGH_WATER]._value.text() == "240"
    assert numbers[GAPS]._value.text() == "8.3"
    assert [
        (row.title, row.span.pos_min, row.span.pos_max) for row in window.inspector.cache.instruments.rulers.rows
    ] == [("A village far away", 0, 179), ("Caches", 0, 71)]
    model = window.conversations.view.model()
    assert [model.index(i, 0).data(CELLS_ROLE) for i in range(2)] == [180, 72]


@pytest.mark.usefixtures("fresh")
def test_speeds_operations_and_logs_are_drawn(window: MainWindow) -> None:
    window.store.apply(TurnStarted(ONE, MessageId("a"), 0, 140, 128))
    for i in range(20):
        window.store.apply(SpeedSample(100.0 + i * 0.1, "decode", 1, 100.0, 256))
    window.store.apply(OperationDone(1, 100.0, "decode", "llama_decode(...)", 8.0))
    window.store.apply(OperationDone(2, 101.0, "remove", "llama_memory_seq_rm(mem, 0, -1, -1)", 0.1, ONE))
    window.store.apply(LogLine("warning", "something odd"))
    assert [mark.operation.name for mark in window.store.measured.marks] == ["remove"]
    assert "10 tok/s" in seen(window.status)
    assert "something odd" in log_text(window.inspector.log)


def test_closing_is_said(window: MainWindow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window.closing):
        window.close()


def test_cells_that_a_server_could_show_come_with_what_helps(window: MainWindow) -> None:
    window.store.apply(BackendReady(frozenset({Feature.CHAT})))
    window.store.apply(ModelLoaded(MODEL, limit="Start it with a key."))
    assert window.inspector.missing == "This engine does not show its cells.\nStart it with a key."
    window.store.apply(ModelLoaded(MODEL))
    assert window.inspector.missing == "This engine does not show its cells."
    window.store.apply(BackendReady(frozenset(Feature)))
    assert window.inspector.missing == ""


def test_every_control_has_a_name(window: MainWindow) -> None:
    window.rooms.show_settings()
    for kind in (QAbstractButton, QLineEdit, QPlainTextEdit, QAbstractSpinBox):
        for widget in window.findChildren(kind):
            inside = isinstance(widget.parent(), QLineEdit | QAbstractSpinBox) or widget.objectName()[:3] == "qt_"
            text = widget.text() if isinstance(widget, QAbstractButton) else ""
            assert inside or widget.accessibleName() or text, widget


def test_tab_goes_through_the_window_as_one_reads_it(window: MainWindow) -> None:
    window.store.apply(cache_view())
    show_messages(window, ONE, (message("q", "user", "a question"), message("a", "assistant", "an answer")))
    stops = list(in_reading_order(window))
    prose = window.chat.view.widgets[-1].findChildren(ProseView)[0]
    assert stops.index(window.chat.composer.edit) > stops.index(prose), "made later, read earlier"
    left = [stop.mapTo(window, QPoint()).x() for stop in stops if not window.status.isAncestorOf(stop)]
    panes = [(x >= window.chat.x()) + (x >= window.inspector.x()) for x in left]
    assert panes == sorted(panes), "the conversations, the chat, the inspector"
    reached: list[QWidget] = []
    while True:
        window.focusNextPrevChild(True)
        now = window.focusWidget()
        assert now.accessibleName() or (isinstance(now, QAbstractButton) and now.text()), now
        if now in reached:
            break
        reached.append(now)
    assert now is reached[0], "then the first again"
    assert set(reached) == set(in_reading_order(window)), "all; arrows go through buttons of which one is chosen"
    window.focusNextPrevChild(False)
    assert window.focusWidget() is reached[-1]


def test_words_of_the_engine_are_for_who_asks_for_more(window: MainWindow) -> None:
    window.store.apply(cache_view())
    window.store.count()
    assert "2 threads\nKV 2.6 of 12.0 MB\nK/V f16" in seen(window.status)
    window.shown_settings.show_instruments(False)
    assert seen(window.status) == ""
    assert window.status._audit.isHidden()
    window.shown_settings.show_instruments(True)
    assert "K/V f16" in seen(window.status)


def test_a_narrow_status_line_cuts_nothing(window: MainWindow, qtbot: QtBot) -> None:
    status = window.status
    window.store.apply(cache_view())
    window.store.count()
    window.store.show_served("http://127.0.0.1:8080/v1", 0)
    for width, whole in ((1280, True), (750, False), (1280, True)):
        window.resize(width, 600)
        qtbot.waitUntil(lambda whole=whole: (status._types.isVisible(), status._trust.is_elided) == (whole, False))  # type: ignore[misc]


@pytest.mark.usefixtures("fresh")
def test_the_map_has_half_of_the_inspector_and_stays_in_sight(window: MainWindow, qtbot: QtBot) -> None:
    window.resize(1280, 800)
    window.store.apply(cache_view(size=16_384))
    window.store.count()
    qtbot.wait(1)
    cells = window.inspector.cell_map
    assert len(window.inspector.cache.instruments.rulers.rows) == 2
    assert too_high_px(window) == 0, "numbers and positions of two conversations need no scrolling"
    assert cells.height() == round(window.inspector.height() / 2)
    before = cells.mapTo(window, cells.rect().topLeft())
    window.inspector.cache.reveal(window.inspector.cache.instruments.trends)
    qtbot.wait(1)
    assert cells.mapTo(window, cells.rect().topLeft()) == before, "only what is below it scrolls"


def test_nothing_measured_of_one_model_is_shown_under_the_name_of_the_next(window: MainWindow) -> None:
    window.store.apply(cache_view())
    window.store.apply(TurnStarted(ONE, MessageId("a"), 0, 140, 128))
    for i in range(40):
        window.store.apply(SpeedSample(10.0 + i / 40, "decode", 1, 25.0, 256))
    window.store.apply(TokenTexts({5: "sea"}))
    window.store.count()
    assert "40 tok/s" in seen(window.status)
    window.store.apply(TurnEnded(ONE, MessageId("a"), "complete", STATS))
    assert "tok/s" not in seen(window.status), "the answer shows its own"
    window.store.apply(TurnStarted(ONE, MessageId("b"), 0, 140, 128))
    window.store.apply(SpeedSample(12.0, "prefill", 140, 2000.0, 256))
    window.store.count()
    assert "40 tok/s" not in seen(window.status), "a prompt is read: nothing is written yet"
    window.chat.composer.set_text("hello")
    window.store.apply(TurnPreview(ONE, 20, 9, 120.0, "20 tokens from cache, 9 to compute", text="hello"))
    measured = window.store.measured
    assert measured.turn is not None
    other = replace(MODEL, name="Other")
    window.store.apply(ModelLoaded(other))
    window.store.apply(ContextReady(CONTEXT, rebuilt=False))
    window.store.count()
    assert "tok/s" not in seen(window.status)
    assert (measured.n_turns, measured.gaps.n, len(measured.marks)) == (0, 0, 0)
    assert [named.name for named in measured.all_series() if len(named.series)] == []
    assert window.store.texts == {}
    assert "from cache" not in window.chat.composer.hint.full_text
    window.store.apply(SpeedSample(20.0, "decode", 1, 500.0, 256))
    assert measured.decode.series.values.tolist() == [2.0], "the first reading is the new model's own"


def test_at_900_by_600_names_are_not_cut_short(window: MainWindow, qtbot: QtBot) -> None:
    model = replace(MODEL, name="SmolLM2-135M-Instruct.Q4_1")
    window.store.apply(ModelLoaded(model))
    title = "Write three sentences about a lighthouse."
    window.store.show_conversations((Conversation(ONE, title, 0), Conversation(TWO, "Caches", 1)), ONE)
    window.store.apply(cache_view())
    window.resize(900, 600)
    assert (window.width(), window.height()) == (900, 600)
    view = window.conversations.view
    heights = [view.visualRect(view.model().index(row, 0)).height() for row in (0, 1)]
    assert heights[0] > heights[1], "a long title has two lines"
    header = next(w for w in window.chat.findChildren(ElidedButton) if w.full_text == model.name)
    qtbot.waitUntil(lambda: header.text() == model.name)
    window.store.settings.change(**dict(Settings(theme=ThemeChoice.DARK)))  # as it is at the first start: three panes
    assert window.conversations.isVisible()
    qtbot.waitUntil(lambda: header.text() == model.name)
    window.store.settings.change(**dict(Settings(theme=ThemeChoice.DARK, all_instruments=True)))
    answer = message("a", "assistant", "Hello to you.", stats=replace(STATS, why="The beginning is another one."))
    show_messages(window, ONE, (message("q", "user", "Hello"), answer))
    line = next(w for w in window.chat.view.findChildren(ElidedLabel, "answerStats"))
    qtbot.waitUntil(lambda: line.full_text == "  ·  ".join(stats_parts(STATS)[2:]))  # *Why?* says the rest
    assert not line.is_elided
    composer = window.chat.composer
    composer.set_text("Hello")
    words = "1,409 tokens from cache, 1,013 to compute, first token in about 12 s"
    preview = TurnPreview(ONE, 1_409, 1_013, 12_000.0, words, 4_096, n_conversation=1_409, n_draft=1_001, text="Hello")
    window.store.apply(preview)
    hint = composer.hint
    assert "from cache" in hint.full_text
    assert not hint.is_elided
    assert hint.fontMetrics().lineSpacing() * 2 <= hint.height()
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: line.full_text == "  ·  ".join(stats_parts(STATS)))  # not that it is complete
