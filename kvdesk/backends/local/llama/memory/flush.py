"""Plans a batch that makes the engine apply pending K-shifts and stream copies, and leaves no trace.

Only `llama_decode` applies them (llama-context.cpp:1809); saving a state and an aborted decode ignore them.
Pure: reads the mirror, must never call the engine.
"""

from kvdesk.cache.batch import Batch
from kvdesk.cache.mirror import Mirror
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class FlushPlan:
    """`batch` to decode, `rc` to expect. With rc 0 remove `seq_id` from `p0` on afterwards."""

    batch: Batch
    rc: int
    seq_id: int
    p0: int


def pending(mirror: Mirror) -> bool:
    """Whether K-shifts or stream copies wait for the next decode. Read-only."""
    return mirror.pending_shift or any(cache.pending_copies for cache in mirror.caches)


def plan_flush(mirror: Mirror, n_positions: int = 0) -> FlushPlan | None:
    """How to make the engine apply what is pending; None if that is impossible without harm. Read-only.

    The best batch is one that does not fit (rc 1): the engine computes only the shift. Otherwise one token goes into an
    empty sequence or, if a part of a sequence can be removed, after another. `n_positions`: how many the model has
    learned, 0 for no limit.
    """
    n_batch = mirror.geometry.n_batch
    sequences = range(mirror.geometry.n_seq_max)
    for seq_id in sequences:
        cells = mirror.caches[0].cells_of(seq_id)
        n = cells.size - cells.used + 1
        if n <= n_batch:
            plan = FlushPlan(_tokens(mirror, seq_id, n), 1, seq_id, -1)
            if mirror.predict(plan.batch) == 1:
                return plan
    empty = [s for s in sequences if mirror.seq_pos_max(s) < 0 and not mirror.caches[0].cells_of(s).n_cells(s)]
    others = [] if mirror.geometry.has_state else [s for s in sequences if mirror.seq_pos_max(s) >= 0]
    for seq_id in empty + others:
        plan = FlushPlan(_tokens(mirror, seq_id, 1), 0, seq_id, mirror.seq_pos_max(seq_id) + 1)
        if not (n_positions and plan.p0 >= n_positions) and mirror.predict(plan.batch) == 0:
            return plan
    return None


def _tokens(mirror: Mirror, seq_id: int, n: int) -> Batch:
    """`n` tokens that continue the sequence, without logits."""
    return Batch.of(seq_id, mirror.seq_pos_max(seq_id) + 1, (0,) * n)
