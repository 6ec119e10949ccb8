import time

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.map.colours import ColourBy
from kvdesk.ui.widgets.style.theme import Theme
from tests.benchmarks.ui import frames
from tests.benchmarks.ui.window import Heartbeat


def test_a_stall_of_the_event_loop_is_heard(qtbot: QtBot) -> None:
    owner = QObject()
    heart = Heartbeat(owner)
    heart.start()
    qtbot.waitUntil(lambda: len(heart.stalls_ms) > 1, timeout=2000)
    until = time.perf_counter() + 0.06
    while time.perf_counter() < until:
        pass  # the loop is held up
    before = len(heart.stalls_ms)
    qtbot.waitUntil(lambda: len(heart.stalls_ms) > before, timeout=2000)
    heart.stop()
    assert max(heart.stalls_ms[before:]) >= 50


def test_every_colour_mode_is_measured(qapp: QApplication, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "N_CELLS", 4096)
    monkeypatch.setattr(frames, "N_FRAMES", 3)
    cells = CellMapView(Theme(qapp))
    qtbot.addWidget(cells)
    cells.resize(400, 300)
    cells.show()
    qtbot.waitExposed(cells)
    said: list[str] = []
    found = frames.frame_times(cells, said.append)
    assert list(found) == [*(mode.value.lower() for mode in ColourBy), "words"]
    assert all(ms > 0 for times in found.values() for ms in times.values())
    assert len(said) == len(ColourBy)
    assert cells.strips[0].n_cells == 4096
    assert cells._scene.mode is ColourBy.CONVERSATION, "what is measured next is measured as a person sees it"


def test_the_mixed_cache_has_everything_a_map_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "N_CELLS", 8192)
    cache = frames.MixedCache()
    first, second = cache.next_view(), cache.next_view()
    (stream,) = first.snapshot.maps[0].streams
    assert 0.5 * 8192 < stream.used < stream.high_water
    assert any(span.n_shared for span in first.snapshot.sequences)
    assert stream.shifted.any()
    assert first.pending
    assert second.snapshot.operation > first.snapshot.operation
    assert second.snapshot.maps[0].streams[0].used == stream.used + 1
    assert set(cache.spans()) == set(range(8))


def test_a_percentile_is_the_nearest_rank() -> None:
    assert frames.percentile(99, [float(ms) for ms in range(1, 101)]) == 99.0
    assert frames.percentile(99, [3.0]) == 3.0
