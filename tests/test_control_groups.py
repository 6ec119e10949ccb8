"""What containers and services may use: made-up control groups."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from kvdesk import control_groups
from kvdesk.library.estimate import available_bytes, total_bytes
from kvdesk.settings import default_threads


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a service, without limits."""
    own = tmp_path / "own"
    own.write_text("4:memory:/elsewhere\n0::/system.slice/kvdesk.service\n")
    folder = tmp_path / "groups"
    (folder / "system.slice" / "kvdesk.service").mkdir(parents=True)
    monkeypatch.setattr(control_groups, "GROUPS", folder)
    monkeypatch.setattr(control_groups, "OWN", own)
    return folder


def limit(group: Path, most: str, used: int, stat: str = "") -> None:
    (group / "memory.max").write_text(f"{most}\n")
    (group / "memory.current").write_text(f"{used}\n")
    if stat:
        (group / "memory.stat").write_text(stat)


def test_a_container_has_what_its_limit_leaves(groups: Path) -> None:
    assert available_bytes() > 0
    limit(groups, "1000000", 400000)
    assert (available_bytes(), total_bytes()) == (600000, 1000000)
    limit(groups, "max", 400000)
    assert total_bytes() > available_bytes() > 1000000


def test_files_that_were_read_take_no_room(groups: Path) -> None:
    limit(groups, "1000000", 900000, "anon 100000\ninactive_file 500000\nactive_file 200000\nslab 9\n")
    assert available_bytes() == 800000
    limit(groups, "1000000", 900000, "damaged\n")
    assert available_bytes() == 100000


def test_every_group_around_a_process_counts(groups: Path) -> None:
    service = groups / "system.slice" / "kvdesk.service"
    limit(service, "max", 1000)
    limit(service.parent, "5000", 3000)
    limit(groups, "9000", 8000)
    assert (available_bytes(), total_bytes()) == (1000, 5000)
    limit(service, "1200", 1000)
    assert (available_bytes(), total_bytes()) == (200, 1200)


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("max 100000", 64), ("200000 100000", 2), ("150000 100000", 1), ("10000 100000", 1), ("damaged", 64), ("1 0", 64)],
)
def test_threads_are_no_more_than_a_container_may_use(
    groups: Path, quota: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(128)), raising=False)
    (groups / "cpu.max").write_text(f"{quota}\n")
    assert default_threads() == expected


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such call")
def test_threads_are_no_more_than_the_processors_of_a_process(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert groups.is_dir()
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert default_threads() == 3
