"""The self-test passes on a whole installation and names in words what a broken one lacks."""

import json
import sys
from pathlib import Path

import pytest

from kvdesk import paths
from kvdesk.__main__ import main
from kvdesk.dev import selftest
from kvdesk.library import hub
from tests.library.hub_server import HubServer

pytestmark = pytest.mark.usefixtures("qtbot")
STEPS = [
    *(
        "window",
        "plot",
        "store",
        "attachments",
        "model",
        "greedy text",
        "safe mode",
        "connecting",
        "tools",
        "compaction",
    ),
    *("audit", "server", "model hub", "found models", "languages", "formula", "terminal"),
]


def test_a_whole_installation_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["passed"]
    assert [step["step"] for step in told["steps"]] == STEPS


def test_a_missing_model_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "embedded_model", lambda: None)
    assert main(["selftest"]) == 1
    captured = capsys.readouterr()
    assert "The step 'model' failed: the embedded model is not part of this installation" in captured.err
    assert "greedy" not in captured.out


def test_another_text_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "ANSWER", "The chemical symbol for water is CO2")
    last = list(selftest.run(tmp_path))[-1]
    assert (last.step, last.passed) == ("greedy text", False)
    assert "instead of" in last.said


def test_an_unexpected_error_is_told_too(tmp_path: Path) -> None:
    last = list(selftest.run(tmp_path / "nowhere"))[-1]
    assert (last.step, last.passed) == ("store", False)


def test_a_missing_client_of_the_hub_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hub._client.cache_clear()
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match="huggingface_hub"):
        selftest._model_hub()


def test_an_address_that_answers_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    with HubServer({"a/b": {}}) as server:
        monkeypatch.setattr(selftest, "NOBODY", server.endpoint)
        with pytest.raises(selftest.Failure, match="answered"):
            selftest._model_hub()


def test_a_catalogue_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kvdesk_de.mo").write_bytes(b"nothing")
    monkeypatch.setattr(paths, "catalogues", lambda _folder=None: {"de": tmp_path / "kvdesk_de.mo"})
    with pytest.raises(selftest.Failure, match="the catalogue of de cannot be used"):
        selftest._languages()


def test_missing_libraries_of_formulas_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvdesk.ui.markdown.formulas.child_command", lambda _flag: [str(tmp_path / "nothing")])
    last = list(selftest.run(tmp_path))[-1]
    assert (last.step, last.passed) == ("formula", False)
    assert "libraries or font are missing" in last.said
