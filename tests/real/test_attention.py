"""Attention of real models: grouped heads, windows, quantized K, with holes and shared cells."""

from pathlib import Path

import pytest

from kvdesk.protocol.attention import Queries
from kvdesk.protocol.operations import RemoveRange
from kvdesk.settings import CacheType
from tests.backends.local.attention_oracle import agrees, recorded
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_attention import SPLIT, by_hand, held, quantized

KINDS = {"f16": {}, "q8_0": quantized(CacheType.Q8_0), "q4_0": quantized(CacheType.Q4_0), "streams": SPLIT}


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_q_and_the_live_cells(real_file: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = recorded(monkeypatch)
    for headless in opened_with(real_file, SMALL.model_copy(update=KINDS[kind])):
        held(headless, 30, seed=1)
        sequence = held(headless, 200)
        found = agrees(headless, Queries(sequence.seq_id), fused)
        assert found.n_read == 0
        by_hand(headless, RemoveRange(sequence.seq_id, 60, 90))
        agrees(headless, Queries(sequence.seq_id), fused, edited=True)
