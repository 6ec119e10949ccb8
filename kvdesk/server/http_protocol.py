"""uvicorn's HTTP/1.1 with a limit that it lacks: headers must come within some seconds, or the connection is closed."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


def with_header_limit(seconds: float) -> type[asyncio.Protocol]:
    """The protocol for `uvicorn.Config.http`."""

    class Protocol(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._late = self.loop.call_later(seconds, self._close_late)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._reads_a_request():
                self._forget()
            elif self._late is None:  # the next request of this connection has begun to come
                self._late = self.loop.call_later(seconds, self._close_late)

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _reads_a_request(self) -> bool:
            return bool(self.cycle) and not self.cycle.response_complete

        def _forget(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _close_late(self) -> None:
            self._late = None
            if not self._reads_a_request() and not self.transport.is_closing():
                self.transport.close()

    return Protocol
