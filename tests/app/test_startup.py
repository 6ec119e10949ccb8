"""Which model is opened at start."""

from __future__ import annotations

from pathlib import Path

from kvdesk.app.startup import LoadMarker, choose_model


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
    assert "big.gguf did not come to an end last time" in sentence
    assert choose_model(None, str(big), marker) == (big, "")


def test_a_model_that_is_gone(tmp_path: Path) -> None:
    embedded = tmp_path / "embedded.gguf"
    model, sentence = choose_model(None, str(tmp_path / "gone.gguf"), LoadMarker(tmp_path / "loading", embedded))
    assert model == embedded
    assert "gone.gguf is no longer where it was" in sentence


def test_nothing_to_open(tmp_path: Path) -> None:
    model, sentence = choose_model(None, "", LoadMarker(tmp_path / "loading", None))
    assert model is None
    assert sentence


def test_the_embedded_model_is_never_marked(tmp_path: Path) -> None:
    embedded = tmp_path / "embedded.gguf"
    marker = LoadMarker(tmp_path / "loading", embedded)
    marker.set(embedded)
    assert marker.unfinished() == ""
