import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.geometry import ContextParams, ModelFacts, SwaType, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import CacheMap, SequenceSpan, StreamMap, Verification
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import Scales, Scene, colouring
from kvdesk.ui.map.raster import FADING, FIRST_GROUP, FRESH, HIDDEN, N_SHADES, SHARED, SHIFTED
from kvdesk.values import replace
from tests.ui.placing import place
from tests.ui.samples import spans, stream

BLUE, ORANGE, NOBODY = (FIRST_GROUP + group * N_SHADES for group in (1, 2, 0))
SCENE = Scene(colours={0: 0, 1: 1})


def layer(
    cells: StreamMap,
    n_kv: int,
    fading_after: int = 99,
    fresh_after: int = 99,
    *,
    first: int = 0,
    end: int | None = None,
) -> raster.Layer:
    end = cells.size if end is None else end
    found = raster.cells_of(cells, first, end, (fading_after, fresh_after))
    coloured = colouring(SCENE, Scales(), 1, cells, (0, 0))(found)
    return raster.layer(found, coloured, end, n_kv, cells.size)


def window_marks(window: CacheMap, sequences: tuple[SequenceSpan, ...]) -> list[int]:
    (cells,) = window.streams
    found = raster.cells_of(cells, 0, cells.size, (99, 99), raster.hidden_below(window, sequences))
    return [int(mark) for mark in found.marks]


def test_free_cells_within_the_attention_span_differ_from_those_beyond() -> None:
    found = layer(stream(6, []), n_kv=4, end=8)
    assert found.code.tolist() == [raster.FREE_IN_SPAN] * 4 + [raster.FREE] * 2 + [raster.PAD] * 2


def test_cells_have_the_colour_of_their_conversation() -> None:
    cells = stream(6, [(0, 2, (0,), 0, 1), (3, 4, (1,), 0, 1), (4, 5, (5,), 0, 1)])
    hole, free = raster.HOLE, raster.FREE_IN_SPAN
    assert layer(cells, n_kv=6).code.tolist() == [BLUE, BLUE, hole, ORANGE, NOBODY, free]


def test_a_shared_cell_is_marked_and_has_the_colours_of_its_two_lowest_sequences() -> None:
    found = layer(stream(3, [(0, 2, (1, 0), 0, 1), (2, 3, (1,), 2, 1)]), n_kv=3)
    assert found.code.tolist() == [BLUE, BLUE, ORANGE]
    assert found.lower is not None
    assert (found.lower & raster.CODE).tolist() == [ORANGE] * 3
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
    before = mirror.snapshot(Verification("mirrored", 0))
    base, window = (window_marks(cache, before.sequences) for cache in before.maps)
    assert base == [0] * 24
    assert window == [HIDDEN] * 13 + [0] * 11, "at position 20 the first seen is 13; 4 of sequence 1 stay"
    mirror.seq_cp(0, 1, 0, 3)
    after = mirror.snapshot(Verification("mirrored", 0))
    assert window_marks(after.maps[1], after.sequences)[:4] == [SHARED] * 3 + [HIDDEN], (
        "a shared cell is never overwritten"
    )


@pytest.mark.parametrize(("kind", "hidden"), [("standard", 3), ("chunked", 8), ("symmetric", 6), ("none", 0)])
def test_every_kind_of_window(kind: SwaType, hidden: int) -> None:
    cells = stream(10, [(0, 10, (0,), 0, 1)])
    marks = window_marks(CacheMap("window", (cells,), 8, kind), spans(cells))
    assert marks == [HIDDEN] * hidden + [0] * (10 - hidden)


def test_a_second_word_of_sequences_is_read_too() -> None:
    bits = np.zeros((3, 2), np.uint64)
    bits[0, 1] = np.uint64(1 << 3)
    bits[1] = np.uint64(1)
    assert raster.lowest_sequence(bits).tolist() == [67, 0, raster.NO_SEQUENCE]
    bits[0] = np.uint64(1 << 5 | 1 << 7), np.uint64(1)
    bits[1, 1] = np.uint64(1 << 9)
    assert raster.lowest_sequence(raster.without_lowest(bits)).tolist() == [7, 73, raster.NO_SEQUENCE]


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_codes_agree_with_a_cell_by_cell_reading(masks: list[int]) -> None:
    held = [(i, i + 1, tuple(s for s in range(3) if mask >> s & 1), i, 1) for i, mask in enumerate(masks)]
    found = layer(stream(len(masks), [run for run in held if run[2]]), n_kv=len(masks))
    code_of = (BLUE, ORANGE, NOBODY)
    second = found.code if found.lower is None else found.lower & raster.CODE
    for i, (_, _, seqs, _, _) in enumerate(held):
        if not seqs:
            free = raster.HOLE if any(masks[i:]) else raster.FREE_IN_SPAN
            assert (found.code[i], found.marks[i]) == (free, 0)
        else:
            assert found.code[i] == code_of[seqs[0]]
            assert second[i] == code_of[seqs[min(1, len(seqs) - 1)]]
            assert found.marks[i] == (SHARED if len(seqs) > 1 else 0)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40), st.integers(0, 40), st.integers(0, 50))
def test_a_part_looks_as_it_does_in_the_whole(masks: list[int], first: int, length: int) -> None:
    held = [(i, i + 1, tuple(s for s in range(3) if mask >> s & 1), i, i) for i, mask in enumerate(masks)]
    cells = stream(len(masks) + 5, [run for run in held if run[2]])
    end = first + length
    whole, part = layer(cells, 30, 10, 20, end=100), layer(cells, 30, 10, 20, first=first, end=end)
    assert part.upper.tolist() == whole.upper[first:end].tolist()
    lower = whole.upper if whole.lower is None else whole.lower
    assert (part.upper if part.lower is None else part.lower).tolist() == lower[first:end].tolist()
