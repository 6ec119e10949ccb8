"""Runs between kvdesk and a local server. It starts the server's command with a cleaned environment, passes lines both
ways, and ends the server with everything it started when kvdesk ends.

The first message has the command, later ones are lines for the server, and an empty one closes its input, which ends a
well-behaved server. The server writes errors to this process's standard error; kvdesk keeps the end of it
(`Child.last_words`).
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kvdesk.children.entry import Parent
from kvdesk.children.parent_death import asking_for
from kvdesk.values import dataclass

FLAG: Final = "--tool-server"
MOST_LINE: Final = 16 << 20
"""Bytes of one message of a server."""
_ENDING_S: Final = 2.0
"""From the end of the server's output to its exit."""
NOT_FOUND: Final = 127
_PASSED_ON: Final = frozenset((
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
))  # fmt: skip
"""What a server needs of this environment. It leaves out other programs' keys."""


@dataclass(frozen=True, slots=True)
class Start:
    """What to start, and the variables it gets in addition to those that every server gets."""

    command: str
    args: tuple[str, ...] = ()
    folder: str = ""
    env: Mapping[str, str] = {}


def cleaned(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that every server gets."""
    return {name: value for name, value in environment.items() if name.upper() in _PASSED_ON}


def child_main(parent: Parent, _argv: Sequence[str]) -> int:
    """Returns the server's exit code, as a shell reports it."""
    start: Start = parent.receive_value(Start)
    env = cleaned(os.environ) | dict(start.env)
    folder = Path(env.get("HOME") or env.get("USERPROFILE") or "") / start.folder
    is_name = Path(start.command).name == start.command
    command = start.command if is_name else str(folder / start.command)
    program = shutil.which(command, path=env.get("PATH"))
    if program is None:
        sys.stderr.write(f"There is no program {command}.\n")
        return NOT_FOUND
    try:
        server = subprocess.Popen(
            [program, *start.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            cwd=folder,
            preexec_fn=asking_for("SIGKILL"),  # noqa: PLW1509 - if this process is killed together with kvdesk
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL, or a variable whose name has "="
        sys.stderr.write(f"{error}\n")
        return NOT_FOUND - 1
    parent.end_with(_end_all)
    threading.Thread(target=_pass_on, args=(parent, server), daemon=True).start()
    assert server.stdout is not None
    while line := server.stdout.readline(MOST_LINE):
        if not line.endswith(b"\n") and len(line) == MOST_LINE:
            sys.stderr.write("The server sent a message that is too long.\n")
            server.kill()
            break
        if line.strip():
            parent.send(line)
    try:
        code = server.wait(_ENDING_S)
    except subprocess.TimeoutExpired:  # its output is closed, so it cannot say anything more
        server.kill()
        code = server.wait()
    return code if code >= 0 else 128 - code


def _pass_on(parent: Parent, server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    try:
        while line := parent.receive():
            server.stdin.write(line + b"\n")
            server.stdin.flush()
        server.stdin.close()
    except OSError:
        pass  # it has ended or closed its input; its output shows which


def _end_all() -> None:
    """kvdesk has ended, so end this process group. On Windows the job has already done that."""
    if sys.platform != "win32":
        os.killpg(0, signal.SIGKILL)
