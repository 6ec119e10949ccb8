"""Every request from the inbox to its end, and every job: which of them is next, one small step at a time.

Owns the requests that wait; `running` those that were begun, `jobs` the work without an answer. Runs on the engine's
thread; only `request_stop`, `request_cancel` and `request_close` may be called from others. Knows no commands but
`Generate`, and no Qt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kvdesk.backends.local.cache_manager.operation_journal import Emit, OperationJournal
from kvdesk.backends.local.scheduler.job_turns import JobTurns
from kvdesk.backends.local.scheduler.request import Request, Waiting
from kvdesk.backends.local.scheduler.running import Running
from kvdesk.chat import ConversationId, MessageId, MessageState
from kvdesk.protocol.chat import NO_MODEL, Generate
from kvdesk.protocol.messages import Command
from kvdesk.translation import tr


class Scheduler:
    """Requests and jobs of one engine.

    on_complete  gets a request whose answer has come to its own end; `fail`: a command whose job failed, and why
    loaded       when the last model began to be loaded, and was (time.perf_counter)
    """

    def __init__(
        self, emit: Emit, on_complete: Callable[[Request], None], fail: Callable[[Command, Exception], None]
    ) -> None:
        self.jobs = JobTurns(emit, fail)
        self.running = Running(emit, on_complete, self.jobs.give_way)
        self.loaded = (0.0, 0.0)
        self._waiting: deque[Waiting] = deque()
        self._blocked = False  # the first that waits found no room; it is tried again when something has ended

    # --- from any thread ----------------------------------------------------------------------------------------------

    def request_stop(self, answer: MessageId) -> None:
        """See `Running.request_stop`."""
        self.running.request_stop(answer)

    def request_cancel(self) -> None:
        """End the job that runs."""
        self.jobs.cancel()

    def request_close(self) -> None:
        """Stop the decode that runs now; every request and job ends at the next step."""
        self.jobs.close()
        self.running.request_close()

    # --- from the engine's thread -------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether `step` has something to do."""
        return bool(self._waiting or self.running or self.jobs)

    @property
    def waiting(self) -> tuple[Generate, ...]:
        """The requests that have not begun, in order."""
        return tuple(waiting.command for waiting in self._waiting)

    def add(self, command: Generate, submitted_at: float) -> None:
        """The request waits from now on. `submitted_at`: time.perf_counter() when it was sent."""
        self.running.expect(command.answer)
        self._waiting.append(Waiting(command, submitted_at))

    def n_job_piece(self) -> int:
        """Tokens of a job's next chunk."""
        return self.running.n_piece(self.jobs.n_beside)

    def step(self, journal: OperationJournal | None) -> bool:
        """Begin a request, go on with a job, or decode the next batch of all requests. Whether something has ended.

        journal: of the context in use; None: there is no model, and requests fail.
        """
        if self._waiting:
            self._end_stopped_waiting()
        running, jobs = self.running, self.jobs
        n_running, n_prefilling, works = len(running), running.n_prefilling, jobs.running
        if self._waiting and not self._blocked:
            self._begin_next(has_model=journal is not None)
        elif journal is not None and jobs and (not n_running or (jobs.due and running.let_end())):
            works = True
            running.order.keep()
            jobs.work(journal)
        elif n_running:
            running.step()
        else:
            self._blocked = False
        ended = len(running) < n_running or (works and not jobs.running)
        if ended or n_prefilling != running.n_prefilling:
            self._blocked = False
        return ended

    def end_stopped(self) -> None:
        """End all requests that were asked to stop: nothing is decoded meanwhile."""
        self.running.end_stopped()
        self._end_stopped_waiting()

    def end_of(self, conversation: ConversationId, note: str, *, closes: bool) -> None:
        """End the conversation's request, if one runs; `closes`: also those that wait."""
        self.running.end_of(conversation, note)
        if closes:
            for waiting in [w for w in self._waiting if w.command.conversation == conversation]:
                self._waiting.remove(waiting)
                self.running.abandon(waiting.command, "stopped", note)
            self._blocked = False

    def end_all(self, note: str) -> None:
        """End every job and every request: the context goes."""
        self.jobs.end_all()
        state: MessageState = "interrupted" if self.running.closing else "stopped"
        self.running.end_all(note, state)
        while self._waiting:
            self.running.abandon(self._waiting.popleft().command, state, note)

    # --- private ------------------------------------------------------------------------------------------------------

    def _begin_next(self, *, has_model: bool) -> None:
        waiting = self._waiting[0]
        if not has_model:
            self._waiting.popleft()
            self.running.abandon(waiting.command, "failed", tr(NO_MODEL))
            return
        began, ended = self.loaded
        load_s = max(0.0, ended - max(began, waiting.submitted_at))
        if self.running.start(waiting, load_s, beside_job=self.jobs.running):
            self._waiting.popleft()
        else:
            self._blocked = True

    def _end_stopped_waiting(self) -> None:
        """End the requests that wait and were asked to stop. If the first one was, there may be room for the next."""
        left = deque(waiting for waiting in self._waiting if not self.running.ended_unbegun(waiting.command))
        self._blocked = self._blocked and bool(left) and left[0] is self._waiting[0]
        self._waiting = left
