"""The time that threads of this process were ready to run while other processes had the processor (/proc)."""

from pathlib import Path

_TASKS = Path("/proc/self/task")


def waited_s() -> float:
    """Seconds all threads have waited for a processor so far; 0.0 if the system does not tell (proc(5), schedstat).

    Threads of one decode wait for each other, so what one of them waits makes the decode longer by as much.
    """
    total = 0
    for task in _TASKS.glob("*/schedstat"):
        try:
            total += int(task.read_bytes().split()[1])
        except (OSError, IndexError, ValueError):
            continue  # a thread that has just ended
    return total / 1e9
