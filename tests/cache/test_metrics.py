"""Every metric against its definition, on small maps written out by hand."""

import numpy as np
import pytest

from kvdesk.cache import metrics
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.cache.snapshot import StreamMap


def cells(text: str, size: int = 512) -> StreamMap:
    """One word per cell from index 0: `.` free, else `pos:sequences`, such as `3:01`."""
    stream = StreamCells(size, 4)
    for i, word in enumerate(text.split()):
        if word != ".":
            pos, members = word.split(":")
            one = np.array([i], dtype=np.int64)
            seq_ids = [tuple(int(s) for s in members)]
            stream.place(one, np.array([int(pos)], dtype=np.int32), seq_ids, np.array([7], dtype=np.int32), 1)
    return stream.freeze()


def test_empty() -> None:
    m = metrics.stream_metrics(cells(""))
    assert (m.used, m.high_water, m.n_kv, m.hole_ratio, m.sharing_factor) == (0, 0, 256, 0.0, 0.0)
    assert (m.n_free_runs, m.largest_free_run, m.external_fragmentation) == (1, 512, 0.0)


def test_holes_and_runs() -> None:
    m = metrics.stream_metrics(cells("0:0 . . 1:0 2:0 . 3:0", size=256))
    assert (m.used, m.high_water) == (4, 7)
    assert m.hole_ratio == pytest.approx(3 / 7)
    assert (m.n_free_runs, m.largest_free_run) == (3, 249)
    assert m.external_fragmentation == pytest.approx(1 - 249 / 252)


def test_full() -> None:
    full = cells(" ".join(f"{i}:0" for i in range(256)), size=256)
    assert metrics.external_fragmentation(full) == 0.0
    assert metrics.largest_free_run(full) == 0
    assert metrics.n_kv(full) == 256


def test_n_kv_is_padded_and_capped() -> None:
    assert metrics.n_kv(cells(". " * 256 + "0:0", size=1024)) == 512
    assert metrics.n_kv(cells(". " * 256 + "0:0", size=300)) == 300


def test_sharing() -> None:
    shared = cells("0:01 1:01 2:0 2:123")
    assert metrics.shared_cells(shared) == 3
    assert metrics.sharing_factor(shared) == pytest.approx(8 / 4)


def test_sequence() -> None:
    m = metrics.sequence_metrics(cells("0:0 0:1 1:0 . 4:0 4:0"), 0)
    assert (m.n_cells, m.scatter) == (4, 2)
    assert (m.position_holes, m.position_duplicates) == (2, 1)
    assert m.wasted_span == 256 - 4


def test_empty_sequence() -> None:
    m = metrics.sequence_metrics(cells("0:0"), 3)
    assert (m.n_cells, m.scatter, m.position_holes, m.position_duplicates) == (0, 0, 0, 0)
    assert m.wasted_span == 256


def test_window_hides_old_cells() -> None:
    assert metrics.wasted_span(cells("0:0 1:0 2:0 3:0"), 0, n_swa=3, swa_type="standard") == 256 - 2
