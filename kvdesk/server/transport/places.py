"""Some requests run at once, others wait in the order in which they came; the rest are asked to come again."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kvdesk.server.errors import ApiError


class Places:
    """`capacity`: how many answers may run now; `most_waiting`: requests that may wait beside them."""

    def __init__(self, capacity: Callable[[], int], most_waiting: int) -> None:
        self._capacity, self._most_waiting = capacity, most_waiting
        self._taken = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def n_waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def taken(self, n: int) -> AsyncIterator[None]:
        """Wait for `n` places, or for as many as there are. Raises ApiError if too many wait already."""
        n = min(n, max(1, self._capacity()))
        if self._waiting or self._taken + n > max(1, self._capacity()):
            await self._wait(n)
        else:
            self._taken += n
        try:
            yield
        finally:
            self._taken -= n
            self._admit()

    async def _wait(self, n: int) -> None:
        if len(self._waiting) >= self._most_waiting:
            raise ApiError(503, "Too many requests are waiting. Try again later.", code="overloaded", retry_s=2)
        entry = n, asyncio.get_running_loop().create_future()
        self._waiting.append(entry)
        try:
            await entry[1]
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif entry[1].done() and not entry[1].cancelled():
                self._taken -= n  # it was admitted in the same moment
            self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting:
            n, future = self._waiting[0]
            if self._taken and self._taken + n > max(1, self._capacity()):
                return
            self._waiting.popleft()
            if not future.done():
                self._taken += n
                future.set_result(None)
