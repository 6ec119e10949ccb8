"""KV events as vLLM and SGLang publish them: msgpack of `[ts, events, rank]`.

Sources: vllm/distributed/kv_events.py, sglang/srt/disaggregation/kv_events.py. An event is a map with its `type`
(SGLang 0.5, vLLM since #42892), or an array with its type first (before). Fields that are unknown here are ignored, and
so are events of an unknown type.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kvdesk.values import dataclass

BlockHash = str
"""What names a block, in hexadecimal digits: servers send an integer of 64 bits or the bytes of a SHA-256."""
MOST_BYTES: Final = 64 << 20
"""Of one message; a longer one is refused."""
DEFAULT_TIER: Final = "GPU"
"""Where a block lies that says nothing of its medium."""


class BadEvents(ValueError):
    """A message that is none of the known forms."""


@dataclass(frozen=True, slots=True)
class BlockStored:
    """Blocks in a row, each the child of the one before it; the first is the child of `parent` (None: it begins a
    prompt). token_ids: of all blocks together, `block_size` each. `group`: of layers with one kind of cache.
    """

    hashes: tuple[BlockHash, ...]
    parent: BlockHash | None
    token_ids: tuple[int, ...]
    block_size: int
    tier: str = DEFAULT_TIER
    group: int = 0


@dataclass(frozen=True, slots=True)
class BlockRemoved:
    """These blocks have left a tier."""

    hashes: tuple[BlockHash, ...]
    tier: str = DEFAULT_TIER
    group: int = 0


@dataclass(frozen=True, slots=True)
class AllBlocksCleared:
    """The cache is empty."""


BlockEvent = BlockStored | BlockRemoved | AllBlocksCleared


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step of a server changed. at_s: the server's own clock (Unix seconds)."""

    at_s: float
    events: tuple[BlockEvent, ...]


_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "BlockStored": (
        *("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name"),
        *("extra_keys", "group_idx"),
    ),
    "BlockRemoved": ("block_hashes", "medium", "group_idx"),
    "AllBlocksCleared": (),
}
"""In the order of the arrays."""


def decode(payload: bytes) -> Batch:
    """One message. Raises BadEvents."""
    if len(payload) > MOST_BYTES:
        raise BadEvents(f"a message of {len(payload)} bytes")
    try:
        value = msgspec.msgpack.decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadEvents(str(error)) from error
    if isinstance(value, dict):
        value = [value.get("ts"), value.get("events")]
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], list):
        raise BadEvents("neither [ts, events] nor a map of them")
    at_s = float(value[0]) if isinstance(value[0], int | float) and math.isfinite(value[0]) else 0.0
    return Batch(at_s, tuple(event for each in value[1] if (event := _event(each)) is not None))


def _event(value: Any) -> BlockEvent | None:
    """An event, or None if its type is not known. Raises BadEvents if its fields are of another kind."""
    if isinstance(value, list):
        name, *rest = value or [None]
        fields: Mapping[str, Any] = dict(zip(_FIELDS.get(name, ()), rest, strict=False)) if _is_text(name) else {}
    elif isinstance(value, dict):
        name, fields = value.get("type"), value
    else:
        raise BadEvents("an event is an array or a map")
    match name:
        case "BlockStored":
            return _stored(fields)
        case "BlockRemoved":
            return BlockRemoved(_hashes(fields), _tier(fields), _group(fields))
        case "AllBlocksCleared":
            return AllBlocksCleared()
        case _:
            return None


def _stored(fields: Mapping[str, Any]) -> BlockStored:
    hashes, size = _hashes(fields), fields.get("block_size")
    tokens, parent = fields.get("token_ids"), fields.get("parent_block_hash")
    if type(size) is not int or size < 1:
        raise BadEvents("block_size is no positive number")
    if not isinstance(tokens, Sequence) or not all(type(token) is int for token in tokens):
        raise BadEvents("token_ids are no numbers")
    first = None if parent is None else _hash(parent)
    return BlockStored(hashes, first, tuple(tokens), size, _tier(fields), _group(fields))


def _hashes(fields: Mapping[str, Any]) -> tuple[BlockHash, ...]:
    hashes = fields.get("block_hashes")
    if not isinstance(hashes, Sequence):
        raise BadEvents("block_hashes are no array")
    return tuple(map(_hash, hashes))


def _hash(value: object) -> BlockHash:
    if type(value) is bytes:
        return value.hex()
    if type(value) is int:
        return f"{value & (1 << 64) - 1:016x}"  # SGLang's are signed
    raise BadEvents("a hash is a number or bytes")


def _tier(fields: Mapping[str, Any]) -> str:
    tier = fields.get("medium")
    return tier[:40] if _is_text(tier) and tier else DEFAULT_TIER


def _group(fields: Mapping[str, Any]) -> int:
    group = fields.get("group_idx")
    return group if type(group) is int else 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)
