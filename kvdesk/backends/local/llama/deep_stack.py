"""Runs deeply recursive work in a thread with a large stack.

Owns the thread. The caller's stack may have only 8 MB (main thread on Linux), 1 MB (Windows) or 512 KB (threads on
macOS). A large stack costs only address space, because its memory is allocated when it is used.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from kvdesk.errors import PromptError
from kvdesk.translation import tr

STACK_BYTES = 256 << 20
_Result = TypeVar("_Result")
_lock = threading.Lock()


def run_deep(work: Callable[[], _Result]) -> _Result:
    """Return or raise what `work()` does in another thread. Takes about 0.1 ms longer.

    Raises PromptError if the system gives no such stack.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # passed on to the caller
            errors.append(error)

    thread = threading.Thread(target=body, name="kvdesk-deep")
    with _lock:  # the stack size is a setting of the process
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
