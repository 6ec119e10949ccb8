"""Which model is opened at start."""

import os
import subprocess
import sys
from pathlib import Path

from kvdesk.app.startup import LoadMarker, choose_model
from tests.needs import needs_pipes


def test_what_was_asked_for_comes_first(tmp_path: Path) -> None:
    marker = LoadMarker(tmp_path / "loading", tmp_path / "embedded.gguf")
    marker.set(tmp_path / "big.gguf")
    assert choose_model("big.gguf", "other.gguf", marker) == (Path("big.gguf").absolute(), "")
    assert marker.unfinished() == ""


def test_an_unfinished_load_is_not_repeated_unasked(tmp_path: Path) -> None:
    embedded, big = tmp_path / "embedded.gguf", tmp_path / "big.gguf"
    big.touch()
    marker = LoadMarker(tmp_path / "loading", embedded)
    marker.set(big)
    model, sentence = choose_model(None, str(big), marker)
    assert model == embedded
    assert "big.gguf did not finish last time" in sentence
    assert choose_model(None, str(big), marker) == (big, "")


@needs_pipes
def test_a_pipe_or_a_folder_in_place_of_the_mark_neither_blocks_nor_raises(tmp_path: Path) -> None:
    model = tmp_path / "big.gguf"
    model.touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").touch()
    for name in ("pipe", "folder"):
        assert choose_model(None, str(model), LoadMarker(tmp_path / name, None)) == (model, "")
    marker = LoadMarker(tmp_path / "folder", None)
    marker.set(model)
    marker.clear()
    assert marker.unfinished() == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.gguf", "folder"]


def test_a_remembered_path_that_is_too_long_is_gone(tmp_path: Path) -> None:
    model, sentence = choose_model(None, "x" * 5000, LoadMarker(tmp_path / "loading", None))
    assert model is None
    assert "no longer there" in sentence


def test_a_model_that_is_gone(tmp_path: Path) -> None:
    embedded = tmp_path / "embedded.gguf"
    model, sentence = choose_model(None, str(tmp_path / "gone.gguf"), LoadMarker(tmp_path / "loading", embedded))
    assert model == embedded
    assert "gone.gguf is no longer there" in sentence


def test_nothing_to_open(tmp_path: Path) -> None:
    model, sentence = choose_model(None, "", LoadMarker(tmp_path / "loading", None))
    assert model is None
    assert sentence


def test_the_embedded_model_is_never_marked(tmp_path: Path) -> None:
    embedded = tmp_path / "embedded.gguf"
    marker = LoadMarker(tmp_path / "loading", embedded)
    marker.set(embedded)
    assert marker.unfinished() == ""


def test_a_file_that_the_system_wants_opened_is_said(tmp_path: Path) -> None:
    code = """
import sys
from PySide6.QtGui import QFileOpenEvent
from kvdesk.app.application import Application
app = Application([])
app.file_opened.connect(print)
app.sendEvent(app, QFileOpenEvent(sys.argv[1]))
"""
    file = str(tmp_path / "a.gguf")
    said = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, check=True).stdout
    assert said.strip() == file
