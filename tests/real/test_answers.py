"""On each real model: the audit, and the tests of `tests/backends/local` that compare answers and logits."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kvdesk.benchmarks.audit import run
from kvdesk.cache.compare import Verdict
from kvdesk.headless import HeadlessEngine
from kvdesk.library.gguf_header import read_header
from kvdesk.settings import ContextSettings
from tests.backends.local import test_continue, test_exact, test_turns
from tests.backends.local.test_audit import SMALL, SMALL_WINDOW, STREAMS, clean

N_OPS = 60
WINDOWS = SMALL_WINDOW.model_copy(update={"n_ctx": 4096})
ONE_OR_SEVERAL: Final = frozenset({"f32", "f16", "bf16", "q4_0", "q5_0", "q8_0", "iq4_nl"})
"""Weights that llama.cpp multiplies with other code for one token than for several (llamafile_sgemm, sgemm.cpp)."""

chat = test_continue.chat
test_a_batch_decodes_alike = test_exact.test_the_embedded_model_decodes_alike_in_a_batch
test_after_compaction_it_answers_alike = test_exact.test_the_embedded_model_answers_alike_after_compaction
test_after_the_limit_one_token_is_read = test_continue.test_after_the_limit_it_is_the_uninterrupted_answer_for_one_token
test_after_stop_nothing_is_read_again = test_continue.test_after_stop_nothing_is_read_again


@pytest.mark.parametrize("settings", [SMALL, STREAMS, WINDOWS], ids=["unified", "streams", "small window"])
def test_no_mismatch(real_file: Path, settings: ContextSettings) -> None:
    clean(run(real_file, settings, N_OPS, seed=5), N_OPS)


def test_what_was_read_and_written_in_turns_is_a_fresh_start(embedded: HeadlessEngine, real_file: Path) -> None:
    """Bit for bit, and so token for token, where one token and several are multiplied alike; else up to rounding."""
    found = test_exact.in_turns(embedded, exact=True)
    assert found.verdict.same, found
    if multiplies_alike(real_file):
        assert found.verdict is Verdict.EXACT, found
        test_turns.test_incremental_text_is_that_of_a_full_prefill(embedded)


def multiplies_alike(path: Path) -> bool:
    """Whether the weights of all layers are of types that llama.cpp has one code for."""
    weights = (t for t in read_header(path).tensors if t.name.startswith("blk.") and len(t.shape) > 1)
    return not any(t.kind.name in ONE_OR_SEVERAL for t in weights)
