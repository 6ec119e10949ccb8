import numpy as np
import pytest

from kvdesk.ui.map.pixels import BOTTOM, LEFT, RIGHT, TOP, Part, edges_of, picture
from kvdesk.ui.map.raster import (
    EDGE,
    FIRST_GROUP,
    FREE,
    FRESH,
    HIDDEN,
    HOLE,
    INK,
    MARK_SHIFT,
    PAD,
    PARTIAL,
    SHARED,
    SHIFTED,
    SINK,
    Layer,
)

ONE, TWO = FIRST_GROUP + 4, FIRST_GROUP + 8
CODES = np.arange(256, dtype=np.uint32)
"""A table of colours in which each code is its own colour."""


def layer(codes: list[int], marks: list[int] | None = None, second: list[int] | None = None) -> Layer:
    above = np.array(marks or [0] * len(codes), np.uint16) << MARK_SHIFT
    upper, lower = (None if half is None else above | np.array(half, np.uint16) for half in (codes, second))
    assert upper is not None
    return Layer(upper, lower)


def test_cells_go_row_by_row_with_gaps() -> None:
    found = picture(layer([10, 11, 12, 13, 14, PAD]), 3, Part(0, 2, 0, 3), 3, CODES)
    above, below = [10, 10, INK, 11, 11, INK, 12, 12, INK], [13, 13, INK, 14, 14, INK, PAD, PAD, INK]
    assert found.tolist() == [above, above, [INK] * 9, below, below, [INK] * 9]


def test_only_the_part_that_is_seen_is_made() -> None:
    whole = picture(layer(list(range(20, 32))), 4, Part(0, 3, 0, 4), 3, CODES)
    part = picture(layer(list(range(24, 32))), 4, Part(1, 3, 1, 3), 3, CODES)
    assert part.tolist() == whole[3:9, 3:9].tolist()


def test_a_shared_cell_is_split_at_every_size() -> None:
    shared = layer([ONE, ONE], [SHARED] * 2, [TWO, TWO])
    small = picture(shared, 2, Part(0, 1, 0, 2), 3, CODES)
    assert small.tolist() == [[ONE, ONE, INK] * 2, [TWO, TWO, INK] * 2, [INK] * 6]
    large = picture(shared, 2, Part(0, 1, 0, 2), 9, CODES)
    assert large[0, 0] == ONE
    assert large[7, 0] == TWO
    assert INK not in large[:8, :8]


def test_a_hole_is_hollow() -> None:
    hole, cell = picture(layer([HOLE, ONE]), 2, Part(0, 1, 0, 2), 6, CODES).reshape(6, 2, 6).transpose(1, 0, 2)
    assert (hole[:5, :5] == HOLE).sum() == 16, "a rim"
    assert (hole[1:4, 1:4] == INK).all()
    assert (cell[:5, :5] == ONE).all()


@pytest.mark.parametrize("pixels", [5, 6, 7, 9, 16, 33])
def test_every_mark_has_a_pattern_of_its_own_and_leaves_the_colour_to_be_seen(pixels: int) -> None:
    marks = [0, FRESH, HIDDEN, SHIFTED, SHARED, PARTIAL, SINK]
    n = len(marks)
    cells = picture(layer([ONE] * n, marks), n, Part(0, 1, 0, n), pixels, CODES).reshape(pixels, n, pixels)
    inked = [cells[:, i] == INK for i in range(n)]
    assert len({pattern.tobytes() for pattern in inked}) == n
    for mark, pattern in zip(marks, inked, strict=True):
        assert pattern[:-1, :-1].mean() < 0.6, mark
        assert bool(pattern[:-1, :-1].any()) == (mark > 0), mark


def test_the_outline_runs_around_the_selected_cells() -> None:
    selected = np.zeros(9, np.bool_)
    selected[[4, 5, 8]] = True
    edges = edges_of(selected, 3)
    assert edges.tolist() == [[0, 0, 0], [0, TOP | BOTTOM | LEFT, TOP | RIGHT], [0, 0, BOTTOM | LEFT | RIGHT]]


def test_the_outline_is_drawn_on_the_inside() -> None:
    selected = np.array([False, True, False])
    edges = edges_of(selected, 3)
    large = picture(layer([FREE] * 3), 3, Part(0, 1, 0, 3), 4, CODES, edges)
    ring = large[:, 4:8] == EDGE
    assert ring.sum() == 12
    assert not ring[1:3, 1:3].any()
    assert (large[:, :4] != EDGE).all()
