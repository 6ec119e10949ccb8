"""llama.cpp's former defragmentation: the picture of its issue, its limit, and what is true of any cells."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.memories.cells import StreamCells
from kvdesk.experiments.simulators.hole_filling import Move, max_moves, move_cells, over_threshold, plan_moves


def cells_of(picture: str) -> StreamCells:
    """A cell for each character: a dot is free, a digit is the sequence; positions go up within a sequence."""
    cells = StreamCells(len(picture), 10)
    n: dict[str, int] = {}
    for i, c in enumerate(picture):
        if c != ".":
            n[c] = n.get(c, -1) + 1
            pos, token = np.array([n[c]], dtype=np.int32), np.array([i], dtype=np.int32)
            cells.place(np.array([i]), pos, [(int(c),)], token, 1)
    return cells


def picture_of(cells: StreamCells) -> str:
    held = {i: s for s in cells.sequences for i in np.flatnonzero(cells.seq_has(s)).tolist()}
    return "".join(str(held.get(i, ".")) for i in range(cells.size))


def test_each_hole_takes_what_is_last() -> None:
    cells = cells_of("00..1.2345")
    moves = plan_moves(cells.pos == -1, 100)
    assert moves == [Move(8, 2, 2), Move(7, 5, 1)]  # 7 used: of the holes below 7 the first takes 4 5, the second 3
    assert move_cells(cells, moves) == 3
    assert picture_of(cells) == "004513" + "2..."
    assert (cells.used, cells.high_water, cells.head) == (7, 7, 7)
    assert cells.seq_pos_max(0) == 1


def test_it_stops_after_so_many_moves() -> None:
    assert max_moves(16) == 85
    picture = "0.0.0.0.0.0."
    cells = cells_of(picture)
    moves = plan_moves(cells.pos[: cells.high_water] == -1, 1)
    assert len(moves) == 1
    move_cells(cells, moves)
    assert cells.high_water == 9


def test_the_threshold_is_of_large_spans_only() -> None:
    small, large, full = StreamCells(1024, 1), StreamCells(4096, 1), StreamCells(4096, 1)
    for cells, index in ((small, [1000]), (large, [4000]), (full, range(3900))):
        places = np.array(list(index))
        cells.place(places, places.astype(np.int32), [(0,)] * len(places), places.astype(np.int32), 1)
    assert [over_threshold(cells, 32) for cells in (small, large, full)] == [False, True, False]


@given(st.lists(st.booleans(), min_size=1, max_size=80), st.integers(0, 10))
def test_nothing_is_lost_and_nothing_overlaps(used: list[bool], most: int) -> None:
    picture = "".join("0" if is_used else "." for is_used in used)
    cells = cells_of(picture)
    before = sorted(cells.token[cells.pos != -1].tolist())
    moves = plan_moves(cells.pos[: cells.high_water] == -1, most)
    places = [place + i for move in moves for place in (move.source, move.target) for i in range(move.n)]
    assert len(set(places)) == len(places)
    assert len(moves) <= most
    move_cells(cells, moves)
    assert sorted(cells.token[cells.pos != -1].tolist()) == before
    whole = plan_moves(cells.pos[: cells.high_water] == -1, 1000)
    move_cells(cells, whole)
    assert cells.high_water == cells.used == sum(used)
