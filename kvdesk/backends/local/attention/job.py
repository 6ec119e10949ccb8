"""The job that computes what tokens look at, one piece between two batches of the answers.

A failure ends this job and affects no answer, because everything but the copying happens in the second context. Runs on
the engine's thread.
"""

import time

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.attention.collected import Collected, columns_of
from kvdesk.backends.local.attention.plan import AttentionPlan, Run
from kvdesk.backends.local.attention.price import planned
from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.attention.second_context import SecondContext
from kvdesk.backends.local.llama.binding import StopFlag
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory.state import room
from kvdesk.backends.local.scheduler.jobs import Readings
from kvdesk.cache.state.excerpt import excerpt
from kvdesk.errors import EngineError
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.library.hyper import read_hyper
from kvdesk.protocol.attention import Attend, Attended
from kvdesk.protocol.chat import Working
from kvdesk.translation import tr


def attend(
    context: Context, cache: Cache, header: GgufHeader, command: Attend, emit: Emit, stop: StopFlag | None = None
) -> Readings:
    """Compute the attention of the tokens that `command` asks for. Ends with `Attended`. `stop` ends a decode of it.

    Raises UserError, RefusedCall, ContextError if it cannot be done, EngineError if llama.cpp fails, Stopped.
    """
    began = time.perf_counter()
    plan, how = planned(context, cache, header, command.queries)
    blob = cache.copy_state(None if plan.whole else command.queries.seq_id) if plan.copied else None
    operation = cache.operation
    yield None
    second = SecondContext(context.model, how.settings, stop)
    weights = Collected(plan, read_hyper(header))
    try:
        if blob is None:
            yield from _read_before(second, plan, emit)
        for run in plan.runs:
            copied = _load(second, plan, run, context, blob) if blob is not None else []
            for first in range(0, len(run.tokens), how.n_tokens):
                yield None
                part = Run(run.p0 + first, run.tokens[first : first + how.n_tokens])
                found = second.attend(part.tokens, part.p0, summed=not command.queries.each)
                weights.add(found, part, columns_of(second, plan, copied, run.p0))
        n_bytes = second.n_bytes + 2 * (0 if blob is None else len(blob)) + how.answer_bytes
    finally:
        second.close()
    emit(
        Attended(
            queries=command.queries,
            number=command.number,
            operation=operation,
            pos=plan.pos,
            columns=plan.columns,
            layers=weights.layers(),
            n_read=len(plan.before),
            n_bytes=n_bytes,
            ms=(time.perf_counter() - began) * 1e3,
        )
    )


def _load(
    second: SecondContext, plan: AttentionPlan, run: Run, context: Context, blob: memoryview
) -> list[NDArray[np.int64]]:
    """Copy the cells in front of the run. Returns the columns of the copied cells of each cache, in their order."""
    geometry = context.traits.geometry
    choices = plan.choices(run, jumps=geometry.facts.n_pos_per_embd > 1)
    if not any(len(rank) for rank, _ in choices):
        second.clear()
        return [np.empty(0, np.int64) for _ in choices]
    stream = plan.columns.stream
    second.load(excerpt(blob, geometry, choices, whole=plan.whole, stream=stream, make_room=room))
    for (_, pos), there in zip(choices, second.positions(), strict=True):
        if not np.array_equal(pos, there):
            raise EngineError(tr("The copied cells are not where they were expected."))
    return [
        plan.column_of(cache, cells.index[cells.pos < run.p0])  # as `AttentionPlan.choices` has them
        for cache, cells in enumerate(plan.copied)
    ]


def _read_before(second: SecondContext, plan: AttentionPlan, emit: Emit) -> Readings:
    n, step = len(plan.before), second.n_batch
    for first in range(0, n, step):
        emit(Working(tr("Attention: reading the text again"), first, n))
        yield None
        second.read(plan.before[first : first + step], plan.start + first)
