"""Watches the blocks of a connected vLLM or SGLang: finds where it publishes them, and views them as they change."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from kvdesk.backends.openai.block_events import BlockEventReader, EventsAddress, Heard
from kvdesk.backends.openai.client import CONNECT_S, as_json, get_json, get_text, read_ok
from kvdesk.backends.openai.problems import ServerError
from kvdesk.backends.openai.server_metrics import read
from kvdesk.errors import UserError
from kvdesk.loose_json import obj
from kvdesk.protocol.blocks import BlockMapView, ServerMetrics
from kvdesk.protocol.servers import ServerKind
from kvdesk.translation import tr

ASKED_S: Final = 2.0
"""Interval between two readings of /metrics."""
EXAMPLE: Final = ("tcp://*:5557", "tcp://*:5558")
"""Addresses in the examples of both: vllm/config/kv_events.py, sglang KVEventsConfig."""
_WILDCARDS: Final = ("*", "0.0.0.0", "::", "[::]")
_TCP: Final = re.compile(r"tcp://(.{1,255}):(\d{1,5})")


async def events_address(client: httpx2.AsyncClient, kind: ServerKind) -> EventsAddress | None:
    """Where a server publishes its KV events; None if it reports that it does not, or is of another kind.

    vLLM 0.32 lists them in /kv_event_sources, by the rank of each engine; the first is followed. For older versions the
    ports of the example are tried. SGLang lists them in /server_info. Raises UserError if the address is not TCP.
    """
    host = urlsplit(str(client.base_url)).hostname or ""
    place = f"[{host}]" if ":" in host else host
    try:
        match kind:
            case "vLLM":
                sources = await get_json(client, "/kv_event_sources")
                return _told_by_vllm(sources, place)
            case "SGLang":
                info = await get_json(client, "/server_info")
                told = obj(info).get("kv_events")
                return _told_by_sglang(told, place) if isinstance(told, dict) else None
            case _:
                return None
    except (ServerError, httpx2.HTTPError):
        return EventsAddress(*(_at(endpoint, place) for endpoint in EXAMPLE)) if kind == "vLLM" else None


def _told_by_vllm(sources: object, place: str) -> EventsAddress | None:
    """vLLM's description of its publishers (KVEventsConfig of vllm/config/kv_events.py), as bound by the server."""
    ranks = [one for one in sources.values() if isinstance(one, dict)] if isinstance(sources, dict) else []
    if not ranks or ranks[0].get("publisher") != "zmq":
        return None
    live, replay, topic = (ranks[0].get(k) for k in ("endpoint", "replay_endpoint", "topic"))
    again = _at(replay, place) if isinstance(replay, str) and replay else ""
    return EventsAddress(_at(str(live), place), again, topic[:200] if isinstance(topic, str) else "")


def _at(endpoint: str, place: str) -> str:
    """The address of an endpoint as bound by a server: wildcards mean its own host. Raises UserError."""
    if (found := _TCP.fullmatch(endpoint)) is None:
        sentence = tr("The server publishes its KV events at {address}, which only it can reach.")
        raise UserError(sentence.format(address=endpoint[:200]))
    host = place if found[1] in _WILDCARDS else found[1]
    return f"tcp://{host}:{found[2]}"


def _told_by_sglang(told: Mapping[str, Any], place: str) -> EventsAddress | None:
    """SGLang's description of its publisher (srt/runtime_context.py): wildcards mean the server's own host."""
    live, replay, topic = (told.get(k) for k in ("endpoint_port_base", "replay_endpoint_port_base", "topic"))
    named = told.get("endpoint_host")
    host = named if isinstance(named, str) and named and named not in _WILDCARDS else place
    if not _is_port(live):
        return None
    again = f"tcp://{host}:{replay}" if _is_port(replay) else ""
    return EventsAddress(f"tcp://{host}:{live}", again, topic[:200] if isinstance(topic, str) else "")


def _is_port(value: object) -> bool:
    return type(value) is int and 0 < value < 1 << 16


class BlockWatch:
    """Call `run` on the network's thread; cancelling ends it. `put` gets a `BlockMapView` after every change, from any
    thread.
    """

    def __init__(self, client: httpx2.AsyncClient, kind: ServerKind, put: Callable[[BlockMapView], None]) -> None:
        self._client, self._kind, self._put = client, kind, put
        self._address = ""
        self._heard = Heard(BlockMapView().blocks)
        self._metrics = ServerMetrics()
        self._problem = ""
        self._reader: BlockEventReader | None = None

    async def run(self) -> None:
        """Listen, and read the server's counters."""
        reader = None
        try:
            address = await events_address(self._client, self._kind)
            if address is not None:
                self._address = address.live
                reader = BlockEventReader(address, self._hear)
                reader.start()
                self._reader = reader
        except UserError as error:
            self._problem = str(error)
        self._tell()
        try:
            while True:
                metrics = await self._read_metrics()
                if metrics is not None and metrics != self._metrics:
                    self._metrics = metrics
                    self._tell()
                await asyncio.sleep(ASKED_S)
        finally:
            if reader is not None:
                await asyncio.to_thread(reader.close)

    async def used(self, model: str, messages: list[Any]) -> None:
        """A prompt was sent, so find its blocks. Not possible with servers that do not tokenize for clients."""
        if self._reader is None:
            return
        body = {"model": model, "messages": messages, "add_generation_prompt": True}
        timeout = httpx2.Timeout(15.0, connect=CONNECT_S)
        try:
            async with self._client.stream("POST", "/tokenize", json=body, timeout=timeout) as response:
                value = as_json(await read_ok(response))
        except (ServerError, httpx2.HTTPError):
            return
        tokens = obj(value).get("tokens")
        if isinstance(tokens, list) and all(type(token) is int for token in tokens):
            self._reader.use(tokens)

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _read_metrics(self) -> ServerMetrics | None:
        try:
            return read(await get_text(self._client, "/metrics"))
        except (ServerError, httpx2.HTTPError, ValueError):
            return None

    def _hear(self, heard: Heard) -> None:
        self._heard = heard
        self._tell()

    def _tell(self) -> None:
        heard = self._heard
        self._put(BlockMapView(heard.map, self._metrics, self._address, heard.problem or self._problem))
