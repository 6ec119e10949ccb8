from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QRegion
from PySide6.QtWidgets import QScrollBar
from pytestqt.qtbot import QtBot

from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, Verification
from kvdesk.message import MessageId
from kvdesk.protocol.cache import CacheView, MessageSpan, MessageSpans
from kvdesk.settings import ThemeChoice
from kvdesk.ui.map.bar import MapBar
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.map.colours import ColourBy
from kvdesk.ui.map.layout import NUMBER_GAP_PX, TOP_PX
from kvdesk.ui.map.legend_entries import MapLegend
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import replace
from kvdesk.viewmodel.cells.links import CellRun
from kvdesk.viewmodel.palette import TOOLS, ramp_colour
from tests.ui.map.cell_rect import cell_rect
from tests.ui.recording import Record
from tests.ui.samples import ONE, Run, cache_view, spans, stream
from tests.ui.wheel import turned

COLOURS, TITLES = {0: 0, 1: 1}, {0: "Village", 1: "Caches"}
OLD: tuple[Run, ...] = ((0, 10, (0,), 0, 0), (10, 20, (1,), 0, 0), (20, 30, (0, 1), 10, 0))


@pytest.fixture
def cells(theme: Theme, qtbot: QtBot) -> CellMapView:
    view = CellMapView(theme)
    qtbot.addWidget(view)
    view.resize(420, 240)
    view.show()
    view.show_token_texts({5: " sea"})
    return view


def show(cells: CellMapView, view: CacheView, qtbot: QtBot) -> None:
    cells.show_view(view, COLOURS, TITLES)
    qtbot.waitUntil(lambda: len(cells.strips) == sum(len(m.streams) for m in view.snapshot.maps), timeout=2000)


def colour_at(cells: CellMapView, index: int, down: float = 0.3) -> str:
    strip = cells.strips[0]
    x, y = strip.corner(index)
    image = cells.grab().toImage()
    ratio = image.devicePixelRatio()
    return image.pixelColor(QPoint(int((x + strip.cell / 2) * ratio), int((y + strip.cell * down) * ratio))).name()


def middle(cells: CellMapView, index: int) -> QPoint:
    strip = cells.strips[0]
    x, y = strip.corner(index)
    return QPoint(int(x + strip.cell / 2), int(y + strip.cell / 2))


def test_cells_have_the_colours_of_their_conversations(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    blue, orange = (theme.conversation_colour(i).name() for i in (0, 1))
    assert colour_at(cells, 3) == blue
    assert colour_at(cells, 12) == orange
    assert (colour_at(cells, 25), colour_at(cells, 25, down=0.65)) == (blue, orange), "a shared cell is split"
    assert colour_at(cells, 100) == theme.colours.cell_span
    assert colour_at(cells, 500) == theme.colours.cell_free


def test_row_numbers_have_room_in_text_of_every_size(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    before = cells.strips[0].x
    theme.set_size(200)
    qtbot.waitUntil(lambda: cells.strips[0].x > before)
    assert cells.strips[0].x >= QFontMetricsF(theme.mono_small).horizontalAdvance("448") + NUMBER_GAP_PX
    theme.set_size(100)
    qtbot.waitUntil(lambda: cells.strips[0].x == before)


def test_just_written_cells_are_bright_for_a_moment(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    show(cells, cache_view(operation=1, runs=OLD, size=512), qtbot)
    show(cells, cache_view(operation=5, runs=(*OLD, (30, 40, (0,), 20, 5)), size=512), qtbot)
    plain = theme.conversation_colour(0)
    qtbot.waitUntil(lambda: QColor(colour_at(cells, 35)).lightness() > plain.lightness() + 20, timeout=2000)
    qtbot.waitUntil(lambda: colour_at(cells, 35) == plain.name(), timeout=4000)


STEPS: dict[str, tuple[tuple[Run, ...], int, bool]] = {  # cells after it, which are written at operation 9; whether few
    "a token": ((*OLD, (30, 31, (0,), 20, 9)), 31, True),
    "nothing": (OLD, -1, True),
    "many tokens": ((*OLD, (30, 1400, (0,), 20, 9)), 1400, False),
    "a hole": ((OLD[0], OLD[2]), 10, True),
    "another owner": ((OLD[0], (10, 20, (0,), 10, 0), OLD[2]), 30, True),
    "the head": (OLD, 500, True),
}


@pytest.mark.parametrize("step", STEPS)
def test_only_what_looks_different_is_painted_again(
    theme: Theme, qtbot: QtBot, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = CellMapView(theme)
    qtbot.addWidget(cells)
    cells.resize(420, 240)
    cells.show()
    show(cells, cache_view(operation=1, runs=OLD, size=2048), qtbot)
    before = cells.grab().toImage()
    regions: list[QRegion] = []
    monkeypatch.setattr(cells, "update", regions.append)
    runs, head, is_small = STEPS[step]
    view = cache_view(operation=9, runs=runs, size=2048)
    (kv,) = view.snapshot.maps
    kv = replace(kv, streams=(replace(kv.streams[0], head=kv.streams[0].head if head < 0 else head),))
    cells.show_view(replace(view, snapshot=replace(view.snapshot, maps=(kv,))), COLOURS, TITLES)
    cells.refresh()
    after, region = cells.grab().toImage(), regions[0] if regions else QRegion()
    ratio = round(after.devicePixelRatio())
    different = [
        QPoint(x // ratio, y // ratio)
        for y in range(after.height())
        for x in range(after.width())
        if before.pixel(x, y) != after.pixel(x, y)
    ]
    assert bool(different) == bool(regions) == (step != "nothing")
    assert all(region.contains(point) for point in different)
    assert (region.boundingRect().height() < cells.height() / 2) == is_small


def test_hovering_names_the_cell(
    cells: CellMapView, record: Callable[[object], list[tuple[object, ...]]], qtbot: QtBot
) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    said = record(cells.described)
    qtbot.mouseMove(cells, middle(cells, 5))
    qtbot.waitUntil(lambda: said[-1:] == [("cell 5  ·  position 5  ·  token 5", "“␣sea”  ·  Village")])
    qtbot.mouseMove(cells, middle(cells, 400))
    qtbot.waitUntil(lambda: said[-1] == ("cell 400", "free"))


def test_the_keyboard_reads_cells_too(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    with qtbot.waitSignal(cells.described) as said:
        qtbot.keyClick(cells, Qt.Key.Key_Right)
    assert str(said.args[0]).startswith("cell 1 ")
    with qtbot.waitSignal(cells.described) as said:
        qtbot.keyClick(cells, Qt.Key.Key_Down)
    assert str(said.args[0]) == f"cell {cells.strips[0].columns + 1}"


def test_zooming_keeps_the_cell_under_the_mouse(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    for _ in range(12):
        qtbot.keyClick(cells, Qt.Key.Key_Plus)
    assert cells.zoom > 5
    assert not cells.grab().isNull()
    qtbot.keyClick(cells, Qt.Key.Key_0)
    assert cells.zoom == 1.0


def test_a_strip_for_every_stream_of_every_cache(cells: CellMapView, qtbot: QtBot) -> None:
    base, one, two = stream(512, OLD), stream(256, OLD), stream(256, ())
    maps = (CacheMap("base", (base,), 0), CacheMap("window", (one, two), 128))
    show(cells, CacheView(CacheSnapshot(3, maps, (), spans(base), 256, 512, Verification("mirrored", 0)), ()), qtbot)
    assert [strip.label for strip in cells.strips] == ["base", "window, stream 0", "window, stream 1"]
    assert not cells.grab().isNull()


def test_a_cache_of_another_size_replaces_the_strips(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    cells.show_view(cache_view(operation=9, size=131_072), COLOURS, TITLES)
    cells.grab()  # a frame between the two must not fail
    qtbot.waitUntil(lambda: cells.strips[0].n_cells == 131_072, timeout=2000)
    assert not cells.grab().isNull()


def test_a_model_without_attention_cache_has_nothing_to_draw(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, CacheView(CacheSnapshot(1, (), (), (), 0, 512, Verification("mirrored", 0)), ()), qtbot)
    assert not cells.grab().isNull()


def test_it_follows_the_theme(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    theme.set_theme(ThemeChoice.LIGHT)
    qtbot.waitUntil(lambda: colour_at(cells, 500) == theme.colours.cell_free, timeout=2000)


def test_a_smaller_model_after_a_larger_one(cells: CellMapView, qtbot: QtBot) -> None:
    one, two = stream(512, OLD), stream(256, OLD)
    maps = (CacheMap("base", (one,), 0), CacheMap("window", (two,), 128))
    show(cells, CacheView(CacheSnapshot(3, maps, (), spans(one), 256, 512, Verification("mirrored", 0)), ()), qtbot)
    cells.show_view(cache_view(operation=1, runs=OLD, size=256), COLOURS, TITLES)
    cells.grab()  # drawn from the old frame, which is whole
    qtbot.waitUntil(lambda: len(cells.strips) == 1, timeout=2000)


def test_the_cursor_goes_on_in_the_next_strip(cells: CellMapView, qtbot: QtBot) -> None:
    one, two = stream(3, ()), stream(3, ())
    maps = (CacheMap("kv", (one, two), 0),)
    show(cells, CacheView(CacheSnapshot(3, maps, (), (), 3, 3, Verification("mirrored", 0)), ()), qtbot)
    for _ in range(3):
        qtbot.keyClick(cells, Qt.Key.Key_Right)
    with qtbot.waitSignal(cells.described) as said:
        qtbot.keyClick(cells, Qt.Key.Key_Right)
    assert said.args[0] == "cell 1  ·  stream 1"


def drag_to(cells: CellMapView, index: int, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
    """The mouse moves with a button held."""
    point = QPointF(middle(cells, index))
    none = Qt.KeyboardModifier.NoModifier
    event = QMouseEvent(QEvent.Type.MouseMove, point, cells.mapToGlobal(point), Qt.MouseButton.NoButton, button, none)
    cells.mouseMoveEvent(event)


def test_a_click_selects_a_cell_and_a_second_one_lets_it_go(cells: CellMapView, record: Record, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    sent = record(cells.cells_selected)
    qtbot.mouseClick(cells, Qt.MouseButton.LeftButton, pos=middle(cells, 12))
    qtbot.mouseClick(cells, Qt.MouseButton.LeftButton, pos=middle(cells, 12))
    assert sent == [(0, 0, 12, 13), (-1, -1, 0, 0)]
    assert cells._selection.runs == ()


def test_a_drag_selects_a_range_backwards_too(cells: CellMapView, record: Record, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    sent = record(cells.cells_selected)
    qtbot.mousePress(cells, Qt.MouseButton.LeftButton, pos=middle(cells, 12))
    drag_to(cells, 25)
    drag_to(cells, 8)
    qtbot.mouseRelease(cells, Qt.MouseButton.LeftButton, pos=middle(cells, 8))
    assert sent == [(0, 0, 12, 13), (0, 0, 12, 26), (0, 0, 8, 13)]
    with qtbot.waitSignal(cells.described) as said:
        cells.leaveEvent(None)
    assert said.args == ["5 cells selected  ·  positions 0 to 9", "Village, Caches"]


def test_the_keyboard_selects_too(cells: CellMapView, record: Record, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    sent = record(cells.cells_selected)
    qtbot.keyClick(cells, Qt.Key.Key_Right)
    qtbot.keyClick(cells, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(cells, Qt.Key.Key_End, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(cells, Qt.Key.Key_Delete)
    qtbot.keyClick(cells, Qt.Key.Key_Home)
    qtbot.keyClick(cells, Qt.Key.Key_Space)
    assert sent == [(0, 0, 1, 2), (0, 0, 1, 3), (0, 0, 1, 512), (-1, -1, 0, 0), (0, 0, 0, 1)]


def test_selected_cells_are_outlined(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    cells.show_selection((CellRun(0, 0, np.array([100, 101, 400])),))
    for cell in (100, 400):
        assert colour_at(cells, cell, down=0.05) == theme.colours.text
        assert colour_at(cells, cell) != theme.colours.text
    assert cells._selection.runs[0].cells.tolist() == [100, 101, 400]
    cells.show_selection(())
    assert colour_at(cells, 100, down=0.05) == theme.colours.cell_span


def test_a_selection_from_outside_is_brought_into_view(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    for _ in range(8):
        qtbot.keyClick(cells, Qt.Key.Key_Plus)
    cells.show_selection((CellRun(0, 0, np.array([511])),))
    assert cell_rect(cells, 0, 511).intersects(cells.rect())
    assert not cell_rect(cells, 0, 0).intersects(cells.rect())


def test_the_middle_button_drags_the_map_and_selects_nothing(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    for _ in range(6):
        cells.zoom_at(QPointF(0, 0), 1.25)
    before = cell_rect(cells, 0, 0)
    qtbot.mousePress(cells, Qt.MouseButton.MiddleButton, pos=QPoint(100, 100))
    drag_to(cells, 0, Qt.MouseButton.MiddleButton)
    qtbot.mouseRelease(cells, Qt.MouseButton.MiddleButton)
    assert cell_rect(cells, 0, 0).x() < before.x()
    assert cells._selection.runs == ()


def test_every_colour_mode_draws_and_says_what_its_colours_mean(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    keys: list[MapLegend] = []
    cells.key_changed.connect(keys.append)
    for mode in list(ColourBy)[1:]:
        with qtbot.waitSignal(cells.key_changed):
            cells.set_colour_by(mode)
        assert not cells.grab().isNull()
    assert [key.mode for key in keys] == list(ColourBy)[1:]
    ramps = {key.mode: [e.ends for e in key.entries if e.kind == "ramp"] for key in keys}
    assert ramps[ColourBy.POSITION] == [("0", "255")]
    assert ramps[ColourBy.AGE] == [("100 operations ago", "now")]


def test_a_position_has_its_place_on_the_scale(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=((0, 256, (0,), 0, 0),), size=512), qtbot)
    cells.set_colour_by(ColourBy.POSITION)
    qtbot.waitUntil(lambda: colour_at(cells, 0) == ramp_colour(0.0, dark=True), timeout=2000)
    assert colour_at(cells, 255) == ramp_colour(1.0, dark=True)


def test_cells_have_the_colour_of_their_message(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    parts = (MessageSpan(MessageId("a"), 0, 4, 0, ()), MessageSpan(MessageId("b"), 4, 10, 4, ()))
    cells.show_spans({0: MessageSpans(ONE, 0, parts)})
    cells.set_colour_by(ColourBy.MESSAGE)
    qtbot.waitUntil(lambda: colour_at(cells, 5) == theme.conversation_colour(1).name(), timeout=2000)
    assert colour_at(cells, 2) == theme.conversation_colour(0).name()
    assert colour_at(cells, 12) == theme.colours.secondary, "no message of sequence 1 is known"
    with qtbot.waitSignal(cells.described) as said:
        qtbot.mouseMove(cells, middle(cells, 5))
    assert str(said.args[1]).endswith("message 2 of 2  ·  Village")


def test_schemas_of_tools_have_a_colour_of_their_own_a_name_and_a_line_in_the_key(
    cells: CellMapView, theme: Theme, qtbot: QtBot
) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    cells.show_spans({0: MessageSpans(ONE, 0, (MessageSpan(MessageId("a"), 0, 10, 0, ()),))})
    cells.set_colour_by(ColourBy.MESSAGE)
    keys: list[MapLegend] = []
    cells.key_changed.connect(keys.append)
    cells.show_tools({0: (("git", 3, 6), ("files", 6, 8))})
    qtbot.waitUntil(lambda: colour_at(cells, 4) == TOOLS[0], timeout=2000)
    assert colour_at(cells, 2) == colour_at(cells, 9) == theme.conversation_colour(0).name()
    assert colour_at(cells, 7) not in (TOOLS[0], theme.conversation_colour(0).name())
    words = [entry.words for entry in keys[-1].entries]
    assert {"tools of git: 3", "tools of files: 2"} <= set(words)
    with qtbot.waitSignal(cells.described) as said:
        qtbot.mouseMove(cells, middle(cells, 4))
    assert str(said.args[1]).endswith("tools of git  ·  Village")


def test_the_bar_chooses_and_says_what_paging_would_hold(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    bar = MapBar(cells)
    qtbot.addWidget(bar)
    bar.mode.setCurrentText("By pages")
    qtbot.waitUntil(lambda: bar._pages.text().startswith("Pages of 16: 4 held = 64 slots, 24 empty"), timeout=2000)
    bar.page_size.setCurrentText("32")
    qtbot.waitUntil(lambda: bar._pages.text().startswith("Pages of 32: 2 held"), timeout=2000)
    bar.mode.setCurrentText("By conversation")
    qtbot.waitUntil(bar._pages.isHidden, timeout=2000)
    for control in (bar.mode, bar.page_size):
        assert control.accessibleName()


def test_nothing_is_made_anew_while_nothing_changes(cells: CellMapView, qtbot: QtBot) -> None:
    view = cache_view(runs=OLD, size=512)
    show(cells, view, qtbot)
    cells.clock.refreshed(0.0)
    before = len(tuple(cells.clock._refreshes))
    for _ in range(3):
        cells.show_view(view, COLOURS, TITLES)
    with qtbot.waitSignal(cells.described, timeout=300, raising=False) as said:
        pass
    assert not said.signal_triggered
    assert len(tuple(cells.clock._refreshes)) == before


def test_the_developer_overlay_tells_the_frames_own_time(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    before = cells.grab().toImage()
    cells.set_overlay(True)
    assert cells.grab().toImage() != before
    assert cells.clock.p99_ms >= cells.clock.last_ms > 0
    assert cells.clock.words(512).endswith("512 cells drawn")


def wheel(cells: CellMapView, up: int, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> bool:
    """Turn the wheel over the map; returns whether the map took it."""
    event = turned(cells, up, at=QPointF(200, 100), keys=modifiers)
    cells.wheelEvent(event)
    return event.isAccepted()


def test_the_wheel_scrolls_a_map_that_is_higher_than_its_room(cells: CellMapView, qtbot: QtBot) -> None:
    cells.set_room(120)
    show(cells, cache_view(runs=OLD, size=4096), qtbot)
    bar = cells.findChild(QScrollBar)
    assert bar.isVisible()
    assert cells.height() == 120
    columns, side = cells.strips[0].columns, cells.strips[0].cell
    assert wheel(cells, -120)
    assert cell_rect(cells, 0, 0).y() == TOP_PX - 60
    assert cells.strips[0].columns == columns == 64
    assert cells.strips[0].cell == side, "it scrolled and did not zoom"
    assert bar.value() == 60
    bar.setValue(0)
    assert cell_rect(cells, 0, 0).y() == TOP_PX
    assert not wheel(cells, 120), "at its end what is around the map scrolls"
    assert wheel(cells, 240, Qt.KeyboardModifier.ControlModifier)
    assert cells.zoom > 1


def test_the_cursor_by_keyboard_scrolls_the_map(cells: CellMapView, qtbot: QtBot) -> None:
    cells.set_room(120)
    show(cells, cache_view(runs=OLD, size=4096), qtbot)
    qtbot.keyClick(cells, Qt.Key.Key_End)
    assert cells.rect().contains(cell_rect(cells, 0, 4095).center())


def test_a_small_room_never_takes_the_gap_between_cells(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    cells.set_room(80)
    show(cells, cache_view(runs=((0, 4096, (0,), 0, 0),), size=4096), qtbot)
    strip = cells.strips[0]
    image = cells.grab().toImage()
    for column in range(3):
        x = round(strip.x + (column + 1) * strip.cell) - 1
        assert image.pixelColor(x, TOP_PX + 1).name() == QColor(theme.colours.panel).name()
        assert image.pixelColor(x - 2, TOP_PX + 1).name() == theme.conversation_colour(0).name()


def test_zooming_without_a_pointer_goes_to_the_cursor_else_to_used_cells(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD), qtbot)
    for _ in range(6):
        cells.zoom_in()
    assert cells.rect().contains(cell_rect(cells, 0, 29)), "not the free cells in the middle"
    cells.reset_zoom()
    cells.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(cells, Qt.Key.Key_End)
    for _ in range(6):
        qtbot.keyClick(cells, Qt.Key.Key_Plus)
    assert cells.zoom > 1
    assert cells.rect().contains(cell_rect(cells, 0, 1023)), "the cursor"


def test_lit_cells_are_brighter_in_their_own_colour(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(operation=500, runs=OLD), qtbot)
    before = [colour_at(cells, index) for index in (4, 14, 600)]
    cells.light((CellRun(0, 0, np.array([3, 4, 5, 13, 14, 15, 600])),))
    lit = [colour_at(cells, index) for index in (4, 14, 600)]
    assert lit[0] != before[0]
    assert lit[1] != before[1]
    assert lit[0] != lit[1], "of two conversations"
    assert lit[2] == before[2], "a free cell has nothing to light"
    cells.light(())
    assert [colour_at(cells, index) for index in (4, 14, 600)] == before
