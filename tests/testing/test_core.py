"""`pip install kvdesk` alone: logs are read, and commands that need more say what to install."""

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
CELLS = ROOT / "tests" / "engine_log" / "logs" / "cells-2026-11.log"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = f"{CORE}\nfrom kvdesk.__main__ import main\nsys.exit(main({arguments!r}))"
    env = os.environ | {"PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_logs_are_read(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(LOG, encoding="utf-8")
    found = run("doctor", str(tmp_path / "server.log"))
    assert (found.returncode, found.stderr) == (0, "")
    assert "900" in found.stdout


def test_a_server_is_watched_as_text_where_no_window_can_open() -> None:
    found = run("watch", "--", sys.executable, "-c", f"print({LOG!r})")
    assert found.returncode == 0
    assert found.stderr.startswith("A window needs the application (PySide6 is missing): pip install 'kvdesk[app]'. ")
    assert "950" not in found.stdout
    assert "900 tokens" in found.stdout


def test_a_log_is_recorded_for_others(tmp_path: Path) -> None:
    journal = tmp_path / "cache.kvjournal"
    recorded = run("record", "--no-follow", str(CELLS), str(journal))
    assert (recorded.returncode, recorded.stderr) == (0, "")
    assert "operations were saved" in recorded.stdout
    for option, begin in (("--html", "<!doctype html>"), ("--trace", "{")):
        out = tmp_path / f"cache{option}"
        assert run("replay", str(journal), option, str(out)).returncode == 0
        assert out.read_text(encoding="utf-8").startswith(begin)


def test_the_version_is_shown() -> None:
    found = run("--version")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("kvdesk ")


def test_a_llama_can_be_watched() -> None:
    code = f"{CORE}\nimport kvdesk.notebook.watch"
    found = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert found.returncode == 0


@pytest.mark.parametrize("arguments", [(), ("chat", "--prompt", "Hi"), ("serve",)])
def test_what_needs_more_says_what_to_install(arguments: tuple[str, ...]) -> None:
    found = run(*arguments)
    assert found.returncode == 2
    assert found.stderr.startswith("This needs more than the core of kvdesk (")
    assert found.stderr.endswith(" is missing): pip install 'kvdesk[app]'.\n")


def test_the_core_needs_four_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [needed.partition(">=")[0] for needed in project["dependencies"]]
    assert names == ["msgspec", "numpy", "platformdirs", "wcwidth"]
    assert "kvdesk[engine]" in project["optional-dependencies"]["app"]
