"""Journals as files: what is read back is what was written, and no file does harm."""

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvdesk.cache.geometry import ModelFacts
from kvdesk.cache.journal import file as journal_file
from kvdesk.cache.journal import recording
from kvdesk.cache.journal.file import JournalHeader, journal_lines, load_journal, save_journal
from kvdesk.errors import UserError
from tests.cache.journals import FACTS, Player, assert_same_maps

HEADER = JournalHeader("tiny.gguf", {"kvdesk": "0.1.0", "llama.cpp": "0c1e57098"})
SHARED = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SHARED
@given(
    facts=st.sampled_from(FACTS),
    unified=st.booleans(),
    n_seq_max=st.sampled_from([3, 70]),
    seed=st.integers(0, 2**32 - 1),
    small=st.booleans(),
)
def test_round_trip(tmp_path: Path, facts: ModelFacts, unified: bool, n_seq_max: int, seed: int, small: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(recording, "_CHUNK_OPERATIONS", 3)
            patch.setattr(journal_file, "_LINE_VALUES", 10)
        player = Player(facts, unified, False, n_seq_max, seed)
        states = player.play(25)
        save_journal(tmp_path / "a.jsonl", player.journal.recording(), HEADER)
    header, loaded = load_journal(tmp_path / "a.jsonl")
    assert header == HEADER
    for number, maps in states.items():
        assert_same_maps(loaded.state_at(number), maps)
    assert loaded.operations(0, 10**6) == player.journal.recording().operations(0, 10**6)
    assert list(journal_lines(loaded, header)) == list(journal_lines(player.journal.recording(), header))


def test_a_journal_that_lost_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_CHUNK_OPERATIONS", 4)
    monkeypatch.setattr(recording, "_SEGMENT_CHUNKS", 1)
    player = Player(FACTS[1], True, True, 3, seed=3)
    player.journal._recorder._max_packed_bytes = 45_000
    states = player.play(80)
    frozen = player.journal.recording()
    assert frozen.start > 0
    save_journal(tmp_path / "late.jsonl", frozen, HEADER)
    _, loaded = load_journal(tmp_path / "late.jsonl")
    assert (loaded.start, loaded.first, loaded.last) == (frozen.start, frozen.first, frozen.last)
    for number in range(loaded.start, loaded.last + 1):
        assert_same_maps(loaded.state_at(number), states[number])


def lines(**changes: Any) -> list[dict[str, Any]]:
    header = {
        "format": "kvdesk-journal",
        "version": 1,
        "versions": {},
        "model": "",
        "caches": [{"name": "kv", "streams": 1, "size": 8, "n_swa": 0}],
        "words": 1,
        "start": 0,
        "heads": [],
        "cells": [],
    }
    first = {"n": 1, "at": 1.0, "name": "decode", "call": "", "ms": 1.0, "conversation": "", "reason": ""}
    first |= {"heads": [[0, 2]], "cells": [[0, 0, 2, 0, [0], 1, [5, 6]]]}
    second = first | {"n": 2, "name": "seq_rm", "heads": [], "cells": [[0, 1, 1]]}
    for key, value in changes.items():
        (header if key in header and key not in ("heads", "cells") else first)[key] = value
    return [header, first, second]


def write(path: Path, values: list[Any]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def test_the_documented_format(tmp_path: Path) -> None:
    _, loaded = load_journal(write(tmp_path / "j", lines()))
    stream = loaded.state_at(1)[0].streams[0]
    assert (stream.pos.tolist(), stream.token.tolist(), stream.head) == ([0, 1], [5, 6], 2)
    assert loaded.state_at(2)[0].streams[0].used == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"},
        {"version": 2},
        {"version": "1"},
        {"versions": []},
        {"versions": {"a": 1}},
        {"model": 7},
        {"caches": {}},
        {"caches": [{"name": "kv", "streams": 1, "size": 2**40, "n_swa": 0}]},
        {"caches": [{"name": "kv", "streams": 10**9, "size": 1, "n_swa": 0}]},
        {"caches": [{"name": "kv", "streams": 1, "size": 8, "n_swa": 0}] * 2},
        {"caches": [{"name": "what", "streams": 1, "size": 8, "n_swa": 0}]},
        {"caches": [{"name": "kv", "streams": 1, "size": 8, "n_swa": 0, "swa_type": "round"}]},
        {"caches": [{"name": "kv", "streams": 1, "size": 8, "n_swa": 0, "swa_type": []}]},
        {"caches": []},
        {"words": 5},
        {"start": 1},
        {"start": -1},
        {"n": 0},
        {"n": True},
        {"n": 10**30},
        {"at": "now"},
        {"at": None},
        {"at": 1e300},
        {"at": 10**400},
        {"ms": -(10**400)},
        {"ms": float("nan")},
        {"ms": float("inf")},
        {"name": None},
        {"call": "x" * 5000},
        {"heads": [[0, 9]]},
        {"heads": [[1, 0]]},
        {"heads": [[0, 0], [0, 0]]},
        {"heads": "no"},
        {"cells": {}},
        {"cells": [[0, 0]]},
        {"cells": [[0, 0, 9, 0, [0], 1, [1] * 9]]},
        {"cells": [[0, 7, 2, 0, [0], 1, [1, 2]]]},
        {"cells": [[0, 0, 2, 0, [0], 1, [1]]]},
        {"cells": [[0, 0, 1, -2, [0], 1, [1]]]},
        {"cells": [[0, 0, 1, 2**31, [0], 1, [1]]]},
        {"cells": [[0, 0, 1, 0, [64], 1, [1]]]},
        {"cells": [[0, 0, 1, 0, [-1], 1, [1]]]},
        {"cells": [[0, 0, 1, 0, [0] * 99, 1, [1]]]},
        {"cells": [[0, 0, 1, 0, [0], 2, [1]]]},
        {"cells": [[0, 0, 1, 0, [0], 1, [2**31]]]},
        {"cells": [[0, 0, 1, 0, [0], 1, [0.5]]]},
        {"cells": [[1, 0, 1, 0, [0], 1, [1]]]},
        {"cells": [[0, 0, 8]]},  # empty already
        {"cells": [[0, 0, 1, 0, [0], 1, [1]]] * 2},
        {"cells": [[0, 0, 1, 0, [0], 1, [1]]] * 5000},
    ],
)
def test_damaged(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        load_journal(write(tmp_path / "j", lines(**changes)))


def test_what_a_kill_or_a_full_disk_cut_off_is_left_out(tmp_path: Path) -> None:
    """Wherever that was: the operations before are read, and no part of one."""
    header, first, second = lines(cells=[[0, 0, 1, 0, [0], 1, [5]]])
    path = write(tmp_path / "j", [header, first, {"more": [[0, 1, 1, 1, [0], 1, [6]]]}, second])
    whole = path.read_bytes()
    begin, first_line, first_end, second_end = (i for i, byte in enumerate(whole) if byte == ord("\n"))
    for n in range(begin + 4, len(whole)):
        if n in (first_line, first_line + 1):  # nothing tells that the operation goes on
            continue
        path.write_bytes(whole[:n])
        _, loaded = load_journal(path)
        may_go_on = first_end + 1 < n < first_end + 4
        assert loaded.last == (n >= first_end and not may_go_on) + (n >= second_end)
        assert loaded.state_at(loaded.last)[0].streams[0].used == (0, 2, 1)[loaded.last]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{}",
        b"null\n",
        b"\xff\xfe\n",
        b"[" * 100_000,
        b"[" * (3 << 20),
        b"1" * 10_000 + b"\n",
        json.dumps(lines()[0]).encode() + b'\n{"more": []}\n',
        json.dumps(lines()[0]).encode() + b'\n"\\ud800"\n',
        json.dumps(lines()[0]).encode() + b"\n" + b" " * (2 << 20),
    ],
)
def test_not_a_journal(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "j").write_bytes(data)
    before = time.thread_time()
    with pytest.raises(UserError):
        load_journal(tmp_path / "j")
    assert time.thread_time() - before < 5


@SHARED
@given(data=st.data())
def test_any_bytes_changed(tmp_path: Path, data: st.DataObject) -> None:
    good = "".join(json.dumps(value) + "\n" for value in lines()).encode()
    at = data.draw(st.integers(0, len(good) - 1))
    changed = good[:at] + data.draw(st.binary(max_size=8)) + good[at + data.draw(st.integers(0, 9)) :]
    (tmp_path / "j").write_bytes(changed)
    with contextlib.suppress(UserError):
        _, loaded = load_journal(tmp_path / "j")
        loaded.state_at(loaded.last or loaded.start)


def test_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UserError):
            load_journal(path)
    with pytest.raises(UserError):
        save_journal(tmp_path / "no" / "where", Player(FACTS[0], True, True, 3, 0).journal.recording(), HEADER)
