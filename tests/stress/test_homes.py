"""Damaged homes by seed: kvdesk starts or says one sentence, and no chat has the text or the state of another."""

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvdesk.store.rows import DAMAGED_NOTE
from tests.backends.local.tiny_models import write
from tests.places import ROOT
from tests.stress.conftest import Row, forms
from tests.stress.damaged_homes import Home, damage, make_home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and permissions are those of POSIX")
LIMIT_S = 10.0
PLAIN = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""What takes away that permissions mean nothing to root."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("homes")
    made = make_home(folder / "original", write(folder / "model.gguf", "llama", text=True))
    (folder / "kind").write_bytes(pickle.dumps(made.kind))
    return made


def start(home: Home, copy: Path) -> tuple[int, str, str]:
    """Start kvdesk on a copy of a home. Returns its exit code (-1: it did not end in time), its output, its errors."""
    privileged = os.geteuid() == 0 and shutil.which("setpriv")
    arguments = [*(PLAIN if privileged else ()), sys.executable, "-m", "tests.stress.home_window"]
    try:
        ended = subprocess.run(
            [*arguments, str(home.folder.parent / "kind")],
            cwd=ROOT, env=os.environ | {"KVDESK_HOME": str(copy)}, capture_output=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return -1, "", (error.stderr or b"").decode("utf-8", "replace")
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode("utf-8", "replace")


def wrong_with(home: Home, code: int, out: str, err: str) -> str:
    """What is wrong with how it ended, or ""."""
    if code == 2:
        sentence = err.strip()
        is_one = sentence and "\n" not in sentence and len(sentence) <= 600 and sentence.endswith((".", ")"))
        return "" if is_one and "Traceback" not in err else f"no sentence: {err[-1500:]!r}"
    if code != 0 or "Traceback" in err:
        return f"code {code}: {err[-1500:]}"
    told = json.loads(out.splitlines()[-1])
    if told["unexpected"] or "EngineDied" in told["seen"]:
        return f"unexpected: {told['seen']}"
    return _wrong_text(home, told["messages"]) or _wrong_state(home, told["states"])


def _wrong_text(home: Home, messages: dict[str, tuple[str, str, str]]) -> str:
    for name, (conversation, text, note) in messages.items():
        if name and note != DAMAGED_NOTE and home.texts.get(name) != (conversation, text):
            known = home.texts.get(name, ("nowhere", ""))
            return f"message {name} in {conversation} reads {text[:80]!r}, and not {known[1][:80]!r} in {known[0]}"
    return ""


def _wrong_state(home: Home, states: dict[str, tuple[str, list[int], str]]) -> str:
    for key, (conversation, tokens, digest) in states.items():
        if home.states.get(key) != (conversation, tokens, digest):
            return f"state {key[:8]} of {conversation} is not the one that was saved"
    return ""


def rounds(row: Row, home: Home, folder: Path, n: int) -> list[str]:
    """Start `n` damaged copies. Returns what was wrong."""
    wrong = []
    for name, rng in row.rounds("damaged homes", n):
        said = one_round(home, folder / "home", rng)
        if said:
            wrong.append(f"{name}: {said}")
            row.say(wrong[-1])
    return wrong


def one_round(home: Home, copy: Path, rng: random.Random) -> str:
    shutil.copytree(home.folder, copy)
    try:
        done = damage(copy, rng)
        start_s = time.monotonic()
        wrong = wrong_with(home, *start(home, copy))
        return f"({done}, {time.monotonic() - start_s:.1f} s) {wrong}" if wrong else ""
    finally:
        copy.chmod(0o700)
        for folder in (copy / "states", copy / "log"):
            if folder.is_dir() and not folder.is_symlink():
                folder.chmod(0o700)
        shutil.rmtree(copy)


def test_the_original_starts_with_all_its_chats_and_states(home: Home, tmp_path: Path) -> None:
    shutil.copytree(home.folder, tmp_path / "home")
    code, out, err = start(home, tmp_path / "home")
    assert wrong_with(home, code, out, err) == ""
    told = json.loads(out.splitlines()[-1])
    assert told["seen"] == ["ContextReady"]
    assert told["messages"].keys() - {""} == home.texts.keys()
    assert len(home.states) == len(home.word_of)
    assert told["states"].keys() == home.states.keys()


@forms(3, 300)
def test_damaged_homes(row: Row, home: Home, tmp_path: Path, n: int) -> None:
    assert rounds(row, home, tmp_path, n) == []
