"""The page of the laboratory, fed by hand: what it asks for, shows while an experiment runs, and of past results."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.protocol.experiment import (
    Figure,
    Finished,
    Load,
    Parameter,
    Plot,
    Point,
    Progress,
    Record,
    Request,
    Result,
    Sample,
    Series,
    Started,
    Table,
    Verdict,
)
from kvdesk.protocol.experiment_cells import CellsSeen
from kvdesk.ui.lab.curves import CurvePlot
from kvdesk.ui.lab.page import LabPage
from kvdesk.ui.lab.tables import ResultTable
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.kit import Kit
from kvdesk.values import replace
from kvdesk.viewmodel.lab import ModelChoice, Needs, PastResult, Question

ONE = Question(
    "one",
    "The first",
    "Is it so?",
    "It is.",
    (
        Parameter("n", "Tokens", 100, 1, 1000, 10, "Tokens that are read"),
        Parameter("share", "Share", 0.5, 0, 1, 0.25, "Of the cells", whole=False),
    ),
)
TWO = Question("two", "The second", "Or so?", "It is not.", (), takes_text=True)
MODEL = ModelChoice(Path("/models/tiny.gguf"), "open now")
NEEDS = Needs(154_000_000, 33_000, 720)


def past(name: str, key: str = "yes", value: float = 2.0) -> PastResult:
    plot = Plot("Seconds", "tokens", "s", (Series("with", (Point(1, 2, 1, 3), Point(10, 20))),), log=True)
    result = Result(
        Verdict(key, f"It is {name} (1.02 to 3.4).", f"It is {name}."),
        (Figure("ratio", value, 1, 3, "s"),),
        (plot,),
        (Table("Medians", ("a", "b"), (("x", "1 s"),)),),
        ("One remark.",),
    )
    asked = Request("one", "/models/tiny.gguf", {"n": 10}, short=True)
    record = Record(
        asked,
        "The first",
        "Is it so?",
        "2026-01-01T10:20:30+00:00",
        Started({"cores": "2"}, 5, 1.5),
        (),
        Finished(result, Load(), 3),
    )
    return PastResult(Path("/results") / name, record)


@pytest.fixture
def page(kit: Kit, qtbot: QtBot) -> LabPage:
    page = LabPage(kit)
    qtbot.addWidget(page)
    page.resize(1280, 760)
    page.setup.show_models([MODEL])
    page.show_questions([ONE, TWO])
    page.show()
    return page


def texts(page: LabPage) -> list[str]:
    return [label.text() for label in page.result.findChildren(QLabel)]


def cells(table: ResultTable) -> tuple[tuple[str, ...], ...]:
    rows, columns = range(table._view.rowCount()), range(table._view.columnCount())
    return tuple(tuple(table._view.text(i, j) for j in columns) for i in rows)


def ready(page: LabPage) -> Request:
    """What the parameters need is known."""
    request = page.setup.request
    assert request is not None
    page.setup.show_needs(request, NEEDS)
    return request


Recorder = Callable[[object], list[tuple[object, ...]]]


def test_a_question_asks_for_its_results_and_its_needs(page: LabPage, record: Recorder) -> None:
    results, needs = record(page._commands.lab.ask_results), record(page._commands.lab.ask_needs)
    page.choose("two")
    assert results == [("two",)]
    assert needs == [(Request("two", str(MODEL.path), {}, short=True),)]


def test_parameters_have_their_ranges_and_the_values_of_the_form(page: LabPage, qtbot: QtBot) -> None:
    field = page.setup._fields["n"]
    assert (field.minimum(), field.maximum(), field.value()) == (1, 1000, 10)
    assert page.setup._fields["share"].value() == 0.25
    qtbot.mouseClick(page.setup._forms.button(1), Qt.MouseButton.LeftButton)
    assert page.setup.request == Request("one", str(MODEL.path), {"n": 100, "share": 0.5}, short=False)


def test_what_was_typed_stays_while_another_question_is_read(page: LabPage, qtbot: QtBot) -> None:
    page.setup._fields["n"].setValue(7)
    page.choose("two")
    page.choose("one")
    assert page.setup.request == Request("one", str(MODEL.path), {"n": 7, "share": 0.25}, short=True)
    qtbot.mouseClick(page.setup._forms.button(1), Qt.MouseButton.LeftButton)
    assert page.setup._fields["n"].value() == 100
    qtbot.mouseClick(page.setup._forms.button(0), Qt.MouseButton.LeftButton)
    assert page.setup._fields["n"].value() == 10, "a form has its own values"


def test_the_chosen_model_stays_when_another_one_is_opened(page: LabPage, monkeypatch: pytest.MonkeyPatch) -> None:
    other, opened = ModelChoice(Path("/m/other.gguf"), "comes along"), ModelChoice(Path("/m/new.gguf"), "open now")
    choice, setup = page.setup._model, page.setup
    setup.show_models([MODEL, other])
    choice.setCurrentIndex(1)
    choice.activated.emit(1)
    setup.show_models([opened, other])
    assert setup.request.model == str(other.path)
    monkeypatch.setattr("kvdesk.ui.widgets.choose_file.QFileDialog.getOpenFileName", lambda *_: ("", ""))
    choice.activated.emit(2)
    assert setup.request.model == str(other.path), "no file was chosen"
    setup.show_models([opened])
    assert setup.request.model == str(opened.path), "it is no longer offered"


def test_it_runs_only_when_what_it_takes_has_been_said(page: LabPage, qtbot: QtBot, record: Recorder) -> None:
    asked = record(page._commands.lab.begin)
    qtbot.mouseClick(page.setup.run_button, Qt.MouseButton.LeftButton)
    assert asked == []
    request = ready(page)
    assert asked == [(request,)], "the click before that was known counts"
    asked.clear()
    assert "154 MB" in page.setup._needs.text()
    assert "33,000 tokens" in page.setup._needs.text()
    qtbot.mouseClick(page.setup.run_button, Qt.MouseButton.LeftButton)
    assert asked == [(request,)]


def test_it_does_not_run_with_an_invalid_number(page: LabPage, qtbot: QtBot) -> None:
    ready(page)
    share = page.setup._fields["share"]
    share.selectAll()
    qtbot.keyClicks(share.lineEdit(), "0,7x")
    qtbot.waitUntil(lambda: page.setup._needs.text() == "“0,7x” is not a number.")
    assert not page.setup.run_button.isEnabled()
    assert page.setup.request is None
    qtbot.keyClick(share.lineEdit(), Qt.Key.Key_Backspace)
    assert page.setup.request is not None
    assert page.setup.request.values == {"n": 10, "share": 0.7}
    ready(page)


def test_a_text_is_chosen_where_one_is_read(page: LabPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = page.setup._text
    assert not choice.isVisible()
    page.choose("two")
    assert choice.isVisible()
    assert page.setup.request.text_file == ""
    mine = str(tmp_path / "mine.txt")
    monkeypatch.setattr("kvdesk.ui.widgets.choose_file.QFileDialog.getOpenFileName", lambda *_: (mine, ""))
    choice.activated.emit(choice.count() - 1)
    assert page.setup.request.text_file == mine
    assert choice.currentText() == "mine.txt"
    page.choose("one")
    assert page.setup.request.text_file == ""
    page.choose("two")
    choice.activated.emit(choice.count() - 2)
    assert page.setup.request.text_file == ""


def test_a_journal_is_chosen_where_a_history_is_taken(
    page: LabPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = page.setup._journal
    assert not choice.isVisible()
    page.setup.show_question(replace(TWO, takes_text=False, takes_journal=True))
    assert choice.isVisible()
    mine = str(tmp_path / "day.jsonl")
    monkeypatch.setattr("kvdesk.ui.widgets.choose_file.QFileDialog.getOpenFileName", lambda *_: (mine, ""))
    choice.activated.emit(choice.count() - 1)
    assert page.setup.request.journal_file == mine
    page.choose("two")
    assert page.setup.request.journal_file == ""


def test_what_cannot_run_says_why(page: LabPage) -> None:
    request = page.setup.request
    assert request is not None
    page.setup.show_needs(request, Needs(why_not="It does not fit."))
    assert page.setup._needs.text() == "It does not fit."
    assert not page.setup.run_button.isEnabled()


def test_an_answer_for_other_parameters_is_ignored(page: LabPage, record: Recorder) -> None:
    request = ready(page)
    asked = record(page._commands.lab.begin)
    page.setup._fields["n"].setValue(20)
    page.setup.run_button.click()
    page.setup.show_needs(request, NEEDS)
    assert asked == []
    changed = ready(page)
    assert asked == [(changed,)]
    assert changed.values["n"] == 20


def test_without_a_model_it_says_what_to_do(kit: Kit, qtbot: QtBot) -> None:
    page = LabPage(kit)
    qtbot.addWidget(page)
    page.show_questions([ONE])
    assert page.setup._needs.text().startswith("Open a model, or choose a file")
    assert not page.setup.run_button.isEnabled()


def test_progress_and_samples_are_shown_as_they_come(page: LabPage, record: Recorder, qtbot: QtBot) -> None:
    cancelled = record(page._commands.lab.cancel)
    page.begin(ready(page))
    assert page._stack.currentWidget() is page.run
    assert not page.setup.run_button.isEnabled()
    samples = [Sample("a", 1, 2, unit="s"), Sample("a", 1, 4, 1, unit="s"), Sample("a", 2, 5, unit="s")]
    samples += [Sample("b", 1, 9, unit="s"), Sample("c", 1, 512, unit="cells")]
    page.run.show_events([Started({}, 5_000_000, 30), Progress(1, 4, "reading"), *samples])
    assert not page.run._bar.isHidden()
    assert page.run._bar.value() == page.run._bar.maximum() / 4
    assert page.run._what.full_text == "Reading"
    page.run._draw()
    assert [series.name for series in page.run._plot.shown.series] == ["c"]  # what came last
    page.run._series.setCurrentIndex(page.run._series.findText("All series in s"))
    assert page.run._plot.shown.series == (
        Series("a", (Point(1, 3, 2, 4), Point(2, 5, 5, 5))),
        Series("b", (Point(1, 9, 9, 9),)),
    )
    assert page.run._plot.shown.y_label == "s"  # cells do not go on the same axis
    page.run._series.setCurrentIndex(page.run._series.findText("All series in cells"))
    assert [series.name for series in page.run._plot.shown.series] == ["c"]
    page.run._series.setCurrentIndex(page.run._series.findText("b"))
    page.run._series.activated.emit(page.run._series.currentIndex())
    assert [series.name for series in page.run._plot.shown.series] == ["b"]
    page.run.show_events([Sample("d", 1, 1, unit="s")])
    assert page.run._series.currentText() == "b"  # the choice stays
    qtbot.mouseClick(page.setup.cancel_button, Qt.MouseButton.LeftButton)
    assert cancelled == [()]


def test_stages_are_named_while_it_runs(page: LabPage) -> None:
    page.show_questions([replace(ONE, stages=("made", "filled"))])
    page.begin(ready(page))
    page.run.show_events([Sample("a", 0, 2), Sample("a", 1, 2)])
    page.run._draw()
    assert page.run._plot.shown.x_names == ("made", "filled")


def test_the_cells_of_its_cache_are_drawn(page: LabPage) -> None:
    page.begin(ready(page))
    pos = np.array([0, 1, -1, 0], np.int32)
    bits = np.array([[1], [1], [0], [2]], np.uint64)
    stream = StreamMap(pos, bits, pos, np.ones(4, np.int64), 256, 4, 3, 4)
    page.run.show_events([CellsSeen.of(9, (CacheMap("kv", (stream,), 0),))])
    assert page.run._cells_title.text() == "Cells of its cache: 3 of 256 used, high-water mark 4"
    assert page.run._map.isVisible()
    assert page.run._map.strips
    page.begin(ready(page))
    assert page.run._map.isHidden()


def test_another_question_can_be_read_while_one_runs(page: LabPage) -> None:
    page.begin(ready(page))
    page.choose("two")
    assert page._stack.currentWidget() is not page.run
    assert page.setup.cancel_button.isHidden()
    ready(page)
    assert not page.setup.run_button.isEnabled()
    assert "The first" in page.setup.run_button.toolTip()
    page.choose("one")
    assert page._stack.currentWidget() is page.run


def test_an_end_without_a_result_is_one_sentence(page: LabPage) -> None:
    page.begin(ready(page))
    page.end("It crashed.", "SIGABRT")
    assert page.banner.sentence == "It crashed."
    assert page._stack.currentWidget() is not page.run
    assert page.setup.cancel_button.isHidden()
    assert page.setup.run_button.isEnabled()
    page.begin(ready(page))
    assert page.banner.sentence == ""


def test_an_end_is_not_told_of_another_question(page: LabPage) -> None:
    page.begin(ready(page))
    page.choose("two")
    page.end("It crashed.")
    assert page.banner.sentence == "The first: It crashed."
    page.choose("one")
    page.begin(ready(page))
    page.end("It crashed again.")
    assert page.banner.sentence == "It crashed again."
    page.choose("two")
    assert page.banner.sentence == ""


def test_a_result_has_verdict_figures_plots_and_tables(page: LabPage, qtbot: QtBot, record: Recorder) -> None:
    wanted = record(page._commands.lab.open_report)
    new, old = past("new"), past("old")
    page.show_results("one", [new, old], new.folder)
    assert texts(page)[0] == "It is new.", "the answer comes first"
    assert "It is new (1.02 to 3.4)." in texts(page), "in full below"
    assert "One remark." in texts(page)
    figures, medians, conditions = page.result.findChildren(ResultTable)
    assert cells(figures) == (("ratio", "2 s", "1 to 3 s"),)
    assert cells(medians) == (("x", "1 s"),)
    assert ("model", "tiny.gguf") in cells(conditions)
    assert page.result.findChildren(CurvePlot)[0].shown.log
    qtbot.mouseClick(page.result.findChildren(QPushButton)[0], Qt.MouseButton.LeftButton)
    assert wanted == [(new,)]


def test_two_results_are_compared(page: LabPage) -> None:
    page.show_results("one", [past("new", "no", 6.0), past("old")])
    page.past.select(0, 1)
    assert "The verdicts differ." in texts(page)
    table = page.result.findChildren(ResultTable)[0]
    assert cells(table) == (("ratio", "3", "2 s (95 %: 1 to 3)", "6 s (95 %: 1 to 3)"),)


def test_a_text_that_only_one_run_has_read_differs(page: LabPage) -> None:
    new, old = past("new"), past("old")
    request = replace(new.record.request, text_file="/texts/mine.txt")
    page.show_results("one", [replace(new, record=replace(new.record, request=request)), old])
    page.past.select(0, 1)
    assert ("text", "–", "mine.txt") in cells(page.result.findChildren(ResultTable)[1])


def test_results_of_another_question_are_ignored(page: LabPage) -> None:
    page.show_results("two", [past("new")])
    assert page.past.view.count() == 0


def test_names_from_a_file_are_no_markup(page: LabPage) -> None:
    page.begin(ready(page))
    page.run.show_events([Sample("<img src=x>", 1, 2), Sample("b", 1, 2)])
    page.run._draw()
    assert "&lt;img" in page.run._plot._names.text()


def test_a_logarithmic_plot_leaves_out_what_has_no_place(page: LabPage) -> None:
    page.run._plot.show_plot(Plot("p", "x", "y", (Series("s", (Point(0, 1), Point(10, 0), Point(10, 100))),), log=True))
    (curve,) = page.run._plot.plot.getPlotItem().listDataItems()
    assert [list(values) for values in curve.getOriginalDataset()] == [[1.0], [2.0]]


def test_an_interval_that_has_no_place_is_left_out_whole(page: LabPage) -> None:
    points = Point(1, 2, 0, 3), Point(10, 20, 10, 100)
    page.run._plot.show_plot(Plot("p", "x", "y", (Series("s", points),), log=True))
    _, intervals = page.run._plot.plot.getPlotItem().listDataItems()
    assert [list(values) for values in intervals.getOriginalDataset()] == [[1.0, 1.0], [1.0, 2.0]]


@pytest.mark.parametrize("log", [False, True])
def test_a_plot_of_what_is_no_number_is_drawn_without_it(page: LabPage, log: bool) -> None:
    """A result.json may have any number, also those that only Python writes."""
    strange = (Point(1, math.nan), Point(math.inf, 2), Point(-1e308, 1e308, -1e308, math.nan), Point(3, 4, 1, 5))
    page.run._plot.show_plot(Plot("p", "x", "y", (Series("s", strange), Series("t", strange[:1])), log=log))
    first, *_ = page.run._plot.plot.getPlotItem().listDataItems()
    assert len(first.getOriginalDataset()[0]) == 1


# --- in the window ----------------------------------------------------------------------------------------------------


def test_the_laboratory_takes_the_place_of_the_conversations(
    window: MainWindow, qtbot: QtBot, record: Recorder
) -> None:
    qtbot.waitUntil(lambda: window._watched is not None)
    watched, stopped = record(window.commands.watch), record(window.commands.conversations.stop)
    window.rooms.toggle("lab")
    assert window.rooms.shown == "lab"
    assert not window.chat.isVisible()
    assert watched == [(False,)]
    window.action_set.run("chat.escape")
    assert window.rooms.shown == "lab", "Esc closes other things; a result that one reads stays"
    window.rooms.toggle("lab")
    assert window.rooms.shown != "lab"
    assert stopped == []
    assert watched == [(False,), (True,)]
    assert window.chat.composer.edit.hasFocus()


def test_keys_of_the_conversations_show_them(window: MainWindow) -> None:
    window.rooms.show_room("lab")
    action = next(action for action in window.actions() if action.shortcut().toString() == "Ctrl+K")
    action.trigger()
    assert window.rooms.shown != "lab"
    assert window.conversations.search.hasFocus()


# --- results ----------------------------------------------------------------------------------------------------------


def with_values(result: PastResult, **values: float) -> PastResult:
    asked = replace(result.record.request, values=values)
    return replace(result, record=replace(result.record, request=asked))


def test_results_are_named_by_what_differs(page: LabPage) -> None:
    page.show_results("one", [with_values(past("a"), n=1024, share=0.5), with_values(past("b"), n=10, share=0.5)])
    names = [page.past.view.item(row).text() for row in range(2)]
    assert names == ["2026-01-01 10:20 · Tokens 1,024", "2026-01-01 10:20 · Tokens 10"]
    page.past.select(0, 1)
    (differs,) = [table for table in page.result.findChildren(ResultTable) if ("Tokens", "10", "1,024") in cells(table)]
    assert len(cells(differs)) == 1
    page.show_results("one", [past("a")])
    assert page.past.view.item(0).text() == "2026-01-01 10:20 · short"


def test_results_can_be_deleted(page: LabPage, record: Recorder, qtbot: QtBot) -> None:
    deleted = record(page._commands.lab.delete_results)
    a, b = past("a"), past("b")
    page.show_results("one", [a, b])
    page.past.view.setFocus()
    qtbot.keyClick(page.past.view, Qt.Key.Key_Delete)
    assert deleted == [((a,),)]
    page.past.select(0, 1)
    page.past._delete.click()
    assert deleted[1:] == [((a, b),)]


def test_a_series_has_one_colour_in_all_plots_of_a_result(page: LabPage) -> None:
    one, two = Series("one", (Point(0, 1),)), Series("two", (Point(0, 2), Point(1, 3)))
    plots = (Plot("p", "x", "y", (one, two)), Plot("q", "x", "y", (two,), x_names=("at first", "at the very end")))
    shown = past("a")
    finished = shown.record.finished
    result = replace(finished.result, plots=plots)
    page.show_results("one", [replace(shown, record=replace(shown.record, finished=replace(finished, result=result)))])
    first, second = page.result.findChildren(CurvePlot)
    items = (first.plot.getPlotItem().listDataItems()[1], second.plot.getPlotItem().listDataItems()[0])
    assert len({item.opts["pen"].color().name() for item in items}) == 1
    ticks = second.plot.getAxis("bottom")._tickLevels
    assert ticks == [[(0, "at first"), (1, "at the very\nend")]]


def test_two_runs_share_their_plots(page: LabPage) -> None:
    page.show_results("one", [past("new"), past("old")])
    page.past.select(0, 1)
    (plot,) = page.result.findChildren(CurvePlot)
    assert [series.name for series in plot.shown.series] == ["A: with", "B: with"]


def test_the_questions_leave_room_to_a_result(page: LabPage) -> None:
    page.resize(1280, 800)
    assert page._left.width() == 264
    page.resize(900, 600)
    assert page._left.width() == 168
    page._split.splitterMoved.emit(200, 1)  # a person did
    page.resize(1280, 800)
    assert page._left.width() < 264
