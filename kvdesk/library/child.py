"""Child processes of kvdesk: how they are started, and how they end with the process that started them.

Owns the command line, the streams and the limits that every child shares. Knows nothing of what a child does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

from kvdesk import translation


def child_command(flag: str, *arguments: str) -> list[str]:
    """The command line of `kvdesk FLAG ARGUMENTS`; a frozen application is its own interpreter."""
    program = [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "kvdesk"]
    return [*program, flag, *arguments]


def start_child(
    command: list[str], stdout: int | IO[bytes], stderr: int | IO[bytes], folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a child. Its standard input is a pipe that stays open as long as this process lives (`read_parent`).

    folder: another checkout, whose package it imports. Raises OSError.
    """
    env = {**os.environ, translation.VARIABLE: translation.installed()}
    if folder is not None:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), env.get("PYTHONPATH"))))
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        cwd=folder or import_folder(),
        env=env,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def read_parent(take: Callable[[bytes], None] = lambda _data: None) -> None:
    """In a child: hand what the parent sends to `take`, in a thread of its own, and end this process when the parent
    ends, however it does and whatever this process is doing: the pipe then closes on every system.
    """

    def read() -> None:
        while data := _read_some():
            take(data)
        os._exit(1)

    threading.Thread(target=read, name="kvdesk-parent", daemon=True).start()


def limit_memory(n_bytes: int) -> None:
    """In a child: an address space limit where the system has one; no core file for a death that is expected."""
    if sys.platform not in ("win32", "darwin"):  # which takes the limit and does not keep it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    no_core_file()


def no_core_file() -> None:
    """In a child: a death that is expected leaves no file."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read_some() -> bytes:
    """From standard input, past Python's buffer: its lock could not be taken again at the end of the process."""
    try:
        return os.read(0, 1 << 16)
    except OSError:
        return b""


def import_folder() -> Path | None:
    """Where `-m kvdesk` finds this very package, whatever the working folder is."""
    return None if getattr(sys, "frozen", False) else Path(__file__).resolve().parents[2]
