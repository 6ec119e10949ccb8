"""What is drawn beside and over the cells: the numbers of rows, and the texts of tokens."""

from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, Verification
from kvdesk.protocol.cache import CacheView
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.map.colours import ColourBy
from kvdesk.ui.map.layout import LABEL_PX
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.map.cell_rect import cell_rect
from tests.ui.samples import cache_view, spans

LATER = 1 << 30
"""An operation that no cell was written after."""


@pytest.fixture
def cells(theme: Theme, qtbot: QtBot) -> CellMapView:
    return new_map(theme, qtbot)


def new_map(theme: Theme, qtbot: QtBot) -> CellMapView:
    view = CellMapView(theme)
    qtbot.addWidget(view)
    view.resize(420, 240)
    view.show()
    view.set_colour_by(ColourBy.POSITION)  # all cells have one colour
    view.show_token_texts({5: " sea"})
    return view


def show_texts(cells: CellMapView, qtbot: QtBot) -> None:
    """A cache, so large that cells have texts; none is new."""
    cells._recency.limits = Mock(return_value=(LATER, LATER))  # type: ignore[method-assign]
    cells.reset_zoom()
    cells.show_view(cache_view(runs=((0, 40, (0,), 0, 0),), size=512), {}, {})
    qtbot.waitUntil(lambda: bool(cells.strips), timeout=2000)
    cells.refresh()
    while not cells._painter.shows_texts(cells.strips, cells._viewport):
        cells.zoom_at(QPointF(cells.strips[0].x, 6), 1.25)


def colours_of(cells: CellMapView) -> NDArray[np.uint32]:
    """What is drawn, without the scroll bar, a colour for each pixel."""
    image = cells.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    drawn = np.array(image.constBits(), np.uint8).view(np.uint32).reshape(image.height(), image.width())
    return drawn[:, :360]


@pytest.mark.parametrize("size", [100, 200])
def test_the_first_row_has_its_number_whole_at_every_size_of_text(
    cells: CellMapView, theme: Theme, qtbot: QtBot, size: int
) -> None:
    theme.set_size(size)
    try:
        cells.show_view(cache_view(runs=((0, 40, (0,), 0, 0),), size=4096), {}, {})
        qtbot.waitUntil(lambda: bool(cells.strips), timeout=2000)
        beside = colours_of(cells)[:, : int(cells.strips[0].x) - 1]
    finally:
        theme.set_size(100)
    inked = np.flatnonzero((beside != QColor(theme.colours.panel).rgb()).any(axis=1))
    digits = np.split(inked, np.flatnonzero(np.diff(inked) > 1) + 1)  # rows of pixels, of one number each
    assert int(digits[0][0]) < 12, "the first number is beside the first row"
    assert digits[0].size >= 0.8 * digits[1].size, "and as high as the next, which has a comma"


def test_a_text_has_an_edge_only_where_a_pattern_is_under_it(cells: CellMapView, qtbot: QtBot) -> None:
    show_texts(cells, qtbot)
    box = cell_rect(cells, 0, 5).adjusted(2, 2, -2, -2)

    def n_sides(limits: tuple[int, int]) -> int:
        """Whether some of a cell is lighter than its ground, and some darker."""
        cells._recency.limits = Mock(return_value=limits)  # type: ignore[method-assign]
        cells.refresh()
        picture = colours_of(cells)[box.top() : box.bottom(), box.left() : box.right()].copy()
        light = picture.view(np.uint8).reshape(*picture.shape, 4)[..., :3].sum(axis=2, dtype=np.int64)
        return int((light > light[0, 0]).any()) + int((light < light[0, 0]).any())

    assert n_sides((LATER, LATER)) == 1
    assert n_sides((-1, LATER)) == 1, "a fading cell has no pattern"
    assert n_sides((-1, -1)) == 2, "a cell that was just written has one"


def test_the_name_of_a_strip_is_over_the_row_numbers(cells: CellMapView, qtbot: QtBot) -> None:
    part = cache_view(runs=((0, 240, (0,), 0, 0),), size=256).snapshot.maps[0].streams[0]
    maps = CacheMap("base", (part,), 0), CacheMap("window", (part,), 128)
    snapshot = CacheSnapshot(3, maps, (), spans(part), 256, 512, Verification("mirrored", 0))
    cells.show_view(CacheView(snapshot, ()), {}, {})
    qtbot.waitUntil(lambda: bool(cells.strips), timeout=2000)
    cells.refresh()
    for _ in range(6):
        cells.zoom_in()
    cells.move_by(QPointF(0, 1e4))
    cells.move_by(QPointF(-1e4, -cells.strips[0].y * cells.zoom - 20))
    width = int(cells.strips[0].x)
    named = colours_of(cells)[:LABEL_PX, :width].copy()
    cells._painter._draw_labels = lambda *_: None  # type: ignore[method-assign]
    cells.update()
    assert not np.array_equal(named, colours_of(cells)[:LABEL_PX, :width])


def test_texts_are_drawn_anew_at_another_size(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    show_texts(cells, qtbot)
    before = colours_of(cells)
    theme.set_size(150)
    try:
        other = new_map(theme, qtbot)
        for each in (cells, other):
            show_texts(each, qtbot)
        after, fresh = colours_of(cells), colours_of(other)
    finally:
        theme.set_size(100)
    assert np.array_equal(after, fresh)
    assert not np.array_equal(before, after)


def test_row_numbers_stay_where_cells_begin_out_of_sight(cells: CellMapView, theme: Theme, qtbot: QtBot) -> None:
    show_texts(cells, qtbot)
    strip = cells.strips[0]

    def beside() -> NDArray[np.uint32]:
        return colours_of(cells)[:200, : int(strip.x)]

    cells.move_by(QPointF(1e4, 0))
    cells.move_by(QPointF(-strip.x * (cells.zoom - 1), 0))
    at_the_edge = beside()
    cells.move_by(QPointF(-100, 0))
    assert np.array_equal(beside(), at_the_edge)
    assert (at_the_edge != QColor(theme.colours.panel).rgb()).any()
    assert cells._cell_under(QPointF(strip.x - 2, 20)) is None
    cells._bring_into_view(0, 0)
    assert cell_rect(cells, 0, 0).left() >= int(strip.x)
