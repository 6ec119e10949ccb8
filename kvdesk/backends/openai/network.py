"""A thread with an event loop, on which all network operations wait."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Running:
    """A task on that thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
        self._loop, self._work = loop, work
        self._task: asyncio.Task[None] | None = None
        loop.call_soon_threadsafe(self._begin)

    def cancel(self) -> None:
        """End it, and its connection, at once. May be called from any thread, and repeatedly."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._cancel)

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work)

    def _cancel(self) -> None:
        """After its first step, because a task cancelled before that could not report how it ended."""
        if self._task is not None:
            self._loop.call_soon(self._task.cancel)


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` returns, in a thread that does not delay the end of the program: a keyring may never answer."""
    loop = asyncio.get_running_loop()
    said: asyncio.Future[T] = loop.create_future()

    def tell(result: T) -> None:
        if not said.done():
            said.set_result(result)

    def work() -> None:
        result = call()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, result)

    threading.Thread(target=work, name="kvdesk-key", daemon=True).start()
    return await said


class Network:
    """Starts with its first task. `close` cancels the tasks and ends the thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._last: list[Coroutine[Any, Any, None]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> Running:
        """Run a task."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="kvdesk-network", daemon=True)
            self._thread.start()
        return Running(self._loop, work)

    def close(self, *last: Coroutine[Any, Any, None]) -> None:
        """`last`: run after all tasks have ended, for example to close connections. May be called repeatedly."""
        if self._loop is None or self._thread is None:
            for work in last:
                work.close()
            return
        self._last = list(last)
        self._loop.call_soon_threadsafe(self._loop.call_soon, self._loop.stop)
        self._thread.join()
        self._loop = self._thread = None

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            for work in self._last:
                loop.run_until_complete(work)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
