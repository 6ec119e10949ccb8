"""The signal that a process gets when its parent ends: prctl(2), PR_SET_PDEATHSIG. Other systems have none.

Linux keeps it across an exec. It counts the thread that started the process as the parent.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h


def ask_for(number: int) -> None:
    """Signal this process with `number` when its parent ends; 0: do not."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def asking_for(name: str) -> Callable[[], None] | None:
    """The same for a program that this process starts (`name`: of the signal): a `preexec_fn` for `subprocess.Popen`,
    None on other systems. It takes no lock that another thread may hold, and so is safe beside threads.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    number, prctl, parent = int(signal.Signals[name]), ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it has ended already
            os.kill(os.getpid(), number)

    return ask
