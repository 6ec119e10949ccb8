"""No call that would kill the process is made: the whole table, attempted in a child that lives."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

OTHERS = {  # rows that do not end in a RefusedCall
    "seq_div": "AttributeError",  # not offered
    "decode behind a gap": "DecodeError",  # the engine says -1 and does nothing
    "more sequences than n_batch": "ContextError",
    "more sequences than n_ctx": "ContextError",
    "quantized V without flash attention": "ContextError",
    "a type outside the list": "ValidationError",
    "no sequences": "ContextError",
}


def child(folder: Path, *call: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.backends.local.guards_child", str(folder), *call]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


def test_every_row_is_refused_and_the_process_lives(tmp_path: Path) -> None:
    ended = child(tmp_path)
    assert ended.returncode == 0, ended.stderr
    rows: dict[str, str] = json.loads(ended.stdout)
    assert len(rows) > 65
    for row, error in rows.items():
        kind, _, sentence = error.partition(": ")
        assert kind == OTHERS.get(row, "RefusedCall"), (row, error)
        assert sentence, row


@pytest.mark.parametrize(
    ("call", "killed_by"),
    [
        ("seq_rm", signal.SIGABRT),
        *(pytest.param(call, signal.SIGABRT, marks=pytest.mark.matrix) for call in ("seq_cp", "sample", "shift")),
        ("seq_div", signal.SIGFPE),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_without_the_guard_it_dies(tmp_path: Path, call: str, killed_by: int) -> None:
    assert child(tmp_path, call).returncode == -killed_by
