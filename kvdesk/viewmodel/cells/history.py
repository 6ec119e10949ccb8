"""A cache view made of maps alone: of an earlier moment, or of one that is only planned. No Qt."""

from collections.abc import Sequence

from kvdesk.cache.metrics import snapshot_n_kv
from kvdesk.cache.seq_bits import seq_count, seq_has, seqs_in
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, SeqId, SequenceSpan, StreamMap, Verification
from kvdesk.protocol.cache import CacheView
from kvdesk.values import replace


def view_of(maps: tuple[CacheMap, ...], operation: int) -> CacheView:
    """The view of these maps, after operation number `operation`. It has no leases."""
    snapshot = CacheSnapshot(
        operation=operation,
        maps=maps,
        recurrent=(),
        sequences=spans_of(maps[0].streams if maps else ()),
        n_kv=0,
        n_ctx=max((stream.size for cache in maps for stream in cache.streams), default=0),
        verification=Verification("mirrored", operation),
    )
    return CacheView(replace(snapshot, n_kv=snapshot_n_kv(snapshot)), ())


def spans_of(streams: Sequence[StreamMap]) -> tuple[SequenceSpan, ...]:
    """The span of each sequence in the streams of one cache, by seq_id; those without cells are omitted."""
    found = []
    for stream in streams:
        shared = seq_count(stream.seq_bits) > 1
        for seq_id in seqs_in(stream.seq_bits):
            mask = seq_has(stream.seq_bits, seq_id)
            pos = stream.pos[mask]
            n_shared = int(shared[mask].sum())
            found.append(SequenceSpan(SeqId(seq_id), int(pos.min()), int(pos.max()), int(mask.sum()), n_shared))
    return tuple(sorted(found, key=lambda span: span.seq_id))
