"""Logs that grow, and servers that are watched: requests as they end, the output passed on, an end together."""

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from kvdesk.cli import attach, watch
from kvdesk.engine_log import live as live_log
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import LiveLog, follow
from kvdesk.errors import UserError
from tests.engine_log.test_cells import messages, plain
from tests.engine_log.test_doctor import LOGS
from tests.needs import needs_pipes

REQUESTS = (LOGS / "lru-2026-08.log").read_text()
SERVER = """
import os, sys
print("0.00.000.001 I srv  cells:", os.environ["LLAMA_KV_CACHE_DEBUG"], sys.argv[1:])
sys.stdout.flush()
sys.stderr.write(open(sys.argv[1]).read())
sys.exit(3)
"""


def test_a_file_is_followed_when_it_grows_and_when_it_is_replaced(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\n")
    over, there = threading.Event(), threading.Event()
    found: list[str] = []

    def read() -> None:
        for line in read_lines(follow(log, there.set, over.is_set)):
            found.append(line.text)
            if line.text == "two":
                (tmp_path / "b.log").write_text("three\n")
                (tmp_path / "b.log").replace(log)
            if line.text == "three":
                over.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert there.wait(30)
    with log.open("a") as more:
        more.write("two\n")
    reader.join(30)
    assert found == ["one", "two", "three"]


def test_what_is_written_just_before_a_file_is_replaced_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, new = tmp_path / "a.log", tmp_path / "b.log"
    log.write_text("one\n")
    new.write_text("three\n")
    was_replaced = live_log._was_replaced

    def replaced(path: Path, descriptor: int, position: int) -> bool:
        if new.exists():
            with log.open("a") as more:
                more.write("two\n")
            new.replace(log)
        return was_replaced(path, descriptor, position)

    monkeypatch.setattr(live_log, "_was_replaced", replaced)
    lines = read_lines(follow(log, lambda: None, lambda: not new.exists()))
    assert [line.text for line in lines] == ["one", "two", "three"]


@needs_pipes
def test_a_pipe_is_read_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(REQUESTS,))
    writer.start()
    assert attach.main([str(pipe), "--text"]) == 0
    writer.join(30)
    assert "2 requests" in capsys.readouterr().out


def test_requests_and_cells_are_said_as_they_come() -> None:
    said: list[str] = []
    live = LiveLog(said.append)
    for line in read_lines([plain(messages(40)).encode(), REQUESTS.encode()]):
        live.feed(line)
    assert [text.split(" · ")[-1] for text in said if text.startswith(("ok", "MISS"))] == [
        "low similarity",
        "new conversation",
    ]
    assert sum("as printed by the engine at ubatch 1" in text for text in said) == 2
    live.close()
    assert any("2 requests" in text for text in said)


def test_attach_reads_a_file_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a.log"
    log.write_text(plain(messages(40)) + REQUESTS)
    assert attach.main([str(log), "--text", "--no-follow"]) == 0
    out = capsys.readouterr().out
    assert "low similarity" in out
    assert "40 of 256 cells used" in out
    with pytest.raises(UserError, match="cannot be read"):
        attach.main([str(tmp_path / "none")])


def test_watch_sets_what_is_needed_and_passes_the_rest_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, lines, log = tmp_path / "server.py", tmp_path / "lines", tmp_path / "kept.log"
    server.write_text(SERVER)
    lines.write_text(plain(messages(40)) + REQUESTS)
    monkeypatch.delenv("LLAMA_KV_CACHE_DEBUG", raising=False)
    arguments = ["--text", "--log", str(log), "--", sys.executable, str(server), str(lines), "-c", "4096"]
    assert watch.main(arguments) == 3
    out, err = capfd.readouterr()
    assert "Level 3: each cell." in out
    assert "contains prompts; only you can read it" in out
    assert "low similarity" in out
    assert "[000" in out
    assert "cells: 3 " in err
    assert "'-c', '4096', '-lv', '5'" in err
    assert "selected slot by LRU" in err
    assert "find_slot" not in err
    assert "find_slot" in log.read_text()
    if os.name == "posix":
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
    with pytest.raises(UserError, match="cannot be written"):
        watch.main(arguments)


@pytest.mark.parametrize(
    ("command", "level"),
    [
        (["llama-server"], 1),
        (["llama-server", "-c", "4096"], 3),
        (["llama-server", "--ctx-size=512"], 3),
        (["llama-server", "-c", "131072"], 1),
        (["llama-server", "-c", "0"], 1),
        (["llama-server", "-c"], 1),
    ],
)
def test_the_level_follows_from_the_size(command: list[str], level: int) -> None:
    assert watch.default_level(command) == level


def test_what_cannot_be_started_is_said() -> None:
    with pytest.raises(UserError, match="cannot be started"):
        watch.main(["--text", "--", "/no/such/server"])
    with pytest.raises(SystemExit, match="2"):
        watch.main([])


def heard(name: str) -> tuple[LiveLog, list[str]]:
    said: list[str] = []
    live = LiveLog(said.append, with_cells=False)
    for line in read_lines([(LOGS / name).read_bytes()]):
        live.feed(line)
    live.close()
    return live, said


def test_a_request_whose_text_comes_later_is_explained_then() -> None:
    """llama-server prints a slot's text when it takes the next request, or shows it if it is asked before that."""
    live, said = heard("moved-2026-11.log")
    first = next(i for i, text in enumerate(said) if "task 56" in text)
    late = said.index("MISS  slot 0, task 56 · prompt changed")
    assert said[first].startswith("ok ")
    assert said[late + 2].strip().startswith("Message 1 changed. Usual cause: the system prompt contains the date")
    assert late < next(i for i, text in enumerate(said) if "task 86" in text)
    assert sum("task 56" in text for text in said) == 2
    assert "3 misses: 367 tokens read again" in "\n".join(said)
    assert live.totals.score.requests == 4


def test_what_was_explained_is_not_explained_again_by_its_text() -> None:
    live, said = heard("prompts-2026-11.log")
    verdicts = [text for text in said if text.startswith(("ok ", "MISS "))]
    assert (
        len(verdicts)
        == live.totals.score.requests
        == len({text.partition("task ")[2].partition(" ")[0] for text in verdicts})
    )
    assert not any("Another slot" in text for text in said)
