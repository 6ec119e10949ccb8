"""The requests of a log that one program writes or several: a router with its children, containers, units of a journal.

Each program has other slots, so what is known of them is kept apart.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kvdesk.engine_log.events import Event
from kvdesk.engine_log.record import Request, Server
from kvdesk.engine_log.requests import RequestReader
from kvdesk.engine_log.server_causes import has_facts

MOST_SOURCES: Final = 64
"""Programs that are remembered: the one that came first is forgotten before the others."""


class LogRequests:
    """Feed it events, get the requests that are complete: as `RequestReader`, of all programs."""

    def __init__(self, is_live: bool = False) -> None:
        self.late: list[Request] = []
        self._is_live = is_live
        self._readers: dict[str, RequestReader] = {}
        self._answered: list[Server] = []

    @property
    def servers(self) -> list[Server]:
        """Those with requests, in order, and those of which the log says something else; if there is none, all."""
        known = [reader.server for reader in self._readers.values()]
        others = [server for server in known if has_facts(server) and all(server is not one for one in self._answered)]
        return [*self._answered, *others] or known

    def feed(self, event: Event) -> list[Request]:
        """The requests that this event completes."""
        reader, found = self._readers.get(event.source), list[Request]()
        if reader is None:
            if len(self._readers) >= MOST_SOURCES:
                found = self._readers.pop(next(iter(self._readers))).close()
            reader = self._readers[event.source] = RequestReader(self._is_live)
            if len(self._readers) > 1:
                for source, one in self._readers.items():
                    one.server.source = source
        found += reader.feed(event)
        if reader.late:
            self.late, reader.late = self.late + reader.late, []
        return self._counted(found)

    def close(self) -> list[Request]:
        """What is still open at the end of the log."""
        return self._counted([request for reader in self._readers.values() for request in reader.close()])

    def _counted(self, found: list[Request]) -> list[Request]:
        for request in found:
            if not any(request.server is one for one in self._answered):
                self._answered = [*self._answered[-MOST_SOURCES:], request.server]
        return found


def read_requests(events: Iterable[Event], reader: LogRequests) -> Iterator[Request]:
    """The requests of a whole log."""
    for event in events:
        yield from reader.feed(event)
    yield from reader.close()
