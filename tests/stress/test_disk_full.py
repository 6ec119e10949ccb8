"""A disk that becomes full: nothing is lost unsaid, all is saved once there is room, no half-written file keeps it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.stress.conftest import Row, forms

LIMIT_S = 180.0
APART = ("unshare", "--map-root-user", "--mount")
"""A mount namespace of its own, in which an ordinary user too may mount a small file system."""


@pytest.fixture
def small_disks(tmp_path: Path) -> None:
    """Skips where no small file system may be mounted."""
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare(1), which gives a process file systems of its own")
    tried = subprocess.run(
        [*APART, "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"a small file system for the home may not be mounted here: {tried.stderr.strip()}")


@pytest.mark.usefixtures("small_disks")
@forms(1, 30)
def test_disk_full(row: Row, tmp_path: Path, n: int) -> None:
    wrong = []
    for number, (name, _) in enumerate(row.rounds("disk full", n)):
        folder = tmp_path / str(number)
        folder.mkdir()
        ended = subprocess.run(
            [*APART, sys.executable, "-m", "tests.stress.full_disk", str(folder), name, str(number)],
            cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        said = ended.stdout + (ended.stderr if ended.returncode else "")
        if said:
            wrong.append(said)
            row.say(said)
    assert wrong == []
