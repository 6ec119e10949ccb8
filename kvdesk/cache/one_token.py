"""The commonest decode of all, one token of one sequence, by the shortest way through the same rules.

Owns nothing: it reads and changes cells exactly as `Mirror.decode` would, and gives the work back (None, with nothing
changed) where the general way is needed: a window cell would be replaced, a slot must be searched for, states, shifts.
A test holds both ways against each other. Why it exists: at 8 ms a token the general way costs 5 % of the speed.
"""

from __future__ import annotations

import numpy as np

from kvdesk.cache.attention import AttentionCache
from kvdesk.cache.record import DecodeRecord, Placement, SlotState, UbatchRecord

_FIRST = np.zeros(1, dtype=np.int64)
_NONE = np.empty(0, dtype=np.int64)


def place_token(caches: list[AttentionCache], token: int, pos: int, seq_id: int, born: int) -> DecodeRecord | None:
    """Place a token whose position follows `seq_pos_max`, as operation `born`. Changes the cache, unless it is None."""
    starts = []
    for cache in caches:
        cells = cache.cells_of(seq_id)
        start = cells.search_start(1)
        if cache.pending_copies or cells.has_shift or cells.pos[start] != -1:
            return None
        starts.append(start)
    slots: list[SlotState] = []
    placements: list[Placement] = []
    n_kv = 0
    for cache, start in zip(caches, starts, strict=True):
        stream = cache.stream_of(seq_id)
        slots.append(cache.slot_state(stream))
        cells = cache.streams[stream]
        cells.place_one(start, pos, seq_id, token, born)
        cells.head = start + 1
        placements.append(Placement(cache.name, stream, np.array([start]), _NONE, _NONE, 1))
        n_kv = max(n_kv, cells.n_kv)
    record = UbatchRecord(_FIRST, tuple(placements), tuple(slots), n_kv)
    return DecodeRecord(born, 0, 0, ubatches=(record,), n_ubatches=1, slots=record.slots, n_kv=n_kv)
