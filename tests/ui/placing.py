"""Tokens put into a mirror, for tests that need what the engine's rules make of them."""

from kvdesk.cache.batch import Batch
from kvdesk.cache.mirror import Mirror


def place(mirror: Mirror, seq_id: int, p0: int, n: int) -> None:
    """Decode `n` tokens of the sequence from position `p0` on; the token ids are the positions."""
    batch = Batch(list(range(p0, p0 + n)), list(range(p0, p0 + n)), [(seq_id,)] * n, [False] * n)
    assert mirror.decode(batch, 0).rc == 0
