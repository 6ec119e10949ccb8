"""Requests of a log that have ended and wait for their texts, which the server prints later."""

from collections import deque
from collections.abc import Iterable, Iterator

from kvdesk.engine_log.record import Request


class Waiting:
    """In order of their end, and taken in that order."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()
        self._whole: set[int] = set()  # ids of those that wait for earlier ones alone

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    def __reversed__(self) -> Iterator[Request]:
        return reversed(self._requests)

    def add(self, request: Request) -> None:
        self._requests.append(request)

    def without_text(self) -> Iterator[Request]:
        """Those that still wait for their own."""
        return (request for request in self if id(request) not in self._whole)

    def take(self, n: int) -> list[Request]:
        """The first `n`."""
        found = [self._requests.popleft() for _ in range(n)]
        self._whole.difference_update(map(id, found))
        return found

    def take_all(self) -> list[Request]:
        return self.take(len(self))

    def take_whole(self, whole: Iterable[Request]) -> list[Request]:
        """`whole` wait for no text any more: those that no earlier one keeps waiting."""
        self._whole.update(map(id, whole))
        return self.take(next((i for i, one in enumerate(self) if id(one) not in self._whole), len(self)))
