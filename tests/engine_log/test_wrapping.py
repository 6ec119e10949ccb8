"""Logs whose lines another program has wrapped say the same as before, however it does that."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvdesk.engine_log.causes import explain_request
from kvdesk.engine_log.cells import CellsReader, cache_lines
from kvdesk.engine_log.events import read_events
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.report import Totals, request_json, summary_json
from kvdesk.engine_log.requests import RequestReader, read_requests
from kvdesk.engine_log.wrapping import Unwrapper

LOGS = Path(__file__).parent / "logs"
LINE = "slot update_slots: id  0 | task 3 | cached n_tokens = 7, memory_seq_rm [7, end)"
PREFIXES = {
    "journalctl": "Nov 27 01:40:32 box llama-server[1234]: ",
    "journalctl -o short-precise": "Nov 27 01:40:32.123456 box llama-server[1234]: ",
    "journalctl -o short-iso": "2026-11-27T01:40:32+00:00 box llama-server[1234]: ",
    "journalctl -o short-full": "Fri 2026-11-27 01:40:32 UTC box llama-server[1234]: ",
    "journalctl -o short-monotonic": "[ 1234.567890] box llama-server[1234]: ",
    "podman in a journal": "Nov 27 01:40:32 box podman[1]: 2026-11-27T01:40:32Z ",
    "docker compose": "llama-server-1  | ",
    "docker compose, container_name": "llama  | ",
    "docker compose, colours": "\x1b[36mllama-1  | \x1b[0m",
    "docker logs -t": "2026-11-27T01:40:32.123456789Z ",
    "kubectl logs --prefix": "[pod/llama-0/server] ",
    "kubelet": "2026-11-27T01:40:32.123456789Z stderr F ",
    "stern": "llama-0 server ",
    "ts": "Nov 27 01:40:32 ",
    "a quote": "> ",
    "an indented block": "    ",
    "a diff": "+ ",
    "grep -n": "server.log:1234:",
    "pm2": "0|llama    | 2026-11-27 01:40:32: ",
    "logging": "2026-11-27 01:40:32,123 - llama - INFO - ",
    "loguru": "2026-11-27 01:40:32.123 | INFO     | runner:read:12 - ",
    "foreman": "01:40:32 llama.1  | ",
    "a log of macOS": "2026-11-27 01:40:32.123456+0100 0x1a2b Default 0x0 1234 0 llama-server: ",
    "tauri": "[2026-11-27][01:40:32][llamacpp::commands][INFO] [llamacpp] ",
}
WRAPPED: dict[str, Callable[[str], str]] = {
    **{name: prefix.__add__ for name, prefix in PREFIXES.items()},
    "docker's file": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-11-27T01:40:32Z"}),
    "docker's file, colours": lambda line: json.dumps({"log": f"\x1b[34m{line}\x1b[0m\r\n", "stream": "stdout"}),
    "journalctl -o json": lambda line: json.dumps({"__CURSOR": "s", "MESSAGE": line, "PRIORITY": "6"}),
    "a collector": lambda line: json.dumps({"level": "info", "message": line, "tags": ["a"]}),
}


def diagnosed(log: str) -> list[dict[str, Any]]:
    reader, totals, found = RequestReader(), Totals(), []
    for request in read_requests(read_events(read_lines([log.encode()])), reader):
        finding = explain_request(request, reader.server)
        totals.add(request, finding)
        found.append(request_json(request, finding) | {"clock": ""})
    return [*found, summary_json(totals, reader.server)]


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_log_has_the_same_requests(name: str) -> None:
    for file in ("hybrid-2026-02.log", "hybrid-2026-11.log", "llama-cpp-python.log", "slot-file-2026-11.log"):
        log = (LOGS / file).read_text()
        wrapped = "\n".join(map(WRAPPED[name], log.splitlines()))
        assert diagnosed(wrapped) == diagnosed(log), file


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_log_has_the_same_cells(name: str) -> None:
    def cells(log: str) -> list[str]:
        reader = CellsReader()
        for line in read_lines([log.encode()]):
            reader.feed(line)
        reader.close()
        shown = [text for _, cache in sorted(reader.caches.items()) for text in cache_lines(cache)]
        assert len(shown) > 3
        return [text for text in shown if "ubatch" not in text]  # with its time

    log = (LOGS / "cells-2026-11.log").read_text()
    assert cells("\n".join(map(WRAPPED[name], log.splitlines()))) == cells(log)


def test_a_wrapping_is_learned_with_its_time_and_is_no_words_of_a_text() -> None:
    unwrapper = Unwrapper()

    def said(text: str) -> tuple[str, str, int]:
        (message,) = unwrapper.messages(text)
        return message

    assert said("web: hello") == ("web: hello", "", 0)
    assert said(f"web: 2026-11-27 01:40:32 {LINE}") == (LINE, "2026-11-27 01:40:32", 0)
    assert said("db2: 2026-11-28 02:00:00 prompt eval") == ("prompt eval", "2026-11-28 02:00:00", 0)
    assert said(f"web: 0.01.000.000 W {LINE}") == (LINE, "0.01.000.000", 2)
    assert said("web: hello") == ("hello", "", 0)
    assert said(f"he wrote {LINE}") == (LINE, "", 0)
    assert said("he wrote more") == ("he wrote more", "", 0)


def test_a_log_of_many_wrappings_remembers_the_latest() -> None:
    unwrapper = Unwrapper()
    for signs in ("#" * n for n in range(1, 100)):
        (message,) = unwrapper.messages(f"{signs} {LINE}")
        assert message[0] == LINE
    texts = [text for signs in ("#", "#" * 99) for text, _, _ in unwrapper.messages(f"{signs} more")]
    assert texts == ["# more", "more"]
