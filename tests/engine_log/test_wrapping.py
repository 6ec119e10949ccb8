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
from kvdesk.engine_log.sources import LogRequests, read_requests
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
    "journalctl -o json, colours": lambda line: json.dumps({"MESSAGE": list(f"\x1b[34m{line}\x1b[0m".encode())}),
    "a collector": lambda line: json.dumps({"level": "info", "message": line, "tags": ["a"]}),
    "a beat": lambda line: json.dumps({"message": line, "log": {"offset": 7}, "host": {"name": "box"}}),
    "logcli -o jsonl": lambda line: json.dumps({"labels": {"job": "a"}, "line": line, "timestamp": "2026-11-27"}),
    "a cloud's": lambda line: json.dumps({"insertId": "a", "textPayload": line}),
    "OpenTelemetry": lambda line: json.dumps({"severityText": "INFO", "body": line}),
    "an array": lambda line: json.dumps({"time": 1, "msg": line}) + ",",
    "docker's file of a program that logs JSON": lambda line: json.dumps(
        {"log": json.dumps({"msg": f"\x1b[34m{line}\x1b[0m"}) + "\n"}
    ),
    "syslog, colours": lambda line: f"Nov 27 01:40:32 box llama[7]: #033[0m#033[34m{line}",
    "colours whose sign was lost": lambda line: f"[0m[32m{line}",
    "screen": lambda line: f"\x1b]0;llama\x07\x1b(B{line}\x1b[K",
}


def diagnosed(log: str) -> list[dict[str, Any]]:
    reader, totals, found = LogRequests(), Totals(), []
    for request in read_requests(read_events(read_lines([log.encode()])), reader):
        finding = explain_request(request, request.server)
        totals.add(request, finding)
        found.append(request_json(request, finding) | {"clock": ""})
    return [*found, summary_json(totals, reader.servers)]


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_log_has_the_same_requests(name: str) -> None:
    for file in ("hybrid-2026-02.log", "hybrid-2026-11.log", "llama-cpp-python.log", "slot-file-2026-11.log"):
        log = (LOGS / file).read_text()
        wrapped = "\n".join(map(WRAPPED[name], log.splitlines()))
        assert diagnosed(wrapped) == diagnosed(log), file


def test_an_array_may_be_one_line() -> None:
    log = (LOGS / "hybrid-2026-11.log").read_text()
    parts = [{"timestamp": "2026-11-27T01:40:32Z", "line": line} for line in log.splitlines()]
    (*requests, sums), (*expected, _) = diagnosed(json.dumps([*parts, [parts], 1])), diagnosed(log)
    assert [{**one, "line": 0} for one in requests] == [{**one, "line": 0} for one in expected]
    assert sums["lines"] == 1


def cells(log: str) -> list[str]:
    reader = CellsReader()
    for line in read_lines([log.encode()]):
        reader.feed(line)
    reader.close()
    shown = [text for _, cache in sorted(reader.caches.items()) for text in cache_lines(cache)]
    assert len(shown) > 3
    return [text for text in shown if "ubatch" not in text]  # with its time


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_log_has_the_same_cells(name: str) -> None:
    log = (LOGS / "cells-2026-11.log").read_text()
    assert cells("\n".join(map(WRAPPED[name], log.splitlines()))) == cells(log)


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_lines_of_json_have_the_same_cells(name: str) -> None:
    log = (LOGS / "cells-2026-11.jsonl").read_text()
    assert cells("\n".join(map(WRAPPED[name], log.splitlines()))) == cells(log)


def long_log() -> str:
    """At level 5, with prompts that are longer than what Docker and journald keep in one line."""
    told = [{"role": "user", "content": "é" * 40_000}, {"role": "assistant", "content": "Yes."}]
    lines = []
    changed = {"role": "user", "content": "Now: " + "é" * 40_000}
    for task, messages in enumerate((told[:1], [changed, *told[1:]])):
        at = f"slot update_slots: id  0 | task {task} |"
        lines += [
            "slot launch_slot_: id  0 | task -1 | launching slot : {}",
            f"slot launch_slot_: id  0 | task {task} | processing task, is_child = 0",
            f"{at} new prompt, n_ctx_slot = 99999, n_keep = 0, task.n_tokens = 20000",
            f"{at} n_past = 4, slot.prompt.tokens.size() = 20000, seq_id = 0, pos_min = 0, n_swa = 0",
            f"{at} cached n_tokens = 4, memory_seq_rm [4, end)",
            f"slot      release: id  0 | task {task} | stop processing: n_tokens = 20010, truncated = 0",
            "srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200",
            f"srv  log_server_r: request:  {json.dumps({'messages': messages}, ensure_ascii=False)}",
            'srv  log_server_r: response: {"choices": []}',
        ]
    return "\n".join(lines)


def pieces(line: str, most: int) -> list[str]:
    """Cut where a container's log is: at bytes, also in the middle of a character."""
    data = line.encode()
    return [data[i : i + most].decode(errors="replace") for i in range(0, len(data), most)]


def of_docker(line: str) -> list[str]:
    *begin, end = pieces(line, 16 << 10)
    return [json.dumps({"log": text, "stream": "stderr"}) for text in (*begin, f"{end}\n")]


def of_kubelet(line: str) -> list[str]:
    *begin, end = pieces(line, 16 << 10)
    at = "2026-11-27T01:40:32.123456789Z stderr"
    return [*(f"{at} P {text}" for text in begin), f"{at} F {end}"]


def of_journald(line: str) -> list[str]:
    return [f"Nov 27 01:40:32 box llama-server[12]: {text}" for text in pieces(line, 48 << 10)]


@pytest.mark.parametrize("cut", [of_docker, of_kubelet, of_journald])
def test_a_line_that_was_cut_in_pieces_is_one(cut: Callable[[str], list[str]]) -> None:
    log = long_log()
    first, second, _ = diagnosed(log)
    assert second["cause"] == "prompt changed"
    found = diagnosed("\n".join(piece for line in log.splitlines() for piece in cut(line)))
    for one, other in zip(found, (first, second), strict=False):
        assert {**one, "line": 0} == {**other, "line": 0}


def test_a_piece_that_nothing_follows_is_a_line() -> None:
    (line,) = read_lines([f"llama-1  | {'x' * (16 << 10)}".encode()])
    assert (line.text, line.source) == ("x" * (16 << 10), "llama-1")


@pytest.mark.parametrize(
    ("wrapping", "source"),
    [
        ("[42027] 0.01.000.000 I ", "42027"),
        ("llama-cpp       | [51429] 0.01.000.000 I ", "llama-cpp 51429"),
        ("llama-1  | ", "llama-1"),
        ("Nov 27 01:40:32 box llama-server[1234]: ", "llama-server[1234]"),
        ("[pod/llama-0/server] ", "pod/llama-0/server"),
        ("0|llama    | 2026-11-27 01:40:32: ", "llama"),
        ("INFO     | ", ""),
        ("2026-11-27 01:40:32.123 | INFO     | runner:read:12 - ", ""),
        ("server.log:1234:", ""),
        ("", ""),
    ],
)
def test_a_wrapping_names_the_program(wrapping: str, source: str) -> None:
    (line,) = read_lines([f"{wrapping}{LINE}".encode()])
    assert (line.text, line.source) == (LINE, source)


def test_a_wrapping_is_learned_with_its_time_and_is_no_words_of_a_text() -> None:
    unwrapper = Unwrapper()

    def said(text: str) -> tuple[str, str, int]:
        ((found, clock, level, _),) = unwrapper.messages(text)
        return found, clock, level

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
    texts = [message[0] for signs in ("#", "#" * 99) for message in unwrapper.messages(f"{signs} more")]
    assert texts == ["# more", "more"]


def test_lines_that_go_on_stay_bounded() -> None:
    unwrapper = Unwrapper()
    for i in range(100):
        unwrapper.messages(f"llama-{i}  | {'x' * (16 << 10)}")
    assert len(unwrapper._pieces) < 10
