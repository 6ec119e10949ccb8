"""Runs Python code that might never end.

Owns the thread the code runs in, and its end. Knows nothing of what the code does.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar, cast

_Result = TypeVar("_Result")


class _Stopped(BaseException):
    """Raised inside the code that is out of time; not an Exception, so that `except Exception` lets it pass."""


def run_limited(work: Callable[[], _Result], seconds: float) -> _Result:
    """The result of `work()`, or TimeoutError after `seconds`; what `work` raises is raised here.

    The work has a thread of its own and the exception that stops it is sent to that thread only, so the caller can
    never be hit by one that comes late. It is sent under a lock that the thread takes before it ends: a thread id that
    the system has given to somebody else meanwhile cannot be meant. Work inside one long C call ends after that call;
    the caller is free at once all the same.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []
    lock = threading.Lock()
    ended = False

    def body() -> None:
        nonlocal ended
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # the thread's edge: the caller gets whatever it was
            errors.append(error)
        with lock:
            ended = True

    thread = threading.Thread(target=body, name="kvdesk-limited", daemon=True)
    thread.start()
    thread.join(seconds)
    with lock:
        out_of_time = not ended
        if out_of_time:
            ident = ctypes.c_ulong(cast(int, thread.ident))
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_Stopped))
    if out_of_time:
        raise TimeoutError(f"not done after {seconds:g} s")
    if errors:
        raise errors[0]
    return results[0]
