"""What a container or a service may use of this computer, as its control groups say (Linux, version 2). Nothing here
raises: without such groups there are no limits.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def memory_limits() -> Iterator[tuple[int, int]]:
    """Of each group around this process that limits memory: its limit, and what is left of it, in bytes. What holds
    parts of files, such as a model that was read, is left: the system gives it up.
    """
    for group in _around():
        with suppress(OSError, ValueError):  # no such limit: "max"
            limit = int((group / "memory.max").read_text())
            yield limit, limit - int((group / "memory.current").read_text()) + _of_files(group)


def processors() -> float:
    """How many processors' time this process may take; infinity without a limit."""
    least = math.inf
    for group in _around():
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = map(int, (group / "cpu.max").read_text().split())
            least = min(least, quota / period)
    return least


def _around() -> Iterator[Path]:
    """The groups of this process, its own first."""
    try:
        lines = OWN.read_text().splitlines()
    except OSError:
        lines = []
    own = GROUPS / next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    return (group for group in (own, *own.parents) if group.is_relative_to(GROUPS))


def _of_files(group: Path) -> int:
    with suppress(OSError, ValueError, KeyError):
        stat = dict(line.split(maxsplit=1) for line in (group / "memory.stat").read_text().splitlines())
        return int(stat["inactive_file"]) + int(stat["active_file"])
    return 0
