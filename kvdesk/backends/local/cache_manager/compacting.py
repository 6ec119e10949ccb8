"""Compaction: whole state out, cells permuted, whole state in. The old state is kept until the new one is accepted.

llama.cpp has no defragmentation any more (removed in #15473); see `kvdesk.cache.compaction`. Runs on the engine's
thread.
"""

import time
from collections.abc import Sequence

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory import state
from kvdesk.cache.compaction import CompactionPlan, Layout, permute_blob, plan_compaction
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.cache.state.blob import Blob
from kvdesk.errors import KvdeskError, RefusedCall
from kvdesk.policies.costs import Costs


def planned(context: Context, now: CacheSnapshot, layout: Layout, hot: Sequence[int] = ()) -> CompactionPlan:
    """What `compact` would do. For exact answers, cells that no window sees are left out. Read-only."""
    return plan_compaction(now, layout, hot, drop_masked=context.settings.exact)


def compact(context: Context, costs: Costs, layout: Layout, hot: Sequence[int] = ()) -> int:
    """Move used cells to the front, as `planned`. Changes the cache; audits it. Logits of the last decode are lost.

    Returns the bytes of state that were read and written, none if every cell would stay; `costs` learn how long that
    took. Raises RefusedCall if this memory is not compacted; EngineError if llama.cpp does not take the new order: the
    cache is then as it was.
    """
    start = time.perf_counter()
    if not context.can("compaction"):
        raise RefusedCall(context.capabilities["compaction"].why)
    now = context.memory.snapshot()
    plan = planned(context, now, layout, hot)
    if plan.changes_nothing:
        return 0
    blob = context.states.get()
    moved: Blob = blob
    if not plan.in_order:
        moved = permute_blob(blob, plan, context.memory.mirror.geometry, make_room=state.room)
    try:
        context.states.set(moved, known=plan.after)
    except KvdeskError:
        context.states.set(blob, known=now.maps)
        raise
    costs.learn_state(len(blob), (time.perf_counter() - start) * 1e3)
    return 2 * len(blob)
