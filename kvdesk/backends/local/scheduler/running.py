"""The requests that run: each step decodes one batch of tokens of all, then samples for those whose prompt is read.

Owns the running requests, their stop flags and the events about them (`answer_events`). Runs on the engine's thread;
only `request_stop` and `request_close` may be called from others. Knows no commands but `Generate`, and no Qt.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from kvdesk.backends.base import CLOSED
from kvdesk.backends.local.cache_manager.client_share import keep_to_share
from kvdesk.backends.local.cache_manager.manager import CacheManager
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.cache_manager.sequences import Acquired, CacheSequence
from kvdesk.backends.local.llama.budget_sampler import with_budget
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.decodes import DecodeKind
from kvdesk.backends.local.llama.grammar_sampler import sampler_of
from kvdesk.backends.local.llama.logprob_sampler import with_logprobs
from kvdesk.backends.local.llama.sampler import plan_sampling
from kvdesk.backends.local.scheduler.answer_events import AnswerEvents
from kvdesk.backends.local.scheduler.call_plan import with_calls
from kvdesk.backends.local.scheduler.cell_order import CellOrder
from kvdesk.backends.local.scheduler.first_token import FirstTokenClocks
from kvdesk.backends.local.scheduler.idle_requests import IdleRequests
from kvdesk.backends.local.scheduler.message_spans import MessageSpanReporter
from kvdesk.backends.local.scheduler.overflow_manager import ContextFull, Fit, OverflowManager, Step
from kvdesk.backends.local.scheduler.overflow_move import carry_out, frees_enough
from kvdesk.backends.local.scheduler.request import Request, Waiting
from kvdesk.backends.local.scheduler.reuse_reason import reuse_reason
from kvdesk.backends.local.scheduler.threads import Threads
from kvdesk.cache.batch import Batch
from kvdesk.cache.prefix import common_prefix
from kvdesk.chat import LIMIT_NOTE, ConversationId, EvictedMessages, FinishReason, MessageId, MessageState, TurnStats
from kvdesk.errors import NO_TOKENIZER, KvdeskError, PromptError, unexpected
from kvdesk.policies.batching import ChunkSize, Want, compose
from kvdesk.policies.costs import Costs
from kvdesk.policies.overflow import policy_of
from kvdesk.policies.prompt_piece import piece
from kvdesk.policies.tuned import MIN_REUSE_TOKENS
from kvdesk.protocol.chat import Generate, MessagesEvicted, Overflowed, TurnEnded, TurnStarted
from kvdesk.settings import Overflow
from kvdesk.translation import tr

_log = logging.getLogger(__name__)
_NOTHING = TurnStats(0, 0, 0, 0, 0.0, 0.0, 0.0, -1, 0, 0, 0)


class Running:
    """Runs the requests of one engine, on the context that it was last told to `use`."""

    _context: Context
    _cache_manager: CacheManager
    _overflow_manager: OverflowManager | None
    _costs: Costs
    _threads: Threads
    _idle_requests: IdleRequests
    _aborts_tokens: (
        bool  # a state that cannot give back a part is lost with a decode that is aborted: a token is let end
    )
    _spans: MessageSpanReporter
    order: CellOrder
    _chunk: ChunkSize

    def __init__(self, emit: Emit, on_complete: Callable[[Request], None], give_way: Callable[[], bool]) -> None:
        self._emit = emit
        self._on_complete = on_complete
        self._give_way = give_way
        self.events = AnswerEvents(emit)
        self._requests: list[Request] = []
        self._answers: set[MessageId] = set()  # of `_requests`
        self._expected: set[MessageId] = set()  # answers that wait or run
        self._lock = threading.Lock()
        self._stopping: set[MessageId] = set()
        self._may_abort = True  # the decode that runs now
        self._n_decoded = 0  # batches since the last one with tokens of a prompt, while several requests run
        self._stop_decode: Callable[[], None] = lambda: None
        self.closing = False

    # --- from any thread ----------------------------------------------------------------------------------------------

    def request_stop(self, answer: MessageId) -> None:
        """Stop the answer, whether it waits, prefills or generates. One that has ended may be continued under the same
        name: a stop that comes too late does not count then.
        """
        with self._lock:
            if answer in self._expected:
                self._stopping.add(answer)
            if answer in self._answers and self._may_abort:
                self._stop_decode()

    def request_close(self) -> None:
        """Stop the decode that runs now; every request ends at the next step."""
        with self._lock:
            self.closing = True
            if self._may_abort or not self._requests:  # else the state that is to be saved would be lost
                self._stop_decode()

    # --- from the engine's thread -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def n_prefilling(self) -> int:
        """Requests whose prompt is being read."""
        return sum(request.prefilling for request in self._requests)

    def n_piece(self, n_beside: Callable[[int], int] | None = None) -> int:
        """Tokens of a prompt in one batch, when nobody else runs (`kvdesk.policies.prompt_piece`). `n_beside`: of a job
        beside requests, of n_batch at most.
        """
        n_batch, n_ubatch = self._context.n_batch, self._context.n_ubatch
        if n_beside is not None and self._requests:
            return n_beside(n_batch)
        return piece(n_batch, n_ubatch, self._costs.reading_ms(n_ubatch, 0, n_ubatch))

    def let_end(self) -> bool:
        """The next decode is a job's: no stop of an answer aborts it. False: some answer is to be stopped first."""
        return self._may_decode(may_abort=False)

    def use(
        self,
        context: Context,
        cache_manager: CacheManager,
        overflow_manager: OverflowManager | None,
        costs: Costs,
        threads: Threads,
        idle_requests: IdleRequests,
        spans: MessageSpanReporter,
        order: CellOrder,
    ) -> None:
        """Run requests on this context from now on. `overflow_manager`: None where the model has no text tokenizer."""
        self._context, self._cache_manager, self._overflow_manager = context, cache_manager, overflow_manager
        self._costs, self._threads, self._spans = costs, threads, spans
        self._idle_requests, self.order = idle_requests, order
        self._chunk = ChunkSize(context.n_batch, context.block)
        self._aborts_tokens = context.can("partial seq_rm")
        with self._lock:
            self._stop_decode = context.stop.raise_

    def expect(self, answer: MessageId) -> None:
        """The answer waits from now on, and can be stopped."""
        with self._lock:
            self._expected.add(answer)

    def start(self, waiting: Waiting, load_s: float = 0.0, *, beside_job: bool = False) -> bool:
        """Render, compare with what the sequence holds, remove only the divergent tail. load_s: of the time since
        it was submitted a model was loaded.

        False: there is no sequence or no room for it while others run, or a job; try again when one has ended.
        """
        if self.ended_unbegun(waiting.command):
            return True
        clocks = FirstTokenClocks(waiting.submitted_at, load_s, held_back=waiting.held_back)
        started = self._start(waiting, clocks, waits=beside_job or bool(self._requests))
        waiting.held_back = not started
        return started

    def _start(self, waiting: Waiting, clocks: FirstTokenClocks, *, waits: bool) -> bool:
        command = waiting.command
        cache_manager, vocab = self._cache_manager, self._context.model.vocab
        try:
            if self._overflow_manager is None:
                raise PromptError(tr(NO_TOKENIZER))
            plan = plan_sampling(command.sampling, vocab)
            fit = self._overflow_manager.fit(command)
            prompt = fit.tokens
            clocks.rendered()
            cache_manager.take_over(command.conversation, command.client, prompt)
            if waits and not cache_manager.can_lease(command.conversation):
                return False
            if self._is_being_read(prompt, cache_manager.pool.get(command.conversation)):
                return False
            there = cache_manager.pool.get(command.conversation)
            busy = there is not None and there.busy
            sequence = cache_manager.lease(command.conversation, inactive=busy, client=command.client)
            waiting.notes += self._use_fit(command, sequence, fit)
            held = list(sequence.tokens)
            self._idle_requests.save(sequence, prompt, lenders=False)
            acquired = self._acquire(command, sequence, prompt)
            n = acquired.n_tokens
            usual_tok_s = self._costs.usual_tok_s(len(prompt) - n, n, self._context.n_batch)
            clocks.acquired(saved=acquired.saved, usual_tok_s=usual_tok_s)
            self._idle_requests.save(sequence, prompt, lenders=True)
            keep_to_share(self._context, cache_manager, sequence, len(prompt) - acquired.n_tokens)
            if not cache_manager.make_room(sequence, len(prompt) - acquired.n_tokens):
                if waits:
                    cache_manager.release_empty_branch(sequence)
                    return False
                raise PromptError(tr("The cache has no room for this conversation."))
            plan = with_calls(plan, command, fit.whole)
            sampler = sampler_of(plan, vocab, prompt, fit.generated)
            sampler = with_budget(sampler, vocab, fit.whole.marks, command.reasoning_budget, fit.generated)
            sampler = with_logprobs(sampler, vocab, command.n_probs)
        except KvdeskError as error:
            if isinstance(error, ContextFull):
                n_tokens, n_ctx = error.n_tokens, self._context.n_ctx_seq
                said = Overflow.STOP, str(error)
                self._emit(Overflowed(command.conversation, command.answer, *said, n_tokens=n_tokens, n_ctx=n_ctx))
            self.abandon(command, "failed", str(error))
            return True
        except Exception as error:  # noqa: BLE001 - a full disk, for one: it costs this answer and no other
            self.abandon(command, "failed", unexpected(error))
            cache_manager.follow_map()
            return True
        cache_manager.mark_busy(sequence)
        reused = acquired.n_tokens
        why = reuse_reason(
            self._context.model, cache_manager, sequence, acquired, held, prompt, fit.whole.places, command
        )
        request = Request(
            command, sequence, fit.whole, reused, sampler, why, vocab, clocks, fit.evicted,
            skipped=fit.skipped, n_continued=len(fit.generated), generated=list(fit.generated),
            notes=waiting.notes,
        )  # fmt: skip
        request.pauses = cache_manager.pauses(sequence, prompt, [place.first for place in fit.whole.places[-1:]])
        with self._lock:
            self._requests.append(request)
            self._answers.add(command.answer)
        self.events.tell_texts(prompt, vocab)
        of = command.conversation, command.answer, sequence.seq_id
        client = command.client.name if command.client is not None else ""
        calls = fit.whole.calls if command.choice is not None else None
        self._emit(
            TurnStarted(*of, len(prompt), reused, fit.generated, vocab.fingerprint, client, fit.whole.marks, calls)
        )
        self._spans.tell(request)
        return True

    def step(self) -> None:
        """Decode the next batch of all requests; sample for those whose prompt is read. While all of them write, one
        batch follows another until their text is sent: what is in the next one is known.
        """
        if self.closing:
            self.end_all(tr(CLOSED), "interrupted")
        elif not self._stopping.isdisjoint(self._answers):
            self.end_stopped()
        if not self._requests:
            return
        batches = self._fitting()
        if not batches:
            return
        self.order.keep()
        n_tokens = sum(len(batch.tokens) for _, batch in batches)
        self._threads.choose(n_tokens)
        if not self._may_decode(may_abort=self._aborts_tokens or n_tokens > len(batches)):
            return  # asked meanwhile: the next step ends them
        reads = any(request.prefilling for request, _ in batches)
        n_left = 1 if reads or len(batches) < len(self._requests) else self._n_steps()
        while self._decode(batches, "prefill" if reads else "decode") and n_left > 1:
            if self.closing or not self._stopping.isdisjoint(self._answers):
                break
            n_left -= 1
            if len(batches) > 1:
                self._n_decoded += 1
            batches = [(request, request.next_token()) for request, _ in batches]

    def end_stopped(self) -> None:
        """End the requests that were asked to stop."""
        for request in [request for request in self._requests if request.command.answer in self._stopping]:
            self.finish(request, "stopped")

    def end_all(self, note: str, state: MessageState = "stopped") -> None:
        """End every request."""
        for request in tuple(self._requests):
            self.finish(request, state, note)

    def end_of(self, conversation: ConversationId, note: str) -> None:
        """End the conversation's request, if one runs."""
        for request in tuple(self._requests):
            if request.command.conversation == conversation:
                self.finish(request, "stopped", note)

    def finish(self, request: Request, state: MessageState, note: str = "", finish: FinishReason = "") -> None:
        """End the request; its tokens stay in the cache for the next one."""
        by_itself = state == "complete" and not finish
        with self._lock:
            self._requests.remove(request)
            self._answers.discard(request.command.answer)
            self._forget(request.command.answer)
            if not self.closing:
                self._context.stop.lower()
        self._cache_manager.mark_idle(request.sequence)
        request.sampler.close()
        self._context.memory.publish()
        conversation, answer = request.command.conversation, request.command.answer
        self.events.tell(request, over=True, end=by_itself)
        self._spans.tell(request)
        stats = request.stats(*self._context.memory.totals())
        stopped_by = request.stops.found if request.stops is not None else ""
        self._emit(TurnEnded(conversation, answer, state, stats, request.note(note), finish, stopped_by))
        if by_itself:
            self._on_complete(request)

    def give_up(self, note: str) -> None:
        """After an unexpected error: every request ends with the text it has. Touches no context."""
        with self._lock:
            requests, self._requests = self._requests, []
            self._answers.clear()
            self._stop_decode = lambda: None
        for request in requests:
            conversation, answer, stats = request.command.conversation, request.command.answer, _NOTHING
            try:
                stats = request.stats(0, 0, 0)
                self.events.tell(request, over=True)
                request.sampler.close()
            except Exception:  # noqa: BLE001 - whatever it is, the others still end
                _log.exception("while an answer was given up")
            self._emit(TurnEnded(conversation, answer, "interrupted", stats, request.note(note)))

    def ended_unbegun(self, command: Generate) -> bool:
        """End a request that waits where it was asked to stop. Whether it was."""
        asked = command.answer in self._stopping
        if asked:
            self.abandon(command, "stopped", tr("Stopped before it began."))
        return asked

    def abandon(self, command: Generate, state: MessageState, note: str) -> None:
        """End a request that never began."""
        with self._lock:
            self._forget(command.answer)
        self._emit(TurnEnded(command.conversation, command.answer, state, _NOTHING, note))

    # --- private ------------------------------------------------------------------------------------------------------

    def _forget(self, answer: MessageId) -> None:
        """It has ended: a stop comes too late. Under the lock."""
        self._expected.discard(answer)
        self._stopping.discard(answer)

    def _may_decode(self, *, may_abort: bool) -> bool:
        """Whether no answer is to be stopped first. may_abort: a stop that comes from now on aborts the decode."""
        with self._lock:
            self._may_abort = may_abort
            return not self.closing and self._stopping.isdisjoint(self._answers)

    def _acquire(self, command: Generate, sequence: CacheSequence, prompt: list[int]) -> Acquired:
        """What the cache has of the prompt; nothing where the client wants all of it read."""
        if command.client is not None and not command.client.reuse:
            return Acquired(0)
        return self._cache_manager.acquire_prefix(sequence, prompt, moved=not policy_of(command.overflow).exact)

    def _is_being_read(self, prompt: list[int], own: CacheSequence | None) -> bool:
        """Whether another request is just reading much of the same prompt, which can be shared once it is read."""
        held = common_prefix(own.tokens, prompt) if own is not None else 0
        wanted = max(held, MIN_REUSE_TOKENS)
        return any(t.prefilling and common_prefix(t.prompt, prompt) - t.position > wanted for t in self._requests)

    def _fitting(self) -> list[tuple[Request, Batch]]:
        """What is decoded next, of the requests that have room for it."""
        if len(self._requests) == 1:
            request = self._requests[0]
            batches = [(request, request.next_batch(self.n_piece() if request.prefilling else 1, self._context.block))]
        else:
            batches = self._compose()
        fitting: list[tuple[Request, Batch]] = []
        for request, batch in batches:
            if self._has_room(request, len(batch.tokens), sum(len(b.tokens) for _, b in fitting)):
                fitting.append((request, batch))
        return fitting

    def _n_steps(self) -> int:
        """How many tokens each request can write before one of them needs room."""
        left = min(self._context.n_ctx_seq - request.position for request in self._requests)
        return min(left, self._cache_manager.room_at([request.sequence for request in self._requests]))

    def _compose(self) -> list[tuple[Request, Batch]]:
        """Tokens of answers and chunks of prompts take turns (`kvdesk.policies.batching`)."""
        context = self._context
        by_seq = {request.sequence.seq_id: request for request in self._requests}
        now = time.perf_counter()
        wants = [Want(s, t.n_to_read, (now - t.last_at) * 1e3 if t.last_at else 0.0) for s, t in by_seq.items()]
        together = context.traits.model.together and context.block == 1
        shares = compose(wants, self._chunk, context.n_batch, self._n_decoded, together=together)
        self._n_decoded = 0 if any(by_seq[share.seq_id].prefilling for share in shares) else self._n_decoded + 1
        chosen = [(by_seq[share.seq_id], share.n_tokens) for share in shares]
        return [(request, request.next_batch(n_tokens, context.block)) for request, n_tokens in chosen]

    def _has_room(self, request: Request, n_tokens: int, n_before: int = 0) -> bool:
        """Whether the request can go on with so many tokens now, after `n_before` of others in the same batch.

        Where its context is full, or the cache with what others have of it, its overflow policy is carried out: the
        request goes on with the next step, or ends.
        """
        if request.position + n_tokens > self._context.n_ctx_seq:
            self._overflow(request)
            return False
        if not self._context.settings.kv_unified:
            n_before = 0  # they have cells of their own
        if self._cache_manager.make_room(request.sequence, n_before + n_tokens):
            return True
        if self._context.settings.kv_unified and self._give_way():
            return self._has_room(request, n_tokens, n_before)
        self._overflow(request, self._context.memory.free_cells(request.sequence.seq_id) - n_before)
        return False

    def _use_fit(self, command: Generate, sequence: CacheSequence, fit: Fit) -> list[str]:
        """Before the request begins: evict what its prompt is without. Returns what is to be told of it."""
        self._remember(command, fit.evicted)
        if fit.step is not None:
            return [self._carry_out(command, sequence, fit.step)]
        moved = self._context.block == 1 and sequence.exact < len(sequence.tokens)
        if moved and policy_of(command.overflow).exact:
            self._cache_manager.truncate(
                sequence, sequence.exact, tr("what was moved is read again: exact answers were chosen")
            )
        return []

    def _overflow(self, request: Request, n_free: int | None = None) -> None:
        """The context is full while the request runs. n_free: it is the cache, of which so many cells are free."""
        command = request.command
        assert self._overflow_manager is not None
        step = self._overflow_manager.go_on(request, None if n_free is None else request.position + n_free)
        why = step.plan.sentence if step.plan.stops else ""
        shared = not why and n_free is not None
        if shared and not frees_enough(self._cache_manager, request.sequence, step, command.overflow, n_free or 0):
            why = tr("{what} is full, and what could be removed is shared with them. The answer ends here.").format(
                what=step.full
            )
        if why:
            self._emit(Overflowed(command.conversation, command.answer, Overflow.STOP, why))
            self.finish(request, "stopped", why, "context full")
            return
        request.notes.append(self._carry_out(command, request.sequence, step))
        request.whole, request.prompt, request.evicted, request.skipped = (
            step.whole,
            step.whole.tokens,
            step.evicted,
            step.skipped,
        )
        request.pauses = ()
        if not request.n_new:  # its prompt is still read, and is shorter now
            request.reused, request.n_asked = min(request.reused, request.position), len(request.known)
        self._remember(command, step.evicted)
        self._spans.tell(request)

    def _remember(self, command: Generate, evicted: EvictedMessages) -> None:
        """The next prompt is without these too; where they are others than before, it is told."""
        overflow_manager = self._overflow_manager
        if overflow_manager is not None and overflow_manager.remember(command, evicted):
            self._emit(MessagesEvicted(command.conversation, evicted))

    def _carry_out(self, command: Generate, sequence: CacheSequence, step: Step) -> str:
        """Evict messages from the cache, and say so."""
        sentence = carry_out(self._cache_manager, sequence, step, command.overflow)
        self._emit(Overflowed(command.conversation, command.answer, command.overflow, sentence, step.newly_evicted))
        return sentence

    def _decode(self, batches: Sequence[tuple[Request, Batch]], kind: DecodeKind) -> bool:
        """Decode, then sample. Whether all requests go on and no text was sent."""
        try:
            decoded = self._cache_manager.decode([(request.sequence, batch) for request, batch in batches], kind)
        except KvdeskError as error:
            self._not_decoded(batches, -1, error)
            return False
        if decoded.rc != 0:
            self._not_decoded(batches, decoded.rc, None)
            return False
        self._took(batches, decoded.ms[0])
        step_s, row, n_running = decoded.ms[0] / 1e3, -1, len(self._requests)
        for request, batch in batches:
            row += len(batch.tokens)
            if kind == "prefill" and not request.n_new:
                request.clocks.beside |= len(batches) > 1
                self.events.tell_progress(request, step_s)
            if batch.output[-1]:
                self._sample(request, row)
        for request in self._requests:
            if request.pauses and request.position in request.pauses:
                self._cache_manager.swapper.checkpoint(request.sequence)
        return not self.events.tell_all(self._requests, step_s) and len(self._requests) == n_running

    def _took(self, batches: Sequence[tuple[Request, Batch]], ms: float) -> None:
        """Let the next chunk of a prompt follow what this batch took."""
        n_read = sum(len(batch.tokens) for _, batch in batches if not batch.output[0] or len(batch.tokens) > 1)
        if not n_read:
            self._chunk.step_took(ms)
        elif all(request.prefilling for request in self._requests):
            self._chunk.prompt_took(n_read, ms)
        else:
            self._chunk.chunk_took(n_read, ms, along=n_read < sum(len(batch.tokens) for _, batch in batches))

    def _not_decoded(self, batches: Sequence[tuple[Request, Batch]], rc: int, failure: KvdeskError | None) -> None:
        """End the requests, unless the decode was stopped (rc 2): then the next step ends those asked to stop."""
        for request, _ in batches:
            request.reused = min(request.reused, request.position)
            if rc == 2 and request.position == len(request.known):  # placed, not sampled: the last is decoded again
                whole = self._cache_manager.truncate(request.sequence, request.position - 1, tr("it was stopped"))
                if not whole:
                    self._cache_manager.truncate(request.sequence, 0, tr("it was stopped"))
        for request, batch in batches:
            if failure is not None:
                self.finish(request, "failed", str(failure))
            elif rc == 1:
                note = tr("llama.cpp found no room for {n} more tokens.").format(n=len(batch.tokens))
                self.finish(request, "stopped", note, "context full")

    def _sample(self, request: Request, row: int) -> None:
        """Sample the request's next token from row `row` of the last decode."""
        token = self._context.sample(request.sampler, row)
        now = time.perf_counter()
        if not request.first_at:
            request.first_at = now
            n_read = request.n_asked - request.reused
            request.time_why = request.clocks.reason(n_read, request.prefill_s)
        if token < 0 or request.vocab.is_eog(token):
            self.finish(request, *request.ending)
            return
        request.sampled(token, now)
        if request.stops is not None and request.stops.found:
            self.finish(request, "complete", finish="stop string")
        elif len(request.generated) >= request.n_most:
            self.finish(request, "complete", tr(LIMIT_NOTE).format(n=f"{request.n_new:,}"), "limit")
