from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.chat import MessageId
from kvdesk.messages import PrefillProgress, SpeedSample
from kvdesk.ui.graphs import Graphs
from kvdesk.ui.main_window import MainWindow
from kvdesk.ui.theme import Look
from tests.ui.samples import ONE, TWO


def test_every_prompt_is_a_reading_of_its_own(window: MainWindow) -> None:
    graphs = window.inspector.graphs
    for i, (conversation, n_tokens) in enumerate(((ONE, 10), (TWO, 30), (ONE, 20))):
        window.apply_event(SpeedSample(100.0 + i / 10, "prefill", n_tokens, 50.0, 256))
        window.apply_event(PrefillProgress(conversation, MessageId("a"), n_tokens, n_tokens, 1.0))
    assert graphs._prefill.series.values.tolist() == [pytest.approx(v) for v in (200.0, 600.0, 400.0)]


def test_a_token_ends_the_reading_of_a_prompt(look: Look, qtbot: QtBot) -> None:
    graphs = Graphs(look)
    qtbot.addWidget(graphs)
    graphs.add_speed(SpeedSample(1.0, "prefill", 10, 50.0, 256))
    graphs.add_speed(SpeedSample(1.2, "prefill", 30, 50.0, 256))
    graphs.add_speed(SpeedSample(1.3, "decode", 1, 50.0, 256))
    assert len(graphs._prefill.series) == 2


def test_cells_are_not_drawn_into_the_future(look: Look, qtbot: QtBot) -> None:
    graphs = Graphs(look, clock=lambda: 0.0)
    qtbot.addWidget(graphs)
    graphs.add_cells(100.0, 10, 20)
    graphs.add_cells(103.0, 10, 20)
    graphs._draw()
    for curve in graphs._rows[2]:
        times, values = curve.item.getData()
        assert times.max() == pytest.approx(3.0), "the last count, not the end of the axis"
        assert values[-1] in (10, 20)


def test_the_speed_in_the_status_line_is_that_of_answers(window: MainWindow) -> None:
    window.apply_event(SpeedSample(99.0, "prefill", 512, 500.0, 256))
    window.apply_event(SpeedSample(100.0, "decode", 1, 100.0, 256))
    window.apply_event(SpeedSample(100.1, "prefill", 512, 500.0, 256))
    window.apply_event(SpeedSample(100.2, "decode", 1, 100.0, 256))
    window._events._write_numbers()
    assert "10 tok/s" in window.status.text
