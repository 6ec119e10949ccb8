"""Several downloads, one after another, on their own thread: paused, resumed, cancelled, and how far each is."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Final

from kvdesk.errors import KvdeskError, Stopped, guarded, unexpected
from kvdesk.library.download import Transfer, discard, unfinished
from kvdesk.library.hub import Hub, RemoteModel
from kvdesk.values import dataclass, field

INTERVAL_S: Final = 0.25
"""Progress is reported at most so often."""
WINDOW_S: Final = 5.0
"""Of the transfer that speed is measured over."""
REMARK_S: Final = 8.0
"""A remark stays so long."""
JOIN_S: Final = 1.0


class State(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Download:
    """bytes_s: of the last seconds, 0 if unknown; remark: a sentence or ""; path: of the first file, once done."""

    key: str
    title: str
    state: State
    done_bytes: int
    total_bytes: int
    bytes_s: float = 0.0
    remark: str = ""
    path: Path | None = None

    @property
    def left_s(self) -> float | None:
        """Seconds to go at this speed."""
        return (self.total_bytes - self.done_bytes) / self.bytes_s if self.bytes_s > 0 else None


@dataclass(slots=True)
class _Entry:
    model: RemoteModel
    state: State
    done: int = 0
    stop: Event = field(default_factory=Event)
    cancelled: bool = False
    remark: str = ""
    remark_s: float = 0.0
    path: Path | None = None
    seen: deque[tuple[float, int]] = field(default_factory=deque)  # when that many bytes were there

    def shown(self) -> Download:
        (first_s, first), (last_s, last) = (self.seen[0], self.seen[-1]) if self.seen else ((0.0, 0), (0.0, 0))
        running = self.state is State.RUNNING and last_s > first_s
        bytes_s = (last - first) / (last_s - first_s) if running else 0.0
        title, total = self.model.title, self.model.size_bytes
        return Download(key_of(self.model), title, self.state, self.done, total, bytes_s, self.remark, self.path)


def key_of(model: RemoteModel) -> str:
    """Repository and first file."""
    return f"{model.repo}/{model.files[0].name}"


class DownloadQueue:
    """hub: called for each transfer. told: called with all downloads after each change, from any thread."""

    def __init__(
        self, hub: Callable[[], Hub], told: Callable[[tuple[Download, ...]], None], folder: Path | None = None
    ) -> None:
        self._hub, self._told, self._folder = hub, told, folder
        self._entries: dict[str, _Entry] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._current: _Entry | None = None  # that the thread is at
        self._errands: deque[Callable[[], None]] = deque()  # for the thread, before the next transfer
        self._closed = False
        self._told_s = 0.0

    def restore(self) -> None:
        """The thread looks for what an earlier run did not finish: it is there then, paused."""
        self._do(self._find)

    def add(self, model: RemoteModel) -> None:
        """At the end of the queue; what is there already goes on."""
        key = key_of(model)
        with self._changed:
            entry = self._entries.get(key)
            if entry is None or entry.state in (State.DONE, State.FAILED):
                self._entries[key] = _Entry(model, State.WAITING)
            elif entry.state is State.PAUSED:
                entry.state = State.WAITING
            self._wake()
        self._tell()

    def pause(self, key: str) -> None:
        with self._changed:
            entry = self._entries.get(key)
            if entry is not None and entry.state in (State.WAITING, State.RUNNING):
                entry.state = State.PAUSED
                entry.stop.set()
        self._tell()

    def resume(self, key: str) -> None:
        with self._changed:
            entry = self._entries.get(key)
            if entry is not None and entry.state in (State.PAUSED, State.FAILED):
                entry.state, entry.remark = State.WAITING, ""
                self._wake()
        self._tell()

    def cancel(self, key: str) -> None:
        """Remove it; the thread removes what was transferred. One that is done is removed from the list alone."""
        with self._changed:
            entry = self._entries.pop(key, None)
            if entry is not None and entry.state is not State.DONE:
                entry.cancelled = True
                entry.stop.set()
                if entry is not self._current:
                    self._do(partial(_discard, entry.model, self._folder))
        self._tell()

    @property
    def downloads(self) -> tuple[Download, ...]:
        with self._changed:
            return tuple(entry.shown() for entry in self._entries.values())

    def close(self) -> None:
        """What runs is paused. A server that is silent is not waited for: nothing is lost by that, but what was
        cancelled meanwhile may be there again at the next start.
        """
        with self._changed:
            self._closed = True
            for entry in self._entries.values():
                entry.stop.set()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _do(self, errand: Callable[[], None]) -> None:
        with self._changed:
            self._errands.append(errand)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = Thread(target=self._work, name="kvdesk-downloads", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            self._run_errands()
            with self._changed:
                if self._errands:
                    continue
                if self._closed:
                    return
                self._current = entry = self._next()
                if entry is None:
                    self._changed.wait()
                    continue
                entry.state, entry.stop, entry.remark = State.RUNNING, Event(), ""
                entry.seen.clear()
            self._tell()
            self._run(entry)
            with self._changed:
                self._current = None
                if entry.cancelled:
                    self._do(partial(_discard, entry.model, self._folder))
            self._tell()

    def _run_errands(self) -> None:
        while True:
            with self._changed:
                if not self._errands:
                    return
                errand = self._errands.popleft()
            guarded(errand)

    def _find(self) -> None:
        found = tuple(unfinished(self._folder))
        with self._changed:
            for model, done in found:
                self._entries.setdefault(key_of(model), _Entry(model, State.PAUSED, done))
        self._tell()

    def _next(self) -> _Entry | None:
        return next((entry for entry in self._entries.values() if entry.state is State.WAITING), None)

    def _run(self, entry: _Entry) -> None:
        transfer: Transfer | None = None
        try:
            transfer = Transfer(self._hub(), entry.model, entry.stop, partial(self._progress, entry), self._folder)
            path = transfer.run()
            with self._changed:
                entry.state, entry.path, entry.remark = State.DONE, path, ""
        except Stopped:
            pass
        except KvdeskError as error:
            self._fail(entry, str(error))
        except Exception as error:  # noqa: BLE001 - the thread serves the other downloads too
            self._fail(entry, unexpected(error))
        if transfer is not None:
            entry.model = transfer.model

    def _fail(self, entry: _Entry, sentence: str) -> None:
        with self._changed:
            entry.remark = sentence
            if entry.state is State.RUNNING:
                entry.state = State.FAILED

    def _progress(self, entry: _Entry, done: int, remark: str) -> None:
        self._run_errands()
        now = time.monotonic()
        with self._changed:
            if remark:
                entry.remark, entry.remark_s = remark, now
            elif entry.remark and now - entry.remark_s > REMARK_S:
                entry.remark = ""
            if done < entry.done:
                entry.seen.clear()
            entry.done = done
            entry.seen.append((now, done))
            while now - entry.seen[0][0] > WINDOW_S:
                entry.seen.popleft()
        if remark or now - self._told_s >= INTERVAL_S:
            self._tell()

    def _tell(self) -> None:
        self._told_s = time.monotonic()
        self._told(self.downloads)


def _discard(model: RemoteModel, folder: Path | None) -> None:
    with suppress(OSError):
        discard(model, folder)
