import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.protocol.cache import LoadSample, OperationDone, SpeedSample
from kvdesk.protocol.chat import PrefillProgress, TurnStarted
from kvdesk.session import Store
from kvdesk.settings import ThemeChoice
from kvdesk.ui.graphs.graph_stack import GraphStack
from kvdesk.ui.graphs.graphs_page import GraphsPage
from kvdesk.ui.graphs.plot import Plot
from kvdesk.ui.graphs.span_graph import medians
from kvdesk.ui.graphs.time_graph import TimePlot
from kvdesk.ui.graphs.trends import Trends
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.graphs.graph_spec import Curve, GraphSpec
from kvdesk.viewmodel.graphs.measurements import Measurements
from kvdesk.viewmodel.graphs.series import FloatArray
from kvdesk.viewmodel.palette import BLUE
from tests.ui.recording import kit_of
from tests.ui.samples import CONTEXT, ONE, STATS, TWO, cache_view
from tests.ui.seen import seen
from tests.ui.wheel import turned


def trends(theme: Theme, measured: Measurements) -> Trends:
    kit = kit_of(theme, Store())
    kit.store.measured = measured
    return Trends(kit)


def session() -> Measurements:
    """Two answers of 100 s in all, an operation at second 40."""
    measured = Measurements(clock=lambda: 100.0)
    measured.start_turn()
    measured.add_speed(SpeedSample(100.0, "prefill", 40, 80.0, 256))
    for i in range(1, 1000):
        measured.add_speed(SpeedSample(100.0 + i / 10, "decode", 1, 10.0 + i / 100, 256 if i < 500 else 512))
        if i == 400:
            measured.add_speed(SpeedSample(140.0, "decode", 3, 10.0, 256, n_drafted=4, n_accepted=2))
            measured.add_operation(OperationDone(1, 140.0, "remove", "llama_memory_seq_rm(mem, 0, 4, -1)", 0.1))
        if i % 10 == 0:
            measured.add_load(LoadSample(100.0 + i / 10, 1.8, 0.4, 2))
    measured.add_turn(STATS, 200.0)
    measured.add_view(cache_view(), CONTEXT, 200.0)
    return measured


def curves_of(stack: GraphStack, number: int) -> list[tuple[FloatArray, FloatArray]]:
    """What a small graph draws."""
    plot = stack.graphs[number].plot
    return [curve.getOriginalDataset() for curve in plot._curves]


def plots_of(page: GraphsPage) -> list[TimePlot]:
    return [graph.plot for graph in page.stack.graphs]


def turn_wheel(plot: Plot, modifiers: Qt.KeyboardModifier) -> bool:
    """One notch up over the middle; whether the plot took it."""
    event = turned(plot, keys=modifiers)
    event.ignore()
    plot.wheelEvent(event)
    return event.isAccepted()


@pytest.fixture
def page(theme: Theme, qtbot: QtBot) -> GraphsPage:
    page = GraphsPage(theme, session())
    qtbot.addWidget(page)
    page.resize(420, 700)
    page.show()
    page.stack.draw()
    return page


def test_every_prompt_is_a_reading_of_its_own(window: MainWindow) -> None:
    for i, (conversation, n_tokens) in enumerate(((ONE, 10), (TWO, 30), (ONE, 20))):
        window.store.apply(SpeedSample(100.0 + i / 10, "prefill", n_tokens, 50.0, 256))
        window.store.apply(PrefillProgress(conversation, MessageId("a"), n_tokens, n_tokens, 1.0))
    found = window.store.measured.prefill.series.values
    assert found[~np.isnan(found)].tolist() == [pytest.approx(v) for v in (200.0, 600.0, 400.0)]


def test_a_token_ends_the_reading_of_a_prompt() -> None:
    measured = Measurements()
    measured.add_speed(SpeedSample(1.0, "prefill", 10, 50.0, 256))
    measured.add_speed(SpeedSample(1.2, "prefill", 30, 50.0, 256))
    measured.add_speed(SpeedSample(1.3, "decode", 1, 50.0, 256))
    assert len(measured.prefill.series) == 2


def test_cells_are_not_drawn_into_the_future(theme: Theme, qtbot: QtBot) -> None:
    measured = Measurements()
    graphs = trends(theme, measured)
    qtbot.addWidget(graphs)
    for at_s in (100.0, 103.0):
        measured.add_view(cache_view(), CONTEXT, at_s)
    graphs.fold.button.click()
    assert graphs.stack is not None
    graphs.stack.draw()
    for (times, values), last in zip(curves_of(graphs.stack, 2), (220, 240), strict=True):
        assert times.max() == pytest.approx(3.0), "the last count, not the end of the axis"
        assert values[-1] == last


def test_nothing_is_drawn_while_hidden(theme: Theme, qtbot: QtBot) -> None:
    measured = session()
    graphs = trends(theme, measured)
    qtbot.addWidget(graphs)
    graphs.show()
    graphs.draw_due()
    assert graphs.stack is None, "it is folded away"
    graphs.fold.button.click()
    stack = graphs.stack
    assert stack is not None
    qtbot.waitUntil(lambda: curves_of(stack, 1)[0][0] is not None)
    assert curves_of(stack, 1)[0][0].size > 80
    graphs.hide()
    measured.add_speed(SpeedSample(299.0, "decode", 50, 1000.0, 256))
    shown = curves_of(stack, 1)[0][0].size
    graphs.draw_due()
    assert curves_of(stack, 1)[0][0].size == shown
    assert not stack._timer.isActive()
    graphs.show()
    qtbot.waitUntil(stack._timer.isActive)


def test_numbers_are_written_more_often_than_long_curves_are_drawn(theme: Theme, qtbot: QtBot) -> None:
    measured, now = session(), [0.0]
    row = GraphSpec("tok/s", (Curve("decode", measured.decode.series, BLUE),))
    stack = GraphStack(theme, measured, [TimePlot(theme, row)], clock=lambda: now[0])
    qtbot.addWidget(stack)
    stack.resize(444, 100)  # 400 px for 100 s
    stack.show()
    stack.draw()
    shown = curves_of(stack, 0)[0][0].size
    measured.add_speed(SpeedSample(199.95, "decode", 50, 1000.0, 256))
    now[0] = 0.1
    stack.draw_due()
    assert tuple(value.text() for value in stack.graphs[0].captions._values) == ("50.0",)
    assert curves_of(stack, 0)[0][0].size == shown
    now[0] = 2.1
    stack.draw_due()
    qtbot.waitUntil(lambda: curves_of(stack, 0)[0][0].size > shown, timeout=2000)


def test_the_page_shows_everything_that_is_asked_of_it(page: GraphsPage) -> None:
    shown = [(graph.plot.spec.unit, [curve.name for curve in graph.plot.spec.curves]) for graph in page.stack.graphs]
    assert [unit for unit, _ in shown] == ["tok/s", "tok/s", "ms", "cells", "MB", "%", "cores"]
    assert all(graph.captions._values[0].text() != "–" for graph in page.stack.graphs), (
        "every last value is written out"
    )
    assert tuple(value.text() for value in page.stack.graphs[3].captions._values) == ("220", "240")
    assert tuple(value.text() for value in page.stack.graphs[6].captions._values) == ("1.80", "0.40", "2.00")
    for plot in plots_of(page):
        assert plot._marks.xvals.tolist() == pytest.approx([40.0]), "every operation is a mark on every axis"


def test_all_graphs_are_read_out_at_one_time(page: GraphsPage, qtbot: QtBot) -> None:
    page.stack.read_at(39.9)
    assert page.stack.graphs[2].captions._values[0].text() == "100.0"
    assert "remove: llama_memory_seq_rm(mem, 0, 4, -1)" in page._note.full_text
    assert page._note.full_text.startswith("at 39.9 s")
    qtbot.keyClick(page.stack, Qt.Key.Key_Right)
    assert page._note.full_text.startswith("at 40.9 s")
    said = page.stack.accessibleDescription()
    assert said.startswith("at 40.9 s")
    assert f"Cells in use {page.stack.graphs[3].captions._values[0].text()} cells, High water" in said
    qtbot.keyClick(page.stack, Qt.Key.Key_Escape)
    assert page._note.full_text.startswith("40.0 s  remove"), "the last operation again"
    assert page.stack.accessibleDescription() == page._note.full_text


def test_the_axis_is_moved_with_keys_and_buttons(page: GraphsPage, qtbot: QtBot) -> None:
    axis, windows = page.stack.axis, page.window_buttons
    assert (axis.following, windows.checkedId()) == (True, 1)
    qtbot.keyClick(page.stack, Qt.Key.Key_Plus)
    assert axis.range == pytest.approx((25.0, 75.0))
    assert not page.follow_button.isChecked()
    assert windows.checkedId() == -1
    for plot in plots_of(page):
        assert plot.viewRange()[0] == pytest.approx([25.0, 75.0]), "one axis for all"
    qtbot.keyClick(page.stack, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    assert axis.range == pytest.approx((20.0, 70.0))
    page.follow_button.click()
    assert axis.range == pytest.approx((0.0, 100.0))
    windows.button(0).click()
    assert axis.range == pytest.approx((70.0, 100.0))
    page.follow_button.click()
    assert not axis.following
    assert page.follow_button.accessibleName()


def test_dragging_moves_the_axis_and_the_plain_wheel_is_left_to_the_page(page: GraphsPage) -> None:
    plot = plots_of(page)[0]
    plot.panned.emit(-0.1)
    assert page.stack.axis.range == pytest.approx((-10.0, 90.0))
    plot.zoomed.emit(0.5, 40.0)
    assert page.stack.axis.range == pytest.approx((15.0, 65.0))
    plot.hovered.emit(20.0)
    assert page._note.full_text.startswith("at 20.0 s")
    before = page.stack.axis.range
    none, ctrl, shift = (getattr(Qt.KeyboardModifier, f"{name}Modifier") for name in ("No", "Control", "Shift"))
    assert not turn_wheel(plot, none)
    assert page.stack.axis.range == before
    assert turn_wheel(plot, ctrl)
    assert page.stack.axis.range[1] - page.stack.axis.range[0] < before[1] - before[0]
    middle = page.stack.axis.range
    assert turn_wheel(plot, shift)
    assert page.stack.axis.range[0] < middle[0]


def test_time_per_token_against_n_kv(page: GraphsPage) -> None:
    page.spans.draw()
    spans, ms = page.spans.medians
    assert spans.tolist() == [256.0, 512.0]
    assert ms.tolist() == pytest.approx([12.5, 17.495], rel=0.01)
    assert medians(np.array([512.0, 256.0, 512.0]), np.array([3.0, 1.0, 5.0]))[1].tolist() == [1.0, 4.0]


def test_export_as_a_table(page: GraphsPage, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    page.export(file)
    with file.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.reader(stream))
    assert lines[0] == ["second", "series", "value", "unit"]
    names = {line[1] for line in lines[1:]}
    assert {name for name, _, _ in session().all_series()} <= names
    assert ["40.000000", "operation remove: llama_memory_seq_rm(mem, 0, 4, -1)", "0.1", "ms"] in lines
    tokens = [line for line in lines if line[1] == "time per token"]
    assert len(tokens) == 999
    assert tokens[0] == ["0.100000", "time per token", "10.01", "ms"]


@pytest.mark.usefixtures("styled")
def test_export_as_a_picture_and_a_drawing(page: GraphsPage, tmp_path: Path) -> None:
    page.export(tmp_path / "out.png")
    image = QImage(str(tmp_path / "out.png"))
    assert (image.width(), image.height()) == (2 * page.picture.width(), 2 * page.picture.height())
    assert page.picture.height() > page.height(), "also what is scrolled out of sight"
    page.export(tmp_path / "out.svg")
    drawing = (tmp_path / "out.svg").read_text(encoding="utf-8")
    assert drawing.count("<polyline") + drawing.count("<path") > 20
    assert "<text" in drawing
    assert "<image" not in drawing, "lines, not pixels"


def test_a_failed_export_is_said(page: GraphsPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = iter([str(tmp_path / "no" / "such.csv"), str(tmp_path / "fine"), ""])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (next(chosen), ""))
    page._ask("csv")
    assert page._note.full_text == "such.csv could not be written: No such file or directory"
    page._ask("csv")
    assert page._note.full_text.startswith("Written: ")
    assert (tmp_path / "fine.csv").exists()
    page._ask("png")
    with pytest.raises(OSError, match="must end in"):
        page.export(tmp_path / "x.gif")


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of POSIX is the full disk")
@pytest.mark.usefixtures("styled")
@pytest.mark.parametrize("ending", ["png", "svg", "csv"])
def test_a_full_disk_leaves_the_file_that_was_there(page: GraphsPage, tmp_path: Path, ending: str) -> None:
    import resource

    file = tmp_path / f"out.{ending}"
    file.write_bytes(b"earlier")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            page.export(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert file.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("styled")
def test_the_theme_may_change(page: GraphsPage, theme: Theme) -> None:
    dark = page.grab().toImage().pixelColor(200, 100)
    theme.set_theme(ThemeChoice.LIGHT)
    page.stack.draw()
    assert page.grab().toImage().pixelColor(200, 100).lightness() > dark.lightness() + 100


def test_the_speed_in_the_status_line_is_that_of_answers(window: MainWindow) -> None:
    window.store.apply(TurnStarted(ONE, MessageId("a"), 0, 140, 128))
    window.store.apply(SpeedSample(99.0, "prefill", 512, 500.0, 256))
    window.store.apply(SpeedSample(100.0, "decode", 1, 100.0, 256))
    window.store.apply(SpeedSample(100.1, "prefill", 512, 500.0, 256))
    window.store.apply(SpeedSample(100.2, "decode", 1, 100.0, 256))
    window.store.count()
    assert "10 tok/s" in seen(window.status)


def with_pause() -> Measurements:
    """The session, five minutes of nothing, and an answer of 10 s."""
    measured = session()
    for i in range(100):
        measured.add_speed(SpeedSample(500.0 + i / 10, "decode", 1, 10.0, 512))
    return measured


def test_a_pause_is_folded_and_marked(theme: Theme, qtbot: QtBot) -> None:
    page = GraphsPage(theme, with_pause())
    qtbot.addWidget(page)
    page.resize(420, 700)
    page.show()
    page.stack.draw()
    assert page.stack.axis.range[1] < 120, "100 s, a gap, and 10 s"
    ((begin, end),) = page.stack.axis.fold.gaps
    plot = plots_of(page)[1]
    assert list(plot._gaps.xvals) == [begin, end]
    seconds, _ = plot._curves[0].getOriginalDataset()
    assert np.nanmax(seconds) == pytest.approx(page.stack.axis.latest_s, abs=1.5)
    page.stack.read_at(page.stack.axis.latest_s)
    assert page.stack.note.startswith("at 6:49.9"), "the time that passed, with the pause"


def test_the_time_is_written_once_and_the_page_is_drawn_when_it_is_shown(theme: Theme, qtbot: QtBot) -> None:
    page = GraphsPage(theme, session())
    qtbot.addWidget(page)
    page.resize(420, 700)
    assert all(plot.getAxis("left")._tickLevels == [[]] for plot in plots_of(page)), (
        "no numbers before there is a scale"
    )
    page.show()
    qtbot.waitUntil(lambda: all(plot.getAxis("left")._tickLevels[0] for plot in plots_of(page)), timeout=400)
    *others, last = [plot.getAxis("bottom")._tickLevels[0] for plot in plots_of(page)]
    assert last
    assert not any(others)
