"""Handles every request from the inbox to its end, and every job: chooses which is next, one small step at a time.

Owns the waiting requests; `running` owns those that have begun, `jobs` the work without an answer. A step begins a
request, or lets `running` schedule a batch, decode it and update the requests: however many come, those that run go on.
Runs on the engine's thread, except for what `stops` and `jobs` offer to others. Knows no commands but `Generate`, and
no Qt.
"""

import time
from collections import deque
from collections.abc import Callable

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.documents import Documents
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.scheduler.admission import Admission
from kvdesk.backends.local.scheduler.answer_events import AnswerEvents
from kvdesk.backends.local.scheduler.idle_requests import IdleRequests
from kvdesk.backends.local.scheduler.jobs import Jobs
from kvdesk.backends.local.scheduler.message_spans import MessageSpanReporter
from kvdesk.backends.local.scheduler.overflow_manager import OverflowManager
from kvdesk.backends.local.scheduler.request import Request, Waiting
from kvdesk.backends.local.scheduler.request_overflow import RequestOverflow
from kvdesk.backends.local.scheduler.running import Running
from kvdesk.backends.local.scheduler.stops import Stops
from kvdesk.backends.local.scheduler.threads import Threads
from kvdesk.message import ConversationId, MessageState
from kvdesk.policies.drafting import DraftSize
from kvdesk.policies.tuned import LONGEST_GAP_MS
from kvdesk.protocol.chat import NO_MODEL, Generate
from kvdesk.protocol.messages import Command
from kvdesk.translation import tr


class Scheduler:
    """Requests and jobs of one engine.

    on_complete  gets a request whose answer has ended normally; `fail`: a command whose job failed, and why
    running      requests on the current context; None: there is no context, and requests fail
    loaded       when loading the last model began and ended (time.perf_counter)
    """

    def __init__(
        self, emit: Emit, on_complete: Callable[[Request], None], fail: Callable[[Command, Exception], None]
    ) -> None:
        self._emit = emit
        self._on_complete = on_complete
        self.jobs = Jobs(emit, fail)
        self.stops = Stops()
        self.events = AnswerEvents(emit, self.stops)
        self.running: Running | None = None
        self.loaded = (0.0, 0.0)
        self._waiting: deque[Waiting] = deque()
        self._begins_until: float | None = None  # time.perf_counter(); None: none has begun since the last batch
        self._refused: tuple[object, ...] = ()  # what ran when the first waiting request found no room

    def use(
        self,
        context: Context,
        cache_manager: Cache,
        overflow_manager: OverflowManager | None,
        threads: Threads,
        idle_requests: IdleRequests,
        spans: MessageSpanReporter,
        draft_size: DraftSize,
        documents: Documents,
    ) -> None:
        """Run requests on this context from now on. `overflow_manager`: None if the model has no text tokenizer."""
        overflow = admission = None
        if overflow_manager is not None:
            overflow = RequestOverflow(cache_manager, overflow_manager, spans, self._emit)
            admission = Admission(context, cache_manager, overflow_manager, overflow, idle_requests, documents)
        self.stops.use(context.stop, overflow_manager.stop if overflow_manager is not None else None)
        self.running = Running(
            context,
            cache_manager,
            threads,
            spans,
            admission,
            overflow,
            self.events,
            self.stops,
            self._emit,
            self._on_complete,
            self.jobs,
            draft_size,
            documents,
        )

    def leave(self) -> None:
        """The context is gone."""
        self.stops.use(None)
        self.running = None

    @property
    def busy(self) -> bool:
        """Whether `step` has something to do."""
        return bool(self._waiting or self.running or self.jobs)

    @property
    def waiting(self) -> tuple[Generate, ...]:
        """The requests that have not begun, in order."""
        return tuple(waiting.command for waiting in self._waiting)

    def add(self, command: Generate, submitted_at: float) -> None:
        """Add a waiting request. `submitted_at`: time.perf_counter() when it was sent."""
        self.stops.expect(command.answer)
        self._waiting.append(Waiting(command, submitted_at))

    def step(self) -> bool:
        """Begin a request, or decode the next batch of requests and the job. Returns whether something has ended."""
        if self._waiting:
            self._end_stopped_waiting()
        running, jobs = self.running, self.jobs
        if running is None:
            while self._waiting:
                self.events.never_began(self._waiting.popleft().command, "failed", tr(NO_MODEL))
            return False
        n_ended = running.n_ended + jobs.n_ended
        if self._waiting and not self._blocked and self._may_begin(running):
            self._begin_next(running)
        elif running or jobs:
            running.step()
            self._begins_until = None
        else:
            self._refused = ()
        return running.n_ended + jobs.n_ended > n_ended

    def end_stopped(self) -> None:
        """End all requests that were asked to stop, for times when nothing is decoded."""
        if self.running is not None:
            self.running.end_stopped()
        self._end_stopped_waiting()

    def end_of(self, conversation: ConversationId, note: str, *, waiting: bool = False) -> None:
        """End the conversation's request, if one is running; `waiting`: also its waiting ones."""
        if self.running is not None:
            self.running.end_of(conversation, note)
        if waiting:
            for one in [w for w in self._waiting if w.command.conversation == conversation]:
                self._waiting.remove(one)
                self.events.never_began(one.command, "stopped", note)

    def end_all(self, note: str) -> None:
        """End every job and every request, because the context is freed."""
        self.jobs.end_all("" if self.stops.closing else note)
        state: MessageState = "interrupted" if self.stops.closing else "stopped"
        if self.running is not None:
            self.running.end_all(note, state)
        while self._waiting:
            self.events.never_began(self._waiting.popleft().command, state, note)

    def give_up(self, note: str) -> None:
        """After an unexpected error: every request that runs ends with the text it has. Touches no context."""
        running = self.running
        self.leave()
        if running is not None:
            running.give_up(note)

    # --- private ------------------------------------------------------------------------------------------------------

    @property
    def _blocked(self) -> bool:
        """Whether the first waiting request found no room, and nothing has ended since. It waits until then."""
        return bool(self._waiting) and self._refused == self._now

    @property
    def _now(self) -> tuple[object, ...]:
        """What the first waiting request depends on."""
        assert self.running is not None
        return self._waiting[0], self.running, self.running.n_ended, self.running.n_prefilling, self.jobs.n_ended

    def _may_begin(self, running: Running) -> bool:
        """Whether a request may begin, or fail, before those that run get their next batch: as many as that gap allows,
        and at least one.
        """
        now = time.perf_counter()
        if not running or self._begins_until is None:
            self._begins_until = now + LONGEST_GAP_MS / 1e3
            return True
        return now < self._begins_until

    def _begin_next(self, running: Running) -> None:
        waiting, now = self._waiting[0], self._now
        began, ended = self.loaded
        load_s = max(0.0, ended - max(began, waiting.submitted_at))
        if running.start(waiting, load_s):
            self._waiting.popleft()
        else:
            self._refused = now

    def _end_stopped_waiting(self) -> None:
        """End waiting requests that were asked to stop. If the first was one, the next may have room."""
        left: deque[Waiting] = deque()
        for waiting in self._waiting:
            if self.stops.asked(waiting.command.answer):
                self.events.never_began(waiting.command, "stopped", tr("Stopped before it began."))
            else:
                left.append(waiting)
        self._waiting = left
