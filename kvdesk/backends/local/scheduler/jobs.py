"""Work that takes long, a chunk at a time between the steps of running requests: verify a conversation, refill a cache.

Each job is a generator of `Working`; closing it ends the work cleanly. Between two chunks requests start, decode and
end: a job holds no conversation. `n_piece` gives the tokens of a chunk. Runs on the engine's thread.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.scheduler.job_turns import Job
from kvdesk.backends.local.scheduler.message_spans import MessageSpanReporter
from kvdesk.cache.batch import Batch
from kvdesk.cache.compare import compare_logits
from kvdesk.chat import ConversationId
from kvdesk.errors import UserError
from kvdesk.policies.prompt_piece import end_of_piece
from kvdesk.protocol.cache import Refilled, Verified
from kvdesk.protocol.chat import Working
from kvdesk.translation import tr


def verify(
    cache_manager: Cache,
    noise: tuple[float, float],
    conversation: ConversationId,
    n_piece: Callable[[], int],
    emit: Emit,
) -> Job:
    """Recompute the conversation in a spare sequence and compare its next token, once it is not being answered.
    `noise`: `LoadedModel.noise`.

    Raises UserError where it cannot.
    """
    pool, what = cache_manager.pool, tr("Verifying: computing the conversation again")
    while (sequence := pool.get(conversation)) is not None and sequence.busy:
        yield Working(what, 0, len(sequence.tokens))
    if sequence is None or not sequence.tokens:
        raise UserError(tr("This conversation has nothing in the cache that could be verified."))
    cache_manager.free_a_sequence()
    if not pool.free:
        raise UserError(tr("All sequences are in use: close a conversation, so that one is free to compute in."))
    tokens = list(sequence.tokens)
    start = time.perf_counter()
    held = cache_manager.probe.next_logits(sequence).logits
    for result in cache_manager.probe.fresh_logits(tokens, n_piece):
        if isinstance(result, int):
            yield Working(what, result, len(tokens))
            if not sequence.tokens or pool.get(conversation) is not sequence:
                raise UserError(tr("This conversation was removed from the cache while it was verified."))
        else:
            ms = (time.perf_counter() - start) * 1e3
            emit(Verified(conversation, len(tokens), compare_logits(result, held, *noise), ms))


def refill(
    context: Context,
    cache_manager: Cache,
    spans: MessageSpanReporter,
    n_piece: Callable[[], int],
    emit: Emit,
) -> Job:
    """Fill a new context with what conversations had in the last one (`Cache.to_refill`): from saved state, or
    computed again from their tokens. At its end it reports what was done.

    Conversations that do not fit any more are left out, the least recently used first: their next turn computes them.
    One whose next turn begins meanwhile is left to that. One that is deleted meanwhile stays deleted.
    """
    start, found = time.perf_counter(), Counter[str]()
    try:
        yield from _refill(context, cache_manager, spans, n_piece, found)
        n_left = len(cache_manager.to_refill)
    finally:
        cache_manager.to_refill.clear()
    ms = (time.perf_counter() - start) * 1e3
    emit(Refilled(found["conversations"], found["read"], found["carried"], n_left, ms))


def _refill(
    context: Context,
    cache_manager: Cache,
    spans: MessageSpanReporter,
    n_piece: Callable[[], int],
    found: Counter[str],
) -> Job:
    held = tuple(cache_manager.to_refill.values())
    total = sum(len(h.tokens) for h in held)
    done = 0
    for h in held:
        n = len(h.tokens)
        done += n
        if h.conversation not in cache_manager.to_refill:
            continue  # it was deleted meanwhile
        if cache_manager.pool.get(h.conversation) is not None or not cache_manager.pool.free or n >= context.n_ctx_seq:
            continue  # its next turn has begun meanwhile, or it has no place
        sequence = cache_manager.lease(h.conversation, client=h.client)
        if not cache_manager.has_room(sequence, n):
            cache_manager.release(sequence)
            continue
        cache_manager.set_texts(sequence, h.texts)
        cache_manager.set_spans(sequence, h.spans)
        if h.blob and cache_manager.carry_in(sequence, h.blob, h.tokens, h.exact):
            found["carried"] += n
            told = tr("Carrying conversations over")
        else:
            cache_manager.acquire_prefix(sequence, list(h.tokens))  # what others have already
            told = tr("Reading conversations again")
        while len(sequence.tokens) < n:
            first = len(sequence.tokens)
            yield Working(told, done - n + first, total)
            if h.conversation not in cache_manager.to_refill:
                break  # it was deleted
            if cache_manager.pool.get(h.conversation) is not sequence or sequence.busy or len(sequence.tokens) != first:
                break  # its next turn has begun, or it was evicted for another
            part = h.tokens[first : end_of_piece(first, n_piece(), n, context.block)]
            if not cache_manager.has_room(sequence, len(part)):
                break
            if cache_manager.decode([(sequence, Batch.of(sequence.seq_id, first, part))], "prefill").rc != 0:
                return
            found["read"] += len(part)
        else:
            found["conversations"] += 1
            del cache_manager.to_refill[h.conversation]
            spans.restore(sequence, h.spans)
            yield Working(told, done, total)
