"""The running requests and the job: `schedule` chooses the next batch, `update` processes its rows.

Owns the running requests of one context and their events (`answer_events`). Runs on the engine's thread. Knows no
commands but `Generate`, and no Qt.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kvdesk.backends.base import CLOSED
from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.documents import Documents
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory.decodes import DecodeKind
from kvdesk.backends.local.scheduler.admission import Admission
from kvdesk.backends.local.scheduler.answer_events import AnswerEvents
from kvdesk.backends.local.scheduler.document_runs import put_next
from kvdesk.backends.local.scheduler.drafted_batches import DraftedBatches, Part
from kvdesk.backends.local.scheduler.first_token import FirstTokenClocks
from kvdesk.backends.local.scheduler.jobs import Jobs, Reading
from kvdesk.backends.local.scheduler.message_spans import MessageSpanReporter
from kvdesk.backends.local.scheduler.overflow_manager import ContextFull
from kvdesk.backends.local.scheduler.request import Request, Waiting
from kvdesk.backends.local.scheduler.request_overflow import RequestOverflow
from kvdesk.backends.local.scheduler.stops import Stops
from kvdesk.backends.local.scheduler.threads import Threads
from kvdesk.cache.batch import Batch
from kvdesk.errors import NO_TOKENIZER, KvdeskError, PromptError, Stopped, UserError, unexpected
from kvdesk.message import LIMIT_NOTE, NO_STATS, ConversationId, FinishReason, MessageState
from kvdesk.policies.batching import ChunkSize, Want, compose
from kvdesk.policies.drafting import DraftSize
from kvdesk.policies.prompt_piece import piece
from kvdesk.protocol.chat import Overflowed, TurnEnded, TurnStarted
from kvdesk.settings import Overflow
from kvdesk.translation import plural, tr

_log = logging.getLogger(__name__)


class Scheduled(NamedTuple):
    """One batch: the next tokens of each of these requests, and of the job at the end."""

    parts: list[Part]
    kind: DecodeKind


class Decoded(NamedTuple):
    """The result of a batch: llama_decode's return code and ms; `failure`: it was refused, or llama.cpp failed."""

    rc: int
    ms: float
    failure: KvdeskError | None = None


class Ending(NamedTuple):
    """How an answer ends, as the arguments of `Running.finish`."""

    state: MessageState
    note: str = ""
    finish: FinishReason = ""


class Running:
    """Everything that runs on one context.

    admission, overflow  None if the model has no text tokenizer, so no request begins
    on_complete          gets a request whose answer has ended normally
    jobs                 the running one has a part in the batches
    draft_size           how many guessed tokens batches of answers contain
    documents            puts into the cache what need not be read, and keeps what was
    """

    def __init__(
        self,
        context: Context,
        cache_manager: Cache,
        threads: Threads,
        spans: MessageSpanReporter,
        admission: Admission | None,
        overflow: RequestOverflow | None,
        events: AnswerEvents,
        stops: Stops,
        emit: Emit,
        on_complete: Callable[[Request], None],
        jobs: Jobs,
        draft_size: DraftSize,
        documents: Documents,
    ) -> None:
        self._context = context
        self._cache_manager = cache_manager
        self._threads = threads
        self._spans = spans
        self._admission = admission
        self._overflow = overflow
        self._events = events
        self._stops = stops
        self._emit = emit
        self._on_complete = on_complete
        self._jobs = jobs
        self._guesses = DraftedBatches(context, cache_manager, draft_size, emit)
        self._documents = documents
        self._aborts_tokens = context.can("partial seq_rm")
        """Tokens can be taken back. Otherwise a state is lost with an aborted decode."""
        self._chunk = ChunkSize(context.n_batch, context.block)
        self._requests: list[Request] = []
        self.n_ended = 0
        """Requests that have begun and ended."""
        self._n_decoded = 0  # batches since the last one with tokens of a prompt, while several requests run
        self._n_sure = 0  # batches with one token per request that fit without another check

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def n_prefilling(self) -> int:
        """Requests whose prompt is being read."""
        return sum(request.prefilling for request in self._requests)

    def start(self, waiting: Waiting, load_s: float = 0.0) -> bool:
        """Begin the request, or end it if that fails. load_s: seconds since its submission in which a model was loaded.

        False: it must wait for a running request or job (`Admission.admit`), or was stopped.
        """
        command = waiting.command
        clocks = FirstTokenClocks(waiting.submitted_at, load_s, held_back=waiting.held_back)
        waits = bool(self._jobs.running or self._requests)
        try:
            if self._admission is None:
                raise PromptError(tr(NO_TOKENIZER))
            with self._stops.measuring(command.answer):
                request = self._admission.admit(waiting, clocks, self._requests, waits=waits)
        except Stopped:
            return False  # the next step ends it
        except KvdeskError as error:
            if isinstance(error, ContextFull):
                n_tokens, n_ctx = error.n_tokens, self._context.n_ctx_seq
                said = Overflow.STOP, str(error)
                self._emit(Overflowed(command.conversation, command.answer, *said, n_tokens=n_tokens, n_ctx=n_ctx))
            self._events.never_began(command, "failed", str(error))
            return True
        except Exception as error:  # noqa: BLE001 - a full disk, for example; it fails only this answer
            self._events.never_began(command, "failed", unexpected(error))
            self._cache_manager.follow_map()
            return True
        waiting.held_back = request is None
        if request is None:
            if not self._requests:
                self._jobs.give_way()  # it waits for that alone
            return False
        request.drafts = self._guesses.begin()
        self._requests.append(request)
        self._stops.begin(command.answer)
        self._tell_started(request)
        return True

    def step(self) -> None:
        """Decode the next batch of all requests and the job. While all requests write and no job runs, batches follow
        one another until text is due, because the content of the next one is known.
        """
        self._n_sure = 0
        batch = self.schedule()
        while batch is not None and self.update(batch, self._decode(batch)) and self._n_sure:
            batch = self.schedule()

    def schedule(self) -> Scheduled | None:
        """What to decode next: a token of each answer, or chunks of prompts and of the job between them
        (`kvdesk.policies.batching`).

        None: nothing runs, nothing has room now, or a request was asked to stop, and the next step ends it.
        """
        if self._stops.closing:
            self.end_all(tr(CLOSED), "interrupted")
            self._jobs.end_all()
        elif self._stops.any_running:
            self.end_stopped()
        if self._n_sure and self._requests:
            parts = self._next_tokens(self._n_sure)
            if not self._stops.may_decode(may_abort=self._may_abort(parts)):
                return None
            longest = max(len(part.tokens) for _, part in parts)
            self._n_sure -= longest
            return Scheduled(parts, "decode" if longest == 1 else "draft")
        for request in self._requests:
            put_next(request, self._documents)
        running: list[Request | Reading] = [*self._requests]
        if (reading := self._jobs.next()) is not None:
            running.append(reading)
        batches = self._fitting(running) if running else []
        if not batches:
            return None
        self._cache_manager.keep_order()
        n_tokens = sum(len(batch.tokens) for _, batch in batches)
        self._threads.choose(n_tokens)
        if not self._stops.may_decode(may_abort=self._may_abort(batches)):
            return None
        reads = any(one.n_to_read for one, _ in batches)
        if not reads and len(batches) == len(running):
            self._n_sure = max(0, self._n_steps() - max(len(part.tokens) for _, part in batches))
        return Scheduled(batches, "prefill" if reads else "draft" if n_tokens > len(batches) else "decode")

    def update(self, batch: Scheduled, decoded: Decoded) -> bool:
        """Sample for requests whose prompt is read, and end those that are over. Returns whether all requests continue
        and no text was sent.
        """
        if decoded.rc != 0:
            self._not_decoded(batch, decoded)
            return False
        self._took(batch, decoded.ms)
        step_s, row, n_running = decoded.ms / 1e3, -1, len(self._requests)
        over: list[tuple[Request, Ending]] = []
        n_new = n_accepted = 0
        for request, part in batch.parts:
            row += len(part.tokens)
            if isinstance(request, Reading):
                self._jobs.go_on(self._context.logits(row) if part.output[-1] else None)
                continue
            if batch.kind == "prefill" and not request.n_new:
                request.clocks.beside |= len(batch.parts) > 1
                self._events.tell_progress(request, step_s)
            if part.output[-1]:
                n_before, n_right = len(request.generated), request.drafts.accepted
                if ending := self._take(request, part, row):
                    over.append((request, ending))
                n_new += len(request.generated) - n_before
                n_accepted += request.drafts.accepted - n_right
        if batch.kind == "draft":
            self._guesses.verified(batch.parts, decoded.ms, n_new, n_accepted)
        for request, ending in over:
            self.finish(request, *ending)
        for request in self._requests:
            if request.pauses and request.position in request.pauses:
                self._cache_manager.swapper.checkpoint(request.sequence)
        return not self._events.tell_all(self._requests, step_s) and len(self._requests) == n_running

    def end_stopped(self) -> None:
        """End the requests that were asked to stop."""
        for request in [request for request in self._requests if self._stops.asked(request.command.answer)]:
            self.finish(request, "stopped")

    def end_all(self, note: str, state: MessageState = "stopped") -> None:
        """End every request."""
        for request in tuple(self._requests):
            self.finish(request, state, note)

    def end_of(self, conversation: ConversationId, note: str) -> None:
        """End the conversation's request, if one is running."""
        for request in tuple(self._requests):
            if request.command.conversation == conversation:
                self.finish(request, "stopped", note)

    def finish(self, request: Request, state: MessageState, note: str = "", finish: FinishReason = "") -> None:
        """End the request; its tokens stay in the cache for the next one."""
        by_itself = state == "complete" and not finish
        self._requests.remove(request)
        self.n_ended += 1
        self._stops.end(request.command.answer)
        self._cache_manager.mark_idle(request.sequence)
        request.sampler.close()
        self._cache_manager.publish()
        conversation, answer = request.command.conversation, request.command.answer
        self._events.tell(request, over=True, end=by_itself)
        self._spans.tell(request)
        stats = request.stats(*self._cache_manager.totals())
        stopped_by = request.stops.found if request.stops is not None else ""
        self._emit(TurnEnded(conversation, answer, state, stats, request.note(note), finish, stopped_by))
        self._documents.keep(request.sequence, request.prompt, request.documents)
        self._cache_manager.release_unused(request.sequence)
        if by_itself:
            self._on_complete(request)

    def give_up(self, note: str) -> None:
        """After an unexpected error: every request ends with the text it has. Touches no context."""
        requests, self._requests = self._requests, []
        for request in requests:
            conversation, answer, stats = request.command.conversation, request.command.answer, NO_STATS
            try:
                stats = request.stats(0, 0, 0)
                self._events.tell(request, over=True)
                request.sampler.close()
            except Exception:  # noqa: BLE001 - whatever it is, end the others
                _log.exception("while an answer was given up")
            self._stops.end(answer)
            self._emit(TurnEnded(conversation, answer, "interrupted", stats, request.note(note)))

    # --- private ------------------------------------------------------------------------------------------------------

    def _tell_started(self, request: Request) -> None:
        command, vocab = request.command, request.vocab
        self._events.tell_texts(request.prompt, vocab)
        client = command.client.name if command.client is not None else ""
        calls = request.whole.calls if command.choice is not None else None
        self._emit(
            TurnStarted(
                command.conversation, command.answer, request.sequence.seq_id, len(request.prompt), request.reused,
                tuple(request.generated), vocab.fingerprint, client, request.whole.marks, calls, command.asked,
                request.why,
            )
        )  # fmt: skip
        self._spans.tell(request)

    def _fitting(self, running: Sequence[Request | Reading]) -> list[Part]:
        """What to decode next, of those that have room. The job never takes room from a request."""
        all_write = len(running) == len(self._requests) and not any(one.n_to_read for one in running)
        if self._guesses.may_draft(self._requests, all_write=all_write):
            batches = self._next_tokens(self._n_steps())
        elif len(running) == 1:
            one = running[0]
            batches = [(one, one.next_batch(self._n_piece() if one.n_to_read else 1, self._context.block))]
        else:
            batches = self._compose(running)
        fitting: list[Part] = []
        for one, batch in batches:
            n_before = sum(len(b.tokens) for _, b in fitting) if self._cache_manager.one_buffer else 0
            if isinstance(one, Request):
                fits = self._has_room(one, len(batch.tokens), n_before)
            else:  # others may have taken its cells
                goes_on = self._jobs.reading is one and batch.pos[0] == len(one.sequence.tokens)
                fits = goes_on and self._cache_manager.has_room(one.sequence, n_before + len(batch.tokens))
            if fits:
                fitting.append((one, batch))
        return fitting

    def _may_abort(self, parts: Sequence[Part]) -> bool:
        """Whether a stop may abort this batch. Where a state would be lost with it, only while a prompt is read: alone,
        or beside nothing that gives logits, since that could not be decoded again.
        """
        if not isinstance(parts[0][0], Request):
            return False
        if self._aborts_tokens:
            return True
        reads = any(one.n_to_read for one, _ in parts)
        return reads and (len(parts) == 1 or not any(part.output[-1] for _, part in parts))

    def _n_piece(self) -> int:
        """Tokens of prompts in one batch while nobody waits for a token (`kvdesk.policies.prompt_piece`)."""
        n_batch, n_ubatch = self._context.n_batch, self._context.n_ubatch
        return piece(n_batch, n_ubatch, self._cache_manager.costs.reading_ms(n_ubatch, 0, n_ubatch))

    def _n_steps(self) -> int:
        """How many tokens each request can write before one of them needs more room."""
        left = min(self._context.n_ctx_seq - request.position for request in self._requests)
        return min(left, self._cache_manager.room_at([request.sequence for request in self._requests]))

    def _compose(self, running: Sequence[Request | Reading]) -> list[Part]:
        """Alternate tokens of answers with chunks of prompts and of the job (`kvdesk.policies.batching`)."""
        context, now = self._context, time.perf_counter()
        by_seq = {one.sequence.seq_id: one for one in running}
        wants = [
            Want(s, one.n_to_read, (now - one.last_at) * 1e3 if one.last_at else 0.0)
            if isinstance(one, Request)
            else Want(s, one.n_to_read, is_job=True)
            for s, one in by_seq.items()
        ]
        n_batch = self._n_piece() if all(want.n_prefill for want in wants) else context.n_batch
        shares = compose(wants, self._chunk, n_batch, self._n_decoded, together=self._context.together)
        self._n_decoded = 0 if any(by_seq[share.seq_id].n_to_read for share in shares) else self._n_decoded + 1
        chosen = [(by_seq[share.seq_id], share.n_tokens) for share in shares]
        return [(one, one.next_batch(n_tokens, context.block)) for one, n_tokens in chosen]

    def _next_tokens(self, n_room: int) -> list[Part]:
        """The token that each answer sampled last, with guesses. `n_room`: as in `DraftedBatches.next_tokens`."""
        self._n_decoded += len(self._requests) > 1
        return self._guesses.next_tokens(self._requests, n_room)

    def _has_room(self, request: Request, n_tokens: int, n_before: int = 0) -> bool:
        """Whether the request can continue with `n_tokens` tokens now, after `n_before` of others in the same batch.

        If its context is full, or the cache including the cells of others, its overflow policy is applied: the request
        continues with the next step, or ends.
        """
        if request.position + n_tokens > self._context.n_ctx_seq:
            self._overflowed(request)
            return False
        if self._cache_manager.make_room(request.sequence, n_before + n_tokens):
            return True
        if self._cache_manager.one_buffer and self._jobs.give_way():
            return self._has_room(request, n_tokens, n_before)
        self._overflowed(request, self._cache_manager.most_room(request.sequence) - n_before)
        return False

    def _overflowed(self, request: Request, n_free: int | None = None) -> None:
        assert self._overflow is not None
        try:
            with self._stops.measuring(request.command.answer):
                why = self._overflow.go_on(request, n_free)
        except Stopped:
            return  # the next step ends it
        if why:
            self.finish(request, "stopped", why, "context full")

    def _decode(self, batch: Scheduled) -> Decoded:
        parts = [(one.sequence, part) for one, part in batch.parts]
        job = self._jobs.running if isinstance(batch.parts[-1][0], Reading) else None
        try:
            if job is None:
                done = self._cache_manager.decode(parts, batch.kind)
            else:
                with job.purpose():
                    done = self._cache_manager.decode(parts, batch.kind)
        except KvdeskError as error:
            return Decoded(-1, 0.0, error)
        return Decoded(done.rc, done.ms[0])

    def _took(self, batch: Scheduled, ms: float) -> None:
        """Adjust the next chunk of a prompt, and the next draft, to the time of this batch."""
        if batch.kind != "prefill":
            self._guesses.took(batch.parts, ms)
        if batch.kind == "decode":
            self._chunk.step_took(ms)
            return
        if batch.kind == "draft":
            return
        n_read = sum(len(part.tokens) for _, part in batch.parts if not part.output[0] or len(part.tokens) > 1)
        if not n_read:
            self._chunk.step_took(ms)
        elif not any(request.n_new and not request.prefilling for request in self._requests):
            self._chunk.prompt_took(n_read, ms)
        else:
            self._chunk.chunk_took(n_read, ms, along=n_read < sum(len(part.tokens) for _, part in batch.parts))

    def _not_decoded(self, batch: Scheduled, decoded: Decoded) -> None:
        """End the requests and the job, unless the decode was stopped (rc 2); then the next step ends those asked to
        stop.
        """
        for request, _ in batch.parts:
            if isinstance(request, Reading):
                continue
            request.reused = min(request.reused, request.position)
            if batch.kind == "prefill" and not request.n_new:
                request.prefill_s += decoded.ms / 1e3  # what was read until then counts, too
            is_sampled = request.position < len(request.known)
            if decoded.rc == 2 and not is_sampled:  # its last token is decoded again
                whole = self._cache_manager.truncate(request.sequence, len(request.known) - 1, tr("it was stopped"))
                if not whole:
                    self._cache_manager.truncate(request.sequence, 0, tr("it was stopped"))
        for request, part in batch.parts if decoded.rc != 2 else ():
            n = len(part.tokens)
            note = plural("llama.cpp found no room for 1 more token.", "llama.cpp found no room for %n more tokens.", n)
            if isinstance(request, Reading):
                self._jobs.end(decoded.failure or UserError(note))
            elif decoded.failure is not None:
                self.finish(request, "failed", str(decoded.failure))
            else:
                self.finish(request, "stopped", note, "context full")

    def _take(self, request: Request, part: Batch, row: int) -> Ending | None:
        """Sample the request's next token from row `row` of the last decode. With a guess, whose last token has that
        row, sample one from each row up to the first difference; the rest of the guess leaves the cache. Returns how
        the answer ends, if it is over.

        A guess is a distribution with one token. Accepting it as often as the row has it, and otherwise sampling from
        the row without it, equals sampling from the row (Leviathan et al., 2023, with q = 1).
        """
        tokens = part.tokens
        n = len(tokens) if part.output[0] else 1
        for i in range(n):
            over = self._sample(request, row - n + 1 + i)
            if over or i + 1 == n or request.generated[-1] != tokens[i + 1]:
                break
        if n > 1:
            request.drafts.verified(n - 1, i)
            if i + 1 < n:
                self._cache_manager.truncate(request.sequence, request.position - n + i + 1, tr("a guess was wrong"))
        return over

    def _sample(self, request: Request, row: int) -> Ending | None:
        """Sample one token. Returns how the answer ends, if it is over."""
        token = self._context.sample(request.sampler, row)
        now = time.perf_counter()
        if not request.first_at:
            request.first_at = now
            n_read = request.n_asked - request.reused - request.n_put
            request.time_why = request.clocks.reason(n_read, request.prefill_s)
        if token < 0 or request.vocab.is_eog(token):
            state, note = request.ending
            return Ending(state, note)
        request.sampled(token, now)
        if request.stops is not None and request.stops.found:
            return Ending("complete", finish="stop string")
        if len(request.generated) >= request.n_most:
            return Ending("complete", tr(LIMIT_NOTE).format(n=f"{request.n_new:,}"), "limit")
        return None
