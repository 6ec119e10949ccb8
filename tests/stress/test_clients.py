"""Clients of other people ask `kvdesk serve` for tools, structured output and with settings of reasoning (`clients`).

KVDESK_CLIENTS=VENV/bin/python   has openai, instructor, langchain-openai, pydantic-ai, litellm and llm; not here
KVDESK_TOOL_MODEL=….gguf         a model that calls tools and copies a name, such as Qwen2.5 0.5B
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.stress import clients
from tests.stress.serving import Served, kvdesk_serve

PYTHON: Final = os.environ.get("KVDESK_CLIENTS", "")
MODEL: Final = os.environ.get("KVDESK_TOOL_MODEL", "")
pytestmark = [
    pytest.mark.stress,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not (PYTHON and MODEL), reason="KVDESK_CLIENTS and KVDESK_TOOL_MODEL say with what"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with kvdesk_serve(Path(MODEL), tmp_path_factory.mktemp("home"), "--temperature", "0", "--n-ctx", "4096") as found:
        yield found


@pytest.mark.parametrize("name", clients.CLIENTS)
def test_a_client_gets_what_it_asks_for(served: Served, name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": ""}
    command = [PYTHON, clients.__file__, served.url, name]
    run = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-4000:]
