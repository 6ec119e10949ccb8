"""Where reports go: the order of their folders is the order of the runs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kvdesk.experiments.report import folder_for

AT = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    return tmp_path / "lab"


def test_a_run_comes_after_all_others_also_when_the_clock_was_ahead(lab: Path) -> None:
    assert folder_for("soak", AT) == lab / "soak-20260101-120000"
    (lab / "kv-types-20261231-235959").mkdir(parents=True)
    (lab / "what else-is here").mkdir()
    assert folder_for("soak", AT) == lab / "soak-20270101-000000"


def test_two_runs_in_one_second_have_two_folders(lab: Path) -> None:
    first = folder_for("soak", AT)
    first.mkdir(parents=True)
    assert folder_for("soak", AT) == lab / "soak-20260101-120001"


def test_a_folder_that_is_no_time_disturbs_nobody(lab: Path) -> None:
    (lab / "soak-99999999-999999").mkdir(parents=True)
    assert folder_for("soak", AT) == lab / "soak-20260101-120000"
