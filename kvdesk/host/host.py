"""Runs a back end: an inbox of commands, one small step after another, and events for any number of subscribers.

Stop is a call and not a command: a back end that computes reads no inbox. The thread is whoever calls `run`; a program
without one calls `run_until_idle`, which is the same loop until nothing is left to do.
"""

import logging
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from kvdesk.backends.base import Backend, Elsewhere, Emit
from kvdesk.host.known import Known
from kvdesk.host.subscription import Subscription
from kvdesk.message import MessageId
from kvdesk.protocol.chat import BackendReady, EngineDied, EngineRestarted, Generate, TurnEnded
from kvdesk.protocol.features import MISSING, Feature
from kvdesk.protocol.messages import Command, CommandFailed, Event, feature_of, is_wish
from kvdesk.translation import marked, tr

IDLE_S = 1.0
"""Without a command for so long, the back end does what pays back later."""
GIL_SWITCH_S = 0.0005
"""So long a thread waits for another one's Python, in a process where an engine computes (`sys.setswitchinterval`). A
token needs the interpreter three times: llama.cpp prints two lines in each decode, and returns. It shall not wait long
for a window that is drawing. What the engine does between two decodes, some 0.3 ms, is not interrupted.
"""
MOST_DEATHS, WITHIN_S = 3, 60.0
"""A back end that died so often within that many seconds is not started again."""
_STOPPED = marked("The engine stopped unexpectedly.")
_AGAIN = marked("It is being started again: your chats go on, and answers keep the text they had.")
_FOR_GOOD = marked("It has happened {n} times within a minute: restart kvdesk. Your chats are saved.")
_TWICE = marked("The engine stopped twice before it began this answer, so it is not tried again.")
_WAKE: Final = "wake"
_log = logging.getLogger(__name__)


class Host:
    """Runs one back end, and another in its place where it dies. All but `run` and `run_until_idle` may be called from
    any thread, and returns at once.
    """

    def __init__(self, make_backend: Callable[[Emit], Backend]) -> None:
        self._make_backend = make_backend
        self._inbox: queue.SimpleQueue[tuple[Command, float] | Literal["wake"] | None] = queue.SimpleQueue()
        self._made: Backend | None = None
        self._making = threading.Lock()
        self._announced: Backend | None = None  # whose features were reported
        self._features: frozenset[Feature] = frozenset()  # that were reported last
        self._closing = self._over = False
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        self._suspect: MessageId | None = None  # the request that was the next one to begin at the last death
        self._alive_at: float | None = None  # the last sign of life (time.monotonic); None while it waits for a command
        self._telling = threading.Lock()
        self._known = Known()
        self._asked: dict[MessageId, bool] = {}  # answers that have not ended: whether they are to be stopped
        self._subscriptions: tuple[Subscription, ...] = ()

    # --- for any thread -----------------------------------------------------------------------------------------------

    def submit(self, command: Command, age_s: float = 0.0) -> None:
        """Queue a command that was given `age_s` seconds ago. Dropped once the engine has ended for good."""
        if self._over:
            return
        if isinstance(command, Generate):
            with self._telling:
                self._asked[command.answer] = False
        self._inbox.put((command, time.perf_counter() - age_s))

    def stop(self, answer: MessageId) -> None:
        """Stop an answer, even while the back end computes, or before it takes the command. One that has ended can be
        asked for again under its name, to be continued: a stop that came before that does not count.
        """
        with self._telling:
            if answer in self._asked:
                self._asked[answer] = True
        self._backend.request_stop(answer)

    def cancel(self) -> None:
        """End the long work that `Working` tells of, or the load of a model."""
        self._backend.request_cancel()

    def subscribe(self, on_ready: Callable[[], None], *, known: bool = False) -> Subscription:
        """Get every event from now on. `on_ready` is called on the host's thread, once until the events are taken.

        known   begin with what is known now, ready to be taken: model, context, cache, and each answer under way with
                its text so far
        """
        with self._telling:
            first = self._known.events() if known else []
            subscription = Subscription(on_ready, self._unsubscribe, self._begin_anew, first, self._known.n)
            self._subscriptions = (*self._subscriptions, subscription)
        return subscription

    @property
    def silent_s(self) -> float:
        """For how long the back end has been in one step of its work without a word; 0.0 while it has nothing to do."""
        alive_at = self._alive_at
        return 0.0 if alive_at is None else time.monotonic() - alive_at

    def shut_down(self) -> None:
        """End what runs. `run` takes the commands that were submitted before, closes the back end and returns."""
        with self._making:
            self._closing = True
            made = self._made
        if made is not None:
            made.request_close()
        self._inbox.put(None)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """The loop, on this thread, until `shut_down`: one back end after another, as a rule the first."""
        self._run(until_idle=False)

    def run_until_idle(self) -> None:
        """The loop, on this thread, until all commands are carried out and nothing is left to do."""
        self._run(until_idle=True)

    def _run(self, *, until_idle: bool) -> None:
        first: tuple[Command, ...] = ()
        while not (self._over or (self._closing and self._made is None)):
            backend = self._backend
            try:
                self._loop(backend, first, until_idle=until_idle)
                return
            except Exception as error:  # noqa: BLE001 - the edge of the back end: its subscribers must hear of it
                _log.exception("the engine's loop ended")
                self._deaths.append(time.monotonic())
                first = backend.give_up(tr(_STOPPED))
                detail = f"{getattr(error, 'detail', '')}\n\n{traceback.format_exc()}".strip()
                self._over = not self._may_go_on(detail)
                first = self._without_suspect(first)
            finally:
                self._alive_at = None

    def _loop(self, backend: Backend, first: tuple[Command, ...], *, until_idle: bool) -> None:
        """The commands `first`; then every waiting command, then one step of work, until the end."""
        if self._announced is not backend:
            self._announced, self._features = backend, backend.features
            self._emit(BackendReady(backend.features))
        for command in first:
            self._handle(backend, command)
        elsewhere = backend if isinstance(backend, Elsewhere) else None
        while self._handle_inbox(
            backend, wait=elsewhere is not None and elsewhere.waits if backend.busy else not until_idle
        ):
            if until_idle and not backend.busy:
                return
            self._alive_at = time.monotonic()
            backend.step()
            self._tell_features()
        self._over = True
        backend.close()

    def _may_go_on(self, detail: str) -> bool:
        """Whether another back end takes the place of the one that died now; not at the end, nor after too many."""
        if len(self._deaths) == MOST_DEATHS and self._deaths[-1] - self._deaths[0] < WITHIN_S:
            self._emit(EngineDied(f"{tr(_STOPPED)} {tr(_FOR_GOOD).format(n=MOST_DEATHS)}", detail))
            return False
        with self._making:
            if self._closing:
                return False
            self._made = None
        self._emit(EngineRestarted(f"{tr(_STOPPED)} {tr(_AGAIN)}", detail))
        return True

    def _without_suspect(self, first: tuple[Command, ...]) -> tuple[Command, ...]:
        """A request that was the next one to begin at two deaths in a row may be why: it is not asked a third time."""
        asked = next((command for command in first if isinstance(command, Generate)), None)
        if asked is None or asked.answer != self._suspect:
            self._suspect = asked.answer if asked is not None else None
            return first
        self._suspect = None
        self._emit(CommandFailed(asked, tr(_TWICE)))
        return tuple(command for command in first if command is not asked)

    @property
    def _backend(self) -> Backend:
        """Made by whoever needs it first, as a rule the loop: a window need not wait for llama.cpp's import."""
        with self._making:
            if self._made is None:
                self._made = self._make_backend(self._emit)
                if isinstance(self._made, Elsewhere):
                    self._made.wake = self._wake
            return self._made

    def _wake(self) -> None:
        """A back end whose work is done elsewhere has something to do."""
        self._inbox.put(_WAKE)

    def _handle_inbox(self, backend: Backend, *, wait: bool) -> bool:
        """Handle what is in the inbox; `wait` for it when there is nothing else to do. False at the end. While the back
        end is busy, what comes meanwhile waits for its next step, so that no flood of questions keeps it from its work.
        """
        left = self._inbox.qsize()
        while left > 0 or not backend.busy or wait:
            patience = IDLE_S if wait and backend.idle_work_due else None
            if wait and not backend.busy:
                self._alive_at = None
            try:
                item = self._inbox.get(block=wait, timeout=patience)
            except queue.Empty:
                if patience is None:
                    return True
                self._alive_at = time.monotonic()
                backend.idle()
                continue
            self._alive_at = time.monotonic()
            if item is None:
                return False
            if item != _WAKE:
                self._handle(backend, *item)
            wait, left = False, left - 1
        return True

    def _handle(self, backend: Backend, command: Command, at_s: float | None = None) -> None:
        """Hand a command on, where the back end has what it needs."""
        feature = feature_of(command)
        if feature in backend.features:
            backend.handle(command, at_s)
            if isinstance(command, Generate) and self._asked.get(command.answer):
                backend.request_stop(command.answer)  # it was asked for while the command waited here
        elif not is_wish(command):
            self._emit(CommandFailed(command, tr(MISSING[feature])))

    # --- events -------------------------------------------------------------------------------------------------------

    def _tell_features(self) -> None:
        """Tell the features where they have changed: by another model, or by what a server allows now."""
        backend = self._announced
        if backend is not None and backend is self._made and backend.features != self._features:
            self._features = backend.features
            self._emit(BackendReady(self._features))

    def _emit(self, event: Event) -> None:
        """Whoever hears an event knows the features that the back end has with it."""
        self._tell_features()
        if self._alive_at is not None:
            self._alive_at = time.monotonic()
        with self._telling:
            self._known.add(event)
            if isinstance(event, TurnEnded):
                self._asked.pop(event.answer, None)
            elif isinstance(event, CommandFailed) and isinstance(event.command, Generate):
                self._asked.pop(event.command.answer, None)
            subscriptions, number = self._subscriptions, self._known.n
        for subscription in subscriptions:
            subscription.put(event, number)

    def _begin_anew(self, subscription: Subscription) -> list[Event]:
        with self._telling:
            known = self._known.events(since=subscription.n_taken)
            subscription.begin_at(self._known.n)
        return known

    def _unsubscribe(self, subscription: Subscription) -> None:
        with self._telling:
            self._subscriptions = tuple(s for s in self._subscriptions if s is not subscription)
