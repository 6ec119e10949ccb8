"""An answer beside a verification, on a tiny model: both go on, and what was measured is told."""

from pathlib import Path

import pytest

from kvdesk.experiments.benchmarks.cache import run, verify
from kvdesk.settings import ContextSettings

SMALL = ContextSettings(n_ctx=2048, n_seq_max=4, n_threads=1, n_threads_batch=1)


def test_an_answer_begins_at_once_and_both_go_on(talking_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "N_VERIFIED", 2500)
    monkeypatch.setattr(verify, "ALONE_S", 0.05)
    told: list[str] = []
    result = run.run(talking_file, SMALL, 2, told.append, ["verify"])
    (scenario,) = result["scenarios"].values()  # type: ignore[attr-defined]
    assert scenario["audit"] == "verified"
    assert scenario["raw"]["steps_until_it_begins"] == [1.0, 1.0]
    assert min(scenario["raw"]["speed_over_alone"]) > 0
