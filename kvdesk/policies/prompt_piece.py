"""How much of a prompt is read by one llama_decode, when nobody waits for a token. Pure: values in, tokens out.

Between two pieces progress is reported and other work gets its turn. Stopping does not wait for it (the abort
callback).
"""

from kvdesk.policies.tuned import LONGEST_BATCH_MS, LONGEST_GAP_MS, TILE

LEAST = 2 * TILE
"""Tokens of the smallest piece of a ubatch, and of the first one, when it is not known yet how long it takes."""


def piece(n_batch: int, n_ubatch: int, ubatch_ms: float | None) -> int:
    """Tokens of the next piece. ubatch_ms: what a full ubatch is expected to take, None if nothing was measured."""
    if ubatch_ms is None:
        return min(n_ubatch, LEAST)
    if ubatch_ms <= LONGEST_GAP_MS:
        return n_ubatch * max(1, min(n_batch // n_ubatch, int(LONGEST_GAP_MS / max(ubatch_ms, 0.1))))
    n = n_ubatch
    while ubatch_ms > LONGEST_BATCH_MS and n >= 2 * LEAST:
        n, ubatch_ms = n // 2, ubatch_ms / 2
    return n


def end_of_piece(first: int, most: int, n: int, block: int) -> int:
    """Where a batch ends that reads a prompt of `n` tokens from its token `first`: `most` tokens on, or at `n`.

    Before `n` only at a multiple of `block` (`Context.block`), at least one on. What is behind the last one is
    another batch: with earlier states (n_rs_seq) llama.cpp would cut the block before it (llama-batch.cpp:637).
    """
    end, whole = first + most, n // block * block
    if end >= n:
        return whole if first < whole else n
    return max(end // block * block, min((first // block + 1) * block, n))
