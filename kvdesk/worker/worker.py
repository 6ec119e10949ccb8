"""The QThread that runs the engine. Owns the inbox and the outbox; knows no widgets.

A slot on a blocked worker never runs, so `run` is a loop over a queue and Stop is a flag. Events collect in a deque;
one signal says that there are some, and is not sent again until they were taken: 20,000 tokens cost 20,000 appends,
not 20,000 queued calls.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
import traceback
from collections import deque
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QThread, Signal

from kvdesk.chat import MessageId
from kvdesk.protocol.chat import EngineDied, EngineRestarted
from kvdesk.protocol.messages import Command, Event

if TYPE_CHECKING:
    from kvdesk.backends.local.engine import Engine

GIL_SWITCH_S = 0.001
IDLE_S = 1.0
"""Without a command for so long, the engine does what pays back later."""
CLOSE_S = 5.0
"""So long `shut_down` waits for an engine: one that hangs in llama.cpp must not keep the window from closing."""
MOST_DEATHS, WITHIN_S = 3, 60.0
"""An engine that died so often within so many seconds is not started again."""
_STOPPED = "The engine stopped unexpectedly."
_AGAIN = f"{_STOPPED} It is being started again: your chats go on, and answers keep the text they had."
_FOR_GOOD = f"{_STOPPED} It has happened {MOST_DEATHS} times within a minute: restart kvdesk. Your chats are saved."
_log = logging.getLogger(__name__)


class Worker(QThread):
    """Runs one `Engine`. `send`, `stop`, `take_events` and `shut_down` are called from the window's thread."""

    events_ready = Signal()
    """There are events to take. Emitted from the worker's thread, once until `take_events` is called."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._inbox: queue.SimpleQueue[tuple[Command, float] | None] = queue.SimpleQueue()
        self._outbox: deque[Event] = deque()
        self._told = False
        self._made: Engine | None = None
        self._closing = False
        self._making = threading.Lock()
        self._alive_at: float | None = None  # its last sign of life (time.monotonic); None while it waits for a command

    def send(self, command: Command) -> None:
        """Queue a command. Returns at once."""
        self._inbox.put((command, time.perf_counter()))

    def stop(self, answer: MessageId) -> None:
        """Stop an answer, even while llama.cpp computes. Returns at once."""
        self._engine.request_stop(answer)

    def cancel(self) -> None:
        """End the long work that `Working` tells of. Returns at once."""
        self._engine.request_cancel()

    def take_events(self) -> list[Event]:
        """All events since the last call, oldest first."""
        self._told = False
        taken = []
        while self._outbox:
            taken.append(self._outbox.popleft())
        return taken

    @property
    def silent_s(self) -> float:
        """For how long the engine has been in one step of its work without a word; 0.0 while it has nothing to do."""
        alive_at = self._alive_at
        return 0.0 if alive_at is None else time.monotonic() - alive_at

    def shut_down(self) -> bool:
        """Refuse new work, stop what runs, and wait until context and model are closed.

        False: the engine hangs. This thread goes on then, and only the end of the process ends it.
        """
        if not self.isRunning():
            return True
        with self._making:
            self._closing = True
        self._engine.request_close()
        self._inbox.put(None)
        return self.wait(round(1000 * CLOSE_S))

    def run(self) -> None:
        """One engine after another, until kvdesk is closed: as a rule the first."""
        sys.setswitchinterval(GIL_SWITCH_S)  # a token must not wait 5 ms for a window that is drawing
        deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        engine: Engine | None = self._engine
        first: tuple[Command, ...] = ()
        while engine is not None:
            try:
                self._loop(engine, first)
                return
            except Exception:  # noqa: BLE001 - the edge of the thread: the window must hear of it
                _log.exception("the engine's loop ended")
                deaths.append(time.monotonic())
                first = engine.give_up(_STOPPED)
                engine = self._next_engine(deaths, traceback.format_exc())

    def _loop(self, engine: Engine, first: tuple[Command, ...]) -> None:
        """The commands `first`; then every waiting command, then one step of work, until the end."""
        for command in first:
            engine.handle(command)
        while self._handle_inbox(engine):
            self._alive_at = time.monotonic()
            engine.step()
        engine.close()

    def _next_engine(self, deaths: deque[float], detail: str) -> Engine | None:
        """Another engine in place of one that died at the last of `deaths`; None at the end, or after too many."""
        if len(deaths) == MOST_DEATHS and deaths[-1] - deaths[0] < WITHIN_S:
            self._emit(EngineDied(_FOR_GOOD, detail))
            return None
        with self._making:
            if self._closing:
                return None
            self._made = None
        self._emit(EngineRestarted(_AGAIN, detail))
        return self._engine

    @property
    def _engine(self) -> Engine:
        """Made by whoever needs it first, as a rule the thread: the window need not wait for llama.cpp's import."""
        with self._making:
            if self._made is None:
                from kvdesk.backends.local.engine import Engine

                self._made = Engine(self._emit)
            return self._made

    def _handle_inbox(self, engine: Engine) -> bool:
        """Handle what is in the inbox; wait for it when there is nothing else to do. False at the end."""
        wait = not engine.busy
        while True:
            patience = IDLE_S if wait and engine.idle_work_due else None
            if wait:
                self._alive_at = None
            try:
                item = self._inbox.get(block=wait, timeout=patience)
            except queue.Empty:
                if patience is None:
                    return True
                self._alive_at = time.monotonic()
                engine.idle()
                continue
            self._alive_at = time.monotonic()
            if item is None:
                return False
            engine.handle(*item)
            wait = False

    def _emit(self, event: Event) -> None:
        if self._alive_at is not None:
            self._alive_at = time.monotonic()
        self._outbox.append(event)
        if not self._told:
            self._told = True
            self.events_ready.emit()
