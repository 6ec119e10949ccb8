"""kvdesk beside its peers on real models: quiet on the largest, beside busy processes on the second.

In a child, since it is measured as a person would: tests have one thread, and a heap of their own. Half an hour each at
most, so an hour in all; what was not measured until then, and peers that are not installed, are shown.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.benchmarks.peers.table import LOADS, PRIMARY
from tests.places import ROOT
from tests.real.conftest import FOLDER, MODELS

MINUTES = 25
"""After which no row is begun: the last one takes some minutes more."""
LAST_ROW_MINUTES = 10
"""After which a row, and with it the test, has failed."""


@pytest.mark.parametrize(("nth", "loads"), [(-1, (0,)), (-2, (1, 2))], ids=["quiet", "busy"])
def test_kvdesk_measures_each_row(nth: int, loads: Sequence[int], capfd: pytest.CaptureFixture[str]) -> None:
    assert MODELS, f"There is no GGUF file in the folder {FOLDER!r}: make real MODELS=DIR"
    path = MODELS[max(nth, -len(MODELS))]
    options = ["--model", path, "--minutes", MINUTES, "--busy", *loads]
    if program := os.environ.get("KVDESK_LLAMA_SERVER"):
        options += ["--llama-server", program]
    command = [sys.executable, "-m", "kvdesk", "bench", "peers", "--json", *map(str, options)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with capfd.disabled():  # progress is shown as it is made, and the table
        sys.stderr.write(f"\n{path.stem}:\n")
        limit = 60 * (MINUTES + LAST_ROW_MINUTES)
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=limit
        )
    result = json.loads(done.stdout)
    assert {row["load"] for row in result["rows"]} == {LOADS[load] for load in loads}
    assert "Llama" in result["peers"], result["absent"]
    unmeasured = [row for row in result["rows"] if not row[PRIMARY]["values"]]
    assert len(unmeasured) < len(result["rows"])
    problems = {peer["problem"] for row in unmeasured for peer in row["peers"].values()}
    assert problems <= {f"Not measured: {MINUTES} minutes were over."}
