"""The laboratory's frame: values go through JSON, a child can be cancelled and may crash, a report is whole."""

import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import psutil
import pytest

from kvdesk.cache.geometry import MemoryKind, ModelFacts
from kvdesk.codec import CodecError, decode, encode
from kvdesk.errors import UserError
from kvdesk.experiments import EXPERIMENTS, child, experiment_by_id, report, statistics
from kvdesk.experiments.bench import MOST_REPEATED, Bench
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.plot import svg
from kvdesk.experiments.process import CANCELLED, ExperimentProcess, experiment_command
from kvdesk.protocol.experiment import (
    Failed,
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
    chosen,
    event_from_json,
)
from kvdesk.values import replace
from tests.children.fake import fake_child

PLOT = Plot("A < B", "x", "y", (Series("one & two", (Point(1, 2, 1, 3), Point(10, 20))),), log=True)
RESULT = Result(
    Verdict("yes", "It is 2 < 3."),
    (Figure("ratio", 2, 1, 3).at_least(1.5),),
    (PLOT,),
    (Table("T", ("a",), (("<b>",),)),),
    ("More.",),
)
REQUEST = Request("six-requests", "/models/m.gguf", {"rounds": 2}, short=True)
RECORD = Record(
    REQUEST,
    "A title",
    "Why?",
    "2026-01-01T00:00:00+00:00",
    Started({"processor": "P"}, 5, 1.5),
    (Sample("s", 1, 2, 0, "no, never"), Sample("s", 1, 4, 1)),
    Finished(RESULT, Load(0.1, 0.5, 2, 9), 3.0),
)
PARAMETERS = (Parameter("n", "N", 10, 1, 20, 5, "how many"), Parameter("r", "R", 0.5, 0, 1, 0.1, "r", whole=False))


@pytest.mark.parametrize(
    "event", [RECORD.started, Progress(1, 2, "x"), RECORD.samples[0], RECORD.finished, Failed("no")]
)
def test_events_go_through_json(event: Started | Progress | Sample | Finished | Failed) -> None:
    assert event_from_json(encode(event)) == event
    assert b"\n" not in encode(event)


def test_requests_and_records_go_through_json() -> None:
    assert decode(Request, encode(REQUEST)) == REQUEST
    assert decode(Record, encode(RECORD, indent=1)) == RECORD


def test_a_result_that_kvdesk_0_1_kept_is_read() -> None:
    """As pydantic wrote it, without the fields that were added later."""
    kept = """{
 "request": {"experiment_id": "six-requests", "model": "/m.gguf", "values": {"rounds": 2.0, "n": 3}, "short": true},
 "title": "A title", "question": "Why?", "at": "2026-01-01T00:00:00+00:00",
 "started": {"machine": {"processor": "P"}, "memory_bytes": 5, "seconds": 1.5, "kind": "started"},
 "samples": [{"series": "s", "x": 1.0, "y": 2.0, "round": 0, "note": "no, never", "kind": "sample"}],
 "finished": {
  "result": {
   "verdict": {"key": "yes", "sentence": "It is 2 < 3."},
   "figures": [{"name": "ratio", "value": 2.0, "low": 1.0, "high": null, "unit": ""}],
   "plots": [{"title": "A", "x_label": "x", "y_label": "y", "log": true, "x_names": [],
    "series": [{"name": "one", "points": [{"x": 1.0, "y": 2e-05, "low": null, "high": 3.0}]}]}],
   "tables": [{"title": "T", "columns": ["a"], "rows": [["<b>"]]}], "remarks": ["More."]
  },
  "load": {"cores": 0.1, "worst": 0.5, "n_repeated": 2, "n_rounds": 9}, "seconds": 3.0, "kind": "finished"
 },
 "format": "kvdesk-experiment-1"
}"""
    plot = Plot("A", "x", "y", (Series("one", (Point(1, 2e-05, None, 3),)),), log=True)
    tables = (Table("T", ("a",), (("<b>",),)),)
    result = Result(Verdict("yes", "It is 2 < 3."), (Figure("ratio", 2, 1),), (plot,), tables, ("More.",))
    assert decode(Record, kept) == Record(
        Request("six-requests", "/m.gguf", {"rounds": 2, "n": 3}, short=True),
        "A title",
        "Why?",
        "2026-01-01T00:00:00+00:00",
        Started({"processor": "P"}, 5, 1.5),
        (Sample("s", 1, 2, 0, "no, never"),),
        Finished(result, Load(0.1, 0.5, 2, 9), 3.0),
    )
    with pytest.raises(CodecError, match="format"):
        decode(Record, kept.replace("experiment-1", "experiment-2"))


def test_parameters_have_the_values_of_the_form_and_those_given() -> None:
    assert chosen(PARAMETERS, {}, short=False) == {"n": 10, "r": 0.5}
    assert chosen(PARAMETERS, {"r": 0.25}, short=True) == {"n": 5, "r": 0.25}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"n": 21}, r"n takes a whole number from 1 to 20 \(it is 21\)"),
        ({"n": 1.5}, r"n takes a whole number from 1 to 20 \(it is 1.5\)"),
        ({"r": float("nan")}, "r takes a number from 0 to 1"),
        ({"x": 1}, "There is no parameter x; there are n, r."),
    ],
)
def test_wrong_parameters_get_one_sentence(given: dict[str, float], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        chosen(PARAMETERS, given, short=False)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.id)
def test_what_is_declared_is_in_range(experiment) -> None:  # type: ignore[no-untyped-def]
    assert experiment_by_id(experiment.id) is experiment
    for short in (False, True):
        values = chosen(experiment.parameters, {}, short=short)
        assert experiment.settings(values).n_ctx >= 256
        assert sum(experiment.work(values)) > 0
    assert experiment.question.endswith("?")


def test_an_unknown_experiment_is_told_of_its_neighbour() -> None:
    with pytest.raises(UserError, match=r"There is no experiment six-request\. Did you mean six-requests"):
        experiment_by_id("six-request")


# --- statistics -------------------------------------------------------------------------------------------------------


def test_an_exponent_and_an_interval() -> None:
    assert statistics.exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
    figure = statistics.figure("f", [1.0, 2.0, 3.0, 2.0, 2.0])
    assert figure.value == 2
    assert figure.low is not None
    assert figure.high is not None
    assert 1 <= figure.low <= 2 <= figure.high <= 3
    assert statistics.figure("f", [1.0, 2.0, 3.0, 2.0, 2.0]) == figure  # the same samples, the same interval


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 9])
def test_the_interval_of_few_values_has_their_median_as_often_as_it_says(n: int) -> None:
    """Drawn with the median 1; a bootstrap alone has it in 50 % of the cases of two values, 75 % of three."""
    draws = np.exp(np.random.default_rng(5).normal(0, 0.1, (400, n))).tolist()
    within = [low <= 1 <= high for low, high in map(statistics.interval, draws)]
    assert sum(within) >= 0.9 * len(within)
    for values in draws[:20]:
        low, high = statistics.interval(values)
        assert 0 < low <= statistics.median(values) <= high


def test_what_was_judged_within_its_interval_is_not_certain() -> None:
    figures = Figure("near", 1.1, 0.9, 1.3), Figure("far", 2.0, 1.9, 2.1), Figure("alone", 1.0)
    assert statistics.uncertain(figure.at_least(1.0) for figure in figures) == (
        "Not certain: near, 1.1 (95 %: 0.9 to 1.3), was judged by 1, which is within its interval.",
        "Not certain: alone, 1, was measured once and judged by 1.",
    )


def test_a_figure_holds_when_it_reaches_every_bar_give_or_take_its_noise() -> None:
    figure = Figure("f", 0.96)
    assert figure.at_least(0.97, noise=0.02).at_most(1).holds
    assert not figure.at_least(0.97).holds
    assert not figure.at_least(0.5).at_most(0.95).holds
    row = {"value": 0.96, "bar": 0.97, "noise": 0.02, "at_least": True, "passed": True}
    result = Outcome([figure.at_least(0.97, noise=0.02)], {"raw": [1]}).as_json()
    assert result == {"passed": True, "figures": {"f": row}, "raw": [1]}


def test_disturbed_rounds_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench.__new__(Bench)
    bench._others, bench._repeated = [], 0
    monkeypatch.setattr("kvdesk.experiments.bench.LoadMeter.read", lambda _self, _at: 0.9)
    assert len(list(bench.rounds(2))) == 2 + MOST_REPEATED
    assert bench.load() == Load(0.9, 0.9, MOST_REPEATED, 2 + MOST_REPEATED)
    assert "were added" in str(bench.load())
    bench._others = []
    monkeypatch.setattr("kvdesk.experiments.bench.LoadMeter.read", lambda _self, _at: 0.01)
    assert len(list(bench.rounds(2))) == 2
    assert "quiet" in str(bench.load())


# --- the child --------------------------------------------------------------------------------------------------------


def told_by(code: str) -> list[object]:
    with ExperimentProcess(fake_child(code)) as process:
        return list(process.events())


def test_a_crash_is_one_sentence() -> None:
    (event,) = told_by("import os, sys; sys.stderr.write('GGML_ASSERT'); sys.stderr.flush(); os.abort()")
    assert isinstance(event, Failed)
    assert event.sentence == "The experiment's process crashed (SIGABRT); nothing else was touched."
    assert event.detail.startswith("GGML_ASSERT")


def test_an_end_without_a_result_is_one_sentence() -> None:
    (event,) = told_by("print('somebody prints'); raise SystemExit(3)")
    assert event == Failed("The experiment's process ended without a result (exit code 3).", "somebody prints\n")


def test_cancelling_kills_whatever_it_does() -> None:
    code = "say({'done': 0, 'total': 1, 'what': '', 'kind': 'progress'})\nwhile True: pass"
    with ExperimentProcess(fake_child(code)) as process:
        events = process.events()
        assert isinstance(next(events), Progress)
        start = time.perf_counter()
        process.cancel()
        assert list(events) == [Failed(CANCELLED)]
        assert time.perf_counter() - start < 3  # one second, and what other tests beside it take
        assert not psutil.pid_exists(process.pid)


def test_a_model_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "none.gguf"
    file.write_bytes(b"GGUF")
    with ExperimentProcess(experiment_command(Request("six-requests", str(file), dict(REQUEST.values)))) as process:
        (event,) = process.events()
    assert isinstance(event, Failed)
    assert event.sentence.count("none.gguf") == 1


# --- the report -------------------------------------------------------------------------------------------------------


def test_a_plot_is_xml_with_a_mark_for_each_point() -> None:
    root = ET.fromstring(svg(PLOT))
    assert len(root.findall(".//{*}circle")) == 2
    assert "one & two" in [text.text for text in root.findall(".//{*}text")]


def test_a_plot_of_one_value_is_drawn() -> None:
    ET.fromstring(svg(Plot("p", "x", "y", (Series("s", (Point(1, 0),)),))))
    ET.fromstring(svg(Plot("p", "x", "y", (), log=True)))


def test_a_report_holds_everything_and_needs_nothing(tmp_path: Path) -> None:
    page = report.write(RECORD, tmp_path / "out")
    text = page.read_text("utf-8")
    for said in (
        "It is 2 &lt; 3.",
        "&lt;b&gt;",
        "at least 1.5: yes",
        "More.",
        "no, never",
        "0.10 cores",
        "m.gguf",
        "<svg",
    ):
        assert said in text, said
    assert "src=" not in text
    assert "href" not in text
    assert decode(Record, (page.parent / "result.json").read_bytes()) == RECORD
    assert (page.parent / "samples.csv").read_text("utf-8").splitlines()[1] == 's,1,2,0,"no, never",'
    ET.fromstring((page.parent / "plot-1.svg").read_text("utf-8"))


def test_a_persons_text_is_read_as_far_as_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.txt"
    file.write_bytes(b"caf\xc3\xa9 \xff and more")
    assert child.read_text(file) == "café \ufffd and more"
    monkeypatch.setattr(child, "MOST_TEXT", 3)
    assert child.read_text(file) == "caf"
    with pytest.raises(UserError, match="cannot be read"):
        child.read_text(tmp_path)


@pytest.mark.parametrize("kind", ["hybrid", "hybrid_iswa", "hybrid_idx", "dsv4"])
def test_a_state_gives_no_guess_back(kind: MemoryKind) -> None:
    drafts = experiment_by_id("drafts")
    assert drafts.applies(ModelFacts("x", kind)).startswith("This model has a recurrent state")
    assert drafts.applies(ModelFacts("x", "attention")) == ""


# --- what is no number, no event, no text -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_makes_no_verdict(value: float) -> None:
    """Every comparison with NaN is false, so that any verdict could follow."""
    positions = experiment_by_id("positions")
    broken = replace(positions, measure=lambda _bench: iter([Sample("gap", 0, 0.0), Sample("jump", 1, value)]))
    told: list[object] = []
    with pytest.raises(UserError, match=r"There is no verdict: “jump” was measured as (nan|inf), which is no number\."):
        told += broken.run(Bench.__new__(Bench))
    assert not any(isinstance(event, Result) for event in told)


def test_what_is_no_event_is_one_sentence() -> None:
    *_, last = told_by("say({'kind': 'sample', 'series': 's', 'x': 0, 'y': None})\nwhile True: pass")
    assert isinstance(last, Failed)
    assert last.sentence == "The experiment's process sent what is no event."


def test_a_model_whose_name_is_no_text_has_a_report(tmp_path: Path) -> None:
    """The name of a file may have bytes that are no UTF-8."""
    record = replace(RECORD, request=replace(REQUEST, model="/models/m\udcff.gguf"))
    page = report.write(record, tmp_path / "out")
    assert report.read(page.parent / "result.json") == record
    assert "m\\udcff.gguf" in page.read_text("utf-8")


# --- reading what was kept --------------------------------------------------------------------------------------------


def test_a_run_is_found_when_all_of_it_is_written(tmp_path: Path) -> None:
    """One whose writing was ended, by a kill or a full disk, has no result."""
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError):  # noqa: PT011  # another class on every system
        report.write(RECORD, tmp_path)
    assert not (tmp_path / "result.json").exists()


def test_a_result_is_read_with_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = report.write(RECORD, tmp_path).parent / "result.json"
    assert report.read(file) == RECORD
    monkeypatch.setattr(report, "MOST_RESULT", file.stat().st_size - 1)
    with pytest.raises(OSError, match="it is too large"):
        report.read(file)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[" * 100_000, b"\xff\xfe", encode(RECORD).replace(b"1.5", b"9" * 400)]
)
def test_another_content_is_no_result(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(content)
    with pytest.raises(CodecError):
        report.read(file)
