"""Jobs are requests without an answer: verify a conversation, refill a cache, read ahead. Each says what it reads next.
One computes attention in a second context (`kvdesk.backends.local.attention`) and reads nothing here.

A job is a generator of `Reading`. Batches of the running requests include a part of it (`running`), and after each it
continues with what has changed meanwhile. It holds no conversation. Runs on the engine's thread.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import NamedTuple

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.cache_manager.probe import Logits
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.scheduler.message_spans import MessageSpanReporter
from kvdesk.cache.batch import Batch
from kvdesk.cache.compare import compare_logits, ghost_share
from kvdesk.errors import UserError
from kvdesk.message import ConversationId
from kvdesk.policies.prompt_piece import end_of_piece
from kvdesk.protocol.attention import Attend
from kvdesk.protocol.cache import RebuildContext, Refilled, Verified, VerifyConversation
from kvdesk.protocol.chat import Generate, Working
from kvdesk.protocol.messages import Command
from kvdesk.translation import marked, tr

CELLS_NEEDED = marked("Its cells were needed for an answer: verify it when that has ended.")


class Reading(NamedTuple):
    """What a job reads: the tokens that `sequence` lacks. `asks`: it needs logits of the last one. `working`: its
    report.
    """

    sequence: CacheSequence
    tokens: list[int]
    working: Working | None = None
    asks: bool = False

    @property
    def n_to_read(self) -> int:
        return len(self.tokens) - len(self.sequence.tokens)

    def next_batch(self, most: int, block: int) -> Batch:
        """As `Request.next_batch`."""
        first, n = len(self.sequence.tokens), len(self.tokens)
        end = end_of_piece(first, most, n, block)
        part = self.tokens[first:end]
        return Batch.of(self.sequence.seq_id, first, part, "last" if self.asks and end == n else "none")


Readings = Generator[Reading | None, Logits | None, None]
"""Gets the logits of a reading that just ended, if it asked for them, else None. Yields None while it waits."""


class Job(NamedTuple):
    """Work for `command`. `reason`: recorded with its operations on the cache."""

    command: VerifyConversation | RebuildContext | Generate | Attend
    reason: str
    cache_manager: Cache
    readings: Readings

    def purpose(self) -> AbstractContextManager[None]:
        """Record calls inside the block as this job's."""
        conversation = None if isinstance(self.command, RebuildContext | Attend) else self.command.conversation
        return self.cache_manager.purpose(conversation, self.reason)


class Jobs:
    """Runs one job after another. `fail` reports a command whose job failed.

    running  the current job
    reading  what it reads next; None: nothing now
    n_ended  number of finished jobs
    """

    def __init__(self, emit: Emit, fail: Callable[[Command, Exception], None]) -> None:
        self._emit = emit
        self._fail = fail
        self._waiting: deque[Job] = deque()
        self._cancelled = False
        self.running: Job | None = None
        self.reading: Reading | None = None
        self.n_ended = 0

    def cancel(self) -> None:
        """End the running job. May be called from other threads."""
        self._cancelled = True

    def __bool__(self) -> bool:
        return bool(self.running or self._waiting)

    def add(self, job: Job) -> None:
        """Add a job, which begins after the earlier ones."""
        self._waiting.append(job)

    def next(self) -> Reading | None:
        """What to read next, after the job has seen what changed; begins the next job if none runs."""
        if self.running is None and self._waiting:
            self.running, self._cancelled = self._waiting.popleft(), False
        if self._cancelled:
            self.end()
        self.go_on()
        return self.reading

    def go_on(self, logits: Logits | None = None) -> None:
        """Let the running job take one step. `logits`: of the reading that just ended."""
        if self.running is None:
            return
        before = self.reading.working if self.reading is not None else None
        try:
            with self.running.purpose():
                self.reading = self.running.readings.send(logits)
        except StopIteration:
            self.end()
        except Exception as error:  # noqa: BLE001 - it fails this job, never the engine
            self.end(error)
        if self.reading is not None and self.reading.working not in (None, before):
            self._emit(self.reading.working)

    def give_way(self) -> bool:
        """End a running verification, because a request needs its room. Returns whether there was one."""
        if self.running is None or not isinstance(self.running.command, VerifyConversation):
            return False
        self.end(UserError(tr(CELLS_NEEDED)))
        return True

    def end(self, error: Exception | None = None) -> None:
        """End the running job, with `error` if it failed; waiting jobs stay."""
        job, self.running, self.reading = self.running, None, None
        if job is None:
            return
        self.n_ended += 1
        try:
            with job.purpose():
                job.readings.close()
        except Exception as failed:  # noqa: BLE001 - as above
            error = error or failed
        if error is not None:
            self._fail(job.command, error)
        if not isinstance(job.command, Generate):  # reading ahead is not shown
            self._emit(Working("", 0, 0))

    def end_all(self, note: str = "") -> None:
        """End every job, because the context is freed. `note`: why, for those who wait for a result."""
        while self:
            if self.running is None:
                self.running = self._waiting.popleft()
            asked = not isinstance(self.running.command, Generate | RebuildContext)
            self.end(UserError(note) if note and asked else None)


def verify(cache_manager: Cache, noise: tuple[float, float], conversation: ConversationId, emit: Emit) -> Readings:
    """Recompute the conversation in a spare sequence and compare its next token, once it is not being answered.
    `noise`: `LoadedModel.noise`.

    Raises UserError if it cannot.
    """
    pool, told = cache_manager.pool, tr("Verifying: computing the conversation again")
    if (sequence := pool.get(conversation)) is not None and sequence.busy:
        emit(Working(told, 0, len(sequence.tokens)))
    while (sequence := pool.get(conversation)) is not None and sequence.busy:
        yield None
    if sequence is None or not sequence.tokens:
        raise UserError(tr("This conversation has nothing in the cache that could be verified."))
    cache_manager.free_a_sequence(sequence)
    if not pool.free:
        raise UserError(tr("All sequences are in use: close a conversation, so that one is free to compute in."))
    start, total, logits = time.perf_counter(), len(sequence.tokens), None
    held = cache_manager.probe.next_logits(sequence, to_hole=True)
    tokens = cache_manager.probe.asked(sequence)
    with cache_manager.spare(conversation) as spare:
        while logits is None:
            if not sequence.tokens or pool.get(conversation) is not sequence:
                raise UserError(tr("This conversation was removed from the cache while it was verified."))
            if len(spare.tokens) == len(tokens):  # the last one was in a batch that was stopped: it gave no logits
                cache_manager.truncate(spare, len(tokens) - 1, tr("it was stopped"))
            n = len(spare.tokens)
            if not cache_manager.has_room(spare, len(tokens) - n):
                none = tr("To compute {n:,} tokens afresh, as many cells must be free.").format(n=total)
                raise UserError(tr(CELLS_NEEDED) if n else none)
            working = Working(told, n, total)
            last = n == len(tokens) - 1  # in a separate batch, as in `next_logits`
            logits = yield Reading(spare, tokens if last else tokens[:-1], working, asks=last)
    ms = (time.perf_counter() - start) * 1e3
    n_left, before = cache_manager.removed.get(conversation, (-1, held))
    removed = n_left == total
    ghost = ghost_share(before, held, logits) if removed else None
    found = compare_logits(logits, held, *noise)
    emit(Verified(conversation, total, found, ms, ghost, without_effect=removed and ghost is None))


def refill(
    cache_manager: Cache, spans: MessageSpanReporter, n_ctx_seq: int, emit: Emit, not_carried: str = ""
) -> Readings:
    """Fill a new context with what conversations had in the previous one (`Cache.to_refill`): from saved state, or
    computed again from their tokens. Finally it reports the result and `Refilled.not_carried`.

    Conversations that no longer fit are left out, least recently used first; their next turn computes them. A
    conversation whose next turn begins meanwhile is left to that turn. A deleted one stays deleted.
    """
    start, found = time.perf_counter(), Counter[str]()
    try:
        yield from _refill(cache_manager, spans, n_ctx_seq, found, emit)
        n_left = len(cache_manager.to_refill)
    finally:
        cache_manager.to_refill.clear()
    ms = (time.perf_counter() - start) * 1e3
    emit(Refilled(found["conversations"], found["read"], found["carried"], n_left, ms, not_carried))


def _refill(
    cache_manager: Cache, spans: MessageSpanReporter, n_ctx_seq: int, found: Counter[str], emit: Emit
) -> Readings:
    pool, left = cache_manager.pool, cache_manager.to_refill
    held, done = tuple(left.values()), 0
    total = sum(len(h.tokens) for h in held)
    for h in held:
        n, tokens = len(h.tokens), list(h.tokens)
        done += n
        if h.conversation not in left:
            continue  # deleted meanwhile
        if pool.get(h.conversation) is not None or not pool.free or n >= n_ctx_seq:
            continue  # its next turn has begun meanwhile, or it has no place
        if not h.blob and not h.exact:
            continue  # its next turn reads it
        sequence = cache_manager.lease(h.conversation, client=h.client)
        if not cache_manager.has_room(sequence, n):
            cache_manager.release(sequence)
            continue
        cache_manager.set_texts(sequence, h.texts)
        cache_manager.set_spans(sequence, h.spans)
        if h.blob and cache_manager.carry_in(sequence, h.blob, tokens, h.exact):
            found["carried"] += n
            told = tr("Carrying conversations over")
        else:
            tokens = tokens[: h.exact]  # single tokens may be missing from what was moved: its next turn reads that
            n = len(tokens)
            cache_manager.set_spans(sequence, tuple(span for span in h.spans if span.p1 <= n))
            cache_manager.acquire_prefix(sequence, tokens)  # what others have already
            told = tr("Reading conversations again")
        read = first = len(sequence.tokens)
        while read < n and cache_manager.has_room(sequence, n - read):
            yield Reading(sequence, tokens, Working(told, done - n + read, total))
            if h.conversation not in left:
                break  # deleted
            if pool.get(h.conversation) is not sequence or sequence.busy or len(sequence.tokens) < read:
                break  # its next turn has begun, or it was evicted for another
            read = len(sequence.tokens)
        found["read"] += read - first
        if read == n:
            found["conversations"] += 1
            del left[h.conversation]
            spans.restore(sequence, sequence.spans)
            emit(Working(told, done, total))
            yield None  # carrying a state over took long enough


def read_once(sequence: CacheSequence, tokens: list[int]) -> Readings:
    """Read what fits into one batch, now or never."""
    yield Reading(sequence, tokens)
