"""The block map against the unmodified publishers of vLLM and SGLang over real ZMQ: a random history, lost messages
that are asked for again, and a start anew. Where their files are is told by

    KVDESK_KV_EVENTS   paths of `kv_events.py`, separated as in PATH: sglang/srt/disaggregation/kv_events.py of SGLang's
                       wheel, vllm/distributed/kv_events.py of vLLM's source distributions (before and since #42892)
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvdesk.backends.openai.block_events import BlockEventReader, EventsAddress
from kvdesk.blocks.tree import BlockMap
from tests.backends.openai.test_block_events import Ear
from tests.places import free_port

PATHS = [Path(path) for path in os.environ.get("KVDESK_KV_EVENTS", "").split(os.pathsep) if path]
N_EVENTS = 400
SIZE = 4


class Theirs:
    """Their publisher in a process of its own."""

    def __init__(self, path: Path, address: EventsAddress) -> None:
        script = str(Path(__file__).with_name("foreign_publisher.py"))
        wild = [end.replace("127.0.0.1", "*") for end in (address.live, address.replay)]
        command = [sys.executable, script, str(path), *wild]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, event: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps(event) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


class Model:
    """What must be known: a plain dictionary of hash to parent."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.parents: dict[int, int | None] = {}

    def event(self) -> dict[str, Any]:
        """The next one: mostly prompts that go on from others, sometimes an eviction, rarely an empty cache."""
        draw = self.rng.random()
        if draw < 0.01:
            self.parents.clear()
            return {"clear": 1}
        if draw < 0.25 and self.parents:
            gone = self.rng.sample(sorted(self.parents), min(3, len(self.parents)))
            for name in gone:
                del self.parents[name]
            return {"remove": gone}
        parent = self.rng.choice([None, *sorted(self.parents)])
        names = [self.rng.getrandbits(63) for _ in range(self.rng.randint(1, 5))]
        at = parent
        for name in names:
            self.parents[name], at = at, name
        tokens = [self.rng.randrange(50_000) for _ in range(SIZE * len(names))]
        return {"store": [names, parent, tokens, SIZE]}


def edges(shown: BlockMap) -> dict[str, str | None]:
    return {block.key[1]: block.parent[1] if block.parent else None for block in shown.blocks}


def digits(name: int | None) -> str | None:
    return None if name is None else f"{name:016x}"


@pytest.mark.stress
@pytest.mark.skipif(not PATHS, reason="KVDESK_KV_EVENTS names no files of vLLM or SGLang")
@pytest.mark.parametrize("path", PATHS, ids=[path.parts[-4] if len(path.parts) > 3 else str(path) for path in PATHS])
def test_the_map_is_what_their_own_publisher_tells(path: Path) -> None:
    address, ear = EventsAddress(*(f"tcp://127.0.0.1:{free_port()}" for _ in range(2))), Ear()
    theirs = Theirs(path, address)
    reader = BlockEventReader(address, ear.hear)
    try:
        for seed in (1, 2):  # the second time its numbers begin anew
            model = Model(seed)
            for i in range(N_EVENTS):
                event = model.event()
                theirs.say({"dropped": event} if i % 7 == 3 and i < N_EVENTS - 7 else event)
                if seed == 1 and i == N_EVENTS // 4:
                    reader.start()  # what was before it is asked for
            wanted = {digits(name): digits(parent) for name, parent in model.parents.items()}
            heard = ear.wait(lambda now, wanted=wanted: edges(now.map) == wanted)
            shown = heard.map
            assert not heard.problem
            assert shown.n_missed == 0
            assert shown.n_restarts == seed - 1
            assert all(len(block.token_ids) == SIZE for block in shown.blocks)
            if seed == 1:
                theirs.kill()
                theirs = Theirs(path, address)
    finally:
        reader.close()
        theirs.kill()
