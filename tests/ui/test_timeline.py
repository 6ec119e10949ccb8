"""The time line: rows, folding, the map of any moment, and what is asked of the engine for it."""

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk.cache.journal.packing import Entry, Operation
from kvdesk.cache.snapshot import CacheMap
from kvdesk.protocol.cache import ContextReady, OperationDone, RecordingTaken, SpeedSample, TakeRecording
from kvdesk.protocol.chat import ModelLoaded, Working
from kvdesk.session import Commands, Store
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.timeline.model import ROW_PX, ROW_ROLE
from kvdesk.ui.timeline.page import TimelinePage
from kvdesk.ui.timeline.rows import Shown, TimelineRows
from kvdesk.ui.widgets.controls import IconButton
from kvdesk.values import replace
from kvdesk.viewmodel.cells.history import view_of
from tests.cache.journals import FACTS, Player
from tests.ui.recording import Record
from tests.ui.samples import CONTEXT, MODEL, cache_view, spans
from tests.ui.seen import effect_text
from tests.ui.test_operations import done


def entries(names: str, start: int = 1, conversation: str = "one") -> list[Entry]:
    """d is a decode, anything else another operation."""
    made = (
        Operation(start + i, 1.0, "decode" if c == "d" else c, ms=2.0, conversation=conversation)
        for i, c in enumerate(names)
    )
    return [Entry(operation, 3) for operation in made]


def test_decodes_in_a_row_are_one_row() -> None:
    rows = TimelineRows()
    rows.add(entries("dddrdd"))
    rows.add(entries("ddc", start=7))
    rows.add(entries("d", start=10, conversation="two"))
    rows.add(entries("d", start=11))
    folded = [rows.row(Shown.FOLDED, i) for i in range(rows.count(Shown.FOLDED))]
    assert [(row.first, row.last, row.n) for row in folded] == [
        (1, 3, 3),
        (4, 4, 1),
        (5, 8, 4),
        (9, 9, 1),
        (10, 10, 1),
        (11, 11, 1),
    ]
    assert (folded[2].ms, folded[2].n_cells) == (8.0, 12)
    assert [rows.row(Shown.OTHERS, i).first for i in range(rows.count(Shown.OTHERS))] == [4, 9]
    assert rows.count(Shown.ALL) == 11


@pytest.mark.parametrize(
    ("number", "folded", "others", "everything"), [(0, -1, -1, -1), (2, 0, -1, 1), (6, 2, 0, 5), (99, 3, 1, 8)]
)
def test_the_row_of_an_operation(number: int, folded: int, others: int, everything: int) -> None:
    rows = TimelineRows()
    rows.add(entries("dddrddddc"))
    assert [rows.row_of(shown, number) for shown in Shown] == [folded, others, everything]


def test_steps_follow_the_operations_there_are() -> None:
    rows = TimelineRows()
    assert rows.step(5, 1) == 5
    rows.add([*entries("dd", start=3), *entries("r", start=9)])
    assert [rows.step(n, by) for n, by in ((3, 1), (4, 1), (9, 1), (9, -1), (6, -1), (3, -1), (3, 100))] == [
        4,
        9,
        9,
        4,
        4,
        3,
        9,
    ]


def test_a_view_of_the_past_has_the_numbers_of_then() -> None:
    now = cache_view().snapshot
    then = view_of(now.maps, 7).snapshot
    assert (then.sequences, then.n_kv, then.n_ctx) == (spans(now.maps[0].streams[0]), now.n_kv, now.n_ctx)
    assert view_of((), 0).snapshot.sequences == ()


@pytest.fixture
def player() -> Player:
    player = Player(FACTS[0], unified=True, swa_full=True, n_seq_max=4, seed=3)
    player.play(120)
    return player


def shown_map(page: TimelinePage) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    view = page.map._view
    return view.snapshot.operation, view.snapshot.maps[0].streams[0].pos


def test_any_moment_can_be_looked_at(window: MainWindow, qtbot: QtBot, player: Player) -> None:
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    window.store.apply(RecordingTaken(player.journal.recording()))
    assert page._band.isHidden(), "it follows what happens"
    assert page.at is None
    page.show_operation(40)
    assert page._band_text.text() == "State after operation 40, not now"
    qtbot.waitUntil(lambda: shown_map(page)[0] == 40)
    assert (shown_map(page)[1] == player.states[40][0].streams[0].pos).all()
    assert page._what.text().startswith("40  ")
    qtbot.keyClick(page.scrubber.slider, Qt.Key.Key_Right)
    assert page.at == 41
    page.scrubber.stepped.emit(-1)
    assert page.at == 40
    page.follow()
    assert page._band.isHidden()
    qtbot.waitUntil(lambda: shown_map(page)[0] == 120)


def test_a_row_is_the_way_to_its_moment(window: MainWindow, player: Player) -> None:
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    window.store.apply(RecordingTaken(player.journal.recording()))
    page.view.setCurrentIndex(page.model.index(5))
    row = page.model.rows.row(Shown.FOLDED, 5)
    assert page.at == row.last
    page.filter.setCurrentIndex(page.filter.findData(Shown.OTHERS))
    assert page.model.rowCount() == page.model.rows.count(Shown.OTHERS)
    assert page.at == row.last, "another filter is not another moment"
    page.show_operation(row.last + 30)
    assert page.view.currentIndex().row() == page.model.rows.row_of(Shown.OTHERS, row.last + 30)


def test_playing_ends_at_the_end(window: MainWindow, player: Player) -> None:
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    window.store.apply(RecordingTaken(player.journal.recording()))
    page.show_operation(118)
    page.scrubber.toggle_play()
    for _ in range(3):
        page.scrubber._timer.timeout.emit()
    assert page.at == 120
    assert not page.scrubber.is_playing
    page.scrubber.toggle_play()
    assert page.at == 0, "from the beginning again"


@pytest.mark.usefixtures("fresh")
def test_a_recording_is_asked_for_when_one_looks_and_something_changed(window: MainWindow, record: Record) -> None:
    sent = record(window.commands.submit)
    window.store.apply(OperationDone(1, 1.0, "seq_rm", "", 0.1))
    assert sent == [], "nobody looks"
    window.inspector.show_tab("Timeline")
    assert sent == [(TakeRecording(),)]
    for i in range(20):
        window.store.apply(SpeedSample(float(i), "decode", 1, 1.0, 256))
    assert len(sent) == 1, "at most twice a second"
    page = window.inspector.timeline
    page._asking.now()
    assert len(sent) == 2
    assert not page._asking._timer.isActive(), "nothing has changed since"


def test_a_growing_recording_keeps_its_place(window: MainWindow, player: Player) -> None:
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    window.store.apply(RecordingTaken(player.journal.recording()))
    page.show_operation(60)
    before = page.view.currentIndex().row()
    player.play(40)
    window.store.apply(RecordingTaken(player.journal.recording()))
    assert page.at == 60
    assert page.view.currentIndex().row() == before
    assert page.model.rows.last == 160
    window.store.apply(ContextReady(CONTEXT, rebuilt=True))
    assert page.at is None
    assert page.model.rowCount() == 0


@pytest.mark.usefixtures("fresh")
def test_the_last_operation_stays_in_sight_while_the_list_follows(
    window: MainWindow, qtbot: QtBot, player: Player
) -> None:
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    player.play(200)
    window.store.apply(RecordingTaken(player.journal.recording()))
    page.filter.setCurrentIndex(page.filter.findData(Shown.ALL))
    bar = page.view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    before = bar.maximum()
    window.resize(window.width(), window.height() - 120)
    qtbot.waitUntil(lambda: bar.maximum() > before)
    assert bar.value() == bar.maximum()
    low = bar.maximum()
    bar.setValue(0)
    window.resize(window.width(), window.height() + 120)
    qtbot.waitUntil(lambda: bar.maximum() < low)
    assert bar.value() == 0, "whoever reads stays where he is"


def test_the_journal_before_a_rebuild_can_be_looked_at(window: MainWindow, qtbot: QtBot, player: Player) -> None:
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    assert page.which.isHidden()
    window.store.apply(done())
    window.store.apply(RecordingTaken(player.journal.recording(), is_over=True))
    window.store.apply(ContextReady(CONTEXT, rebuilt=True))
    new = Player(FACTS[0], unified=True, swa_full=True, n_seq_max=2, seed=3)
    new.play(10)
    window.store.apply(RecordingTaken(new.journal.recording()))
    assert page.model.rows.last == 10
    page.which.setCurrentIndex(1)
    assert page._band_text.text() == "State after operation 120, before the rebuild"
    assert page.model.rows.last == 120
    page.show_operation(8)
    assert "Cells in use 220 → 64" in effect_text(page._effect), "what operations by hand did is kept too"
    window.store.apply(RecordingTaken(new.journal.recording()))
    assert page.model.rows.last == 120, "what is new waits"
    page.show_operation(40)
    qtbot.waitUntil(lambda: shown_map(page)[0] == 40)
    assert (shown_map(page)[1] == player.states[40][0].streams[0].pos).all()
    page.follow()
    assert page.which.currentIndex() == 0
    assert page.model.rows.last == 10
    window.store.apply(ModelLoaded(MODEL))
    assert page.which.isHidden(), "another model has other tokens"


def test_the_comparison_stays_in_the_journal(window: MainWindow, player: Player) -> None:
    window.inspector.show_tab("Timeline")
    window.store.apply(done())
    window.store.apply(RecordingTaken(player.journal.recording()))
    page = window.inspector.timeline
    page.show_operation(8)
    assert "Cells in use 220 → 64" in effect_text(page._effect)
    assert page._effect.isVisible()
    page.show_operation(9)
    assert not page._effect.isVisible()


class Long:
    """Looks like a recording of many decodes."""

    def __init__(self, n: int) -> None:
        self.start, self.first, self.last = 0, 1, n
        self.shape = None
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.last

    def state_at(self, _number: int) -> tuple[CacheMap, ...]:
        return ()

    def operations(self, first: int, last: int) -> list[Entry]:
        self.asked.append(last - first + 1)
        return [Entry(Operation(i, 0.0, "decode"), 1) for i in range(first, last + 1)]


def test_a_long_recording_is_counted_in_slices(qtbot: QtBot, window: MainWindow) -> None:
    page = TimelinePage(window.theme, Store(), Commands(), live=False)
    qtbot.addWidget(page)
    long = Long(200_000)
    page.show_recording(long)  # type: ignore[arg-type]
    assert page.model._timer.isActive(), "it does not wait for the last one"
    qtbot.waitUntil(lambda: not page.model._timer.isActive(), timeout=30_000)
    assert page.model.rows.count(Shown.ALL) == 200_000
    assert max(long.asked) <= 4096, "only pages are unpacked"


def test_a_chat_that_was_deleted_leaves_its_operations(window: MainWindow, player: Player) -> None:
    window.inspector.show_tab("Timeline")
    window.store.apply(RecordingTaken(player.journal.recording()))
    window.store.show_conversations((), None)
    window.inspector.timeline.show_operation(50)
    assert window.inspector.timeline._what.text().startswith("50  ")
    assert not window.grab().isNull()


def test_it_fits_a_small_screen_at_twice_the_size(window: MainWindow, player: Player) -> None:
    window.resize(960, 540)
    window.store.apply(cache_view())
    window.store.apply(Working("Verifying", 1, 2))
    window.inspector.show_tab("Timeline")
    window.store.apply(RecordingTaken(player.journal.recording()))
    window.inspector.timeline.show_operation(50)
    assert not window.grab().isNull()
    assert (window.width(), window.height()) == (960, 540)


def test_the_first_click_marks_the_row_under_the_mouse(window: MainWindow, qtbot: QtBot, player: Player) -> None:
    """A hand never holds the button quite still: nothing moves under it, while operations go on."""
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    page.filter.setCurrentText(Shown.ALL.value)
    window.store.apply(RecordingTaken(player.journal.recording()))
    viewport = page.view.viewport()
    qtbot.waitUntil(lambda: shown_map(page)[0] == 120 and viewport.height() > 4 * ROW_PX)
    QApplication.processEvents()
    index = page.view.indexAt(viewport.rect().center())
    at = page.view.visualRect(index).center()
    hand = viewport.mapToGlobal(at)
    row, _ = index.data(ROW_ROLE)
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    qtbot.mousePress(viewport, left, pos=at)
    player.play(20)
    window.store.apply(RecordingTaken(player.journal.recording()))
    QApplication.processEvents()
    place = viewport.mapFromGlobal(hand) + QPoint(1, 1)
    moved = QMouseEvent(QEvent.Type.MouseMove, QPointF(place), QPointF(hand + QPoint(1, 1)), left, left, none)
    QApplication.sendEvent(viewport, moved)
    qtbot.mouseRelease(viewport, left, pos=place)
    assert (page.at, page.view.currentIndex().row()) == (row.last, index.row())
    assert page.view.selectionModel().isSelected(page.model.index(index.row()))


def test_a_row_says_all_of_itself_under_the_mouse(window: MainWindow, player: Player) -> None:
    """What has no room in it, and what its numbers are."""
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    window.store.apply(RecordingTaken(player.journal.recording()))
    for i in range(5):
        index = page.model.index(i)
        row, entry = index.data(ROW_ROLE)
        tip = index.data(Qt.ItemDataRole.ToolTipRole)
        assert tip.startswith(f"{row.last:,}: {entry.operation.name}")
        assert entry.operation.reason in tip or row.n > 1
        assert f"Cells changed: {row.n_cells:,}, in " in tip


def by_hand(names: str, start: int = 1) -> list[Entry]:
    """p is a call that compares the next token, d a decode, h an operation by hand."""
    reasons = {"p": "to compare the next token", "h": "by hand"}
    return [
        replace(one, operation=replace(one.operation, reason=reasons.get(c, "")))
        for c, one in zip(names, entries(names, start), strict=True)
    ]


def test_the_calls_that_compare_stand_with_their_operation_by_hand() -> None:
    rows = TimelineRows()
    rows.add(by_hand("ddpphppxpphpp"))
    folded = [rows.row(Shown.FOLDED, i) for i in range(rows.count(Shown.FOLDED))]
    assert [(row.first, row.last, row.main) for row in folded] == [(1, 2, 2), (3, 7, 5), (8, 8, 8), (9, 13, 11)]
    assert rows.row_of(Shown.FOLDED, 6) == 1
    assert rows.count(Shown.OTHERS) == 11


def test_a_group_unfolds_and_folds_again() -> None:
    rows = TimelineRows()
    rows.add(by_hand("dddxpph"))
    assert rows.count(Shown.FOLDED) == 3
    assert not rows.toggle(1), "one operation is no group"
    assert rows.toggle(2)
    assert rows.toggle(0)
    found = [rows.row(Shown.FOLDED, i) for i in range(rows.count(Shown.FOLDED))]
    assert [(row.main, row.n, row.opened, row.inner) for row in found] == [
        (1, 1, True, False),
        (2, 1, False, True),
        (3, 1, False, True),
        (4, 1, False, False),
        (5, 1, True, False),
        (6, 1, False, True),
        (7, 1, False, True),
    ]
    rows.add(by_hand("p", start=8))
    assert rows.row(Shown.FOLDED, 7).inner, "what comes later of an unfolded group is unfolded too"
    assert rows.toggle(0)
    assert rows.toggle(2)
    assert [rows.row(Shown.FOLDED, i).n for i in range(rows.count(Shown.FOLDED))] == [3, 1, 4]


@pytest.mark.usefixtures("fresh")
def test_rows_are_as_high_as_their_reasons_and_groups_open_by_key(
    window: MainWindow, qtbot: QtBot, player: Player
) -> None:
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    window.store.apply(RecordingTaken(player.journal.recording()))
    qtbot.waitUntil(lambda: not page.model._timer.isActive())
    n = page.model.rowCount()
    heights = {page.model.rows.row(Shown.FOLDED, i).lines: page.view.rowHeight(i) for i in range(n)}
    assert [heights[lines] for lines in sorted(heights)] == sorted(set(heights.values()))
    group = next(i for i in range(n) if page.model.rows.row(Shown.FOLDED, i).n > 1)
    page.view.setCurrentIndex(page.model.index(group))
    assert "folded group" in page.model.data(page.model.index(group), Qt.ItemDataRole.AccessibleTextRole)
    size = page.model.rows.row(Shown.FOLDED, group).n
    page.view.activated.emit(page.model.index(group))
    assert page.model.rowCount() == n + size - 1
    page.view.activated.emit(page.model.index(group))
    assert page.model.rowCount() == n


def test_the_bar_and_arrow_go_to_the_ends(window: MainWindow, player: Player) -> None:
    window.inspector.show_tab("Timeline")
    page = window.inspector.timeline
    window.store.apply(RecordingTaken(player.journal.recording()))
    buttons = {b.accessibleName(): b for b in page.scrubber.findChildren(IconButton)}
    buttons["To the first operation"].click()
    first = page.scrubber.slider.minimum()
    assert page.at == first
    assert not buttons["To the first operation"].isEnabled()
    buttons["One operation forward"].click()
    assert page.at == first + 1
    buttons["To the last operation"].click()
    assert page.at == page.scrubber.slider.maximum()
