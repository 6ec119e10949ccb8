"""What is shown of a llama-server that is watched, beside the slot files that it saves at that moment; and what levels
1 and 2 show beside a twin at level 3.

KVDESK_LLAMA_SERVER=…/llama-server   where it is (`serving`)
KVDESK_WATCHED_REQUESTS=2000         of all contexts together (default 120)
KVDESK_WINDOWED_MODEL=FILE           a real model with sliding windows of 512 tokens, such as Gemma 3 270M, which gets
                                     an eighth as many requests besides
"""

import os
import random
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import httpx2 as httpx
import numpy as np
import pytest

from kvdesk.engine_log.cells import CellsReader, ShownCache
from kvdesk.engine_log.lines import read_lines
from kvdesk.state_files.reading import open_file
from tests.backends.local.tiny_models import written
from tests.stress.serving import llama_server, needs_llama_server

N_REQUESTS: Final = int(os.environ.get("KVDESK_WATCHED_REQUESTS", "120"))
REAL: Final = os.environ.get("KVDESK_WINDOWED_MODEL", "")
CONTEXTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "streams": ("llama", ("-c", "1024", "-np", "4")),
    "unified": ("llama", ("-c", "512", "-np", "4", "--kv-unified", "--cache-ram", "0")),
    "idle slots saved": ("llama", ("-c", "512", "-np", "3", "--kv-unified", "--cache-ram", "64", "--cache-idle-slots")),
    "window": ("iswa", ("-c", "1024", "-np", "2")),
    "whole window": ("iswa", ("-c", "1024", "-np", "2", "--kv-unified", "--swa-full")),
} | ({"real window": ("real", ("-c", "4096", "-np", "2"))} if REAL else {})
CHECKED_EVERY: Final = 3
KILLED_EVERY: Final = max(11, N_REQUESTS // 50)
ENDED: Final = b" release: id "
KEPT: Final = re.compile(rb"cached n_tokens = (\d+), memory_seq_rm")
"""What a slot keeps of its cells for a request: less than it has, where it restores a checkpoint or reads all again."""
WRITTEN_S: Final = 60.0
pytestmark = [pytest.mark.stress, pytest.mark.timeout(7200), needs_llama_server]


class Watched:
    """The log of one server after another, with the cells printed at `level`."""

    def __init__(self, path: Path, level: int) -> None:
        self.path, self.level = path, level
        self._at = 0
        path.touch()

    @contextmanager
    def request(self) -> Iterator[None]:
        """A request whose end is in the log behind it: the server answers before its log is written."""
        self._at = self.path.stat().st_size
        yield
        over = time.monotonic() + WRITTEN_S
        while ENDED not in self._since(self._at):
            assert time.monotonic() < over, "the log does not show the end of the request"
            time.sleep(0.01)

    def kept(self) -> tuple[int, dict[tuple[bool, int], ShownCache]]:
        """The tokens that the last request kept, and what it printed first of each stream."""
        log = self._since(self._at)
        found = KEPT.search(log)
        assert found
        return int(found[1]), printed(log[found.end() :], last=False)

    def last(self) -> dict[tuple[bool, int], ShownCache]:
        """What the whole log printed last of each stream."""
        return printed(self._since(0), last=True)

    def numbers(self) -> list[object]:
        """Each dump of the whole log without its maps, in order."""
        reader, found = CellsReader(), list[object]()
        for line in read_lines([self._since(0)]):
            if reader.feed(line):
                cache = max(reader.caches.values(), key=lambda one: one.at_line)
                found.append((cache.line, cache.spans))
        return found

    def _since(self, at: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(at)
            return file.read()


def printed(log: bytes, *, last: bool) -> dict[tuple[bool, int], ShownCache]:
    """What the log printed of each stream, first or last."""
    reader, first = CellsReader(), dict[tuple[bool, int], ShownCache]()
    for line in read_lines([log]):
        reader.feed(line)
        first = {**reader.caches, **first}
    reader.close()
    return reader.caches if last else {**reader.caches, **first}


def file_of(kind: str, folder: Path) -> Path:
    return Path(REAL) if kind == "real" else written(folder, kind, text=True)


@contextmanager
def serving(model: Path, options: tuple[str, ...], slots: Path, watched: Watched) -> Iterator[httpx.Client]:
    environment = {"LLAMA_KV_CACHE_DEBUG": str(watched.level)}
    with (
        watched.path.open("ab") as log,
        llama_server(
            model, *options, "-lv", "5", "--slot-save-path", f"{slots}{os.sep}", environment=environment, log=log
        ) as http,
    ):
        yield http


def ask(http: httpx.Client, watched: Watched, prompt: list[int], slot: int, n: int = 2) -> None:
    body = {"prompt": prompt, "n_predict": n, "temperature": 0.0, "ignore_eos": True, "id_slot": slot}
    with watched.request():
        answer = http.post("/completion", json=body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", CONTEXTS)
def test_cells_are_those_of_the_slot_files(name: str, tiny_folder: Path, tmp_path: Path) -> None:
    kind, options = CONTEXTS[name]
    watched, slots = Watched(tmp_path / "server.log", 3), tmp_path / "slots"
    slots.mkdir()
    n_slots = int(options[options.index("-np") + 1])
    draw, numbers = random.Random(name), count()
    prompts: dict[int, list[int]] = {}
    n_asked = left = N_REQUESTS // 5 // (8 if kind == "real" else 1)
    longest = 900 if kind == "real" else 90  # more than a window, which has 32 tokens in a tiny model
    n_checked = n_whole = 0
    while left > 0:
        with serving(file_of(kind, tiny_folder), options, slots, watched) as http:  # killed at the end of the block
            for _ in range(min(left, KILLED_EVERY)):
                left -= 1
                slot = draw.randrange(n_slots)
                prompt = prompts.get(slot, [])[: draw.choice((0, longest // 4, longest))]
                prompt += [3 + draw.randrange(90) for _ in range(draw.randint(5, longest // 2))]
                prompt = prompt[-longest:]
                prompts[slot] = prompt
                ask(http, watched, prompt, slot)
                if left % CHECKED_EVERY == 0:
                    path = slots / f"{next(numbers)}.bin"
                    n_whole += _check(http, path, slot, watched, f"{left} left")
                    path.unlink()
                    n_checked += 1
    assert n_checked >= n_asked // CHECKED_EVERY
    assert n_whole > n_checked / 5  # a real window keeps checkpoints far apart
    sys.stdout.write(f"{n_asked + n_checked:,} requests, {n_checked:,} slot files, {n_whole:,} of them whole\n")


def _check(http: httpx.Client, path: Path, slot: int, watched: Watched, where: str) -> bool:
    """The cells printed before the next ubatch of a slot are those of its file. False: the server kept fewer."""
    saved = http.post(f"/slots/{slot}?action=save", json={"filename": path.name})
    assert saved.status_code == 200, saved.text
    file = open_file(path).file
    assert file.tokens is not None
    assert len(file.tokens) == saved.json()["n_saved"], where
    ask(http, watched, [*file.tokens, 7], slot, n=1)
    n_kept, shown = watched.kept()
    for number, streams in enumerate(file.caches):
        runs = [run for stream in streams for run in stream.runs]  # of one stream: the others are empty
        expected = [pos for first, last in runs for pos in range(first, last + 1) if pos < n_kept]
        found: list[int] = []
        for (is_window, _), cache in shown.items():
            if is_window == (number == 1) and cache.cells is not None:
                cells = cache.cells
                ours = (cells.seq_bits[:, slot // 64] >> np.uint64(slot % 64)) & np.uint64(1) == 1
                found += cells.pos[ours].tolist()
        if number == 1 and expected and found:  # a file leaves out what the window does not see any more
            low = max(expected[0], min(found)) if n_kept < len(file.tokens) else expected[0]
            expected, found = ([pos for pos in some if pos >= low] for some in (expected, found))
        assert sorted(found) == expected, where
    return n_kept == len(file.tokens)


@pytest.mark.parametrize("name", CONTEXTS)
def test_levels_1_and_2_show_what_a_twin_shows_or_nothing(name: str, tiny_folder: Path, tmp_path: Path) -> None:
    kind, options = CONTEXTS[name]
    logs = {level: Watched(tmp_path / f"{level}.log", level) for level in (1, 2, 3)}
    for watched in logs.values():
        draw = random.Random(name)
        with serving(file_of(kind, tiny_folder), options, tmp_path, watched) as http:
            for _ in range(max(4, N_REQUESTS // 30)):
                prompt = [3 + draw.randrange(90) for _ in range(draw.randint(5, 60))]
                ask(http, watched, prompt, draw.randrange(2))
    assert logs[1].numbers() == logs[2].numbers() == logs[3].numbers() != []
    for level, watched in logs.items():
        for (is_window, _), cache in watched.last().items():
            assert (cache.cells is not None) == (level == 3 or (level == 2 and is_window))
