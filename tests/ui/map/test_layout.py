from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.ui.map.layout import BESIDE_GAP_PX, GROWTH, ROW_PX, StreamSize, lay_out, total_height


@given(
    st.lists(st.integers(1, 131_072), min_size=1, max_size=8),
    st.integers(160, 2000),
    st.integers(240, 1200),
    st.sampled_from([1.0, 1.25, 2.0]),
)
def test_everything_fits(counts: list[int], width: int, height: int, ratio: float) -> None:
    sizes = [StreamSize(0, i, f"stream {i}", n) for i, n in enumerate(counts)]
    strips = lay_out(sizes, width, height, ratio)
    assert [strip.n_cells for strip in strips] == counts
    assert all(strip.x + strip.width <= width + 1e-6 for strip in strips)
    most = max(height * GROWTH, len(counts) * (ROW_PX + BESIDE_GAP_PX) + height)
    assert total_height(strips) <= most + len(counts) * 16
    for above, below in pairwise(strips):
        assert below.y >= above.y + above.room


@given(st.integers(1, 5000), st.integers(0, 4999))
def test_a_cell_is_found_where_it_is_drawn(n_cells: int, cell: int) -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", n_cells)], 416, 260)
    cell %= n_cells
    x, y = strip.corner(cell)
    assert strip.cell_at(x + strip.cell / 2, y + strip.cell / 2) == cell


def test_outside_is_no_cell() -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", 10)], 416, 260)
    assert strip.cell_at(-1, 0) is None
    assert strip.cell_at(0, -1) is None
    assert strip.cell_at(0, strip.height + 1) is None
    assert strip.cell_at(strip.width + 1, 0) is None


def test_large_cells_lie_on_device_pixels() -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", 4096)], 416, 260, 2.0)
    assert strip.cell * 2 == pytest.approx(round(strip.cell * 2))


def test_a_large_cache_grows_a_little_rather_than_blur() -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", 131_072)], 416, 270)
    assert strip.cell == 1.0
    (squeezed,) = lay_out([StreamSize(0, 0, "", 131_072)], 416, 100)
    assert squeezed.cell < 1.0
    assert squeezed.height <= 100


def test_many_streams_have_their_names_beside_them() -> None:
    few = lay_out([StreamSize(0, i, f"stream {i}", 512, f"s {i}") for i in range(3)], 416, 270)
    many = lay_out([StreamSize(0, i, f"stream {i}", 512, f"s {i}") for i in range(16)], 416, 270)
    assert [strip.short for strip in few] == [""] * 3
    assert many[2].short == "s 2"
    assert all(strip.x >= 60 for strip in many)
    assert all(strip.room >= ROW_PX for strip in many)


def test_nothing_is_laid_out_without_cells() -> None:
    assert lay_out([], 100, 100) == ()
    assert lay_out([StreamSize(0, 0, "", 0)], 100, 100) == ()
