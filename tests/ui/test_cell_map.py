from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, Verification
from kvdesk.messages import CacheView
from kvdesk.settings import Theme
from kvdesk.ui.cell_map import CellMapView
from kvdesk.ui.theme import Look
from tests.ui.samples import Run, cache_view, spans, stream

COLOURS, TITLES = {0: 0, 1: 1}, {0: "Village", 1: "Caches"}
OLD: tuple[Run, ...] = ((0, 10, (0,), 0, 0), (10, 20, (1,), 0, 0), (20, 30, (0, 1), 10, 0))


@pytest.fixture
def cells(look: Look, qtbot: QtBot) -> CellMapView:
    view = CellMapView(look)
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
    return image.pixelColor(
        QPoint(int((x + strip.cell / 2) * ratio), int((y + strip.cell * down) * ratio)),
    ).name()


def middle(cells: CellMapView, index: int) -> QPoint:
    strip = cells.strips[0]
    x, y = strip.corner(index)
    return QPoint(int(x + strip.cell / 2), int(y + strip.cell / 2))


def test_cells_have_the_colours_of_their_conversations(cells: CellMapView, look: Look, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    blue, orange = (look.conversation_colour(i).name() for i in (0, 1))
    assert colour_at(cells, 3) == blue
    assert colour_at(cells, 12) == orange
    assert (colour_at(cells, 25), colour_at(cells, 25, down=0.8)) == (blue, orange), "a shared cell is split"
    assert colour_at(cells, 100) == look.colours.cell_span
    assert colour_at(cells, 500) == look.colours.cell_free


def test_just_written_cells_are_bright_for_a_moment(cells: CellMapView, look: Look, qtbot: QtBot) -> None:
    show(cells, cache_view(operation=1, runs=OLD, size=512), qtbot)
    show(cells, cache_view(operation=5, runs=(*OLD, (30, 40, (0,), 20, 5)), size=512), qtbot)
    plain = look.conversation_colour(0)
    qtbot.waitUntil(lambda: QColor(colour_at(cells, 35)).lightness() > plain.lightness() + 20, timeout=2000)
    qtbot.waitUntil(lambda: colour_at(cells, 35) == plain.name(), timeout=4000)


def test_hovering_names_the_cell(cells: CellMapView, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    with qtbot.waitSignal(cells.described) as said:
        qtbot.mouseMove(cells, middle(cells, 5))
    assert said.args == ["cell 5  ·  position 5  ·  token 5", "“␣sea”  ·  Village (seq 0)"]
    with qtbot.waitSignal(cells.described) as said:
        qtbot.mouseMove(cells, middle(cells, 400))
    assert said.args == ["cell 400", "free"]


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


def test_it_follows_the_theme(cells: CellMapView, look: Look, qtbot: QtBot) -> None:
    show(cells, cache_view(runs=OLD, size=512), qtbot)
    look.set_theme(Theme.LIGHT)
    qtbot.waitUntil(lambda: colour_at(cells, 500) == look.colours.cell_free, timeout=2000)


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
