"""Prompts are read in whole ubatches, and in parts of one only where it would take too long."""

import pytest

from kvdesk.policies.prompt_piece import LEAST, end_of_piece, piece
from kvdesk.policies.tuned import LONGEST_BATCH_MS, LONGEST_GAP_MS


@pytest.mark.parametrize(
    ("n_batch", "n_ubatch", "ubatch_ms", "n_tokens"),
    [
        (512, 512, None, LEAST),
        (512, 32, None, 32),
        (2048, 512, 1400.0, 512),
        (2048, 512, LONGEST_BATCH_MS, 512),
        (2048, 512, LONGEST_BATCH_MS + 1, 256),
        (2048, 512, 4 * LONGEST_BATCH_MS, 128),
        (2048, 512, 1e9, LEAST),
        (2048, 512, LONGEST_GAP_MS / 2, 1024),
        (2048, 512, LONGEST_GAP_MS / 100, 2048),
        (2048, 512, 0.0, 2048),
        (512, 32, 100.0, 128),
        (512, 32, 600.0, 32),
        (512, 32, 9_000.0, 32),
        (100, 64, 1.0, 64),
    ],
)
def test_pieces(n_batch: int, n_ubatch: int, ubatch_ms: float | None, n_tokens: int) -> None:
    assert piece(n_batch, n_ubatch, ubatch_ms) == n_tokens


def test_exact_blocks_and_the_rest_are_batches_of_their_own() -> None:
    """However a prompt is read, llama.cpp gets its last tokens alone."""
    for first in (0, 32, 64, 96):
        ends = [first]
        while ends[-1] < 109:
            ends.append(end_of_piece(ends[-1], 512, 109, 32))
        assert ends == [first, *[96] * (first < 96), 109]
    assert end_of_piece(0, 512, 109, 1) == 109
    assert end_of_piece(0, 512, 96, 32) == 96
