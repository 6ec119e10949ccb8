"""What is compared after a removal: the cache that has never read a passage is as if it had never been there."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.questions import forgetting
from kvdesk.protocol.experiment import chosen
from kvdesk.settings import ContextSettings
from tests.cache.models import N_SWA, write_model

VALUES = chosen(forgetting.PARAMETERS, {}, short=True)


@pytest.mark.parametrize("kind", ["attention", "iswa"])
def test_what_follows_a_removal_is_read_again_behind_all_before_it(kind: str, tmp_path: Path) -> None:
    """A saved state has of a window only what is seen from its end."""
    settings = ContextSettings(n_ctx=4 * N_SWA + 256, n_seq_max=1, n_threads=1, n_threads_batch=1)
    path = write_model(tmp_path / f"{kind}.gguf", kind)
    with closing(Bench(path, settings, VALUES)) as bench, bench.context() as context:
        text, start, end = bench.tokens(3 * N_SWA), N_SWA // 2, N_SWA // 2 + 8
        context.read(text, 0)
        state = forgetting.kept(bench, context)
        forgetting.restore(context, state, text)
        context.seq_rm(0, start, -1)
        context.read(text[end : start + 24], start)
        without = context.logits()
        context.clear()
        context.read(text[:start] + text[end : start + 24], 0)
        assert np.abs(without - context.logits()).max() < 1e-2
