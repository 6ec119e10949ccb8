"""Runs another program in the foreground: it has this terminal, and this process waits for its end.

`children.process` gives each child a group and pipes. A program that reads keys must be in the group that the
terminal listens to, with the terminal as its input and output.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kvdesk.children.parent_death import asking_for

if sys.platform == "win32":
    from kvdesk.children.job import Job

_FROM_TERMINAL: Final = ("SIGINT", "SIGQUIT", "SIGBREAK")
"""The terminal sends them to the whole group: the program gets them too, and decides."""
_END_S: Final = 10.0
"""From the request to end to the end of the program: it finishes what it writes."""
_TO_THIS_PROCESS: Final = ("SIGTERM", "SIGHUP")


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code of the program, see `exit_code`. Raises OSError if it cannot be started."""
    with running(command, environment) as process:
        return exit_code(process)


@contextmanager
def running(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    piped: bool = False,
    on_signal: Callable[[], None] = lambda: None,
) -> Iterator[subprocess.Popen[bytes]]:
    """The program, which is ended behind the block if it still runs. Ctrl+C is the program's; what ends this process
    ends the program first, and if it is killed the program is asked to end. Raises OSError if it cannot be started.

    piped      its output and errors are read from `stdout`
    on_signal  is called, on the main thread, for each signal that asks both to end
    """
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if piped else {}
    with _signals(on_signal) as forward:
        ask = asking_for("SIGTERM")
        process = subprocess.Popen(command, env=dict(environment), preexec_fn=ask, **options)  # noqa: PLW1509
        forward(process)
        if sys.platform == "win32":
            job = Job(process.pid)
        try:
            yield process
        finally:
            _end(process)
            if sys.platform == "win32":
                job.close()


def exit_code(process: subprocess.Popen[bytes]) -> int:
    """At the end of the program; 128 + n where signal n ended it, as shells have it."""
    code = process.wait()
    return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def _signals(note: Callable[[], None]) -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """While a program runs. Handlers of Python and not SIG_IGN, which the program would inherit; but what this process
    was started to ignore (`nohup`), both do.
    """
    processes: list[subprocess.Popen[bytes]] = []

    def leave(*_: Any) -> None:
        """The program has it too."""
        note()

    def forward(number: int, _frame: Any) -> None:
        for process in processes:
            process.send_signal(number)
        note()

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # elsewhere Python sets no handlers
        for names, handler in ((_FROM_TERMINAL, leave), (_TO_THIS_PROCESS, forward)):
            for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, handler)
    try:
        yield processes.append
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
