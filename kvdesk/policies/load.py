"""How much processor time everything but this process takes, as a number of cores. Reads the system's counters.

Owns the reading and nothing else: what to make of the number is decided in `threads`.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from kvdesk.policies.tuned import HALF_A_CORE, LOAD_INTERVAL_S

STALE_S = 5 * LOAD_INTERVAL_S
"""A reading over more than this shows what others used at some time, not that they do so now."""

_APART_S = 0.002
_PROC_STAT, _PROC_LOADAVG, _PROC_TASKS = Path("/proc/stat"), Path("/proc/loadavg"), Path("/proc/self/task")
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # columns of the first line, proc(5); guest time is already in user time


class LoadMeter:
    """Cores' worth of processor time that other processes took between two calls of `read`. One call: about 0.04 ms.

    `busy_s` gives the seconds all processors of the machine were busy since some moment, `own_s` those of this
    process; both default to the system's counters. `runnable`: threads of other processes that run or wait for a
    processor at this moment; with it a stale reading, or one while this process waited, says no more than that. None
    if it is not known.
    """

    def __init__(
        self,
        busy_s: Callable[[], float] | None = None,
        own_s: Callable[[], float] = time.process_time,
        runnable: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._busy_s = busy_s or system_counter()
        self._own_s = own_s
        self._runnable = runnable
        self._last: tuple[float, float, float] | None = None

    def read(self, at_s: float) -> float | None:
        """Cores taken by others since the last reading; None for the first one and within
        `LOAD_INTERVAL_S` of the last.

        at_s: time.monotonic() or time.perf_counter(), always the same one.
        """
        last = self._last
        if last is not None and at_s - last[0] < LOAD_INTERVAL_S:
            return None
        now = (at_s, self._busy_s(), self._own_s())
        self._last = now
        if last is None:
            return None
        busy, own, passed = now[1] - last[1], now[2] - last[2], now[0] - last[0]
        others = max(0.0, (busy - own) / passed)
        n_runnable = self._runnable() if passed > STALE_S or own < HALF_A_CORE * passed else None
        return others if n_runnable is None else min(others, float(n_runnable))


def runnable_others() -> int | None:
    """Threads of other processes that run or wait for a processor at this moment: proc_loadavg(5). Linux only.

    What runs at two moments: others are seen while they end what this process has just waited for.
    """
    found = _runnable_others()
    if found:
        time.sleep(_APART_S)
        again = _runnable_others()
        found = found if again is None else min(found, again)
    return found


def _runnable_others() -> int | None:
    try:
        own = sum(_is_runnable(task) for task in _PROC_TASKS.iterdir())
        n = int(_PROC_LOADAVG.read_bytes().split()[3].partition(b"/")[0])
    except (OSError, ValueError, IndexError):
        return None
    return max(0, n - own) if n else None  # the one that asks runs: 0 is made up, as some containers do


def _is_runnable(task: Path) -> bool:
    """proc_pid_stat(5): the state follows the name, which may contain anything."""
    try:
        return (task / "stat").read_bytes().rpartition(b")")[2].lstrip().startswith(b"R")
    except OSError:  # it has ended
        return False


def major_faults() -> int:
    """Pages of memory that this process had to wait for until they were read from a disk: parts of a model's file, or
    what was swapped out. 0 if the system does not report it (Windows counts others with them).
    """
    if sys.platform == "win32":
        return 0
    import resource  # Windows has none

    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def system_counter() -> Callable[[], float]:
    """The cheapest counter of busy seconds that this system has."""
    return _proc_stat_busy_s if _PROC_STAT.exists() else _psutil_busy_s


def _proc_stat_busy_s() -> float:
    if sys.platform == "win32":  # has no /proc/stat, and no sysconf
        return 0.0
    with _PROC_STAT.open("rb", buffering=0) as file:
        return busy_ticks(file.read(512)) / os.sysconf("SC_CLK_TCK")


def busy_ticks(stat: bytes) -> int:
    """Ticks all processors were busy, from the text of /proc/stat; stolen time counts, since it is gone as well."""
    columns = [int(number) for number in stat.partition(b"\n")[0].split()[1:]]
    return sum(n for i, n in enumerate(columns[: _STEAL + 1]) if i not in (_IDLE, _IOWAIT))


def _psutil_busy_s() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))
