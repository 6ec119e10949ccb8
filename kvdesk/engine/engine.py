"""The engine: commands in, events out, one small step at a time. Owns the session and the turns that wait.

Runs on one thread, the only one that touches llama.cpp; only `request_stop` and `request_close` may be called from
others. Knows no Qt and no database. The way of a text: `handle(Generate)` -> queue -> `_start` (template, tokens,
common prefix) -> `step` after `step` (prefill in chunks, then a token each) -> `_finish`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Literal

from kvdesk.cache.batch import Batch
from kvdesk.chat import MessageId, MessageState, TurnStats
from kvdesk.engine.binding import engine_log
from kvdesk.engine.context import Decoded
from kvdesk.engine.memory import Followed
from kvdesk.engine.sampler import Sampler
from kvdesk.engine.session import Emit, Session, open_session
from kvdesk.engine.turn import Turn
from kvdesk.errors import KvdeskError, PromptError, UserError
from kvdesk.messages import (
    AuditCache,
    CloseConversation,
    Command,
    CommandFailed,
    ContextReady,
    Forget,
    Generate,
    LoadModel,
    LogLine,
    ModelLoaded,
    ModelLoading,
    PrefillProgress,
    RebuildContext,
    SaveReport,
    SpeedSample,
    TextDelta,
    TokenTexts,
    TurnEnded,
    TurnStarted,
    Watch,
)
from kvdesk.settings import ContextSettings

VIEW_INTERVAL_S = 1 / 15
_CLOSED = "kvdesk was closed."
_NOTHING = TurnStats(0, 0, 0, 0, 0.0, 0.0, 0.0, -1, 0, 0, 0)


class Engine:
    """Handles commands and makes progress in small steps. `emit` gets every event, on the engine's thread."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.session: Session | None = None
        self._waiting: deque[tuple[Generate, float]] = deque()
        self._turn: Turn | None = None
        self._watched = False
        self._changed = False
        self._shown_at = 0.0
        self._known_tokens: set[int] = set()
        self._stop_lock = threading.Lock()
        self._stopping: set[MessageId] = set()
        self._decoding: MessageId | None = None
        self._closing = False
        engine_log().listener = lambda level, text: emit(LogLine(level, text))

    def request_stop(self, answer: MessageId) -> None:
        """Stop the answer, whether it waits, prefills or generates. May be called from other threads."""
        with self._stop_lock:
            self._stopping.add(answer)
            if self._decoding == answer and self.session is not None:
                self.session.context.stop.raise_()

    def request_close(self) -> None:
        """Stop the load or the decode that runs now. May be called from other threads; `close` must follow."""
        with self._stop_lock:
            self._closing = True
            if self._decoding is not None and self.session is not None:
                self.session.context.stop.raise_()

    @property
    def busy(self) -> bool:
        """Whether `step` has something to do."""
        return self._turn is not None or bool(self._waiting)

    def handle(self, command: Command, at_s: float | None = None) -> None:
        """Carry out a command given at `at_s` (time.perf_counter). What fails becomes `CommandFailed`."""
        try:
            match command:
                case LoadModel():
                    self._load(command)
                case RebuildContext():
                    self._rebuild(command.context)
                case Generate():
                    self._waiting.append((command, time.perf_counter() if at_s is None else at_s))
                case Forget() | CloseConversation():
                    self._forget(command)
                case AuditCache():
                    self._require().audit()
                    self._show(now=True)
                case SaveReport():
                    self._require().save_report(command.path)
                case Watch():
                    self._watched = command.snapshots
                    self._show(now=True)
        except KvdeskError as error:
            self._emit(CommandFailed(command, str(error), error.detail))

    def step(self) -> None:
        """Do one small piece of work: start a turn, prefill a chunk, or decode a token."""
        if self._turn is not None:
            turn = self._turn
            try:
                self._advance(turn)
            except KvdeskError as error:
                self._finish(turn, "failed", str(error))
        elif self._waiting:
            self._start(*self._waiting.popleft())
        self._show()

    def close(self) -> None:
        """End the running turn, free context, then model."""
        self._end_all(_CLOSED, "interrupted")
        if self.session is not None:
            self.session.close()
            self.session = None
        engine_log().listener = None

    # --- commands -----------------------------------------------------------------------------------------------------

    def _load(self, command: LoadModel) -> None:
        """The old model stays until the new one is ready: a file that cannot be used costs nothing."""

        def on_progress(progress: float) -> bool:
            self._emit(ModelLoading(command.path, progress))
            if self._turn is not None and self._turn.command.answer in self._stopping:
                self._finish(self._turn, "stopped")  # it waits for the load, but not to be stopped
            return not self._closing

        old = self.session
        before = old.context if old else None
        try:
            self.session = open_session(
                command.path,
                command.context,
                self._emit,
                old,
                on_progress,
                on_replace=lambda: self._end_all("Another model was opened."),
            )
        except KvdeskError:
            if old is not None and (old.context is not before or not old.context.is_open):
                self._after_new_context()
            raise
        self._known_tokens.clear()
        self._emit(ModelLoaded(self.session.model.info(), self.session.template_problem))
        self._ready(rebuilt=False)

    def _rebuild(self, context: ContextSettings) -> None:
        session = self._require()
        session.check(context)
        self._end_all("The context was made anew.")
        try:
            session.rebuild(context)
        finally:
            self._after_new_context()

    def _after_new_context(self) -> None:
        """Say which context there is now: the new one, the old one made again, or none at all."""
        if self._require().context.is_open:
            self._ready(rebuilt=True)
        else:
            self._require().close()
            self.session = None

    def _ready(self, *, rebuilt: bool) -> None:
        self._require().context.on_decoded = self._on_decoded
        self._emit(ContextReady(self._require().info, rebuilt))
        self._changed = True
        self._show(now=True)

    def _forget(self, command: Forget | CloseConversation) -> None:
        turn = self._turn
        if turn is not None and turn.command.conversation == command.conversation:
            self._finish(turn, "stopped", "Its cells were removed.")
        if self.session is None or (sequence := self.session.pool.get(command.conversation)) is None:
            return  # it holds nothing
        if isinstance(command, CloseConversation):
            self.session.give_back(sequence, "the conversation was closed")
        else:
            self.session.keep(sequence, 0, "forgotten by hand")
        self._changed = True
        self._show(now=True)

    def _require(self) -> Session:
        if self.session is None:
            raise UserError("No model is loaded: open a GGUF file first.")
        return self.session

    # --- turns --------------------------------------------------------------------------------------------------------

    def _start(self, command: Generate, submitted_at: float) -> None:
        """Render, compare with what the sequence holds, remove only the divergent tail."""
        if self._stop_asked(command.answer):
            self._abandon(command, "stopped", "Stopped before it began.")
            return
        try:
            session = self._require()
            prompt = session.prompt_tokens(command.messages)
            sequence = session.lease(command.conversation)
            held = list(sequence.tokens)
            reused = session.keep_common_prefix(sequence, prompt)
            if not session.make_room(sequence, len(prompt) - reused):
                raise PromptError("The cache is full of conversations that are being answered: wait for one to end.")
        except KvdeskError as error:
            self._abandon(command, "failed", str(error))
            return
        sampler = Sampler(command.sampling, session.model.vocab.n_tokens)
        if command.sampling.repeat_penalty != 1.0:
            sampler.accept(prompt[-command.sampling.repeat_last_n :])
        sequence.busy = True
        why = session.explain(sequence, held, prompt, command.messages)
        self._turn = Turn(
            command, sequence, prompt, reused, sampler, submitted_at, why, session.model.vocab.fingerprint
        )
        self._tell_texts(prompt)
        self._emit(TurnStarted(command.conversation, command.answer, sequence.seq_id, len(prompt), reused))

    def _advance(self, turn: Turn) -> None:
        """Decode the turn's next batch; once the prompt is in, sample."""
        session = self._require()
        context, vocab = session.context, session.model.vocab
        conversation, answer = turn.command.conversation, turn.command.answer
        batch, prefilling = turn.next_batch(context.n_batch), turn.prefilling
        full = turn.position + batch.n_tokens > context.n_ctx_seq
        if full or not session.make_room(turn.sequence, batch.n_tokens):
            self._finish(turn, "stopped", f"The context of {context.n_ctx_seq:,} tokens is full.")
            return
        decoded = self._decode(turn, batch)
        if decoded is None or decoded.rc != 0:
            note = "" if decoded is None else f"llama.cpp found no room for {batch.n_tokens} more tokens."
            if self._closing:
                self._finish(turn, "interrupted", _CLOSED)
            else:
                self._finish(turn, "stopped", note)
            return
        now = time.perf_counter()
        if prefilling:
            turn.prefill_s += decoded.ms / 1e3
            done, total = turn.position - turn.reused, len(turn.prompt) - turn.reused
            self._emit(PrefillProgress(conversation, answer, done, total, done / turn.prefill_s))
            if turn.prefilling:
                return
        token = context.sample(turn.sampler)
        end = vocab.is_eog(token)
        turn.sampled(token, now, end=end)
        if end:
            self._finish(turn, "complete")
            return
        if token not in self._known_tokens:
            self._tell_texts((token,))
        self._emit(TextDelta(conversation, answer, turn.utf8.decode(vocab.piece(token)), (token,)))
        if len(turn.generated) >= turn.command.sampling.max_tokens:
            self._finish(turn, "complete", f"Ended at the limit of {len(turn.generated):,} tokens.")

    def _decode(self, turn: Turn, batch: Batch) -> Decoded | None:
        """Decode with the stop flag armed. None when stopped; the sequence then holds what the engine still holds."""
        session = self._require()
        context, answer = session.context, turn.command.answer
        with self._stop_lock:
            if answer in self._stopping or self._closing:
                return None
            context.stop.lower()
            self._decoding = answer
        rc = -1
        try:
            decoded = context.decode(batch)
            rc = decoded.rc
        finally:
            with self._stop_lock:
                self._decoding = None
                context.stop.lower()
            if rc == 0:
                turn.sequence.tokens += batch.tokens
            else:
                session.agree(turn.sequence, list(batch.tokens))
            self._changed = True
        return None if rc == 2 else decoded

    def _finish(self, turn: Turn, state: MessageState, note: str = "") -> None:
        """The turn is over; what it put into the cache stays there for the next one."""
        self._turn = None
        turn.sequence.busy = False
        turn.sampler.close()
        self._stop_asked(turn.command.answer)
        conversation, answer = turn.command.conversation, turn.command.answer
        if rest := turn.utf8.flush():
            self._emit(TextDelta(conversation, answer, rest, ()))
        self._emit(TurnEnded(conversation, answer, state, turn.stats(*self._require().context.totals()), note))
        self._changed = True
        self._show(now=True)

    def _abandon(self, command: Generate, state: MessageState, note: str) -> None:
        """A turn that never began."""
        self._stop_asked(command.answer)
        self._emit(TurnEnded(command.conversation, command.answer, state, _NOTHING, note))

    def _end_all(self, note: str, state: MessageState = "stopped") -> None:
        if self._turn is not None:
            self._finish(self._turn, state, note)
        while self._waiting:
            self._abandon(self._waiting.popleft()[0], state, note)

    def _stop_asked(self, answer: MessageId) -> bool:
        """Whether a stop was asked for; asking takes the request away."""
        with self._stop_lock:
            asked = answer in self._stopping
            self._stopping.discard(answer)
            return asked

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _tell_texts(self, tokens: Iterable[int]) -> None:
        """Send the texts of token ids that were never sent before: the inspector names the token of every cell."""
        new = set(tokens) - self._known_tokens
        if new:
            self._known_tokens |= new
            label = self._require().model.vocab.label
            self._emit(TokenTexts({token: label(token) for token in new}))

    def _on_decoded(self, followed: Followed) -> None:
        """A decode has been followed by the mirror: one token is the step of an answer, several are a prompt."""
        kind: Literal["prefill", "decode"] = "prefill" if followed.n_tokens > 1 else "decode"
        record = followed.record
        self._emit(
            SpeedSample(
                at_s=followed.at_s,
                kind=kind,
                n_tokens=followed.n_tokens,
                ms=followed.ms,
                n_kv=record.n_kv,
                n_ubatches=record.n_ubatches,
                n_tested=record.n_tested,
                rc=record.rc,
                n_shifted=record.n_shifted,
            )
        )

    def _show(self, *, now: bool = False) -> None:
        """Send a view of the cache when somebody looks and something changed, at most 15 times a second."""
        if not self._watched or self.session is None or not (self._changed or now):
            return
        at = time.monotonic()
        if now or at - self._shown_at >= VIEW_INTERVAL_S:
            self._shown_at, self._changed = at, False
            self._emit(self.session.view())
