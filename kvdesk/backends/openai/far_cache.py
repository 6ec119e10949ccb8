"""Follows the cache of another kvdesk: takes over its events as they arrive, and records its cells.

The other side is not trusted: a view with inconsistent arrays is rejected as an unreadable message. Events of the other
kvdesk's own chats are ignored. A message from a newer version is ignored, and reported once.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

import httpx2
import numpy as np

from kvdesk.backends.openai.client import CONNECT_S, read_ok
from kvdesk.backends.openai.problems import KeyRefused, ServerError, problem_of
from kvdesk.cache.journal.packing import Operation
from kvdesk.cache.journal.view_recorder import ViewRecorder
from kvdesk.cache.snapshot import CacheSnapshot, StreamMap
from kvdesk.codec import CodecError
from kvdesk.message import ConversationId
from kvdesk.protocol import cache as protocol
from kvdesk.protocol.chat import EngineRestarted, LogLine
from kvdesk.protocol.messages import Event
from kvdesk.protocol.operations import BatchRefused
from kvdesk.protocol.wire import from_json
from kvdesk.translation import tr
from kvdesk.values import replace

SILENT_S: Final = 30.0
"""The other side sends a sign of life every ten seconds."""
AGAIN_S: Final = (1.0, 2.0, 5.0, 10.0)
"""Seconds before each reconnection attempt; the last value repeats."""
MOST_OWN: Final = 10_000
MOST_EVENT: Final = 64 << 20
MOST_CELLS: Final = 1 << 22
_SHOWN: Final = (
    *(protocol.CacheView, protocol.ContextReady, protocol.OperationDone, protocol.SpeedSample, protocol.LoadSample),
    *(protocol.MemoryLedger, protocol.TokenTexts, protocol.Audited, BatchRefused),
)  # fmt: skip


class FarCache:
    """`put` takes the events, and `allow` gets whether the server shows its cells from now on, both on the network's
    thread. `recording` may be called from another.
    """

    def __init__(
        self, put: Callable[[Event], None], name: str, allow: Callable[[bool], None] = lambda _shown: None
    ) -> None:
        self._put, self._name, self._allow = put, name, allow
        self._recorder = ViewRecorder()
        self._done: list[protocol.OperationDone] = []
        self._unknown: set[str] = set()
        self._own: dict[str, ConversationId] = {}  # chats of this kvdesk, by the names of their requests on the server
        self._branches: dict[str, int] = {}

    def know(self, answer: str, conversation: ConversationId) -> None:
        """The answer with this id belongs to a chat of this kvdesk, and so do its cells from now on."""
        name = answer.removeprefix(protocol.ANSWER_ID)
        if name != answer and self._own.get(name) != conversation:
            self._own[name] = conversation
            if len(self._own) > MOST_OWN:
                del self._own[next(iter(self._own))]

    def recording(self) -> protocol.RecordingTaken | None:
        """The recording of the cells since the connection began; None before the first view."""
        recording = self._recorder.recording()
        return None if recording is None else protocol.RecordingTaken(recording)

    async def follow(self, client: httpx2.AsyncClient, *, shown: bool) -> None:
        """Follow the events and reconnect after interruptions, until this task is cancelled. A restarted server may
        have other keys. `shown`: whether it showed its cells when it was connected.
        """
        n_failed = 0
        while True:
            try:
                async for event in self._events(client):
                    n_failed = 0
                    if not shown:
                        shown = True
                        self._allow(True)
                    self.take(event)
            except KeyRefused as error:
                if shown:
                    shown = False
                    told = tr("{name} no longer shows its cells. {why}")
                    self._put(LogLine("warning", told.format(name=self._name, why=error)))
                    self._allow(False)
                await asyncio.sleep(AGAIN_S[-1])
                continue
            except (ServerError, httpx2.HTTPError) as error:
                said = problem_of(error, SILENT_S)
            else:
                said = ServerError(tr("The server has ended the connection."))
            if not n_failed:
                told = tr("The cache of {name} is not followed now; kvdesk tries again. {why}")
                self._put(LogLine("warning", told.format(name=self._name, why=said)))
            await asyncio.sleep(AGAIN_S[min(n_failed, len(AGAIN_S) - 1)])
            n_failed += 1

    async def _events(self, client: httpx2.AsyncClient) -> AsyncIterator[Event]:
        timeout = httpx2.Timeout(SILENT_S, connect=CONNECT_S)
        async with client.stream("GET", "/kv/events", timeout=timeout) as response:
            if response.status_code != 200:
                await read_ok(response)
            async for sent in httpx2.EventSource(response, max_event_size=MOST_EVENT):
                if sent.data and (event := self.read(sent.data)) is not None:
                    yield event

    def read(self, data: str) -> Event | None:
        """An event as it was sent; None if it cannot be understood, which is reported once for each kind."""
        name = ""
        try:
            value = json.loads(data)
            name = str(value.get("type"))[:60] if isinstance(value, dict) else ""
            event: Event = from_json(Event, value)
            if isinstance(event, protocol.CacheView):
                check(event.snapshot)
        except (ValueError, RecursionError) as error:
            if name not in self._unknown and len(self._unknown) < 100:
                self._unknown.add(name)
                said = tr("{server} sent {what}, which this kvdesk does not understand and ignores.")
                said = said.format(server=self._name, what=name or tr("something"))
                self._put(LogLine("warning", f"{said} ({str(error)[:300]})"))
            return None
        return event

    def take(self, event: Event) -> None:
        """Take an event over: record cells, and pass on what the window shows. Clocks of two machines differ."""
        match event:
            case protocol.ContextReady():
                self._recorder = ViewRecorder()
                self._done.clear()
                event = replace(event, back_to=None)  # settings of the other machine
            case protocol.CacheView():
                self._recorder.take(event.snapshot.operation, event.snapshot.maps, self._operation)
                said = replace(event.snapshot.verification, by=self._name)
                leases = self._own_leases(event.leases)
                event = replace(event, snapshot=replace(event.snapshot, verification=said), leases=leases)
            case protocol.OperationDone():
                if event.conversation in self._own:
                    event = replace(event, conversation=self._own[event.conversation])
                self._done.append(event)
            case protocol.SpeedSample() | protocol.LoadSample():
                event = replace(event, at_s=time.monotonic())
            case EngineRestarted():
                self._put(LogLine("warning", tr("The engine of {name} was started again.").format(name=self._name)))
        if isinstance(event, _SHOWN):
            self._put(event)

    def _own_leases(self, leases: tuple[protocol.Lease, ...]) -> tuple[protocol.Lease, ...]:
        """Requests of this kvdesk's chats as branches of those chats; the newest is the one that continues."""
        there = {
            lease.conversation: self._own[lease.conversation] for lease in leases if lease.conversation in self._own
        }
        newest = {mine: name for name, mine in self._own.items() if name in there}
        self._branches = {name: number for name, number in self._branches.items() if name in there}
        for name, mine in there.items():
            if name not in self._branches:
                taken = {self._branches.get(other) for other, of in there.items() if of == mine}
                self._branches[name] = next(n for n in range(1, len(there) + 2) if n not in taken)
        return tuple(
            replace(
                lease,
                conversation=there[lease.conversation],
                client="",
                branch=self._branches[lease.conversation],
                inactive=newest[there[lease.conversation]] != lease.conversation,
            )
            if lease.conversation in there
            else lease
            for lease in leases
        )

    def _operation(self, last: int, number: int) -> Operation:
        done = [event for event in self._done if last < event.operation <= number]
        self._done = [event for event in self._done if event.operation > number]
        said = tr("operations {first:,} to {last:,}").format(first=last + 1, last=number)
        if not done:
            return Operation(number, time.time(), "decode", said)
        call = done[-1].call if number == last + 1 else f"{done[-1].call} ({said})"
        return Operation(number, time.time(), done[-1].name, call, sum(event.ms for event in done))


def check(snapshot: CacheSnapshot) -> None:
    """Raises CodecError if its arrays do not fit together."""
    streams = [stream for cache in snapshot.maps for stream in cache.streams]
    words = {stream.seq_bits.shape[1] if stream.seq_bits.ndim == 2 else 0 for stream in streams}
    same = all(len({stream.size for stream in cache.streams}) == 1 for cache in snapshot.maps)
    if len(words) > 1 or 0 in words or not same or not all(map(_fits, streams)):
        raise CodecError("the arrays of a view do not fit together")
    n_sequences = 64 * max(words, default=1)
    if any(not 0 <= span.seq_id < n_sequences for span in (*snapshot.sequences, *snapshot.recurrent)):
        raise CodecError("a view has a sequence that cannot be")
    if len({cache.name for cache in snapshot.maps}) < len(snapshot.maps) or snapshot.n_ctx < 0 or snapshot.n_kv < 0:
        raise CodecError("a view has numbers that cannot be")


def _fits(stream: StreamMap) -> bool:
    n = len(stream.pos) if stream.pos.ndim == 1 else -1
    arrays = (stream.token, stream.written_at_op, *(() if stream.shifted is None else (stream.shifted,)))
    return (
        0 <= n <= stream.size <= MOST_CELLS
        and stream.high_water == n
        and stream.used == int(np.count_nonzero(stream.pos != -1))
        and 0 <= stream.head <= stream.size
        and all(array.shape == (n,) for array in arrays)
        and len(stream.seq_bits) == n
        and bool((stream.pos >= -1).all())
    )
