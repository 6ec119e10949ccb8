"""`kvdesk xray`: the table, JSON, and the page with its picture."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QImage

from kvdesk.__main__ import main
from kvdesk.cli.xray_page import png, strip
from tests.backends.local.tiny_models import written

TEXT = "The capital of France is Paris. The capital of Spain is"


def xray(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["xray", "--prompt", TEXT, "--threads", "1", *more]) == 0
    return capsys.readouterr().out


def test_the_table_names_what_is_looked_at_most(capsys: pytest.CaptureFixture[str], model_file: Path) -> None:
    lines = xray(capsys, "--model", str(model_file)).splitlines()
    assert "what 12 of 12 tokens look at, the mean of 270 heads (30 layers)" in lines[0]
    assert re.fullmatch(r" +0 +6\d\.\d%  'The'  \[sink\]", lines[3]), "the first token is the sink of this model"
    shares = [float(line.split()[1].rstrip("%")) for line in lines[3:]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=1)
    assert "' Paris'" in "\n".join(lines)


def test_json_has_each_head(capsys: pytest.CaptureFixture[str], talking_file: Path) -> None:
    found = json.loads(xray(capsys, "--model", str(talking_file), "--json", "--last", "3"))
    assert (found["architecture"], found["n_rows"], len(found["tokens"])) == ("llama", 3, 12)
    assert "".join(token["text"] for token in found["tokens"]) == TEXT
    assert [layer["layer"] for layer in found["layers"]] == [0, 1]
    for layer in found["layers"]:
        assert layer["chosen"] is None
        shares = np.array(layer["shares"])
        assert shares.shape == (1, 12)
        np.testing.assert_allclose(shares.sum(axis=1) + layer["elsewhere"], 1, atol=1e-4)
    mean = np.mean([layer["shares"][0] for layer in found["layers"]], axis=0)
    np.testing.assert_allclose([token["share"] for token in found["tokens"]], mean, atol=1e-5)
    one = json.loads(xray(capsys, "--model", str(talking_file), "--json", "--last", "3", "--layer", "1", "--head", "0"))
    assert one["layers"] == found["layers"][1:]
    (title, *_) = xray(capsys, "--model", str(talking_file), "--last", "3", "--layer", "1").splitlines()
    assert title.endswith("what 3 of 12 tokens look at, in 1 head (layer 1)")


def test_what_an_indexer_chose(capsys: pytest.CaptureFixture[str], tiny_folder: Path, tmp_path: Path) -> None:
    model = str(written(tiny_folder, "dsa", text=True))
    found = json.loads(xray(capsys, "--model", model, "--json", "--last", "1"))
    for layer in found["layers"]:
        chosen = np.array(layer["chosen"])
        assert chosen.sum() == 8, "as many as the model wants (attention.indexer.top_k)"
        assert set(np.flatnonzero(layer["shares"][0])) <= set(np.flatnonzero(chosen))
    mean = np.mean([layer["chosen"] for layer in found["layers"]], axis=0)
    np.testing.assert_allclose([token["chosen"] for token in found["tokens"]], mean, atol=1e-6)
    lines = xray(capsys, "--model", model, "--last", "1", "--out", str(tmp_path)).splitlines()
    assert lines[2].split() == ["position", "share", "indexer", "token"]
    assert {line.split()[2] for line in lines[3:-1]} <= {"50.0%", "100.0%"}, "what both layers left out has no share"
    assert "<th>indexer</th>" in (tmp_path / "xray.html").read_text("utf-8")


def test_a_page_and_a_picture(capsys: pytest.CaptureFixture[str], talking_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert str(folder / "xray.html") in xray(capsys, "--model", str(talking_file), "--out", str(folder))
    page = (folder / "xray.html").read_text("utf-8")
    assert page.count("data:image/png;base64,") == 2
    assert "' Paris'" in page.replace("&#x27;", "'")
    picture = QImage(str(folder / "xray.png"))
    side = 4 * 12 + 3
    assert (picture.width(), picture.height()) == (side, 2 * side), "two layers of one head"


def test_a_square_is_as_bright_as_its_weights() -> None:
    weights = np.array([[[1, 0], [0.25, 1]]], np.float32)
    pixels = strip(weights)
    assert pixels.shape == (51, 51, 3)
    none, quarter, most = pixels[0, 24].astype(int), pixels[24, 0].astype(int), pixels[0, 0].astype(int)
    assert (2 * quarter).tolist() == pytest.approx((none + most).tolist(), abs=2), "the root of a quarter is a half"
    assert (pixels[24, 24] == most).all()
    image = QImage.fromData(png(pixels))
    assert [image.pixelColor(0, 0).red(), image.pixelColor(24, 0).red()] == [most[0], none[0]]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--layer", "9"], "Layer 9 has no attention; these have: 0, 1."),
        (["--head", "4"], "There is no head 4: they are 0 to 0."),
        (["--last", "0"], "--last and --top are numbers from 1 on."),
        (["--n-ctx", "4"], "The text has 12 tokens, more than 4: --n-ctx allows more."),
        (["--prompt", ""], "The text has no token."),
    ],
)
def test_what_cannot_be_is_said(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str], talking_file: Path
) -> None:
    assert main(["xray", "--prompt", TEXT, "--threads", "1", "--model", str(talking_file), *more]) == 2
    assert capsys.readouterr().err.strip() == said


def test_a_model_without_attention_is_said(capsys: pytest.CaptureFixture[str], tiny_folder: Path) -> None:
    model = str(written(tiny_folder, "mamba2", text=True))
    assert main(["xray", "--prompt", TEXT, "--threads", "1", "--model", model]) == 2
    assert capsys.readouterr().err.strip() == "There is no attention: the memory is recurrent."


def test_a_file_in_the_way_is_said(capsys: pytest.CaptureFixture[str], talking_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file")
    assert main(["xray", "--prompt", TEXT, "--threads", "1", "--model", str(talking_file), "--out", out]) == 2
    assert "cannot be written" in capsys.readouterr().err
