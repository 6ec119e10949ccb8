"""`kvdesk lab`: what it lists, runs and compares, and what it says about wrong input."""

import errno
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from kvdesk.__main__ import main
from kvdesk.experiments import EXPERIMENTS, report
from kvdesk.values import replace
from tests.experiments.test_framework import RECORD


def test_it_lists_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "list"]) == 0
    out = capsys.readouterr().out
    for experiment in EXPERIMENTS:
        assert f"{experiment.id}: {experiment.question}" in out


def test_a_run_leaves_a_report(talking_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--model", str(talking_file), "--json", "--out", str(tmp_path / "r")]
    assert main(["lab", "run", "positions", "--short", "--set", "n=8", *where]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["request"]["values"]["n"] == 8
    assert record["started"]["memory_bytes"] > 10e6
    assert record["started"]["written_s"] > 0
    assert record["started"]["machine"]["llama.cpp"]
    assert record["samples"]
    assert "MB of memory" in err.split("loading")[0]  # before anything is loaded
    assert {file.name for file in (tmp_path / "r").iterdir()} >= {"report.html", "result.json", "samples.csv"}


def test_two_results_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        report.write(RECORD, tmp_path / name)
    assert main(["lab", "compare", str(tmp_path / "a"), str(tmp_path / "b" / "result.json")]) == 0
    out = capsys.readouterr().out
    assert "ratio: 2 (95 %: 1 to 3) | 2 (95 %: 1 to 3) | second over first: 1" in out
    assert "The verdicts are the same." in out


def test_what_differs_between_two_runs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another model, other parameters and another text: two verdicts are not of the same question then."""
    request = RECORD.request
    other = replace(request, model="/elsewhere/other.gguf", values={"rounds": 9}, text_file="/texts/mine.txt")
    report.write(RECORD, tmp_path / "a")
    report.write(replace(RECORD, request=other), tmp_path / "b")
    report.write(replace(RECORD, request=replace(request, model="/elsewhere/m.gguf")), tmp_path / "c")
    assert main(["lab", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    told = capsys.readouterr().out.split("What differs between the runs\n")[1].splitlines()
    assert told[:3] == ["model: m.gguf | other.gguf", "Rounds: 2 | 9", "text: – | mine.txt"]
    assert main(["lab", "compare", str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    assert "model: /models/m.gguf | /elsewhere/m.gguf" in capsys.readouterr().out, "files of one name are not one model"
    assert main(["lab", "compare", str(tmp_path / "a"), str(tmp_path / "a")]) == 0
    assert "What differs" not in capsys.readouterr().out


def test_a_result_is_told_where_its_report_cannot_be_written(
    talking_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(report, "write", full)
    assert main(["lab", "run", "positions", "--short", "--model", str(talking_file), "--out", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "A sequence may start anywhere" in out
    assert err.endswith("The report could not be written: No space left on device.\n")


def test_a_report_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below"):
        with pytest.raises(SystemExit, match="2"):
            main(["lab", "run", "positions", "--out", str(place)])
        err = capsys.readouterr().err
        assert err.startswith(f"kvdesk lab: --out: nothing can be written to {place}")
        assert err.count("\n") == 1


def test_what_is_in_the_place_of_a_result_gets_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report.write(RECORD, tmp_path / "a")
    file = tmp_path / "a" / "result.json"
    monkeypatch.setattr(report, "MOST_RESULT", 100)
    assert main(["lab", "compare", str(file), str(file)]) == 2
    assert capsys.readouterr().err == f"{file} cannot be read: it is too large.\n"
    file.write_text("[]")
    assert main(["lab", "compare", str(file), str(file)]) == 2
    assert capsys.readouterr().err == f"{file} is no result of an experiment.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "six"], "There is no experiment six."),
        (["run", "six-requests", "--set", "rounds"], '--set takes KEY=VALUE with a number (it is "rounds").'),
        (["run", "six-requests", "--set", "rounds=0"], "rounds takes a whole number from 2 to 30 (it is 0)."),
        (["run", "six-requests", "--set", "x=1"], "There is no parameter x;"),
        (["run", "no-cache", "--text", "mine.txt"], "no-cache reads no text: its tokens are drawn at random."),
        (["compare", "nowhere", "nowhere"], "nowhere cannot be read: No such file or directory."),
    ],
)
def test_wrong_input_gets_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(sentence)
    assert err.count("\n") == 1


def test_a_run_needs_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["lab", "run"])
    assert "run takes one name" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C is sent another way there")
def test_ctrl_c_ends_the_command_and_its_child(tmp_path: Path, talking_file: Path) -> None:
    where = ["--model", str(talking_file), "--out", str(tmp_path / "r")]
    command = [sys.executable, "-m", "kvdesk", "lab", "run", "no-cache", *where]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as lab:
        while b"/20 " not in lab.stderr.readline():
            pass  # until it measures
        (child,) = psutil.Process(lab.pid).children()
        start = time.perf_counter()
        lab.send_signal(signal.SIGINT)
        assert lab.wait(timeout=5) == 130
        psutil.wait_procs([child], timeout=5)
        assert time.perf_counter() - start < 5  # one second and what other tests beside it take
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert not (tmp_path / "r").exists()
