"""Texts that recurse or take long in the pre-tokenizers of llama.cpp: tokenized in full, or refused with a sentence.

Each model is tried in a child process, whose main thread has a stack of 512 KiB as threads on macOS have.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kvdesk.backends.local.llama.deep_stack import STACK_BYTES, run_deep
from kvdesk.library.preflight import LONG_LINE
from tests.backends.local.tiny_models import write
from tests.places import ROOT

CHILD = """
import json, sys, threading
from pathlib import Path
from kvdesk.backends.local.llama.model import Model
from kvdesk.errors import PromptError

def tokenize():
    vocab = Model(Path(sys.argv[1])).vocab
    for text in json.loads(sys.argv[2]):
        try:
            text = eval(text)
            tokens = vocab.tokenize(text, add_special=False, parse_special=False)
            told.append(vocab.text(tokens) == text)
        except PromptError as error:
            told.append(str(error))

told = []
threading.stack_size(512 << 10)
thread = threading.Thread(target=tokenize)
thread.start()
thread.join()
print(json.dumps(told))
"""
LONG = [*(f"'{char}' * {LONG_LINE}" for char in "aA.中"), f"'a ' * {LONG_LINE // 2}"]
TOO_LONG = [f"'a' * {LONG_LINE + 1}", "'x' + ' ' * 9000 + '中'", "'1' * 9000"]


def told(path: Path, texts: list[str]) -> list[bool | str]:
    command = [sys.executable, "-c", CHILD, str(path), json.dumps(texts)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr[-500:]
    found: list[bool | str] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "pre",
    [
        "gpt-4o",
        pytest.param("deepseek-llm", marks=pytest.mark.matrix),
        *(pytest.param(pre, marks=pytest.mark.stress) for pre in ("tekken", "deepseek-v3", "superbpe", "exaone-moe")),
        *(pytest.param(pre, marks=pytest.mark.stress) for pre in ("default", "youtu", "minicpm5", "poro-chat")),
    ],
)
def test_long_lines_are_tokenized_or_refused(tmp_path: Path, pre: str) -> None:
    """Without a stack made for it, 40,000 characters end the process (12,920,000 bytes of stack)."""
    found = told(write(tmp_path / "model.gguf", "llama", text=True, pre=pre), LONG + TOO_LONG)
    assert found[: len(LONG)] == [True] * len(LONG)
    assert found[len(LONG)] == (
        f"A line of the text has {LONG_LINE + 1:,} characters, and this model's tokenizer can take {LONG_LINE:,}:"
        " break it up."
    )
    assert all("blanks or digits in a row" in str(sentence) for sentence in found[len(LONG) + 1 :])


def test_the_stack_is_made_for_one_thread_only() -> None:
    before = threading.stack_size()
    assert run_deep(lambda: 42) == 42
    assert threading.stack_size() == before
    assert STACK_BYTES > 2 * 323 * LONG_LINE, "a match may have signs and the ends of lines behind them"
    with pytest.raises(ZeroDivisionError):
        run_deep(lambda: 1 // 0)
