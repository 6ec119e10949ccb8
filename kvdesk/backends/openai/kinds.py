"""Finds out what a server is by asking it. A kind is a name, what its /v1/models says about it, and what it shows.

To add a kind, add a line to `KINDS`: the owner of its models, the features that the window has with it, and a function
that asks for more.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import httpx2

from kvdesk.backends.openai.block_watch import events_address
from kvdesk.backends.openai.client import get_json, get_text
from kvdesk.backends.openai.problems import KeyRefused, Nonsense, ServerError
from kvdesk.errors import UserError
from kvdesk.loose_json import obj
from kvdesk.protocol.features import Feature
from kvdesk.protocol.servers import ServerFound, ServerKind
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass

CHAT: Final = frozenset({Feature.CHAT, Feature.CONTINUE})
MOST_MODELS: Final = 1000
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a server answered. `entries`: of its models, by name; `n_ctx`: tokens of a context, 0 if unknown."""

    found: ServerFound
    entries: Mapping[str, Json]
    n_ctx: int = 0


async def ask(client: httpx2.AsyncClient) -> Asked:
    """Ask a server what it is. Raises ServerError and the errors of httpx2."""
    value = await get_json(client, "/v1/models")
    data = obj(value).get("data", "")
    if data is None or data == []:  # Ollama: null
        raise ServerError(tr("The server has no model yet. Download or load one there, then connect again."))
    rows = data if isinstance(data, list) else []
    entries = {e["id"]: e for e in rows if isinstance(e, dict) and isinstance(e.get("id"), str)}
    if not entries:
        raise Nonsense(f"/v1/models: {str(value)[:300]}")
    owner = next(iter(entries.values())).get("owned_by")
    kind, look = KINDS.get(owner if isinstance(owner, str) else "", ("other", _nothing))
    looked = await look(client, next(iter(entries.values())))
    models = tuple(entries)[:MOST_MODELS]
    found = ServerFound(kind, models, tuple(looked.facts), looked.features, looked.limit)
    return Asked(found, entries, looked.n_ctx)


class Looked(NamedTuple):
    """What a kind of server reports about itself, see `ServerFound`. `n_ctx`: tokens of a context."""

    facts: list[str]
    features: frozenset[Feature]
    n_ctx: int
    limit: str = ""


async def _nothing(_client: httpx2.AsyncClient, entry: Json) -> Looked:
    """A server about which only chats are known. vLLM and others report the length of a model's context."""
    n_ctx = _int(entry.get("max_model_len")) or _int(obj(entry.get("meta")).get("n_ctx"))
    facts = [tr("It answers chats but does not show its cache.")]
    if n_ctx:
        facts.append(tr("Context: {n:,} tokens.").format(n=n_ctx))
    return Looked(facts, CHAT, n_ctx)


async def _llama_server(client: httpx2.AsyncClient, entry: Json) -> Looked:
    """llama.cpp's own server: build, slots and context from /props, what is busy from /slots, and whether it counts."""
    facts = []
    props = await _optional(client, "/props")
    n_ctx = _int(obj(props.get("default_generation_settings")).get("n_ctx"))
    n_ctx = n_ctx or _int(obj(entry.get("meta")).get("n_ctx"))
    if isinstance(build := props.get("build_info"), str):
        facts.append(tr("llama-server, build {build}.").format(build=build[:60]))
    n_slots = _int(props.get("total_slots"))
    slots = await _optional(client, "/slots")
    if isinstance(rows := slots.get(""), list):
        n_busy, n_rows = sum(obj(row).get("is_processing") is True for row in rows), n_slots or len(rows)
        many = tr("{n} slots with {n_ctx:,} tokens each, {busy} of them busy.")
        one = tr("One slot with {n_ctx:,} tokens, busy.") if n_busy else tr("One slot with {n_ctx:,} tokens, not busy.")
        facts.append((one if n_rows == 1 else many).format(n=n_rows, n_ctx=n_ctx, busy=n_busy))
    elif n_slots:
        said = plural("One slot with {n_ctx:,} tokens.", "%n slots with {n_ctx:,} tokens each.", n_slots)
        facts.append(said.format(n_ctx=n_ctx))
    facts.append(await _counted(client))
    facts.append(tr("Each answer shows how much of its prompt came from the cache."))
    limit = tr(
        "llama-server does not report its cells. Start it with “kvdesk watch -- llama-server …” to see them live."
    )
    return Looked(facts, CHAT, n_ctx, limit)


async def _publisher(kind: ServerKind, client: httpx2.AsyncClient, entry: Json) -> Looked:
    """Blocks, unless the server reports that it does not publish them."""
    (_, *facts), _, n_ctx, _ = await _nothing(client, entry)
    limit = tr("{kind}. Start it with --kv-events-config to see its blocks.").format(kind=kind)
    try:
        if await events_address(client, kind) is None:
            return Looked(facts, CHAT, n_ctx, limit)
    except UserError as error:
        return Looked(facts, CHAT, n_ctx, str(error))
    told = tr("{kind}. Its KV events show its blocks.").format(kind=kind)
    return Looked([told, *facts], CHAT | {Feature.BLOCK_MAP}, n_ctx)


async def _counted(client: httpx2.AsyncClient) -> str:
    """What /metrics reports about tokens computed so far."""
    try:
        text = await get_text(client, "/metrics")
    except (ServerError, httpx2.HTTPError):
        return tr("Its counters are off; start llama-server with --metrics.")
    read = _metric(text, "llamacpp:prompt_tokens_total")
    written = _metric(text, "llamacpp:tokens_predicted_total")
    return tr("So far it has read {read:,} tokens and written {written:,}.").format(read=read, written=written)


async def _kvdesk(client: httpx2.AsyncClient, entry: Json) -> Looked:
    """Another kvdesk shows its cache to a key that may look."""
    (_, *facts), _, n_ctx, _ = await _nothing(client, entry)
    try:
        await get_json(client, "/kv/map")
    except KeyRefused:
        if "Authorization" in client.headers:
            limit = tr("It does not show its cells to this key. Start it with --inspect-key and connect with that key.")
        else:
            limit = tr("It shows its cells to a key only. Start it with --inspect-key and connect with that key.")
        return Looked([tr("Another kvdesk. It answers chats."), *facts], CHAT, n_ctx, limit)
    except ServerError as error:
        limit = tr("Its cache is not shown: {why}").format(why=error)
        return Looked([tr("Another kvdesk. It answers chats."), *facts], CHAT, n_ctx, limit)
    told = tr("Another kvdesk: its cells are shown as they change, and it verifies them itself.")
    return Looked([told, *facts], CHAT | {Feature.CACHE_VIEW}, n_ctx)


KINDS: Final[Mapping[str, tuple[ServerKind, Callable[[httpx2.AsyncClient, Json], Awaitable[Looked]]]]] = {
    "kvdesk": ("kvdesk", _kvdesk),
    "llamacpp": ("llama-server", _llama_server),
    "vllm": ("vLLM", partial(_publisher, "vLLM")),
    "sglang": ("SGLang", partial(_publisher, "SGLang")),
}
"""By the owner that /v1/models names. Any other server can only chat."""


async def _optional(client: httpx2.AsyncClient, path: str) -> Json:
    """An object, a list as the member "", or nothing if the server does not offer the path."""
    try:
        value = await get_json(client, path)
    except (ServerError, httpx2.HTTPError):
        return {}
    return value if isinstance(value, dict) else {"": value}


def _metric(text: str, name: str) -> int:
    """A counter in Prometheus's text format, 0 if it is missing."""
    for line in text.splitlines():
        if line.startswith((f"{name} ", f"{name}{{")):
            try:
                return int(float(line.rsplit(" ", 1)[1]))
            except (ValueError, OverflowError):
                return 0
    return 0


def _int(value: object) -> int:
    return value if type(value) is int and 0 < value < 1 << 40 else 0
