"""Logs that several programs write: each keeps its own slots, and the sums are of all."""

import json
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest

from kvdesk.cli.doctor import main
from kvdesk.engine_log.events import Event, read_events
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import LiveLog
from kvdesk.engine_log.sentences import Kind
from kvdesk.engine_log.sources import MOST_SOURCES, LogRequests, read_requests
from tests.engine_log.test_cells import messages, plain

LOGS = Path(__file__).parent / "logs"


def wrapped(name: str, wrapping: str) -> list[str]:
    return [f"{wrapping}{line}" for line in (LOGS / name).read_text().splitlines()]


def diagnosed(log: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main([str(log), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("wrappings", "sources"),
    [
        (("[42027] ", "[42028] "), ["42027", "42028"]),
        (("chat-1  | ", "code-1  | "), ["chat-1", "code-1"]),
        (("Nov 27 01:40:32 box llama[7]: ", "Nov 27 01:40:32 box llama[8]: "), ["llama[7]", "llama[8]"]),
        (("llama  | [42027] ", "llama  | [42028] "), ["llama 42027", "llama 42028"]),
    ],
)
def test_programs_whose_lines_alternate_are_told_apart(
    wrappings: tuple[str, str], sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, alone, sums = ("window-2026-10.log", "low-similarity-2026-11.log"), [], []
    for name in names:
        *found, total = diagnosed(LOGS / name, capsys)
        alone.append([{**request, "line": 0} for request in found])
        sums.append(total)
    log = tmp_path / "a.log"
    sides = [wrapped(name, wrapping) for name, wrapping in zip(names, wrappings, strict=True)]
    log.write_text("\n".join(line for line in chain(*zip_longest(*sides)) if line is not None))
    *found, total = diagnosed(log, capsys)
    for source, expected in zip(sources, alone, strict=True):
        of_one = [{**request, "line": 0, "source": "", "clock": ""} for request in found if request["source"] == source]
        assert of_one == [{**request, "clock": ""} for request in expected]
    assert [server["source"] for server in total["servers"]] == sorted(sources, key=[r["source"] for r in found].index)
    for name in ("requests", "prompt_tokens", "reused_tokens"):
        assert total[name] == sum(one[name] for one in sums)
    assert main([str(log)]) == 0
    out = capsys.readouterr().out
    assert f" · {sources[0]} · slot " in out
    assert f"\n{sources[0]}: llama-server · " in out


def test_a_program_that_is_started_again_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a.log"
    lines = [line for pid in range(9) for line in wrapped("window-2026-10.log", f"Nov 27 01:40:32 box llama[{pid}]: ")]
    log.write_text("\n".join(lines))
    assert main([str(log)]) == 0
    out = capsys.readouterr().out
    assert out.count("\nllama-server · ") == 1
    assert "27 requests" in out


def test_what_is_known_of_programs_is_bounded() -> None:
    reader = LogRequests()
    for i in range(300):
        reader.feed(Event(Kind.STARTED, i, slot=0, task=i, source=str(i)))
    assert len(reader._readers) == MOST_SOURCES
    assert sum(1 for _ in read_requests([], reader)) == MOST_SOURCES
    assert len(reader.servers) <= MOST_SOURCES + 1


def test_a_log_that_is_followed_tells_programs_apart_too() -> None:
    said: list[str] = []
    live = LiveLog(said.append, with_cells=False)
    sides = [wrapped("window-2026-10.log", "[42027] "), wrapped("low-similarity-2026-11.log", "[42028] ")]
    for line in read_lines(f"{line}\n".encode() for line in chain(*zip_longest(*sides)) if line is not None):
        live.feed(line)
    live.close()
    found = [text.rpartition(" · ")[2] for text in said if text.startswith(("ok", "MISS"))]
    assert sorted(found) == sorted(
        ["new conversation", "continued", "window lost", "new conversation", "low similarity", "continued"]
    )


def test_cells_of_several_programs_are_not_mixed() -> None:
    said: list[str] = []
    live = LiveLog(said.append, with_cells=False)
    sides = [
        [f"[{port}] {line}" for line in plain([*messages(n), *messages(n + 1)]).splitlines()]
        for port, n in ((42027, 40), (42028, 60))
    ]
    for line in read_lines(f"{line}\n".encode() for line in chain(*zip_longest(*sides)) if line is not None):
        live.feed(line)
    live.close()
    (cache,) = live.caches.values()
    assert (cache.line.used, cache.cells.pos.tolist()) == (41, list(range(41)))
    assert said.count("Several programs print their cells. Only those of the first are shown.") == 1


def test_lines_of_the_router_itself_are_no_other_programs() -> None:
    lines = [
        "0.01.000.000 I srv  operator(): proxying request to model a on port 42027",
        *wrapped("window-2026-10.log", "[42027] "),
        "0.09.000.000 I srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200",
    ]
    reader = LogRequests()
    found = list(read_requests(read_events(read_lines(["\n".join(lines).encode()])), reader))
    assert len(found) == 3
    assert [server.source for server in reader.servers] == ["42027"]
