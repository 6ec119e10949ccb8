"""How much of the cache one program's requests keep, and what is evicted if that is more than its share.

Runs on the engine's thread.
"""

from collections import Counter

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.protocol.cache import ClientShare
from kvdesk.translation import tr


def client_shares(context: Context, cache_manager: Cache) -> tuple[ClientShare, ...]:
    """What is kept of each program's requests, as in `CacheView`. Read-only."""
    cells: Counter[str] = Counter()
    saved: Counter[str] = Counter()
    for sequence in cache_manager.pool:
        if sequence.client is not None:
            cells[sequence.client.name] += _own_cells(context, sequence)
    for name, n_bytes in cache_manager.swapper.saved_states.clients():
        saved[name] += n_bytes
    names = sorted(cells.keys() | saved.keys(), key=lambda name: (-cells[name], -saved[name], name))
    return tuple(ClientShare(name, cells[name], saved[name]) for name in names)


def keep_to_share(context: Context, cache_manager: Cache, beside: CacheSequence, n_new: int) -> None:
    """Evict idle requests of the asking program, the least recently used first, until they and the `n_new` tokens to be
    read in `beside` are within its share. A single request is never too much. May change the cache.
    """
    client = beside.client
    if client is None or client.share >= 1.0:
        return
    most = int(client.share * context.n_ctx)
    mine = [s for s in cache_manager.pool if s.client is not None and s.client.program == client.program]
    n = n_new + sum(_own_cells(context, s) for s in mine)
    for sequence in sorted((s for s in mine if s is not beside and not s.busy), key=lambda s: s.last_used):
        if n <= most:
            return
        n -= _own_cells(context, sequence)
        cache_manager.evict(sequence, tr("its program may keep {n:,} cells").format(n=most))


def _own_cells(context: Context, sequence: CacheSequence) -> int:
    return len(sequence.tokens) - context.memory.mirror.n_shared(sequence.seq_id)
