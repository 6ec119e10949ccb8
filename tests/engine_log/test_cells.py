"""Cells as another engine printed them: plain logs and JSON lines, every level, windows, ubatches."""

import json
from pathlib import Path

import numpy as np
import pytest

from kvdesk.cache.dump import render_position_map, render_sequence_map
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.cache.seq_bits import seq_members
from kvdesk.engine_log.cells import CellsReader, cache_lines
from kvdesk.engine_log.journal import CellsJournal
from kvdesk.engine_log.lines import LONGEST, LogLine, read_lines

LOGS = Path(__file__).parent / "logs"


def messages(n: int, shared: int = 0, level: int = 3, n_swa: int = 0, stream: int = 0, size: int = 256) -> list[str]:
    """What the engine logs of a stream with `n` cells of sequence 0, the first `shared` of 1 too."""
    cells = StreamCells(size, 4)
    seq_ids = [(0, 1)] * shared + [(0,)] * (n - shared)
    if n:
        cells.place(np.arange(n), np.arange(n, dtype=np.int32), seq_ids, np.zeros(n, dtype=np.int32), 1)
    frozen = cells.freeze()
    counts = f"n = {n:5}, used = {n:5}, head = {frozen.head:5}, size = {size:5}, n_swa = {n_swa:5}"
    maps = [render_sequence_map(frozen), render_position_map(frozen)] if level == 3 else []
    spans = [(0, n)] * bool(n) + [(1, shared)] * bool(shared)
    return [
        f"find_slot: stream[{stream}], {counts}\n",
        *maps,
        *(f"find_slot: stream[{stream}] min[{s}] =     0, max[{s}] = {end - 1:5}\n" for s, end in spans),
    ]


def read(log: str) -> CellsReader:
    reader = CellsReader()
    for line in read_lines([log.encode()]):
        reader.feed(line)
    reader.close()
    return reader


def plain(said: list[str], prefix: str = "0.05.100.000 D ") -> str:
    return "".join(prefix + message for message in said)


def as_json(said: list[str]) -> str:
    return "".join(json.dumps({"type": "log", "level": "debug", "msg": message}) + "\n" for message in said)


@pytest.mark.parametrize("form", [plain, as_json])
def test_the_last_dump_is_shown_with_its_ubatch(form: object) -> None:
    assert callable(form)
    said = [*messages(40), "decode: something\n", *messages(60, shared=10)]
    (cache,) = read(form(said)).caches.values()
    assert (cache.name, cache.line.used, cache.ubatch) == ("kv", 60, 2)
    assert cache.clock == ("0.05.100.000" if form is plain else "")
    assert cache.cells.pos.tolist() == list(range(60))
    assert np.bitwise_count(cache.cells.seq_bits).sum(axis=1).tolist() == [2] * 10 + [1] * 50
    text = "\n".join(cache_lines(cache))
    assert "as printed by the engine at ubatch 2 (line " in text
    assert "60 of 256 cells used · high water 60 · head 0 · n_kv 256 · 0.0% holes · 1 free run · 10 shared" in text
    assert "sequence 0: positions 0 to 59 · 60 cells" in text
    assert f"[MMM{'0' * 12}{'.' * 49}]" in text
    assert "verified" not in text


def test_dumps_of_a_real_server() -> None:
    """Made by an unmodified llama-server: two slots in one stream as text, a window model as JSON lines."""
    plain_log = read((LOGS / "cells-2026-11.log").read_text())
    (cache,) = plain_log.caches.values()
    assert (cache.cells.size, cache.cells.pos.tolist()) == (512, list(range(62)))
    windowed = read((LOGS / "cells-2026-11.jsonl").read_text())
    assert [(c.name, c.ubatch) for c in windowed.caches.values()] == [("base", 1), ("window", 1)]
    for cache in windowed.caches.values():
        assert (cache.cells.size, cache.cells.pos.tolist()) == (256, list(range(92)))


@pytest.mark.parametrize("first", [0, 9_990, 99_000])
@pytest.mark.parametrize("n_bytes", [1, 7, 300, 1 << 20])
def test_a_map_that_is_cut_anywhere_has_the_same_cells_and_line_numbers(first: int, n_bytes: int) -> None:
    cells = StreamCells(512, 4)
    pos = first + np.arange(20, dtype=np.int32)
    cells.place(np.arange(40, 60), pos, [(0,)] * 20, np.zeros(20, dtype=np.int32), 1)
    frozen = cells.freeze()
    said = [
        "find_slot: stream[0], n =    60, used =    20, head =    60, size =   512, n_swa =     0\n",
        *(render_sequence_map(frozen), render_position_map(frozen)),
        f"find_slot: stream[0] min[0] = {first:5}, max[0] = {first + 19:5}\n",
    ]
    data = (plain(said) + "0.05.100.000 I the end\n").encode()
    reader, last = CellsReader(), LogLine(0, "")
    for last in read_lines(data[i : i + n_bytes] for i in range(0, len(data), n_bytes)):
        reader.feed(last)
    reader.close()
    assert (last.number, last.text) == (data.count(b"\n"), "the end")
    (cache,) = reader.caches.values()
    assert cache.cells.pos.tolist() == [-1] * 40 + pos.tolist()


def test_a_shared_cell_belongs_to_those_that_have_no_other_there() -> None:
    """Sequences 0 and 1 share a prompt, 2 has its own. Which of two shared cells is whose the log does not show."""
    for n_pairs, expected in ((1, [(0, 1)] * 4 + [(2,)] * 4), (2, [()] * 4 + [(4,)] * 4 + [()] * 4)):
        cells = StreamCells(256, 4)
        seq_ids = [(0, 1)] * 4 + [(2 * n_pairs,)] * 4 + [(2, 3)] * 4 * (n_pairs - 1)
        pos = np.tile(np.arange(4, dtype=np.int32), n_pairs + 1)
        cells.place(np.arange(len(pos)), pos, seq_ids, np.zeros(len(pos), dtype=np.int32), 1)
        frozen, n = cells.freeze(), len(pos)
        said = [
            f"find_slot: stream[0], n = {n:5}, used = {n:5}, head = {frozen.head:5}, size =   256, n_swa =     0\n",
            *(render_sequence_map(frozen), render_position_map(frozen)),
            *(f"find_slot: stream[0] min[{s}] =     0, max[{s}] =     3\n" for s in range(2 * n_pairs + 1)),
        ]
        (cache,) = read(plain(said)).caches.values()
        assert [tuple(seq_members(bits)) for bits in cache.cells.seq_bits] == expected


def test_level_1_shows_numbers_and_positions() -> None:
    (cache,) = read(plain(messages(40, level=1))).caches.values()
    assert cache.cells is None
    text = "\n".join(cache_lines(cache))
    assert "sequence 0: positions 0 to 39" in text
    assert "not printed at this level" in text


def test_lines_of_other_threads_between_those_of_a_dump_leave_it_whole() -> None:
    """A server takes requests in while it decodes."""
    reader, n_found = CellsReader(), 0
    said = [part for message in messages(40, shared=4) for part in (message, "que  process_new_: task declined\n")]
    for line in read_lines([plain([*said, "slot process_toke: id  0\n"]).encode()]):
        n_found += reader.feed(line)
    (cache,) = reader.caches.values()
    assert (n_found, len(cache.spans), cache.ubatch) == (1, 2, 1)
    assert np.bitwise_count(cache.cells.seq_bits).sum(axis=1).tolist() == [2] * 4 + [1] * 36


def test_a_window_cache_is_beside_its_base() -> None:
    reader = read(plain([*messages(50, n_swa=0), *messages(30, n_swa=32, level=1)] * 2))
    assert [(cache.name, cache.line.used) for cache in reader.caches.values()] == [("base", 50), ("window", 30)]


def test_searches_of_one_ubatch_are_one() -> None:
    """Two sequences in one batch are two searches: alike in one stream, in streams of their own otherwise."""
    two = messages(40, level=1) * 2
    assert [cache.ubatch for cache in read(plain(two)).caches.values()] == [1]
    streams = [*messages(40, level=1), *messages(20, level=1, stream=1)]
    for n_lines in (1, 2):  # several of a slot come as one
        reader = read(plain([*streams, *["slot update_slots: id  0 | task 1 | decoding\n"] * n_lines, *streams]))
        assert [cache.ubatch for cache in reader.caches.values()] == [2, 2]
    growing = [*messages(40, level=1), *messages(60, level=1)]
    assert [cache.ubatch for cache in read(plain(growing)).caches.values()] == [2]


def test_a_dump_that_was_cut_off_has_no_cells() -> None:
    said = plain(messages(40))
    for end in range(100, len(said), 97):
        for cache in read(said[:end]).caches.values():
            assert cache.cells is None or cache.cells.pos.tolist() == list(range(40))
    assert not read("find_slot: nonsense\n0001..\n").caches


def slot_line(size: object = 256) -> str:
    return f"find_slot: stream[0], n =     0, used =     0, head =     0, size = {size:>5}, n_swa =     0\n"


@pytest.mark.parametrize(
    "text",
    [
        slot_line(size="9" * 5000),
        plain(messages(1, stream=10**9)),
        plain(messages(0)) + "find_slot: stream[0] min[0] = 3, max[0] = 9\n",
        plain(messages(40, shared=10)).replace("min[1]", "min[300]").replace("max[1]", "max[300]"),
    ],
)
def test_numbers_that_no_engine_writes_raise_nothing(text: str) -> None:
    for (_, stream), cache in read(text).caches.items():
        assert stream < 1000
        assert list(cache_lines(cache))


@pytest.mark.timeout(20)
def test_dumps_without_an_end_stay_bounded() -> None:
    reader = CellsReader()
    for i, text in enumerate([slot_line()] * 3000 + ["find_slot: stream[0] min[0] = 0, max[0] = 1"] * 3000):
        reader.feed(LogLine(i, text.strip()))
    assert (len(reader.caches), len(reader._searches), len(reader._dumps._spans)) == (1, 1, 256)
    for i in range(9):
        reader.feed(LogLine(i, "1" + " " * 1_000_000 + "x" * (i % 2)))
    assert reader._messages._n_chars <= LONGEST


def test_streams_of_different_sizes_are_of_different_contexts() -> None:
    journal = CellsJournal()
    for size in (512, 256):
        journal.take(read(plain([*messages(40), *messages(size - 56, stream=1, size=size)])).caches)
        (shape,) = journal.recording().shape.caches
        assert (shape.n_streams, shape.size) == (2, size)


def test_more_cells_than_a_computer_has_are_not_recorded() -> None:
    journal = CellsJournal()
    journal.take(read(plain(messages(9, stream=255, size=32_768))).caches)
    assert journal.recording() is None
