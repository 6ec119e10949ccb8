"""Work beside the window's thread: the one way in which the application does what may take longer than a frame.

Owns the threads, the errors at their edge and the way back. Must never know what the work is.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

from kvdesk.errors import KvdeskError, unexpected

T = TypeVar("T")

CLOSE_S: Final = 10.0
"""`close` waits at most this long: work that hangs must not keep the window open."""
_log = logging.getLogger(__name__)


class Task:
    """A piece of work. It is dropped if it has not begun when it is cancelled; its result is dropped in any case."""

    def __init__(self, run: Callable[[], Callable[[], object]]) -> None:
        self.run = run
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


class Background(QObject):
    """`run`, `wait` and `close` are called on the window's thread, `tell` on any.

    name    of its threads, after "kvdesk-"
    at_once threads; further work waits for its turn, in the order it came
    """

    _ready = Signal()  # something was reported; from any thread

    def __init__(self, name: str, parent: QObject | None = None, at_once: int = 1) -> None:
        super().__init__(parent)
        self._name, self._at_once = f"kvdesk-{name}", at_once
        self._lock = threading.Lock()  # of the tasks, the threads and their number
        self._tasks: deque[Task] = deque()
        self._threads: list[threading.Thread] = []
        self._n_running = 0
        self._told: deque[tuple[Task | None, Callable[[], object]]] = deque()
        self._closing = threading.Event()
        self._ready.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    @property
    def is_closing(self) -> bool:
        """Work that takes long looks at it, and ends. From any thread."""
        return self._closing.is_set()

    def run(
        self,
        work: Callable[[], T],
        done: Callable[[T], object] | None = None,
        failed: Callable[[KvdeskError], object] | None = None,
    ) -> Task:
        """Do `work` on another thread; then, on the window's, `done` with its result or `failed` with its error.

        After `close` nothing is done.
        """

        def run() -> Callable[[], object]:
            try:
                result = work()
            except KvdeskError as refused:
                return partial(failed or _no_answer, refused)
            except Exception as error:  # noqa: BLE001 - the thread's edge: given to `failed`
                _log.exception("%s failed", self._name)
                return partial(failed or _no_answer, KvdeskError(unexpected(error), repr(error)))
            return partial(done or _no_answer, result)

        task = Task(run)
        with self._lock:
            if self.is_closing:
                task.cancel()
                return task
            self._tasks.append(task)
            if self._n_running < self._at_once:
                self._n_running += 1
                self._threads = [thread for thread in self._threads if thread.is_alive()]
                self._threads.append(threading.Thread(target=self._work, name=self._name, daemon=True))
                self._threads[-1].start()
        return task

    def tell(self, call: Callable[..., object], *values: object) -> None:
        """Call this on the window's thread, in the order it was reported. Nothing is called after `close`."""
        self._tell(None, partial(call, *values))

    def wait(self, wait_s: float | None = None) -> bool:
        """Until all work has ended and its results were given, at most so long. Returns whether all of it has ended."""
        ended = self._join(wait_s)
        while self._told:
            self._deliver()
        return ended

    def close(self, wait_s: float = CLOSE_S) -> bool:
        """Drop what has not begun, and all results; wait so long for what runs. Returns whether all of it has ended."""
        self._closing.set()
        with self._lock:
            self._tasks.clear()
        self._told.clear()
        return self._join(wait_s)

    def _join(self, wait_s: float | None) -> bool:
        until = time.monotonic() + (wait_s or 0.0)
        for thread in tuple(self._threads):
            thread.join(None if wait_s is None else max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        """On a thread, until there is nothing to do."""
        while (task := self._next()) is not None:
            if not task.cancelled.is_set():
                self._tell(task, task.run())

    def _next(self) -> Task | None:
        with self._lock:
            if self._tasks:
                return self._tasks.popleft()
            self._n_running -= 1
            return None

    def _tell(self, task: Task | None, call: Callable[[], object]) -> None:
        if not self.is_closing:
            self._told.append((task, call))
            with suppress(RuntimeError):  # the window is gone
                self._ready.emit()

    def _deliver(self) -> None:
        """One call: what it raises keeps nothing from the others."""
        if self._told and not self.is_closing:
            task, call = self._told.popleft()
            if task is None or not task.cancelled.is_set():
                call()


def _no_answer(_result: object) -> None:
    """Nobody asked for it."""
