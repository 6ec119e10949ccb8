from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.snapshot import StreamMap
from kvdesk.ui import raster
from tests.ui.samples import stream

SLOTS = raster.slot_table({0: 0, 1: 1}, 64)
BLUE = raster.FIRST_COLOUR_SLOT * raster.N_STATES
ORANGE = BLUE + raster.N_STATES


def image(cells: StreamMap, n_kv: int, fading_after: int = 99, fresh_after: int = 99) -> list[int]:
    found = raster.index_image(cells, raster.runs_of(cells), SLOTS, n_kv, fading_after, fresh_after)
    assert found.dtype == np.uint8
    return [int(value) for value in found]


def test_free_cells_within_the_attention_span_differ_from_those_beyond() -> None:
    assert image(stream(6, []), n_kv=4) == [raster.FREE_IN_SPAN] * 4 + [raster.FREE] * 2


def test_cells_have_the_colour_of_their_conversation() -> None:
    cells = stream(6, [(0, 2, (0,), 0, 1), (3, 4, (1,), 0, 1), (4, 5, (5,), 0, 1)])
    unknown = raster.UNKNOWN_SLOT * raster.N_STATES
    assert image(cells, n_kv=6) == [BLUE, BLUE, raster.FREE_IN_SPAN, ORANGE, unknown, raster.FREE_IN_SPAN]


def test_a_shared_cell_is_marked_and_belongs_to_its_lowest_sequence() -> None:
    assert image(stream(2, [(0, 2, (1, 0), 0, 1)]), n_kv=2) == [BLUE + raster.SHARED] * 2


def test_just_written_cells_are_fresh_then_fading_then_plain() -> None:
    cells = stream(3, [(0, 1, (0,), 0, 1), (1, 2, (0,), 1, 5), (2, 3, (0,), 2, 9)])
    assert image(cells, 3, fading_after=4, fresh_after=8) == [BLUE, BLUE + raster.FADING, BLUE + raster.FRESH]


def test_second_owners_are_runs() -> None:
    cells = stream(8, [(0, 3, (0, 1), 0, 1), (3, 5, (0, 2), 3, 1), (5, 6, (0,), 5, 1)])
    assert raster.second_owner_runs(raster.runs_of(cells)) == [(0, 3, 1), (3, 2, 2)]


def test_a_second_word_of_sequences_is_read_too() -> None:
    bits = np.zeros((3, 2), np.uint64)
    bits[0, 1] = np.uint64(1 << 3)
    bits[1] = np.uint64(1)
    assert raster.lowest_sequence(bits).tolist() == [67, 0, raster.NO_SEQUENCE]


def test_the_last_row_of_a_picture_is_padded_and_rows_are_aligned() -> None:
    picture = raster.as_picture(np.arange(10, 17, dtype=np.uint8), 5)
    assert picture.shape == (2, 8)
    assert picture[1].tolist() == [15, 16, *[raster.PAD] * 6]


@given(st.integers(0, 60), st.integers(1, 60), st.integers(1, 13))
def test_boxes_cover_exactly_the_run(first: int, length: int, columns: int) -> None:
    covered = [
        (row + y) * columns + column + x
        for column, row, width, height in raster.row_boxes(first, length, columns)
        for y in range(height)
        for x in range(width)
    ]
    assert sorted(covered) == list(range(first, first + length))


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_the_image_agrees_with_a_cell_by_cell_one(masks: list[int]) -> None:
    runs = [(i, i + 1, tuple(s for s in range(3) if mask >> s & 1), i, 1) for i, mask in enumerate(masks)]
    found = image(stream(len(masks), runs), n_kv=len(masks))
    for value, mask in zip(found, masks, strict=True):
        owner = next((s for s in range(3) if mask >> s & 1), None)
        if owner is None:
            assert value == raster.FREE_IN_SPAN
        else:
            assert value // raster.N_STATES == int(SLOTS[owner])
            assert (value % raster.N_STATES == raster.SHARED) == (mask.bit_count() > 1)


@pytest.mark.parametrize("size", [1, 256, 131_072])
def test_every_size_is_drawn(size: int) -> None:
    assert len(image(stream(size, [(0, size, (0,), 0, 1)]), size)) == size
