"""The engine: commands in, events out, one small step at a time. Owns the session.

Runs on one thread, the only one that touches llama.cpp; only `request_stop`, `request_cancel` and `request_close` may
be called from others. Knows no Qt and no database. A text passes through `handle(Generate)` -> `Scheduler.add`
-> `Admission.admit` (template, tokens, common prefix) -> `Running.step` repeatedly (prefill in chunks, then one token
at a time) -> `finish`.
"""

import logging
import time
import traceback
from functools import partial

from kvdesk.backends.base import CLOSED
from kvdesk.backends.local.cache_manager.forgotten_states import forget_saved
from kvdesk.backends.local.cache_manager.hand_cells import CacheCopy
from kvdesk.backends.local.cache_manager.message_cells import drop_messages
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.cache_manager.sequence_transfer import transferred
from kvdesk.backends.local.context_runtime import ContextRuntime
from kvdesk.backends.local.llama.binding import engine_log
from kvdesk.backends.local.llama.requantize import stored_otherwise
from kvdesk.backends.local.operations.conversion import Left
from kvdesk.backends.local.questions import answer
from kvdesk.backends.local.scheduler.jobs import Job, refill
from kvdesk.backends.local.scheduler.previews import why_not_carried
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.backends.local.scheduler.scheduler import Scheduler
from kvdesk.backends.local.session import EnginePolicy, Session, open_session, opened
from kvdesk.errors import KvdeskError, Stopped, UserError, unexpected
from kvdesk.message import MessageId
from kvdesk.protocol.cache import (
    AuditCache,
    ContextReady,
    Forget,
    MemoryLedger,
    RebuildContext,
    RecordingTaken,
    SaveReport,
    TransferSequence,
    UsePolicy,
    Watch,
)
from kvdesk.protocol.chat import (
    CloseConversation,
    DropMessages,
    Generate,
    LoadModel,
    LogLine,
    ModelLoaded,
    ModelLoading,
    deleted_of,
)
from kvdesk.protocol.features import OF_ENGINE
from kvdesk.protocol.messages import Command, CommandFailed
from kvdesk.protocol.model import Endpoint, LocalFile
from kvdesk.protocol.operations import Operate, Undo
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import replace

VIEW_INTERVAL_S = 0.04
"""Least time between two views; single tokens are reported and shown every `answer_events.TELL_S`."""
_ANEW = marked("The context was rebuilt.")
_NO_COPY = marked("There is not enough memory for a copy of the cache.")
_log = logging.getLogger(__name__)


class Engine:
    """Handles commands and makes progress in small steps. `emit` gets every event, on the engine's thread."""

    features = OF_ENGINE

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.session: Session | None = None
        self._own = EnginePolicy()
        self._scheduler = Scheduler(emit, self._on_complete, self._fail)
        self._watchers: set[str] = set()
        self._shown_operation = -1
        self._shown_at = 0.0
        self._told: MemoryLedger | None = None
        self._load_cancelled = False
        engine_log().listener = lambda level, text: emit(LogLine(level, text))

    def request_stop(self, answer: MessageId) -> None:
        """See `Stops.request`. May be called from other threads."""
        self._scheduler.stops.request(answer)

    def request_cancel(self) -> None:
        """Cancel the work that `Working` reports, or the load that runs. May be called from other threads."""
        self._load_cancelled = True
        self._scheduler.jobs.cancel()

    def request_close(self) -> None:
        """Stop the load or the decode that runs now. May be called from other threads; `close` must follow."""
        self._scheduler.stops.request_close()

    @property
    def busy(self) -> bool:
        """Whether `step` has something to do."""
        return self._scheduler.busy

    def handle(self, command: Command, at_s: float | None = None) -> None:
        """Carry out a command given at `at_s` (time.perf_counter). What fails becomes `CommandFailed`."""
        try:
            self._handle(command, time.perf_counter() if at_s is None else at_s)
        except Exception as error:  # noqa: BLE001 - it fails this command, never the engine
            self._fail(command, error)

    def step(self) -> None:
        """Do one small piece of work: start a turn, continue a job, or decode the next batch of all turns."""
        ended = self._scheduler.step()
        if ended:
            self._tell_ledger()
        self._show(now=ended)

    @property
    def idle_work_due(self) -> bool:
        """Whether `idle` may find something to do."""
        return not self.busy and self.session is not None and self.session.runtime.idle.due

    def idle(self) -> None:
        """Called after a while without requests: do work that pays off later. Takes up to about 100 ms."""
        if self.idle_work_due and self.session is not None:
            idle = self.session.runtime.idle
            if (job := idle.read_ahead(self._own.policy)) is not None:
                self._scheduler.jobs.add(job)
                self.step()
            changed = idle.compact(self._own.policy)
            self._tell_ledger()
            if changed:
                self._show(now=True)

    def close(self, note: str = "") -> None:
        """End the running turn, free context, then model."""
        try:
            self._scheduler.end_all(note or tr(CLOSED))
        finally:
            engine_log().listener = None
            self._scheduler.leave()
            session, self.session = self.session, None
            if session is not None:
                session.close()

    def give_up(self, note: str) -> tuple[Command, ...]:
        """After an unexpected error in `step`, only events sent before can be trusted: end all answers with their text
        and free what can be freed. Returns the commands with which another engine continues. Never raises.
        """
        engine_log().listener = None
        session = self.session
        again: list[Command] = [UsePolicy(self._own.policy, self._own.folder)]
        again += [Watch(True, watcher) for watcher in self._watchers]
        for step in (
            self._scheduler.jobs.end,
            partial(self._scheduler.give_up, note),
            session.discard if session else lambda: None,
        ):
            try:
                step()
            except Exception:  # noqa: BLE001 - whatever it is, free the rest
                _log.exception("while the engine was given up")
        if session is not None:
            again.append(LoadModel(LocalFile(session.loaded.header.path), session.runtime.context.settings))
        self.session = None
        return (*again, *self._scheduler.waiting)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _handle(self, command: Command, at_s: float) -> None:
        match command:
            case LoadModel():
                began = time.perf_counter()
                self._load(command)
                self._scheduler.loaded = began, time.perf_counter()
            case RebuildContext():
                self._rebuild(command)
            case Generate():
                self._scheduler.add(command, at_s)
                return  # nothing has changed yet
            case Forget() | DropMessages() | CloseConversation():
                self._forget(command)
            case AuditCache():
                opened(self.session).runtime.audit()
            case SaveReport():
                opened(self.session).runtime.save_report(command.path)
            case UsePolicy():
                self._own = EnginePolicy(command.policy, command.folder)
                if self.session is not None:
                    self.session.use(self._own)
            case Watch():
                (self._watchers.add if command.snapshots else self._watchers.discard)(command.watcher)
            case Operate():
                self._operate(command)
            case TransferSequence():
                self._transfer(command)
            case _:
                answer(command, self.session, self._scheduler.jobs, self._emit)
                return
        self._tell_ledger()
        self._show(now=True)

    def _load(self, command: LoadModel) -> None:
        """The old model stays until the new one is ready, so an unusable file loses nothing."""
        source = command.source
        if isinstance(source, Endpoint):
            raise UserError(
                tr("{url} is the address of a server; this engine opens GGUF files of this machine.").format(
                    url=source.url
                )
            )

        def on_progress(progress: float) -> bool:
            self._emit(ModelLoading(source, progress))
            self._scheduler.end_stopped()  # waiting requests can be stopped during a load
            return not (self._load_cancelled or self._scheduler.stops.closing)

        self._load_cancelled = False
        on_replace = partial(self._scheduler.end_all, tr("Another model was opened."))  # its jobs know the old context
        old = self.session
        before = old.runtime if old else None
        try:
            self.session = open_session(
                source.path, command.context, self._emit, old, on_progress, on_replace, own=self._own
            )
        except Exception as error:
            if old is not None and (old.runtime is not before or not old.runtime.context.is_open):
                self._after_new_context()
            if self._load_cancelled:
                raise Stopped(tr("Loading {name} was stopped.").format(name=source.name)) from error
            raise
        self._scheduler.events.forget_texts()
        self._emit(ModelLoaded(self.session.loaded.model.info(), self.session.loaded.remark))
        self._ready(rebuilt=False)

    def _rebuild(self, command: RebuildContext) -> None:
        session = opened(self.session)
        session.check(command.context)
        old, held, left, lost = session.runtime, {}, None, ""
        unread = {c: replace(h, blob=b"") for c, h in old.cache_manager.to_refill.items()}  # since the last rebuild
        self._scheduler.end_all(tr(_ANEW))
        if command.keep != "nothing":
            lost = why_not_carried(old.context, command.context) if command.keep == "state" else ""
            with_state = command.keep == "state" and not lost
            converts = with_state and stored_otherwise(old.context.settings, command.context)
            if converts and (left := old.by_hand.leave()) is None:
                lost = tr(_NO_COPY)
            held = old.cache_manager.hold(with_state=with_state and not converts)
            held |= {conversation: unread[conversation] for conversation in unread if conversation not in held}
        try:
            self._replace_context(command.context, goes_on=left is not None)
        finally:
            if left is not None and self.session is session:
                lost = self._take_over(left)  # the old context made again, where the new one could not be
        if held and self.session is session and (left is None or lost):
            new = session.runtime
            new.cache_manager.to_refill = held
            readings = refill(new.cache_manager, new.spans, new.context.n_ctx_seq, self._emit, lost)
            self._scheduler.jobs.add(Job(command, tr("read again after a rebuild"), new.cache_manager, readings))

    def _replace_context(self, settings: ContextSettings, *, goes_on: bool, undoes: bool = False) -> None:
        """Emits the journal of the old context. Raises ContextError; then there is a context with the old settings, or
        none. `goes_on`: as in `Session.rebuild`; `undoes`: nobody asked for these settings, so they are emitted too.
        """
        session = opened(self.session)
        self._emit(RecordingTaken(session.runtime.recording(), is_over=True))
        try:
            session.rebuild(settings, goes_on=goes_on)
        finally:
            self._after_new_context(undoes=undoes)

    def _take_over(self, left: Left, undone: CacheCopy | None = None) -> str:
        """As `CacheOperations.take_over`; the window hears where messages lie."""
        runtime = opened(self.session).runtime
        lost = runtime.by_hand.take_over(left, undone)
        for sequence in runtime.cache_manager.pool:
            if sequence.client is None and not sequence.inactive:
                runtime.spans.restore(sequence, sequence.spans)
        return lost

    def _undo_conversion(self, copy: CacheCopy) -> None:
        """Restore the context and the cache from before a conversion of K and V. Raises ContextError, UserError; then
        nothing has changed.
        """
        session, wanted = opened(self.session), copy.made_with
        assert wanted is not None
        session.check(wanted)
        self._scheduler.end_all(tr(_ANEW))
        left = session.runtime.by_hand.leave()
        if left is None:
            raise UserError(tr(_NO_COPY))
        made = False
        try:
            self._replace_context(wanted, goes_on=True, undoes=True)
            made = True
        finally:
            if self.session is session:
                lost = self._take_over(left, copy if made else None)
        if lost:
            raise UserError(lost)

    def _after_new_context(self, *, undoes: bool = False) -> None:
        """Report the context that now exists: the new one, the restored old one, or none."""
        if opened(self.session).runtime.context.is_open:
            self._ready(rebuilt=True, undoes=undoes)
        else:
            self._scheduler.leave()
            opened(self.session).close()
            self.session = None

    def _ready(self, *, rebuilt: bool, undoes: bool = False) -> None:
        runtime = opened(self.session).runtime
        context = runtime.context
        self._scheduler.use(
            context,
            runtime.cache_manager,
            runtime.overflow_manager,
            runtime.threads,
            runtime.idle_requests,
            runtime.spans,
            runtime.draft_size,
            runtime.documents,
        )
        back_to = context.settings if undoes else None
        self._emit(ContextReady(runtime.info, rebuilt, tuple(context.capabilities.values()), back_to))
        self._told = None
        self._tell_ledger()

    def _forget(self, command: Forget | DropMessages | CloseConversation) -> None:
        closes = isinstance(command, CloseConversation)
        if not isinstance(command, DropMessages):
            self._scheduler.end_of(command.conversation, tr("Its cells were removed."), waiting=closes)
        if self.session is None:
            if self._own.folder is not None and not isinstance(command, Forget):
                forget_saved(self._own.folder, command.conversation, deleted_of(command))
            return
        runtime = self.session.runtime
        if not isinstance(command, Forget):
            runtime.by_hand.blobs.drop_of(command.conversation)
        if isinstance(command, DropMessages):
            drop_messages(runtime.cache_manager, command.conversation, command.messages)
        elif closes:
            runtime.cache_manager.close(command.conversation, tr("the conversation was closed"))
            if runtime.overflow_manager is not None:
                runtime.overflow_manager.forget(command.conversation)
        else:
            runtime.cache_manager.forget(command.conversation, tr("forgotten by hand"))

    def _operate(self, command: Operate) -> None:
        runtime = self._without_jobs()
        if isinstance(command.operation, Undo):
            copy = runtime.by_hand.blobs.before(command.operation.operation)
            if copy.made_with is not None:
                self._undo_conversion(copy)
                return
        ends = runtime.by_hand.ends(command.operation)
        for sequence in runtime.cache_manager.pool:
            if ends(sequence):
                self._scheduler.end_of(sequence.conversation, tr("Its cells were changed by hand."))
        try:
            runtime.by_hand.do(command.operation, measured=command.measured)
        except Exception:
            self._show(now=True)  # a failed operation may have changed the cache too
            raise

    def _transfer(self, command: TransferSequence) -> None:
        runtime = self._without_jobs()
        self._emit(transferred(runtime.context, runtime.cache_manager, runtime.operation_journal, command))

    def _fail(self, command: Command, error: Exception) -> None:
        """Report that a command failed. An unexpected exception is also logged, and may have left sequences in another
        state.
        """
        if isinstance(error, KvdeskError):
            self._emit(CommandFailed(command, str(error), error.detail, stopped=isinstance(error, Stopped)))
            return
        _log.error("unexpected error in %s", type(command).__name__, exc_info=error)
        self._emit(CommandFailed(command, unexpected(error), "".join(traceback.format_exception(error))))
        if self.session is not None:
            self.session.recover()

    def _without_jobs(self) -> ContextRuntime:
        """The context, while no job depends on its cells. Raises UserError."""
        if self._scheduler.jobs.running:
            raise UserError(tr("Wait until the running work has ended, or cancel it."))
        return opened(self.session).runtime

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _tell_ledger(self) -> None:
        """Report the memory in use, if it has changed."""
        if self.session is None or not self.session.runtime.context.is_open:
            return
        ledger = self.session.runtime.ledger()
        if ledger != self._told:
            self._told = ledger
            self._emit(ledger)

    def _on_complete(self, request: Request) -> None:
        if self.session is not None:
            self.session.runtime.idle.ended(request)

    def _show(self, *, now: bool = False) -> None:
        """Send a view of the cache if someone is looking and something has changed."""
        if not self._watchers or self.session is None:
            return
        at = time.monotonic()
        changed = self.session.runtime.cache_manager.changed_since(self._shown_operation)
        if not now and (at - self._shown_at < VIEW_INTERVAL_S or not changed):
            return
        view = self.session.runtime.view()
        self._shown_at, self._shown_operation = at, view.snapshot.operation
        self._emit(view)
