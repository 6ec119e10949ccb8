"""What the model looked at: page, words of the chat, map, table, heads; what is selected in one is selected in all."""

import time

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QItemSelectionModel, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk.cache.attention_weights import AttentionColumns, LayerAttention
from kvdesk.message import MessageId
from kvdesk.protocol.attention import Attend, Attended, PreviewAttention, Queries
from kvdesk.protocol.cache import ContextReady, MessageSpan, MessageSpans
from kvdesk.protocol.chat import BackendReady, TurnEnded, TurnStarted, Working
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import Capability, Operate, SwapIn
from kvdesk.session import Store
from kvdesk.settings import Settings
from kvdesk.ui.attention.head_grid import HeadGrid
from kvdesk.ui.attention.legend import AttentionLegend
from kvdesk.ui.attention.page import AttentionPage
from kvdesk.ui.map.cell_descriptions import cell_words
from kvdesk.ui.map.colours import LEFT_OUT, ColourBy
from kvdesk.ui.map.raster import FIRST_GROUP, N_SHADES
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.messages.attention_words import sink_colour, spot_colour, word_colours
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.shell.slices import SLICES
from kvdesk.ui.widgets.style.colours import DARK, LIGHT, Colours
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import replace
from kvdesk.viewmodel.cells.attention import Choice, Scope, Spot
from kvdesk.viewmodel.cells.head_pictures import Heads
from kvdesk.viewmodel.palette import contrast
from tests.ui import recording
from tests.ui.attended import IS, N_HEADS, SEA, SINK, SPECIAL, attended, indexed, price
from tests.ui.recording import Record
from tests.ui.samples import CONTEXT, ONE, STATS, TWO, cache_view, message, show_messages

QUESTION, ANSWER = MessageId("q"), MessageId("a")
TEXT = "The **sea** is far."
ENDS = (3, 6, 9, 11, 14, 18, 19)  # The| **|sea|**| is| far|., positions 11 to 18


@pytest.fixture
def looking(window: MainWindow) -> MainWindow:
    """The page is open; the answer is at positions 8 to 20 of sequence 0, cells as positions."""
    show_messages(window, ONE, (message("q", "user", "Where is it?"), message("a", "assistant", TEXT)))
    spans = (MessageSpan(QUESTION, 0, 8, 3, (5, 8, 12)), MessageSpan(ANSWER, 8, 20, 11, ENDS))
    window.store.apply(MessageSpans(ONE, 0, spans))
    window.store.texts.update({SINK: "The", SEA: "sea", IS: " is", 179: "."})
    window.store.apply(cache_view())
    window.kit.actions.run("view.attention")
    window.activateWindow()
    page(window)._asked = None  # on a busy machine the price has been asked for by now
    return window


def page(window: MainWindow) -> AttentionPage:
    return window.inspector._page(AttentionPage)


def ask_price(window: MainWindow) -> Queries:
    page(window)._pricing.now()
    wanted = page(window)._wanted()
    assert wanted is not None
    window.store.apply(price(wanted))
    return wanted


def compute(window: MainWindow, spot: Spot | None = None) -> Queries:
    """As a person and the engine would."""
    window.store.look(window.store.attention.looked_from(spot or Spot(0, 19)))
    wanted = ask_price(window)
    page(window).compute.click()
    window.store.apply(attended(wanted, window.store.attention.number))
    return wanted


def prose(window: MainWindow) -> ProseView:
    widget = window.chat.view.widget_of(ANSWER)
    return widget.findChildren(ProseView)[0]


def colours(window: MainWindow) -> dict[str, str]:
    """What has a colour behind it, and which; of a word with several, the last."""
    marks = prose(window).extraSelections()
    return {mark.cursor.selectedText(): mark.format.background().color().name() for mark in marks}


def test_the_last_token_is_looked_from_and_its_price_is_said_first(looking: MainWindow, record: Record) -> None:
    sent = record(looking.commands.submit)
    shown = page(looking)
    assert shown.spot_row.words == "“.”  ·  position 179"
    assert not shown.compute.isEnabled()
    shown._pricing.now()
    assert sent == [(PreviewAttention(Queries(0, 179, 180)),)]
    looking.store.apply(price(Queries(0, 179, 180)))
    assert shown._price.text() == "A second context of 24.0 MB, 1 token, about 0.1 s."
    assert shown.compute.isEnabled()
    assert shown.compute.accessibleDescription() == shown._price.text()
    assert len(sent) == 1, "nothing is computed before somebody asks for it"
    shown.compute.click()
    assert sent[1:] == [(Attend(Queries(0, 179, 180), looking.store.attention.number),)]
    assert shown._price.text() == "Computing…"


def test_choices_that_cannot_be_made_say_why(looking: MainWindow) -> None:
    choices = page(looking).choices
    for box in (choices.layer, choices.head):
        assert not box.isEnabled()
        assert box.toolTip().startswith("Compute first")
    compute(looking)
    assert choices.layer.isEnabled()
    looking.store.look(looking.store.attention.of_choice(Choice(0, 0)))
    assert not choices.how.isEnabled()
    assert choices.how.toolTip() == "One head of one layer has nothing to be combined with."


def test_a_price_that_came_while_nobody_looked_is_asked_for_again(looking: MainWindow, record: Record) -> None:
    sent, shown, queries = record(looking.commands.submit), page(looking), Queries(0, 179, 180)
    shown._pricing.now()
    looking.inspector.show_tab("Cache")
    looking.store.apply(price(queries))
    looking.store.look(looking.store.attention.forgotten())
    looking.kit.actions.run("view.attention")
    shown._pricing.now()
    assert sent == [(PreviewAttention(queries),)] * 2
    looking.store.apply(price(queries))
    assert shown.compute.isEnabled()


def test_a_result_is_a_table_a_map_and_coloured_words(
    looking: MainWindow, said: list[tuple[str, bool]], qtbot: QtBot
) -> None:
    compute(looking)
    shown = page(looking)
    table = shown.table
    assert [table.text(0, i) for i in range(5)] == ["“The”", "0", "0", "0.5688", "sink"]
    assert [table.text(1, i) for i in range(5)] == ["“sea”", "13", "13", "0.2000", "46 %"]
    assert shown._price.text() == "It took 0.12 s and 24.0 MB for a moment."
    assert shown._title.text().startswith("What token 19 looked at: all layers, all heads.")
    assert said[-1][0] == f"{shown._title.text()} “sea”: 20 % of the attention"
    qtbot.waitUntil(lambda: bool(shown.map.strips))
    assert shown.map._scene.attention is looking.store.attention.shown
    words = colours(looking)
    assert {"sea", " far"} <= set(words)
    assert words["sea"] != words[" far"], "it got more"
    (legend,) = looking.chat.findChildren(AttentionLegend)
    assert legend.isVisible()
    assert "20 %, sink, looked from" in legend.accessibleName()
    looking.inspector.show_tab("Cache")
    assert not colours(looking), "with the page its colours go"
    assert not legend.isVisible()


def test_what_the_indexer_chose_is_a_colour_a_column_and_words(looking: MainWindow) -> None:
    compute(looking)
    shown = page(looking)
    head = shown.table.horizontalHeader()
    assert head.count() - head.hiddenSectionCount() == 5, "a model without an indexer has no such column"
    store = looking.store
    store.look(store.attention.begun())
    store.apply(indexed(attended(Queries(0, 19, 20), store.attention.number)))
    assert head.count() - head.hiddenSectionCount() == 6
    assert [shown.table.text(i, 5) for i in range(3)] == ["100 %", "100 %", "50 %"]
    shown.map.refresh()
    assert "left out by the indexer" in shown._legend.accessibleDescription()
    frame = shown.map._frame
    assert frame is not None
    groups = (frame.strips[0].layer(0, 20).code - FIRST_GROUP) // N_SHADES
    assert np.flatnonzero(groups == LEFT_OUT).tolist() == sorted(set(range(20)) - {SINK, SEA, IS})
    assert "left out by the indexer" in cell_words(frame, 0, 5, store.texts)[1]
    store.look(store.attention.of_choice(Choice(layer=0)))
    assert IS not in shown.table.positions, "the indexer of that layer left it out"


def test_layers_and_heads_are_chosen_without_another_computation(looking: MainWindow, record: Record) -> None:
    compute(looking)
    sent = record(looking.commands.submit)
    shown = page(looking)
    shown.heads.chosen.emit(*SPECIAL)
    assert looking.store.attention.choice == Choice(*SPECIAL)
    assert [shown.table.text(0, i) for i in (0, 3)] == ["“␣is”", "0.6000"]
    assert (shown.choices.layer.currentText(), shown.choices.head.currentText()) == ("Layer 3", "Head 2")
    assert not shown.choices.how.isEnabled(), "one head is not combined with others"
    assert shown._title.text().endswith("layer 3, head 2.")
    shown.heads.chosen.emit(*SPECIAL)
    assert looking.store.attention.choice == Choice(), "once more shows all again"
    shown.choices.how.setCurrentIndex(1)
    shown.choices.how.activated.emit(1)
    assert shown.table.text(0, 3) == "0.6000"
    assert sent == []


def test_a_click_on_a_word_looks_from_it_and_keys_go_on(looking: MainWindow, qtbot: QtBot) -> None:
    view = prose(looking)
    cursor = view.textCursor()
    cursor.setPosition(view.toPlainText().index("sea") + 1)
    at = view.cursorRect(cursor).center() + QPoint(3, 0)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert page(looking).spot_row.words == "“sea”  ·  position 13"
    before, after = page(looking).spot_row.steps
    qtbot.keyClick(after, Qt.Key.Key_Space)
    assert page(looking).spot_row.words.endswith("position 14")
    qtbot.keyClick(before, Qt.Key.Key_Space)
    qtbot.keyClick(before, Qt.Key.Key_Space)
    assert page(looking).spot_row.words.endswith("position 12")
    qtbot.keyClick(page(looking).spot_row.last, Qt.Key.Key_Space)
    assert page(looking).spot_row.words.endswith("position 179")


def test_the_menu_of_a_message_leads_there(looking: MainWindow) -> None:
    looking.inspector.show_tab("Cache")
    menu = looking.chat.view.menu(ANSWER)
    (line,) = [line for line in menu.actions() if line.text() == "What it looked at"]
    line.trigger()
    assert looking.inspector.labels[looking.inspector._tabs.checkedId()] == "Attention"
    assert ask_price(looking) == Queries(0, 8, 20)


def test_the_cell_that_is_selected_can_be_looked_from(looking: MainWindow, qtbot: QtBot) -> None:
    assert not page(looking).spot_row.selected.isEnabled()
    looking.inspector.cell_map.cells_selected.emit(0, 0, SEA, SEA + 1)
    qtbot.keyClick(page(looking).spot_row.selected, Qt.Key.Key_Space)
    assert page(looking).spot_row.words == "“sea”  ·  position 13"
    looking.inspector.cell_map.cells_selected.emit(0, 0, 210, 211)
    page(looking).spot_row.selected.click()
    assert page(looking).spot_row.words == "token 210  ·  position 42  ·  Caches", "of another chat"


def test_enter_in_the_map_looks_from_its_cursor(looking: MainWindow, qtbot: QtBot) -> None:
    cells = page(looking).map
    cells.refresh()
    cells.setFocus(Qt.FocusReason.TabFocusReason)
    for _ in range(SEA):
        qtbot.keyClick(cells, Qt.Key.Key_Right)
    qtbot.keyClick(cells, Qt.Key.Key_Return)
    assert page(looking).spot_row.words == "“sea”  ·  position 13"


def test_while_an_answer_grows_its_last_token_waits(looking: MainWindow, record: Record) -> None:
    looking.store.apply(TurnStarted(ONE, ANSWER, 0, 100, 0))
    sent = record(looking.commands.submit)
    looking.store.apply(cache_view(operation=8))
    assert page(looking)._price.text().startswith("An answer is being written.")
    page(looking)._pricing.now()
    assert sent == []
    looking.store.look(looking.store.attention.looked_from(Spot(0, 13)))
    ask_price(looking)
    assert page(looking).compute.isEnabled(), "any other token stays as it is"
    looking.store.look(looking.store.attention.looked_from(None))
    looking.store.apply(TurnEnded(ONE, ANSWER, "complete", STATS))
    page(looking)._pricing.now()
    assert sent[-1] == (PreviewAttention(Queries(0, 179, 180)),)


def test_a_row_selects_its_cell_and_its_word_and_the_reverse(looking: MainWindow) -> None:
    compute(looking)
    shown = page(looking)
    table = shown.table
    index = table.model().index(table.positions.index(SEA), 0)
    flags = QItemSelectionModel.SelectionFlag
    table.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
    for cells in (looking.inspector.cell_map, shown.map):
        assert [run.cells.tolist() for run in cells._selection.runs] == [[SEA]]
    marked = prose(looking).marks._linked
    assert [mark.cursor.selectedText() for mark in marked] == ["sea"]
    looking.inspector.cell_map.cells_selected.emit(0, 0, IS, IS + 1)
    assert [i.row() for i in table.selectionModel().selectedRows()] == [table.positions.index(IS)]
    shown.map.cells_selected.emit(0, 0, SINK, SINK + 1)
    assert [i.row() for i in table.selectionModel().selectedRows()] == [0]
    assert [run.cells.tolist() for run in looking.inspector.cell_map._selection.runs] == [[SINK]]


def test_the_table_is_copied(looking: MainWindow, qtbot: QtBot) -> None:
    compute(looking)
    table = page(looking).table
    table.setFocus()
    table.selectRow(1)
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "“sea”\t13\t13\t0.2000\t46 %"
    qtbot.keyClick(table, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().splitlines()
    assert [line.split("\t")[1] for line in lines] == ["0", "13"], "several rows stay selected"


def test_other_tokens_have_another_price(looking: MainWindow, record: Record) -> None:
    compute(looking)
    sent = record(looking.commands.submit)
    scope = page(looking).choices.scope
    scope.setCurrentIndex(scope.findData(Scope.ANSWER))
    scope.activated.emit(scope.currentIndex())
    assert page(looking)._price.text() == "What it costs is being asked for…"
    assert not page(looking).compute.isEnabled()
    assert ask_price(looking) == Queries(0, 8, 20)
    assert (PreviewAttention(Queries(0, 8, 20)),) in sent
    page(looking).compute.click()
    looking.store.apply(attended(Queries(0, 8, 20), looking.store.attention.number))
    assert page(looking)._title.text().startswith("What 12 tokens up to token 19 looked at")
    assert page(looking).table.text(1, 3) == "2.4000", "12 times as much"


def test_what_is_cheap_is_computed_at_once_where_that_is_wanted(looking: MainWindow, record: Record) -> None:
    sent = record(looking.commands.submit)
    page(looking).follow.setChecked(True)
    looking.store.look(looking.store.attention.looked_from(Spot(0, 9)))
    looking.store.apply(price(Queries(0, 9, 10), seconds=3.0))
    assert not [one for (one,) in sent if isinstance(one, Attend)], "not what takes seconds"
    looking.store.look(looking.store.attention.looked_from(Spot(0, 10)))
    looking.store.apply(price(Queries(0, 10, 11)))
    assert (Attend(Queries(0, 10, 11), looking.store.attention.number),) in sent


@pytest.mark.usefixtures("fresh")
def test_it_can_be_stopped(looking: MainWindow, record: Record) -> None:
    stopped, shown = record(looking.commands.cancel_work), page(looking)
    wanted = ask_price(looking)
    shown.compute.click()
    number = looking.store.attention.number
    assert shown.compute.text() == "Stop"
    shown.compute.click()
    assert stopped == [()]
    assert (shown.compute.text(), shown._price.text()) == ("Compute", price(wanted).sentence)
    looking.store.apply(attended(wanted, number))
    assert looking.store.attention.shown is None, "it was on its way"
    shown.compute.click()
    looking.store.apply(Working("", 0, 0))
    assert shown.compute.text() == "Compute", "it was cancelled elsewhere"


def test_a_stale_result_says_so(looking: MainWindow) -> None:
    compute(looking)
    looking.store.apply(cache_view(operation=8, runs=((0, 190, (0,), 0, 1),)))
    looking.store.count()
    assert "have changed" not in page(looking)._title.text(), "more tokens change nothing"
    looking.store.apply(cache_view(operation=9, runs=((0, 10, (0,), 0, 1), (12, 190, (0,), 12, 1))))
    looking.store.count()
    assert page(looking)._title.text().endswith("The cells have changed since: compute it again.")


def test_why_it_cannot_be_computed(looking: MainWindow) -> None:
    shown = page(looking)
    wanted = ask_price(looking)
    shown.compute.click()
    looking.store.apply(CommandFailed(Attend(wanted, looking.store.attention.number), "There is no memory for it."))
    assert shown._price.text() == "There is no memory for it."
    assert not looking.chat.banner.isVisible(), "it is said where it was asked for"
    why = "This model has no attention."
    looking.store.apply(ContextReady(CONTEXT, False, (Capability("attention", "no", why),)))
    looking.store.apply(cache_view())
    assert shown._price.text() == why
    assert not shown.compute.isEnabled()
    looking.store.apply(BackendReady(frozenset({Feature.CHAT, Feature.CACHE_VIEW})))
    assert looking.inspector.missing == "This engine does not show what tokens look at."


def test_a_chat_that_is_saved_is_swapped_in(looking: MainWindow, record: Record) -> None:
    sent, shown = record(looking.commands.submit), page(looking)
    without = cache_view(8, runs=((200, 240, (1,), 32, 6),))
    looking.store.apply(replace(without, leases=without.leases[1:]))
    looking.store.count()
    assert (shown._price.text(), shown.compute.isEnabled()) == (
        "This chat has no cells in the cache. Send a message first.", False,
    )  # fmt: skip
    looking.store.apply(replace(without, leases=without.leases[1:], swapped=((ONE, 1_000_000),)))
    looking.store.count()
    assert (shown.compute.text(), shown.compute.isEnabled()) == ("Swap in", True)
    shown.compute.click()
    assert sent[-1] == (Operate(SwapIn(ONE)),)
    looking.store.apply(cache_view(9))
    looking.store.count()
    assert shown.compute.text() == "Compute"


def test_another_chat_has_its_own(looking: MainWindow) -> None:
    compute(looking)
    looking.store.show_conversations(tuple(looking.store.conversations.values()), TWO)
    assert looking.store.attention.shown is None
    assert page(looking).table.rowCount() == 0
    assert page(looking).spot_row.words == "token 239  ·  position 71"


def test_the_heads_by_keys(looking: MainWindow, qtbot: QtBot, said: list[tuple[str, bool]]) -> None:
    compute(looking)
    heads = page(looking).heads
    QApplication.processEvents()  # laid out
    heads.setFocus(Qt.FocusReason.TabFocusReason)
    assert heads.at == (0, 0)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Right):
        qtbot.keyClick(heads, key)
    assert heads.at == SPECIAL
    words = "Layer 3, head 2: most on “␣is”, position 15 (60 %)"
    assert heads.accessibleDescription() == page(looking)._about.full_text == words
    assert said[-1][0] == words
    qtbot.keyClick(heads, Qt.Key.Key_Down)
    assert heads.at == SPECIAL, "it is the last layer"
    qtbot.keyClick(heads, Qt.Key.Key_End)
    assert heads.at == (3, N_HEADS - 1)
    qtbot.keyClick(heads, Qt.Key.Key_Return)
    assert looking.store.attention.choice == Choice(3, N_HEADS - 1)
    assert heads.cursor_box is not None
    assert heads.visibleRegion().contains(heads.cursor_box), "what the keyboard is at is in sight"


def test_the_heads_by_the_pointer(looking: MainWindow, qtbot: QtBot) -> None:
    compute(looking)
    heads = page(looking).heads
    at = heads.box_of(1, SPECIAL[1]).center()
    none = Qt.MouseButton.NoButton
    move = QMouseEvent(QEvent.Type.MouseMove, QPointF(at), QPointF(at), none, none, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(heads, move)
    assert heads.at == SPECIAL
    qtbot.mouseClick(heads, Qt.MouseButton.LeftButton, pos=at)
    assert looking.store.attention.choice == Choice(*SPECIAL)


def test_the_map_of_the_cache_has_it_as_one_more_colour(looking: MainWindow) -> None:
    compute(looking)
    looking.inspector.show_tab("Cache")
    bar = looking.inspector.cache.instruments.bar
    bar.mode.setCurrentIndex(bar.mode.findData(ColourBy.ATTENTION))
    assert "attention" in bar.mode.toolTip()
    cells = looking.inspector.cell_map
    cells.refresh()
    legend = looking.inspector.cache._legend.accessibleDescription()
    assert legend.startswith("Coloured by attention: attention ≤ 0.02 % 20 %, sink, not looked at")
    cells._set_at((0, SEA))
    assert "20 % of the attention" in looking.inspector.cache._second.full_text


@pytest.mark.parametrize("colours", [DARK, LIGHT], ids=["dark", "light"])
def test_words_can_be_read_on_their_colours(colours: Colours) -> None:
    behind = [*word_colours(colours)[1:], sink_colour(colours), spot_colour(colours)]
    assert min(contrast(colours.text, one) for one in behind) >= 4.5


def test_a_build_without_it_has_nothing_of_it(qapp: QApplication, qtbot: QtBot, fresh: None) -> None:  # noqa: ARG001
    window = MainWindow(
        qapp, Store(Settings()), recording.Recorder(), [one for one in SLICES if one.name != "attention"]
    )
    qtbot.addWidget(window)
    assert "Attention" not in window.inspector.labels
    assert "view.attention" not in window.action_set
    assert window.inspector.cache.instruments.bar.mode.findData(ColourBy.ATTENTION) < 0


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 4096), (8, 1024)])
def test_the_heads_of_a_large_model_are_drawn_within_a_frame(
    theme: Theme, qtbot: QtBot, n_rows: int, n_columns: int
) -> None:
    grid = HeadGrid(theme)
    qtbot.addWidget(grid)
    grid.resize(420, 400)
    random, pos = np.random.default_rng(0), np.arange(n_columns, dtype=np.int32)
    columns = AttentionColumns(pos, pos, (pos,), 0)
    shape = (32, n_rows, n_columns)
    none = np.zeros(shape[:2], np.float32)
    parts = tuple(LayerAttention(i, 0, random.random(shape, dtype=np.float32), none) for i in range(32))
    asked = Queries(0, n_columns - n_rows, n_columns, each=n_rows > 1)
    heads = Heads(Attended(asked, 1, 7, pos[-n_rows:], columns, parts), {})
    image = QImage(grid.size(), QImage.Format.Format_RGB32)
    took = []
    for _ in range(10):
        begun = time.thread_time()
        grid.show_heads(heads)
        grid.render(image)
        took.append(time.thread_time() - begun)
    assert min(took) < 0.016
    right, below = grid.box_of(31, 31).right(), grid.box_of(31, 31).bottom()
    assert (right < grid.width(), below < grid.height()) == (True, True)
