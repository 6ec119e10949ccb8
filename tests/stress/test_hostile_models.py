"""Hostile model files by seed: every one is refused with one sentence or works, and no command dies of it or hangs."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kvdesk.errors import KvdeskError, ModelFileError
from kvdesk.library.catalogue import facts_of, fit_of
from kvdesk.library.find import FoundModel
from kvdesk.library.preflight import run_preflight
from kvdesk.settings import ContextSettings
from tests.backends.local.tiny_models import write
from tests.places import ROOT, SHARED_MODELS
from tests.stress.hostile_models import hostile

SETTINGS = ContextSettings(n_ctx=256, n_seq_max=2, n_threads=1, n_threads_batch=1)
LIMIT_S = 10.0
pytestmark = pytest.mark.usefixtures("models_are_tried")
FEW = ["--n-ctx", "256", "--n-seq-max", "2", "--threads", "1"]
COMMANDS: dict[str, list[str]] = {
    "capabilities": ["-m", "kvdesk", "capabilities", *FEW, "--model"],
    "audit": ["-m", "kvdesk", "audit", "--ops", "60", *FEW, "--model"],
    "chat": [
        "-m",
        "kvdesk",
        "chat",
        *FEW,
        "--max-tokens",
        "4",
        "--prompt",
        "Hi é 😀",
        "--prompt",
        "a\n\n  b",
        "--model",
    ],
    "window": ["-m", "tests.stress.hostile_window"],
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Small models of many kinds; those of the engine's own tests too, where they are."""
    folder = tmp_path_factory.mktemp("bases")
    pres = {"llama": "gpt-2", "qwen3": "qwen2", "gptneox": "gpt-4o", "stablelm": "tekken", "phi3": "deepseek-llm"}
    pres |= {
        "gpt2": "default",
        "mamba2": "superbpe",
        "granitehybrid": "llama-bpe",
        "rwkv6": "gpt-2",
        "smollm3": "smollm",
    }
    made = [write(folder / f"{name}.gguf", name, text=True, pre=pre) for name, pre in pres.items()]
    return made + sorted(SHARED_MODELS.glob("*.gguf"))


def refused_or_works(folder: Path, bases: list[Path], seed: int) -> str:
    """Put hostile file `seed` through the preflight. Returns what is wrong with how that went, or ""."""
    what, data = hostile(bases, seed)
    path = folder / f"{seed}.gguf"
    path.write_bytes(data)
    start_s = time.monotonic()
    try:
        found = FoundModel(path.stem, path, len(data), "")
        if not facts_of(found).problem:
            with suppress(KvdeskError):
                fit_of(found, SETTINGS, 1 << 34)
        verdict = run_preflight(path, SETTINGS)
        said = verdict.sentence if not verdict.ok else "It works."
    except ModelFileError as error:
        said = str(error)
    finally:
        path.unlink()
    wrong = complaint(said) or (f"{time.monotonic() - start_s:.0f} s" if time.monotonic() - start_s > LIMIT_S else "")
    return f"seed {seed} ({what}): {wrong}" if wrong else ""


def survives(folder: Path, bases: list[Path], seed: int, command: str) -> str:
    """Give hostile file `seed` to a command. Returns what is wrong with how that ended, or ""."""
    what, data = hostile(bases, seed)
    path = folder / f"{seed}.gguf"
    path.write_bytes(data)
    home = os.environ | {"KVDESK_HOME": str(folder / f"home-{command}")}
    start_s = time.monotonic()
    try:
        ended = subprocess.run(
            [sys.executable, *COMMANDS[command], str(path)],
            cwd=ROOT, env=home, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"seed {seed} ({what}), {command}: did not end"
    finally:
        path.unlink()
    err = ended.stderr.decode("utf-8", "replace")
    wrong = ""
    if ended.returncode not in (0, 2) or "Traceback" in err:
        wrong = f"code {ended.returncode}: {err[-300:]}"
    elif ended.returncode == 2:
        wrong = complaint(err.strip())
    elif command == "window":
        told = json.loads(ended.stdout.splitlines()[-1])
        wrong = str(told) if told["unexpected"] or "EngineDied" in told["seen"] else ""
    if not wrong and time.monotonic() - start_s > LIMIT_S:
        wrong = f"{time.monotonic() - start_s:.0f} s"
    return f"seed {seed} ({what}), {command}: {wrong}" if wrong else ""


def complaint(sentence: str) -> str:
    """What keeps this from being one sentence."""
    if not sentence or "\n" in sentence or len(sentence) > 600 or not sentence.rstrip().endswith((".", ")")):
        return f"no sentence: {sentence[:300]!r}"
    return ""


SOME = (3, 11, 29, 47, 58, 101)


def test_a_few_through_the_preflight(tmp_path: Path, bases: list[Path]) -> None:
    assert hostile(bases, 3) == hostile(bases, 3)
    assert [wrong for seed in SOME if (wrong := refused_or_works(tmp_path, bases, seed))] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_one_through_every_command(tmp_path: Path, bases: list[Path], command: str) -> None:
    assert survives(tmp_path, bases, 5, command) == ""


@pytest.mark.stress
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("hundred", range(10))
def test_hostile_models_through_the_preflight(tmp_path: Path, bases: list[Path], hundred: int) -> None:
    seeds = range(100 * hundred, 100 * hundred + 100)
    assert [wrong for seed in seeds if (wrong := refused_or_works(tmp_path, bases, seed))] == []


@pytest.mark.stress
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_models_through_every_command(tmp_path: Path, bases: list[Path], command: str) -> None:
    assert [wrong for seed in range(2000, 2200) if (wrong := survives(tmp_path, bases, seed, command))] == []
