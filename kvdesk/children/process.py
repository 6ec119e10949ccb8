"""The parent's side of every child process: start, messages, limits, end and explanation."""

from __future__ import annotations

import functools
import io
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import psutil

from kvdesk import translation
from kvdesk.children.framing import TooLongError, framed, read_message
from kvdesk.codec import CodecError, decode, encode
from kvdesk.translation import tr

if sys.platform == "win32":
    from kvdesk.children.job import Job

Reason = Literal["ended", "time", "memory", "cancelled"]
MAX_MESSAGE_BYTES: Final = 1 << 30
LAST_WORDS: Final = 4000
"""Bytes of the end of standard error that are kept."""
LOOK_S: Final = 0.05
"""Between two checks of memory and cancellation."""
END_S: Final = 0.5
"""From the last message of a child to its exit."""
_MAX_QUEUED: Final = 64
"""Messages that were not received yet. A child that sends more blocks."""
_NICE: Final = 5
_FIRST_NTSTATUS: Final = 0xC0000000


class ChildStopped(Exception):
    """No message comes any more. `reason`: the child ended on its own, or was killed since it exceeded its time or its
    memory, or was cancelled. `detail`: its ending and its last words, in English.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def child_command(flag: str, *arguments: str) -> list[str]:
    """The command line of `kvdesk FLAG ARGUMENTS`; a frozen application is its own interpreter."""
    program = [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "kvdesk"]
    return [*program, flag, *arguments]


class Child:
    """A running child process, in its own group (Windows: a job). `close` it, or use it as a context manager.

    stdout              what its standard output is: "messages" (`framing`), any "bytes", or "ignored"
    memory              bytes of resident memory above which `receive` kills it; 0: no limit
    max_message_bytes   a longer message kills it
    background          runs at lower priority
    folder              another checkout, whose package it imports
    on_message          called in another thread after each message and after the last one

    `kill` may be called from any thread and from a signal handler, everything else from one thread at a time.
    Raises OSError if it cannot be started.
    """

    def __init__(
        self,
        command: list[str],
        *,
        stdout: Literal["messages", "bytes", "ignored"] = "messages",
        memory: int = 0,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        background: bool = False,
        folder: Path | None = None,
        on_message: Callable[[], None] = lambda: None,
    ) -> None:
        self._memory, self._max_message_bytes = memory, max_message_bytes
        self._on_message = on_message
        self._inbox: queue.Queue[bytes | None] = queue.Queue(_MAX_QUEUED)
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._words, self._problem = b"", ""
        self._over = stdout == "ignored"
        self._has_group = True
        self._thread_name = "kvdesk " + next((part for part in command if part.startswith("--")), "child")
        self._process = _started(command, subprocess.DEVNULL if self._over else subprocess.PIPE, folder)
        self.pid: Final = self._process.pid
        if sys.platform == "win32":
            self._job = Job(self.pid)
        if background:
            _yield_processor(self.pid)
        self._listener = self._thread(self._listen, self._process.stderr)
        self._threads = [self._listener, self._thread(self._write, self._process.stdin)]
        if not self._over:
            self._threads.append(self._thread(self._read, self._process.stdout, stdout == "messages"))

    # --- messages -----------------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        """Send a message. Returns at once; if the child does not exist any more, `receive` raises."""
        self._outbox.put(framed(message))

    def send_value(self, value: object) -> None:
        """Send a value as `kvdesk.codec` writes it."""
        self.send(encode(value))

    def receive(self, seconds: float = math.inf, cancelled: Callable[[], bool] | None = None) -> bytes:
        """The next message. Raises ChildStopped if none comes, in time or at all; the child is then dead."""
        deadline = time.monotonic() + seconds
        while not self._over:
            left = max(0.0, deadline - time.monotonic())
            wait = min(left, LOOK_S) if self._memory or cancelled is not None else left
            try:
                message = self._inbox.get(timeout=None if wait == math.inf else wait)
            except queue.Empty:
                self._look(deadline, cancelled)
                continue
            if message is not None:
                return message
            self._over = True
        ending = self.ending()
        self.kill()
        raise ChildStopped("ended", ending)

    def receive_value(
        self, seconds: float = math.inf, cancelled: Callable[[], bool] | None = None, kind: Any = Any
    ) -> Any:
        """The value of the next message, of type `kind`. Raises ChildStopped, also for another value; the child is then
        dead.
        """
        message = self.receive(seconds, cancelled)
        try:
            return decode(kind, message)
        except CodecError as error:
            if self.wait() is None:
                self.kill()
            raise ChildStopped("ended", str(error)) from error

    def messages(self) -> Iterator[bytes]:
        """All messages until the child ends."""
        with suppress(ChildStopped):
            while True:
                yield self.receive()

    def values(self) -> Iterator[Any]:
        """The values of all messages until the child ends."""
        with suppress(ChildStopped):
            while True:
                yield self.receive_value()

    @property
    def has_message(self) -> bool:
        """Whether `receive` would return or raise at once."""
        return self._over or not self._inbox.empty()

    # --- end ----------------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill it and its own children. May be called again."""
        self._signal("SIGKILL")

    def close(self, grace_s: float = 0.0) -> None:
        """End it and free everything. It has `grace_s` to end on its own, as much after SIGTERM, and is killed then.
        May be called again.
        """
        if grace_s and self.wait(grace_s) is None:
            self._signal("SIGTERM")
            self.wait(grace_s)
        self.kill()
        self._process.wait()
        self.kill()
        self._over = True
        self._outbox.put(None)
        for thread in self._threads:
            while thread.is_alive():
                with suppress(queue.Empty):
                    while True:
                        self._inbox.get_nowait()
                thread.join(0.01)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):  # unwritten data
                    stream.close()
        if sys.platform == "win32":
            self._job.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait(self, seconds: float | None = END_S) -> int | None:
        """The exit code; None if it still runs after `seconds` (None: no limit)."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.kill()  # its own children
        return code

    @property
    def last_words(self) -> str:
        """The end of its standard error."""
        if self.wait(0.0) is not None:
            self._listener.join(END_S)
        return self._words.decode("utf-8", "replace")

    def ending(self) -> str:
        """How it ended and its last words, in English."""
        code = self.wait()
        if code is None:
            how = "It closed its output and still runs."
        elif name := crash_name(code):
            how = f"{name} ended it."
        else:
            how = f"Its exit code is {code}."
        return "\n".join(filter(None, (self._problem, how, self.last_words)))

    # --- private ------------------------------------------------------------------------------------------------------

    def _look(self, deadline: float, cancelled: Callable[[], bool] | None) -> None:
        """Raises ChildStopped if the child exceeds a limit or was cancelled."""
        reason: Reason
        detail = ""
        if cancelled is not None and cancelled():
            reason = "cancelled"
        elif time.monotonic() >= deadline:
            reason = "time"
        elif self._memory and (n_bytes := _resident(self.pid)) > self._memory:
            reason, detail = "memory", f"{n_bytes} bytes of memory\n"
        else:
            return
        self.kill()
        self.wait()
        raise ChildStopped(reason, f"{detail}{self.last_words}".strip())

    def _signal(self, name: str) -> None:
        """Signal its group; after its exit once more, since the system may then reuse the number of the group."""
        if self._has_group:
            self._has_group = self._process.poll() is None
            if sys.platform == "win32":
                self._job.kill()
            else:
                with suppress(OSError):
                    os.killpg(self.pid, signal.Signals[name])

    def _thread(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, name=self._thread_name, daemon=True)
        thread.start()
        return thread

    def _read(self, stream: io.BufferedReader, has_messages: bool) -> None:
        try:
            while True:
                message = read_message(stream.read, self._max_message_bytes) if has_messages else stream.read1(1 << 16)
                if not message and not has_messages:
                    break
                self._inbox.put(message)
                self._on_message()
        except TooLongError as error:
            self._problem = str(error)
            self.kill()
        except (EOFError, OSError):
            pass
        finally:
            self._inbox.put(None)
            self._on_message()

    def _listen(self, stream: io.BufferedReader) -> None:
        with suppress(OSError):
            while words := stream.read1(1 << 16):
                self._words = (self._words + words)[-LAST_WORDS:]

    def _write(self, stream: io.BufferedWriter) -> None:
        with suppress(OSError):  # it has ended: `receive` raises
            while (data := self._outbox.get()) is not None:
                stream.write(data)
                stream.flush()


def crash_name(code: int) -> str:
    """The signal or the Windows exception that ended a process with this exit code; "" for an exit."""
    if code >= _FIRST_NTSTATUS:
        return f"0x{code:08X}"
    if code >= 0:
        return ""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return tr("signal {number}").format(number=-code)


def _yield_processor(pid: int) -> None:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if sys.platform == "win32":
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            process.nice(min(19, process.nice() + _NICE))


def _resident(pid: int) -> int:
    """Bytes; 0 if the process has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _started(command: list[str], stdout: int, folder: Path | None) -> subprocess.Popen[bytes]:
    env = {**os.environ, translation.VARIABLE: translation.installed()}
    if sys.platform == "win32":
        command, variables = without_launcher(command, sys.executable, getattr(sys, "_base_executable", sys.executable))
        env |= variables
    if folder is not None:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), env.get("PYTHONPATH"))))
    start = functools.partial(
        subprocess.Popen,
        command,
        stdin=subprocess.PIPE,  # stays open as long as this process lives
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=folder or _import_folder(),
        env=env,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        process_group=None if sys.platform == "win32" else 0,
    )
    future: Future[subprocess.Popen[bytes]] = Future()
    _starter().put((start, future))
    return future.result()


def without_launcher(command: list[str], executable: str, base: str) -> tuple[list[str], dict[str, str]]:
    """The command, and variables that it needs. On Windows the interpreter of a venv (`executable`) only starts the one
    that it was made from (`base`): its memory and priority would be those of a process that waits. multiprocessing
    leaves it out in the same way (popen_spawn_win32.py).
    """
    if command[0] != executable or executable == base:
        return command, {}
    return [base, *command[1:]], {"__PYVENV_LAUNCHER__": executable}


@functools.cache
def _starter() -> queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]]:
    """The inbox of the thread that starts all children. It lives as long as this process: Linux kills a child when the
    thread that started it ends (`entry`).
    """
    starts: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()

    def run() -> None:
        while True:
            start, future = starts.get()
            try:
                future.set_result(start())
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                future.set_exception(error)

    threading.Thread(target=run, name="kvdesk-children", daemon=True).start()
    return starts


def _import_folder() -> Path | None:
    """Where `-m kvdesk` finds this very package, whatever the working folder is."""
    return None if getattr(sys, "frozen", False) else Path(__file__).resolve().parents[2]
