"""The blocks of a connected vLLM or SGLang: where it publishes them, and a view of them as they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from kvdesk.backends.openai.block_events import BlockEventReader, EventsAddress, Heard
from kvdesk.backends.openai.client import CONNECT_S, as_json, get_json, get_text, read_ok
from kvdesk.backends.openai.problems import ServerError
from kvdesk.backends.openai.server_metrics import read
from kvdesk.errors import UserError
from kvdesk.protocol.blocks import BlockMapView, ServerMetrics
from kvdesk.protocol.servers import ServerKind

ASKED_S: Final = 2.0
"""From one reading of /metrics to the next."""
LIVE_PORT, REPLAY_PORT = 5557, 5558
"""Those of the examples of both: vllm/config/kv_events.py, sglang KVEventsConfig."""


async def events_address(client: httpx2.AsyncClient, kind: ServerKind) -> EventsAddress | None:
    """Where a server publishes its KV events; None where it says that it does not, or is of another kind.

    SGLang tells in /server_info; vLLM does not tell, and the ports of its own example are tried.
    """
    host = urlsplit(str(client.base_url)).hostname or ""
    place = f"[{host}]" if ":" in host else host
    match kind:
        case "vLLM":
            return EventsAddress(f"tcp://{place}:{LIVE_PORT}", f"tcp://{place}:{REPLAY_PORT}")
        case "SGLang":
            try:
                info = await get_json(client, "/server_info")
            except (ServerError, httpx2.HTTPError):
                return None
            told = info.get("kv_events") if isinstance(info, dict) else None
            return _told(told, place) if isinstance(told, dict) else None
        case _:
            return None


def _told(told: Mapping[str, Any], place: str) -> EventsAddress | None:
    """SGLang's description of its publisher (srt/runtime_context.py): wildcards stand for the server's own host."""
    live, replay, topic = (told.get(k) for k in ("endpoint_port_base", "replay_endpoint_port_base", "topic"))
    named = told.get("endpoint_host")
    host = named if isinstance(named, str) and named and named not in ("*", "0.0.0.0", "::") else place
    if not _is_port(live):
        return None
    again = f"tcp://{host}:{replay}" if _is_port(replay) else ""
    return EventsAddress(f"tcp://{host}:{live}", again, topic[:200] if isinstance(topic, str) else "")


def _is_port(value: object) -> bool:
    return type(value) is int and 0 < value < 1 << 16


class BlockWatch:
    """Call `run` on the network's thread; it ends when it is cancelled. `put` gets a `BlockMapView` whenever something
    changed, from any thread.
    """

    def __init__(self, client: httpx2.AsyncClient, kind: ServerKind, put: Callable[[BlockMapView], None]) -> None:
        self._client, self._kind, self._put = client, kind, put
        self._address = ""
        self._heard = Heard(BlockMapView().blocks)
        self._metrics = ServerMetrics()
        self._problem = ""
        self._reader: BlockEventReader | None = None

    async def run(self) -> None:
        """Listen, and read what the server counts."""
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
        """A prompt was sent: find the blocks it is made of. Servers that do not tokenize for others leave it out."""
        if self._reader is None:
            return
        body = {"model": model, "messages": messages, "add_generation_prompt": True}
        timeout = httpx2.Timeout(15.0, connect=CONNECT_S)
        try:
            async with self._client.stream("POST", "/tokenize", json=body, timeout=timeout) as response:
                value = as_json(await read_ok(response))
        except (ServerError, httpx2.HTTPError):
            return
        tokens = value.get("tokens") if isinstance(value, dict) else None
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
