"""`kvdesk bench cache` as it is called: a table or JSON, and an exit code. Speeds are not judged here."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kvdesk.__main__ import main
from kvdesk.cli import bench
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.benchmarks.cache import exact, run
from kvdesk.experiments.benchmarks.cache.run import SCENARIOS
from kvdesk.experiments.benchmarks.scheduler_delay import waited_s
from kvdesk.experiments.outcome import Outcome
from kvdesk.protocol.experiment import Figure
from kvdesk.settings import ContextSettings
from tests.cache.models import write_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_model(tmp_path_factory.mktemp("bench") / "attention.gguf", "attention"))


def test_exact_on_a_model_without_text(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["cache", "--only", "exact", "--model", model, "--n-ctx", "512", "--json"]
    assert bench.main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    scenario = result["scenarios"]["exact"]
    assert (result["passed"], scenario["audit"]) == (True, "verified")
    assert result["figures"]["exact.difference_over_largest_logit"]["value"] == 0.0
    assert 0.0 <= result["figures"]["exact.batched_over_largest_logit"]["value"] <= 1e-3
    assert scenario["raw"]["f16 swapped to disk"]["reused_tokens"] >= scenario["raw"]["f16 shared"]["reused_tokens"] > 0


def test_what_cannot_be_measured_has_failed(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["cache", "--only", "fork", "--model", model, "--n-ctx", "512"]) == 1
    assert capsys.readouterr().out.startswith("FAIL  fork: This model has no text tokenizer")


def test_no_such_scenario(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "cache", "--only", "nothing", "--model", model]) == 2
    assert "There is no scenario nothing" in capsys.readouterr().err


def test_waiting_for_a_processor_only_grows() -> None:
    before = waited_s()
    assert 0.0 <= before <= waited_s()


def test_texts_are_compared_with_a_fresh_start_where_exact_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    used = {}

    def scenario(name: str) -> Callable[[Bench], Outcome]:
        def measure(bench: Bench) -> Outcome:
            used[name] = bench.settings.exact
            return Outcome([], {})

        return measure

    monkeypatch.setattr(run, "SCENARIOS", {name: scenario(name) for name in SCENARIOS})
    run.run(Path("none"), ContextSettings(), 1, lambda _: None)
    assert {name for name, exact in used.items() if exact} == {"prefix", "fork", "memory", "disk", "restart"}
    run.run(Path("none"), ContextSettings(exact=True), 1, lambda _: None)
    assert all(used.values())


def test_logits_that_are_no_numbers_have_not_passed() -> None:
    """In Python the largest of 0 and NaN is 0."""
    most = exact._most([0.0, float("nan"), 1e-9])
    assert not Figure("difference", most).at_most(1.0).holds
    assert exact._most([0.0, 2e-9, 1e-9]) == 2e-9
