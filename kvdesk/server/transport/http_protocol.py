"""uvicorn's HTTP/1.1 with two limits that it lacks: headers must come within some seconds, and what is written must be
taken within some, or the connection is closed.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

_GRACE_S = 1.0
"""So much later than the response itself gives up (`EventStream`), which logs it."""


def with_limits(header_s: float, write_s: float) -> type[H11Protocol]:
    """The protocol for `uvicorn.Config.http`. write_s: asyncio closes a connection once all that was written has gone
    out, which is never where the client takes nothing; then it is cut off. A slow one that takes something is not.
    """
    return type("Protocol", (_Limited,), {"header_s": header_s, "write_s": write_s})


class _Limited(H11Protocol):
    header_s: float
    write_s: float
    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._late = self.loop.call_later(self.header_s, self._close_late)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._reads_a_request():
            self._forget()
        elif self._late is None:  # the next request of this connection has begun to come
            self._late = self.loop.call_later(self.header_s, self._close_late)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._taken()
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: a client that would rather have a WebSocket, or HTTP/2, gets an answer without one."""

    def _reads_a_request(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _taken(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _watch(self) -> None:
        n_left = self.transport.get_write_buffer_size()
        self._stuck = self.loop.call_later(self.write_s + _GRACE_S, self._cut_off, n_left)

    def _cut_off(self, n_before: int) -> None:
        if self.transport.get_write_buffer_size() < n_before:
            self._watch()
        else:
            self.transport.abort()

    def _close_late(self) -> None:
        self._late = None
        if not self._reads_a_request() and not self.transport.is_closing():
            self.transport.close()
