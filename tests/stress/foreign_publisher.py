"""A process that runs vLLM's or SGLang's own publisher, as its file came, without the rest of the engine.

    python foreign_publisher.py KV_EVENTS_PY

What that file imports from its engine is stood in for; everything that makes, packs, sends and replays is theirs.
Commands come as JSON lines on standard input, answers go to standard output:

    {"store": [[hash, ...], parent, [token, ...], block_size]}, {"remove": [hash, ...]}, {"clear": 1}
    {"dropped": event}     sent to nobody but kept for replay, as one that a full queue has lost
"""

import importlib.util
import json
import logging
import sys
import time
import types
from pathlib import Path
from typing import Any


class AnyClass:
    """Takes whatever it is given."""

    def __init__(self, *_args: Any, **_named: Any) -> None: ...


class AnyModule(types.ModuleType):
    """Has whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "ExternalBlockHash":
            return int | bytes
        return AnyClass if name[0].isupper() else lambda *_args, **_named: logging.getLogger("engine")


def load(path: Path) -> Any:
    """The file as a module, whatever it imports from its engine."""
    for name in (
        *("vllm", "vllm.config", "vllm.config.kv_events", "vllm.logger", "vllm.utils", "vllm.utils.network_utils"),
        *("vllm.v1", "vllm.v1.core", "vllm.v1.core.kv_cache_utils"),
        *("sglang", "sglang.srt", "sglang.srt.runtime_context", "sglang.srt.utils", "sglang.srt.utils.network"),
    ):
        sys.modules[name] = AnyModule(name)
    spec = importlib.util.spec_from_file_location("kv_events", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kv_events"] = module
    spec.loader.exec_module(module)
    return module


def event_of(module: Any, said: dict[str, Any]) -> Any:
    """An event of theirs. Fields that only some versions have are left out, or None if they must be given."""
    if "store" in said:
        hashes, parent, tokens, size = said["store"]
        fields = {"block_hashes": hashes, "parent_block_hash": parent, "token_ids": tokens, "block_size": size}
        return _made(module.BlockStored, fields | {"lora_id": None, "medium": "GPU", "lora_name": None})
    if "remove" in said:
        return _made(module.BlockRemoved, {"block_hashes": said["remove"], "medium": "GPU"})
    return module.AllBlocksCleared()


def _made(kind: Any, fields: dict[str, Any]) -> Any:
    return kind(**{name: value for name, value in fields.items() if name in kind.__struct_fields__})


def main(path: str, live: str, replay: str) -> None:
    module = load(Path(path))
    publisher = module.ZmqEventPublisher(0, endpoint=live, replay_endpoint=replay)
    heard = publisher._pub.send_multipart
    for line in sys.stdin:
        said = json.loads(line)
        lost = said.get("dropped")
        if lost:
            publisher._pub = types.SimpleNamespace(send_multipart=lambda _frames: None, close=lambda **_: None)
        publisher.publish(module.KVEventBatch(ts=time.time(), events=[event_of(module, lost or said)]))
        while publisher._event_queue.unfinished_tasks:
            time.sleep(0.001)
        if lost:
            publisher._pub = types.SimpleNamespace(send_multipart=heard, close=lambda **_: None)
        sys.stdout.write("ok\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
