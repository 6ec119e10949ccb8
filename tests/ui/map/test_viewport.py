import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF

from kvdesk.ui.map.layout import StreamSize, lay_out
from kvdesk.ui.map.viewport import LARGEST_CELL_PX, Viewport


@example([1.25, 1.25, 1.25, 1.05], 0.7, 1.0)
@given(
    st.lists(st.sampled_from([1.25, 0.8, 1.05, 3.0, 0.3]), max_size=40),
    st.sampled_from([0.7, 1.0, 3.0, 13.0]),
    st.sampled_from([1.0, 1.5, 2.0]),
)
def test_a_zoomed_cell_is_a_whole_number_of_pixels(factors: list[float], cell: float, ratio: float) -> None:
    view = Viewport(400, 300, ratio)
    for factor in factors:
        before = view.zoom
        view = view.zoomed(QPointF(100, 50), factor, cell)
        pixels = cell * ratio * view.zoom
        assert view.zoom == 1.0 or pixels == pytest.approx(round(pixels))
        if factor > 1 and before * cell < LARGEST_CELL_PX - 1:
            assert view.zoom > before
        if factor < 1 and before > 1:
            assert view.zoom < before
        assert view.offset.x() <= 0
        assert view.offset.x() >= view.width * (1 - view.zoom) - 1e-6


def test_the_point_stays_where_it_is() -> None:
    point = QPointF(150, 100)
    view = Viewport(400, 300)
    under = view.to_map(point)
    for _ in range(10):
        view = view.zoomed(point, 1.25, 2.0)
    assert (view.to_map(point) - under).manhattanLength() < 1e-6


def test_only_what_is_seen_is_visible() -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", 4096)], 400)
    whole = Viewport(400, 340)
    assert whole.visible(strip) == (0, strip.rows, 0, strip.columns)
    near = whole.zoomed(QPointF(0, 0), 4.0, strip.cell)
    seen = near.visible(strip)
    assert (seen.row, seen.column) == (0, 0)
    assert seen.columns < strip.columns // 2
    corner = near.showing(QRectF(*strip.corner(4095), strip.cell, strip.cell)).visible(strip)
    assert corner.rows == strip.rows
    assert corner.row > 0


def test_a_map_higher_than_its_room_scrolls_and_no_farther() -> None:
    view = Viewport(400, 300).resized(400, 300, 1.0, map_height=1000)
    assert view.hidden_height == 700
    assert view.moved(QPointF(-50, -200)).offset == QPointF(0, -200)
    assert view.moved(QPointF(0, -5000)).offset == QPointF(0, -700)
    end = view.showing(QRectF(0, 990, 10, 10))
    assert end.offset == QPointF(0, -700)
    assert end.resized(400, 1000, 1.0, map_height=1000).offset == QPointF(0, 0), "all of it fits now"
    assert view.zoomed(QPointF(0, 0), 2.0, 5.0).hidden_height == 1700
