from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.geometry import ContextParams, ModelFacts, SwaType, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import CacheMap, StreamMap, Verification
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import Scales, Scene, groups_of
from kvdesk.ui.map.pixels import Part, picture
from kvdesk.ui.map.raster import FADING, FIRST_GROUP, FRESH, HIDDEN, N_SHADES, SHARED, SHIFTED
from kvdesk.values import replace
from tests.ui.placing import place
from tests.ui.samples import stream

BLUE, ORANGE, NOBODY = (FIRST_GROUP + group * N_SHADES for group in (1, 2, 0))
SCENE = Scene(colours={0: 0, 1: 1})


def layer(cells: StreamMap, n_kv: int, fading_after: int = 99, fresh_after: int = 99) -> raster.Layer:
    runs = raster.runs_of(cells)
    marks = raster.marks_of(cells, runs, CacheMap("kv", (cells,), 0), fading_after, fresh_after)
    group, second = groups_of(cells, runs, SCENE, Scales(), 1, None)
    return raster.layer(cells, runs, n_kv, group, second, marks)


def window_marks(window: CacheMap, stream_index: int = 0) -> list[int]:
    cells = window.streams[stream_index]
    return [int(mark) for mark in raster.marks_of(cells, raster.runs_of(cells), window, 99, 99)]


def test_free_cells_within_the_attention_span_differ_from_those_beyond() -> None:
    found = layer(stream(6, []), n_kv=4)
    assert (found.code.tolist(), found.n_free) == ([raster.FREE_IN_SPAN] * 4, 2)
    assert picture(found, 4, Part(0, 2, 0, 4), 3)[::3, ::3].tolist() == [
        [raster.FREE_IN_SPAN] * 4,
        [raster.FREE] * 2 + [raster.PAD] * 2,
    ]


def test_cells_have_the_colour_of_their_conversation() -> None:
    cells = stream(6, [(0, 2, (0,), 0, 1), (3, 4, (1,), 0, 1), (4, 5, (5,), 0, 1)])
    hole, free = raster.HOLE, raster.FREE_IN_SPAN
    assert layer(cells, n_kv=6).code.tolist() == [BLUE, BLUE, hole, ORANGE, NOBODY, free]


def test_a_shared_cell_is_marked_and_has_the_colours_of_its_two_lowest_sequences() -> None:
    found = layer(stream(3, [(0, 2, (1, 0), 0, 1), (2, 3, (1,), 2, 1)]), n_kv=3)
    assert found.code.tolist() == [BLUE, BLUE, ORANGE]
    assert found.second is not None
    assert found.second.tolist() == [ORANGE] * 3
    assert found.marks.tolist() == [SHARED, SHARED, 0]


def test_just_written_cells_are_fresh_then_fading_then_plain() -> None:
    cells = stream(3, [(0, 1, (0,), 0, 1), (1, 2, (0,), 1, 5), (2, 3, (0,), 2, 9)])
    found = layer(cells, 3, fading_after=4, fresh_after=8)
    assert found.code.tolist() == [BLUE, BLUE + raster.FADING_SHADE, BLUE + raster.FRESH_SHADE]
    assert found.marks.tolist() == [0, FADING, FADING | FRESH]


def test_cells_with_a_pending_shift_are_marked_and_free_ones_never() -> None:
    shifted = np.array([False, True, True, False])
    cells = replace(stream(4, [(0, 2, (0,), 0, 1), (3, 4, (0,), 3, 1)]), shifted=shifted)
    assert layer(cells, 4).marks.tolist() == [0, SHIFTED, 0, 0]


def test_the_engines_own_rule_says_which_window_cells_are_overwritten_next() -> None:
    facts = ModelFacts("gemma2", "iswa", n_swa=8, swa_type="standard")
    mirror = Mirror(plan(facts, ContextParams(n_ctx=256, n_seq_max=2, kv_unified=True)))
    place(mirror, 0, 0, 20)
    place(mirror, 1, 0, 4)
    base, window = mirror.snapshot(Verification("mirrored", 0)).maps
    assert window_marks(base) == [0] * 24
    assert window_marks(window) == [HIDDEN] * 13 + [0] * 11, "at position 20 the first seen is 13; 4 of sequence 1 stay"
    mirror.seq_cp(0, 1, 0, 3)
    window = mirror.snapshot(Verification("mirrored", 0)).maps[1]
    assert window_marks(window)[:4] == [SHARED] * 3 + [HIDDEN], "a shared cell is never overwritten"


@pytest.mark.parametrize(("kind", "hidden"), [("standard", 3), ("chunked", 8), ("symmetric", 6), ("none", 0)])
def test_every_kind_of_window(kind: SwaType, hidden: int) -> None:
    cells = stream(10, [(0, 10, (0,), 0, 1)])
    marks = window_marks(CacheMap("window", (cells,), 8, kind))
    assert marks == [HIDDEN] * hidden + [0] * (10 - hidden)


def test_a_second_word_of_sequences_is_read_too() -> None:
    bits = np.zeros((3, 2), np.uint64)
    bits[0, 1] = np.uint64(1 << 3)
    bits[1] = np.uint64(1)
    assert raster.lowest_sequence(bits).tolist() == [67, 0, raster.NO_SEQUENCE]


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_codes_agree_with_a_cell_by_cell_reading(masks: list[int]) -> None:
    held = [(i, i + 1, tuple(s for s in range(3) if mask >> s & 1), i, 1) for i, mask in enumerate(masks)]
    found = layer(stream(len(masks), [run for run in held if run[2]]), n_kv=len(masks))
    code_of = (BLUE, ORANGE, NOBODY)
    second = found.code if found.second is None else found.second
    for i, (_, _, seqs, _, _) in enumerate(held):
        if not seqs:
            free = raster.HOLE if any(masks[i:]) else raster.FREE_IN_SPAN
            assert (found.code[i], found.marks[i]) == (free, 0)
        else:
            assert found.code[i] == code_of[seqs[0]]
            assert second[i] == code_of[seqs[min(1, len(seqs) - 1)]]
            assert found.marks[i] == (SHARED if len(seqs) > 1 else 0)


@pytest.mark.parametrize("size", [1, 256, 131_072])
def test_every_size_is_drawn(size: int) -> None:
    assert layer(stream(size, [(0, size, (0,), 0, 1)]), size).code.shape == (size,)
