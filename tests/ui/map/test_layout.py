from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.ui.map.layout import (
    COLUMNS,
    LABEL_PX,
    LEAST_PIXELS,
    NUMBER_GAP_PX,
    StreamSize,
    lay_out,
    row_step,
    total_height,
)


def one(n_cells: int, width: float, ratio: float = 1.0, *, wide: bool = False) -> tuple[int, float]:
    (strip,) = lay_out([StreamSize(0, 0, "", n_cells)], width, ratio, wide=wide)
    return strip.columns, strip.cell


@given(
    st.lists(st.integers(1, 131_072), min_size=1, max_size=8), st.integers(260, 2000), st.sampled_from([1.0, 1.25, 2.0])
)
def test_rows_fit_into_the_width_and_cells_keep_their_gap(counts: list[int], width: int, ratio: float) -> None:
    strips = lay_out([StreamSize(0, i, f"stream {i}", n) for i, n in enumerate(counts)], width, ratio)
    assert [strip.n_cells for strip in strips] == counts
    for strip in strips:
        assert strip.columns in COLUMNS
        assert strip.x + strip.width <= width + 1e-6
        assert strip.cell * ratio >= LEAST_PIXELS
        assert strip.cell * ratio == pytest.approx(round(strip.cell * ratio)), "whole device pixels"
    label = LABEL_PX if len(counts) > 1 else 0
    for above, below in pairwise(strips):
        assert below.y >= above.y + above.height + label
    assert total_height(strips) >= strips[-1].y + strips[-1].height


@given(st.integers(260, 2000), st.integers(260, 2000))
def test_a_cell_keeps_its_row_and_column_whatever_the_width(before: int, after: int) -> None:
    assert one(4096, before)[0] == one(4096, after)[0] == 64


def test_a_large_cache_has_wider_rows_where_they_fit() -> None:
    assert one(131_072, 480) == (128, 3.0)
    assert one(131_072, 300) == (64, 3.0)
    assert one(8192, 480) == (64, 6.0)
    assert one(4096, 480, wide=True) == (128, 3.0)


@given(st.integers(1, 5000), st.integers(0, 4999))
def test_a_cell_is_found_where_it_is_drawn(n_cells: int, cell: int) -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", n_cells)], 416)
    cell %= n_cells
    x, y = strip.corner(cell)
    assert strip.cell_at(x + strip.cell / 2, y + strip.cell / 2) == cell


def test_outside_is_no_cell() -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", 10)], 416)
    assert strip.cell_at(strip.x - 1, 0) is None
    assert strip.cell_at(strip.x, -1) is None
    assert strip.cell_at(strip.x, strip.y + strip.height + 1) is None
    assert strip.cell_at(strip.x + strip.width + 1, 0) is None


def test_row_numbers_are_never_closer_than_asked() -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", 4096)], 480)
    assert row_step(strip, 5, 14) == 4
    assert row_step(strip, 20, 14) == 1
    (short,) = lay_out([StreamSize(0, 0, "", 64)], 480)
    assert row_step(short, 5, 14) == 1, "a single row has its number"


def test_nothing_is_laid_out_without_cells() -> None:
    assert lay_out([], 100) == ()
    assert lay_out([StreamSize(0, 0, "", 0)], 100) == ()


@pytest.mark.parametrize("digit_px", [8.0, 13.5])
def test_the_largest_row_number_has_room_left_of_the_cells(digit_px: float) -> None:
    (strip,) = lay_out([StreamSize(0, 0, "", 131_072)], 600, digit_px=digit_px)
    assert strip.x >= len("131,072") * digit_px + NUMBER_GAP_PX
