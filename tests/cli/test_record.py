"""`kvdesk record`: one file of a log that grows, of what passes a proxy, and of a kvdesk that serves."""

import io
import json
import math
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from kvdesk.__main__ import main
from kvdesk.cache.journal import file as journal_file
from kvdesk.cache.journal.file import GrowingJournal, JournalHeader, load_journal
from kvdesk.cache.journal.packing import Operation
from kvdesk.cache.journal.recording import Recording
from kvdesk.cli import record
from kvdesk.engine_log import live
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.reading import LogRecorder
from kvdesk.errors import UserError
from kvdesk.notebook.recording_page import page
from kvdesk.notebook.trace import trace_text
from tests.cache.journals import FACTS, Player
from tests.engine_log.test_cells import messages, plain
from tests.engine_log.test_doctor import LOGS

SECRET = "the-wombat-report"


def recorded(arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The command, ended by a signal once it has caught up with its log."""
    follow = live.follow

    def followed(path: Path, _caught_up: object, is_over: object) -> object:
        del is_over
        return follow(path, lambda: os.kill(os.getpid(), signal.SIGTERM), lambda: False)

    monkeypatch.setattr(record, "follow", followed)
    return main(["record", *arguments])


def operations(recording: Recording) -> list[Operation]:
    return [entry.operation for entry in recording.operations(0, recording.last)]


def two_dumps() -> str:
    """A log of cells, requests, and cells; a line about a slot ends the last dump."""
    requests = (LOGS / "lru-2026-08.log").read_text()
    return plain(messages(40)) + requests + plain([*messages(60), "slot decode: x\n"])


@pytest.mark.parametrize("follows", [True, False])
def test_a_log_becomes_a_journal_with_its_requests(
    follows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, out = tmp_path / "server.log", tmp_path / "out.jsonl"
    log.write_text(two_dumps())
    before = signal.getsignal(signal.SIGTERM)
    if follows:
        assert recorded([str(log), str(out)], monkeypatch) == 0
    else:
        assert main(["record", str(log), str(out), "--no-follow"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
    header, recording = load_journal(out)
    assert header.model == "server.log"
    names = [operation.name for operation in operations(recording)]
    assert names.count("request") == len(names) - 1 > 1
    assert "low similarity" in "".join(operation.call for operation in operations(recording))
    (kv,) = recording.state_at(recording.last)
    assert kv.streams[0].used == 60
    assert not any(operation.reason for operation in operations(recording))
    dumps = [operation for operation in operations(recording) if operation.name != "request"]
    assert [(operation.at_s, operation.ms) for operation in dumps] == [(5.1, 0.0)], "by the log's own clock"
    events = json.loads(trace_text(recording, header))["traceEvents"]
    assert [event["ph"] for event in events].count("b") == [event["ph"] for event in events].count("e") > 1
    assert "low similarity" in page(recording, header)


@pytest.mark.parametrize("texts", [False, True])
def test_texts_are_written_only_when_asked_for(
    texts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = tmp_path / "proxy.log", tmp_path / "out.jsonl"
    one = {"n": 1, "path": "/v1/messages", "status": 200, "prompt_tokens": 90, "reused": 7, "read": 83}
    told = {"first_byte_s": 0.25, "cause": "date", "sentence": f"Message 1 changed: {SECRET}"}
    bad = [json.dumps({**one, **told, "n": 3, name: math.inf}) for name in ("status", "read")]
    log.write_text("\n".join([json.dumps(one | told), '{"n": 2, "path": 1}', '{"n": []}', *bad, ""]))
    assert recorded([str(log), str(out), *(["--texts"] if texts else [])], monkeypatch) == 0
    _header, recording = load_journal(out)
    (request,) = operations(recording)
    assert (request.name, request.ms) == ("request", 250.0)
    assert request.call == "/v1/messages 200: 90 tokens · 7 reused · 83 read · date"
    assert (SECRET in out.read_text()) == texts
    assert not texts or out.stat().st_mode & 0o077 == 0 or os.name == "nt"
    assert "1 operation was saved" in capsys.readouterr().out


@pytest.mark.parametrize("ms", ["9" * 18, "99999999999"])
def test_a_time_that_no_request_takes_leaves_a_journal(ms: str, tmp_path: Path) -> None:
    log, out = tmp_path / "server.log", tmp_path / "out.jsonl"
    log.write_text(two_dumps().replace("4054.00 ms", f"{ms} ms"))
    assert main(["record", str(log), str(out), "--no-follow"]) == 0
    assert {operation.ms for operation in operations(load_journal(out)[1])} >= {0.0, 4170.0}


def test_a_growing_file_is_a_journal_at_each_moment_and_has_no_token_ids(tmp_path: Path) -> None:
    player = Player(FACTS[1], unified=True, swa_full=False, n_seq_max=2, seed=5)
    with (tmp_path / "whole").open("wb") as whole, (tmp_path / "plain").open("wb") as without:
        files = [GrowingJournal(out, JournalHeader("m"), with_tokens=out is whole) for out in (whole, without)]
        for _ in range(6):
            player.play(10)
            recording = player.journal.recording()
            assert all(file.take(recording) for file in files)
            for name in ("whole", "plain"):
                _header, found = load_journal(tmp_path / name)
                assert found.last == recording.last
                assert _cells(found) == _cells(recording, with_tokens=name == "whole")
        again = Player(FACTS[1], unified=True, swa_full=False, n_seq_max=2, seed=6)
        again.play(3)
        size = whole.tell()
        assert not files[0].take(again.journal.recording())
        assert whole.tell() == size


class Interrupted(io.FileIO):
    """A signal raises in the middle of write number `at`, and of no other."""

    at = -1

    def write(self, data: Any) -> int:
        self.at -= 1
        if self.at != -1:
            return super().write(data)
        super().write(data[: len(data) // 2])
        raise KeyboardInterrupt


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("at", range(4))
def test_a_signal_in_the_middle_of_a_line_leaves_a_journal(at: int, goes_on: bool, tmp_path: Path) -> None:
    player = Player(FACTS[1], unified=True, swa_full=False, n_seq_max=2, seed=5)
    player.play(10)
    recording = player.journal.recording()
    with Interrupted(tmp_path / "out", "wb") as out:
        file = GrowingJournal(cast("BinaryIO", out), JournalHeader("m"), with_tokens=True)
        out.at = at
        with pytest.raises(KeyboardInterrupt):
            file.take(recording)
        assert not goes_on or file.take(recording)
        file.close()
    if not goes_on and at == 0:
        assert (tmp_path / "out").read_bytes() == b""
        return
    _header, found = load_journal(tmp_path / "out")
    assert found.last == (recording.last if goes_on else recording.start + at - 1)


def test_a_full_file_ends_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = tmp_path / "server.log", tmp_path / "out.jsonl"
    log.write_text(two_dumps() + plain([*messages(80), "slot decode: x\n"]))
    monkeypatch.setattr(journal_file, "MAX_FILE", 1600)
    assert main(["record", str(log), str(out)]) == 0
    assert "the journal is full" in capsys.readouterr().err
    assert operations(load_journal(out)[1])


def _cells(recording: Recording, *, with_tokens: bool = True) -> list[list[object]]:
    streams = [stream for cache in recording.state_at(recording.last) for stream in cache.streams]
    return [
        [s.pos.tolist(), s.seq_bits.tolist(), (s.token if with_tokens else s.token * 0 - 1).tolist()] for s in streams
    ]


def test_streams_and_a_window_that_show_later_keep_what_was_recorded() -> None:
    recorder = LogRecorder(lambda _text: None, lambda: False, with_requests=True)
    out = io.BytesIO()
    file = GrowingJournal(out, JournalHeader(), with_tokens=False)
    said = [*messages(10), *messages(20, stream=1), "slot decode: x\n", *messages(5, n_swa=64), "slot decode: x\n"]
    for line in read_lines([plain(said).encode()]):
        recorder.feed(line)
        if (recording := recorder.recording(latest=False)) is not None:
            assert file.take(recording)
    recording = recorder.recording()
    shapes = [(cache.name, cache.n_streams) for cache in recording.shape.caches]
    assert shapes == [("base", 2), ("window", 1)]
    used = [
        [stream.used for cache in recording.state_at(number) for stream in cache.streams]
        for number in range(recording.start, recording.last + 1)
    ]
    assert used == [[10, 0, 0], [10, 20, 0], [10, 20, 5]]
    assert out.getvalue().count(b"\n") == 3


@pytest.mark.parametrize("first_byte_s", [math.nan, math.inf, -1.0, 10**400])
def test_a_time_that_is_none_leaves_a_journal_that_can_be_read(
    first_byte_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, out = tmp_path / "proxy.log", tmp_path / "out.jsonl"
    one = {"n": 1, "path": "/v1/messages", "status": 200, "prompt_tokens": 90, "reused": 7, "read": 83}
    told = {"cause": "date", "sentence": ""}
    log.write_text("".join(json.dumps({**one, **told, "first_byte_s": s}) + "\n" for s in (first_byte_s, 0.25)))
    assert recorded([str(log), str(out)], monkeypatch) == 0
    assert operations(load_journal(out)[1])[-1].ms == 250.0


def test_a_key_that_cannot_be_sent_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="The key has characters that no key can have"):
        record.main(["http://127.0.0.1:9", str(tmp_path / "out"), "--key", "ß"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["none.log", "http://"])
def test_a_source_that_cannot_be_read_writes_no_file(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", source, "out"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_log_without_cells_and_a_file_that_is_there_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = tmp_path / "a.log", tmp_path / "out"
    log.write_text("nothing\n")
    assert recorded([str(log), str(out)], monkeypatch) == 2
    assert "Nothing was recorded" in capsys.readouterr().err
    assert not out.exists()
    out.write_text("kept")
    assert main(["record", str(log), str(out)]) == 2
    assert out.read_text() == "kept"
