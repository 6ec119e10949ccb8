"""`pip install kvdesk` alone: logs are read, and commands that need more say what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.testing.core import CORE

LOG = """\
slot launch_slot_: id  0 | task 0 | processing task
slot update_slots: id  0 | task 0 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 900
slot      release: id  0 | task 0 | stop processing: n_tokens = 950, truncated = 0
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = f"{CORE}\nfrom kvdesk.__main__ import main\nsys.exit(main({arguments!r}))"
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_logs_are_read(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(LOG, encoding="utf-8")
    found = run("doctor", str(tmp_path / "server.log"))
    assert (found.returncode, found.stderr) == (0, "")
    assert "900" in found.stdout


@pytest.mark.parametrize("arguments", [(), ("chat", "--prompt", "Hi"), ("serve",)])
def test_what_needs_more_says_what_to_install(arguments: tuple[str, ...]) -> None:
    found = run(*arguments)
    assert found.returncode == 2
    assert found.stderr.startswith("This needs more than the core of kvdesk (")
    assert found.stderr.endswith(" is missing): pip install 'kvdesk[app]'.\n")


def test_the_core_needs_three_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [needed.partition(">=")[0] for needed in project["dependencies"]]
    assert names == ["msgspec", "numpy", "platformdirs"]
    assert "kvdesk[engine]" in project["optional-dependencies"]["app"]
