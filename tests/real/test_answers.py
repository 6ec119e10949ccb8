"""On each real model: the audit, and the tests of `tests/backends/local` that compare answers and logits."""

from pathlib import Path

import pytest

from kvdesk.experiments.benchmarks.audit import run
from kvdesk.headless import HeadlessEngine
from kvdesk.settings import ContextSettings
from tests.backends.local import test_continue, test_exact, test_exact_answers, test_turns
from tests.backends.local.test_audit import SMALL, SMALL_WINDOW, STREAMS, clean

N_OPS = 60
WINDOWS = SMALL_WINDOW.model_copy(update={"n_ctx": 4096})
chat = test_continue.chat
test_a_batch_decodes_alike = test_exact.test_the_embedded_model_decodes_alike_in_a_batch
test_after_compaction_it_answers_alike = test_exact.test_the_embedded_model_answers_alike_after_compaction
test_after_the_limit_one_token_is_read = test_continue.test_after_the_limit_it_is_the_uninterrupted_answer_for_one_token
test_after_stop_nothing_is_read_again = test_continue.test_after_stop_nothing_is_read_again
test_each_answer_is_that_of_an_empty_cache = test_exact_answers.test_each_answer_is_that_of_an_empty_cache


def test_incremental_text_is_that_of_a_full_prefill(exact: HeadlessEngine) -> None:
    test_turns.test_incremental_text_is_that_of_a_full_prefill(exact)


@pytest.mark.parametrize("settings", [SMALL, STREAMS, WINDOWS], ids=["unified", "streams", "small window"])
def test_no_mismatch(real_file: Path, settings: ContextSettings) -> None:
    clean(run(real_file, settings, N_OPS, seed=5), N_OPS)
