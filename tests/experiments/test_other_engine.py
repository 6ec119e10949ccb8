"""`kvdesk verify-engine`: an engine that is right passes; one that is wrong is found, with the fewest operations that
show it; one that ends its process too; one of another ABI is refused.

The wrong ones are llama-cpp-python's own library behind one that has some of its functions.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvdesk.__main__ import main
from kvdesk.backends.local.llama.binding import FOLDER
from kvdesk.cache.batch import Batch
from kvdesk.experiments.benchmarks.random_operations import Operation
from kvdesk.experiments.other_engine.shrink import shrunk
from tests.backends.local.tiny_models import written

Build = Callable[[str], str]
NEXT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
"""
OFF_BY_ONE = """
bool llama_memory_seq_rm(void * mem, int seq, int p0, int p1) {
    bool (*next)(void *, int, int, int) = dlsym(RTLD_NEXT, "llama_memory_seq_rm");
    return next(mem, seq, p0 < 0 ? p0 : p0 + 1, p1);
}
"""
ABORTS = """
void llama_memory_seq_cp(void * mem, int src, int dst, int p0, int p1) { abort(); }
"""
LARGER = """
struct params { char bytes[1024]; };
struct params llama_context_default_params(void) { struct params p; memset(&p, 1, sizeof p); return p; }
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="the wrong libraries are made with dlsym and cc")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Makes a libllama with these functions in front of the right one; returns its folder."""

    def make(source: str, behind: bool = True) -> str:
        compiler = shutil.which("cc") or shutil.which("gcc")
        assert compiler is not None, "the set-up compiles the engine"
        file, made = tmp_path / "wrong.c", tmp_path / "libllama.so"
        file.write_text(NEXT + source)
        linked = ["-Wl,--no-as-needed", str(FOLDER / "libllama.so"), f"-Wl,-rpath,{FOLDER}"] if behind else []
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(made), str(file), *linked, "-ldl"], check=True)
        return str(tmp_path)

    return make


def test_a_report_that_cannot_be_written_is_refused_before_the_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for report in (tmp_path, tmp_path / "none" / "report.md"):
        with pytest.raises(SystemExit, match="2"):
            main(["verify-engine", str(tmp_path), "--report", str(report)])
        assert f"the report cannot be written to {report}." in capsys.readouterr().err


@pytest.fixture
def models(tiny_folder: Path, tmp_path: Path) -> str:
    folder = tmp_path / "models"
    folder.mkdir()
    shutil.copy(written(tiny_folder, "llama"), folder / "llama.gguf")
    return str(folder)


@pytest.mark.matrix
def test_the_own_library_agrees(models: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify-engine", str(FOLDER), "--models", models, "--ops", "30"]) == 0
    told = capsys.readouterr()
    assert "0 of 2 cases differ" in told.out
    assert "llama.gguf, streams: 30 operations agree" in told.err
    assert "Every cell was where the rules say." in told.out


@linux
def test_a_wrong_one_is_found(build: Build, models: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    command = ["verify-engine", build(OFF_BY_ONE), "--models", models, "--ops", "60", "--report", str(report), "--json"]
    assert main(command) == 1
    told = json.loads(capsys.readouterr().out)
    (finding,) = told["findings"]
    assert 1 < len(finding["calls"]) < 6
    assert any(call.startswith("llama_memory_seq_rm(mem, ") for call in finding["calls"])
    assert finding["own_library"] == "as expected"
    assert finding["also"] == ["llama.gguf, streams"]
    assert finding["cells"][0]["rows"]
    text = report.read_text()
    assert "| cell | expected | printed |" in text
    assert "every cell is where it is expected" in text
    assert f"1. {finding['calls'][0]}" in text


@linux
@pytest.mark.matrix
def test_one_that_dies_is_found(build: Build, models: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify-engine", build(ABORTS), "--models", models, "--ops", "80", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    (finding,) = told["findings"]
    assert finding["difference"] == "the library ended its process"
    assert len(finding["calls"]) == 1
    assert "llama_memory_seq_cp(mem, " in finding["calls"][0]
    assert "SIGABRT ended it." in finding["last_words"]


@linux
@pytest.mark.parametrize(
    ("source", "behind", "why"),
    [
        pytest.param("", False, "undefined symbol: llama_", id="without its functions"),
        pytest.param(LARGER, True, "llama_context_default_params returns 1024 bytes", id="with a larger struct"),
    ],
)
def test_another_abi_is_refused(
    build: Callable[[str, bool], str], capsys: pytest.CaptureFixture[str], source: str, behind: bool, why: str
) -> None:
    assert main(["verify-engine", build(source, behind)]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("The library has another ABI than llama-cpp-python's: ")
    assert why in told.err
    assert told.out == ""


def test_what_is_no_library_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["verify-engine", str(tmp_path)]) == 2
    assert "is no library of llama.cpp" in capsys.readouterr().err


def test_nothing_that_was_played_is_no_agreement(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """“Every cell was where the rules say” would be true of no cell at all."""
    (tmp_path / "none.gguf").write_bytes(b"GGUF")
    assert main(["verify-engine", str(FOLDER), "--models", str(tmp_path), "--ops", "5"]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("No model can be played: ")
    assert "none.gguf" in told.err
    assert told.out == ""


def test_only_what_is_needed_is_left() -> None:
    batch = Batch.of(0, 0, tuple(range(40)))
    operations = [Operation("clear"), Operation("decode", batch), *(Operation("keep", seq_id=i) for i in range(9))]

    def fails(left: object) -> bool:
        assert isinstance(left, list)
        sizes = [one.batch.n_tokens for one in left if one.batch is not None]
        return bool(sizes) and sizes[0] >= 5 and Operation("keep", seq_id=7) in left

    first, last = shrunk(operations, fails)
    assert (first.batch.n_tokens, last) == (5, Operation("keep", seq_id=7))
