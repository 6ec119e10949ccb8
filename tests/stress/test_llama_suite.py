"""llama.cpp's own tests of its server pass against `kvdesk serve`.

KVDESK_LLAMA_TESTS=…/llama.cpp/tools/server/tests   where they are: with the sources of llama.cpp, not here
KVDESK_LLAMA_MODEL=model.gguf                       another model than the embedded one
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT, free_port

SUITE = os.environ.get("KVDESK_LLAMA_TESTS", "")
FILES = (
    *("test_basic.py", "test_chat_completion.py", "test_tokenize.py", "test_tool_call.py", "test_completion.py"),
    *("test_template.py", "test_embedding.py", "test_rerank.py", "test_infill.py", "test_slot_save.py"),
    *("test_compat_anthropic.py", "test_compat_oai_responses.py", "test_security.py", "test_metrics.py"),
    *("test_ignore_eos.py", "test_ctx_shift.py"),
)
"""The others ask for what kvdesk serve does not have: adapters, a draft model, a router, tools, pictures, sleep, Vertex
AI's protocol, streams that are resumed.
"""
PASSES = 205
"""So many pass at least: the files and their names are as they were."""


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not SUITE, reason="KVDESK_LLAMA_TESTS is where llama.cpp's tests of its server are")
def test_llama_servers_own_tests_pass(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KVDESK_HOME": str(tmp_path), "PORT": str(free_port())}
    plugins = ["-p", "tests.stress.llama_suite", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-q", "-m", "not slow", *(f"unit/{name}" for name in FILES)],
        cwd=SUITE,
        check=False,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-20_000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None, run.stdout[-2000:]
    assert int(passed[1]) >= PASSES, run.stdout[-2000:]
