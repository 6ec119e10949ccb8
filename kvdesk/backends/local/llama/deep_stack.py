"""Work that recurses deeply: run in a thread with a stack made for it.

Owns the thread. The stack of the caller may be 8 MB (the main thread on Linux), 1 MB (Windows) or 512 KB (threads on
macOS). Memory of a stack is taken when it is used, so a deep one costs its address space only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from kvdesk.errors import PromptError
from kvdesk.translation import tr

STACK_BYTES = 256 << 20
_Result = TypeVar("_Result")
_lock = threading.Lock()


def run_deep(work: Callable[[], _Result]) -> _Result:
    """The result of `work()`, which is run in another thread; what it raises is raised here. Takes some 0.1 ms more.

    Raises PromptError if the system gives no such stack.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # the thread's edge: the caller gets whatever it was
            errors.append(error)

    thread = threading.Thread(target=body, name="kvdesk-deep")
    with _lock:  # the size is one for the process
        usual = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        except RuntimeError as error:
            raise PromptError(tr("There is not enough memory to tokenize the text."), str(error)) from error
        finally:
            threading.stack_size(usual)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
