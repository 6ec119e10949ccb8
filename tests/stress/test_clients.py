"""Clients of other people ask `kvdesk serve` for tools, structured output and with settings of reasoning (`clients`).

KVDESK_CLIENTS=VENV/bin/python   has openai, instructor, langchain-openai, pydantic-ai, litellm, llm,
                                 ollama and anthropic; not here
KVDESK_NODE_CLIENTS=FOLDER       its node_modules have openai, ai, @ai-sdk/openai-compatible and zod; not here
KVDESK_TOOL_MODEL=….gguf         the model (`serving`)
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.stress import clients
from tests.stress.serving import TOOL_MODEL, Served, kvdesk_serve, needs_tool_model

PYTHON: Final = os.environ.get("KVDESK_CLIENTS", "")
NODE_FOLDER: Final = os.environ.get("KVDESK_NODE_CLIENTS", "")
pytestmark = [pytest.mark.stress, pytest.mark.timeout(3600), needs_tool_model]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with kvdesk_serve(Path(TOOL_MODEL), tmp_path_factory.mktemp("h"), "--temperature", "0", "--n-ctx", "4096") as found:
        yield found


@pytest.mark.skipif(not PYTHON, reason="KVDESK_CLIENTS is a Python with their packages")
@pytest.mark.parametrize("name", clients.CLIENTS)
def test_a_client_gets_what_it_asks_for(served: Served, name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": ""}
    command = [PYTHON, clients.__file__, served.url, name]
    run = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-4000:]


@pytest.mark.skipif(not NODE_FOLDER, reason="KVDESK_NODE_CLIENTS is a folder with their packages")
@pytest.mark.parametrize("name", ["openai", "ai-sdk"])
def test_a_client_of_npm_gets_what_it_asks_for(served: Served, name: str) -> None:
    program = Path(NODE_FOLDER) / "clients.mjs"  # node looks for packages beside it
    shutil.copy(Path(clients.__file__).with_suffix(".mjs"), program)
    run = subprocess.run(["node", program, served.url, name], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-4000:]
