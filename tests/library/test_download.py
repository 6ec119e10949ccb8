"""Transfers from a server that speaks the hub's protocol: interrupted, killed, lied to, and refused."""

import errno
import hashlib
import json
import logging
import multiprocessing
import os
import random
import re
import shutil
import signal
import time
import tracemalloc
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from kvdesk.errors import Stopped, UserError
from kvdesk.library import download
from kvdesk.library.download import Transfer, folder_of, unfinished
from kvdesk.library.find import Folder, find_models
from kvdesk.library.hub import (
    Hub,
    HubError,
    RemoteFile,
    RemoteModel,
    keep_token,
    quantization_of,
    read_token,
    token_file,
)
from tests.library.download_child import download as download_in_child
from tests.library.hub_server import PIECE, HubServer
from tests.needs import needs_pipes

REPO, FILE = "maker/small-GGUF", "small-Q4_K_M.gguf"
CONTENT = random.Random(7).randbytes(2 << 20)
SPLIT = [f"big-00{n:03d}-of-00003.gguf" for n in (1, 2, 3)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    for name in ("HF_TOKEN", "HF_ENDPOINT", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "WAITS_S", (0.0, 0.0))
    with HubServer({REPO: {FILE: CONTENT, "README.md": b"text", "mmproj-F16.gguf": b"x"}}) as server:
        yield server


class Download:
    """One transfer, and what it told."""

    def __init__(self, server: HubServer, folder: Path, *, repo: str = REPO, token: str = "") -> None:
        self.told: list[tuple[int, str]] = []
        self.stop, self.stop_at = Event(), -1
        hub = Hub(server.endpoint, token)
        self.transfer = Transfer(hub, hub.models(repo)[0], self.stop, self._tell, folder)
        self.final = folder_of(self.transfer.model, folder) / self.transfer.model.files[0].name
        self.part = self.final.with_name(f"{self.final.name}.part")

    def _tell(self, done: int, remark: str) -> None:
        self.told.append((done, remark))
        if 0 <= self.stop_at <= done:
            self.stop.set()

    def run(self) -> Path:
        return self.transfer.run()

    @property
    def remarks(self) -> list[str]:
        return [remark for _, remark in self.told if remark]


def test_a_file_arrives_whole_under_its_name_and_nothing_else_stays(server: HubServer, tmp_path: Path) -> None:
    one = Download(server, tmp_path)
    assert one.run() == tmp_path / "maker/small-GGUF" / FILE
    assert one.final.read_bytes() == CONTENT
    assert [path.name for path in one.final.parent.iterdir()] == [FILE]
    assert [model.path for model in find_models([Folder("kvdesk", tmp_path)])] == [one.final]
    assert one.told[-1] == (len(CONTENT), "")
    Download(server, tmp_path).run()
    assert len(server.asked) == 1  # it is there


def test_a_paused_download_goes_on_after_the_last_byte(server: HubServer, tmp_path: Path) -> None:
    first = Download(server, tmp_path)
    first.stop_at = 10 * PIECE
    with pytest.raises(Stopped):
        first.run()
    there = first.part.stat().st_size
    assert 10 * PIECE <= there < len(CONTENT)
    assert not first.final.exists()
    record = json.loads(first.part.with_name(f"{FILE}.part.json").read_text())
    assert record["files"][0]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert list(unfinished(tmp_path)) == [(first.transfer.model, there)]
    Download(server, tmp_path).run()
    assert [asked.start for asked in server.asked] == [0, there]
    assert server.asked[1].headers["if-range"] == record["files"][0]["etag"] != ""
    assert first.final.read_bytes() == CONTENT
    assert list(unfinished(tmp_path)) == []


def test_killed_ten_times_no_byte_on_the_disk_is_asked_for_again(server: HubServer, tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.library.download_child"])
    dice, pause = random.Random(3), Event()
    part = tmp_path / REPO / f"{FILE}.part"
    sizes = [0]
    for n in range(11):
        child = context.Process(target=download_in_child, args=(server.endpoint, REPO, tmp_path), daemon=True)
        kill_at = dice.randrange(PIECE, 12 * PIECE) if n < 10 else len(CONTENT) * 2

        def kill(sent: int, child: Any = child, kill_at: int = kill_at, n_asked: int = n + 1) -> None:
            pause.wait(0.001)  # as slow as a network
            # what is still sent to the one before is no reason to kill this one before it has asked
            if sent >= kill_at and len(server.asked) == n_asked:
                os.kill(child.pid, signal.SIGKILL)

        server.on_piece = kill
        child.start()
        child.join(30)
        assert child.exitcode == (-signal.SIGKILL if n < 10 else 0)
        if n < 10:
            sizes.append(part.stat().st_size if part.exists() else 0)
    assert [asked.start for asked in server.asked] == sizes
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[1]
    assert (tmp_path / REPO / FILE).read_bytes() == CONTENT


def test_a_lost_connection_is_told_and_tried_again_from_where_it_was(server: HubServer, tmp_path: Path) -> None:
    server.cut_at = [4 * PIECE] * 4  # more often than there are attempts: each brought bytes
    one = Download(server, tmp_path)
    one.run()
    assert one.final.read_bytes() == CONTENT
    assert [asked.start for asked in server.asked] == [0, 4 * PIECE, 8 * PIECE, 12 * PIECE, 16 * PIECE]
    assert any("Trying again in" in remark for remark in one.remarks)


def test_a_server_that_stays_away_ends_the_download_with_a_sentence(server: HubServer, tmp_path: Path) -> None:
    one = Download(server, tmp_path)
    server.cut_at, server.busy = [4 * PIECE], 0
    server.on_piece = lambda sent: setattr(server, "busy", 99 if sent >= 4 * PIECE else 0)
    with pytest.raises(HubError, match=r"answers with error 503\. What was downloaded is kept: resume later"):
        one.run()
    server.busy, server.on_piece = 0, None
    Download(server, tmp_path).run()
    assert server.asked[-1].start == 4 * PIECE


def test_nobody_answers_is_said_at_once() -> None:
    begun = time.monotonic()
    hub = Hub("http://127.0.0.1:9")
    with pytest.raises(HubError, match=r"^127\.0\.0\.1:9 cannot be reached\. Is this computer online\?$"):
        hub.models(REPO)
    with pytest.raises(HubError, match=r"^127\.0\.0\.1:9 cannot be reached\. Is this computer online\?$"):
        hub.search("small")
    assert time.monotonic() - begun < 5
    with pytest.raises(HubError, match="no web address"):
        Hub("ftp:/nowhere")


def test_a_wrong_hash_leaves_nothing(server: HubServer, tmp_path: Path) -> None:
    server.claimed[FILE] = "0" * 64
    one = Download(server, tmp_path)
    with pytest.raises(HubError, match="does not match the SHA-256 of the hub, and was deleted"):
        one.run()
    assert not one.part.exists()
    assert not one.final.exists()


def test_a_server_that_ignores_ranges_begins_again_and_says_so(server: HubServer, tmp_path: Path) -> None:
    server.ranges, server.cut_at = False, [4 * PIECE]
    one = Download(server, tmp_path)
    one.run()
    assert one.final.read_bytes() == CONTENT
    assert "The server began again with the first byte." in one.remarks


def test_a_file_that_changed_meanwhile_is_downloaded_again_and_says_so(server: HubServer, tmp_path: Path) -> None:
    first = Download(server, tmp_path)
    first.stop_at = 4 * PIECE
    with pytest.raises(Stopped):
        first.run()
    other = CONTENT[::-1]
    server.files[REPO][FILE] = other
    told: list[str] = []
    (model, _), *_ = unfinished(tmp_path)
    Transfer(Hub(server.endpoint), model, Event(), lambda _done, remark: told.append(remark), tmp_path).run()
    assert "The file on the hub has changed: the download begins again." in told
    assert first.final.read_bytes() == other


def test_a_range_that_the_server_refuses_begins_the_file_again_and_says_so(server: HubServer, tmp_path: Path) -> None:
    first = Download(server, tmp_path)
    first.stop_at = 4 * PIECE
    with pytest.raises(Stopped):
        first.run()
    server.refused = [416]
    again = Download(server, tmp_path)
    again.run()
    assert "The file on the hub has changed: the download begins again." in again.remarks
    assert [asked.start for asked in server.asked] == [0, 0]
    assert again.final.read_bytes() == CONTENT


def test_ranges_refused_again_and_again_end_it_with_a_sentence(server: HubServer, tmp_path: Path) -> None:
    server.refused = [416] * 9
    with pytest.raises(HubError, match="The file on the hub changes while it is downloaded"):
        Download(server, tmp_path).run()


@pytest.mark.parametrize(
    ("to", "said"),
    [
        (
            "http://127.0.0.1:9/x",
            "127.0.0.1:9 cannot be reached. Is this computer online? What was downloaded is kept: resume later.",
        ),
        ("", "cannot be reached. Is this computer online? What was downloaded is kept: resume later."),
    ],
    ids=["nobody is there", "in circles"],
)
def test_a_redirect_that_leads_nowhere_is_said(server: HubServer, tmp_path: Path, to: str, said: str) -> None:
    one = Download(server, tmp_path)
    server.leads_to = to or one.transfer._hub.url(REPO, one.transfer.model.revision, FILE)
    with pytest.raises(HubError, match=re.escape(said)):
        one.run()
    assert server.asked == []
    assert not one.final.exists()


def test_too_little_room_is_said_before_the_first_byte(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    one = Download(server, tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(0, 0, download.SPARE_BYTES))
    with pytest.raises(UserError, match="2 MB are still to come, and 67 MB are free on the disk"):
        one.run()
    assert server.asked == []
    assert not one.part.exists()


def test_a_disk_that_fills_is_said_and_what_is_there_stays(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = download._write, [4]

    def full(out: Any, chunk: bytes) -> None:
        left[0] -= 1
        if not left[0]:
            real(out, chunk[: len(chunk) // 2])  # the last of the room
            raise OSError(errno.ENOSPC, "No space left on device")
        real(out, chunk)

    monkeypatch.setattr(download, "_write", full)
    one = Download(server, tmp_path)
    with pytest.raises(UserError, match="The disk is full: make room, then resume"):
        one.run()
    there = one.part.stat().st_size
    assert there > 0
    assert not one.final.exists()
    monkeypatch.setattr(download, "_write", real)
    Download(server, tmp_path).run()
    assert server.asked[-1].start == there
    assert one.final.read_bytes() == CONTENT


def test_the_token_goes_to_the_hub_and_not_to_its_cdn(
    server: HubServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.token = "hf_private"
    with pytest.raises(HubError, match="Accept them there, then enter your token"):
        Download(server, tmp_path)
    one = Download(server, tmp_path, token="hf_private")
    one.run()
    assert server.hub_authorizations[-1] == "Bearer hf_private"
    assert all("authorization" not in asked.headers for asked in server.asked)
    assert all("hf_private" not in path.read_text("latin-1") for path in one.final.parent.iterdir())
    assert "hf_private" not in caplog.text
    assert "signature=secret" not in caplog.text


def test_a_split_model_gets_its_names_when_all_parts_are_whole(server: HubServer, tmp_path: Path) -> None:
    server.files["maker/big"] = {name: CONTENT[n << 18 : (n + 1) << 18] for n, name in enumerate(SPLIT)}
    one = Download(server, tmp_path, repo="maker/big")
    one.stop_at = (2 << 18) + PIECE
    with pytest.raises(Stopped):
        one.run()
    assert list(one.final.parent.glob("*.gguf")) == []
    Download(server, tmp_path, repo="maker/big").run()
    assert len(server.asked) == 4  # of the first two parts no byte again
    (found,) = find_models([Folder("kvdesk", tmp_path)])
    assert found.size_bytes == 3 << 18


def test_a_cancelled_download_leaves_no_file_and_no_folder(server: HubServer, tmp_path: Path) -> None:
    one = Download(server, tmp_path)
    one.stop_at = PIECE
    with pytest.raises(Stopped):
        one.run()
    download.discard(one.transfer.model, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../x.gguf", "a/../../x.gguf", "/x.gguf", "C:x.gguf", "a\\x.gguf", ".. /x.gguf"])
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HubError, match="is no name for a file here"):
        folder_of(RemoteModel(REPO, "main", (RemoteFile(name, 1, "0" * 64),)), tmp_path)


def test_search_and_the_files_of_a_repository(server: HubServer) -> None:
    hub = Hub(server.endpoint)
    (found,) = hub.search("small")
    assert (found.name, found.n_downloads, found.licence) == (REPO, 7, "apache-2.0")
    assert hub.search("nothing of this name") == ()
    (model,) = hub.models(REPO)  # neither the text nor the projector of images
    assert (model.title, model.size_bytes) == ("small-Q4_K_M", len(CONTENT))
    with pytest.raises(HubError, match="has no maker/other, or it is private"):
        hub.models("maker/other")
    with pytest.raises(HubError, match="it is owner/name"):
        hub.models("other")


def test_quantization_is_read_from_names() -> None:
    names = {
        "Qwen3-0.6B-Q8_0.gguf": "Q8_0",
        "gemma-3-1b-it-q4_0.gguf": "Q4_0",
        "x.IQ2_XXS.gguf": "IQ2_XXS",
        "x-BF16-00001-of-00002.gguf": "BF16",
        "Q4_K_M/x-UD-Q4_K_XL.gguf": "Q4_K_XL",
        "model.gguf": "",
    }
    assert {name: quantization_of(name) for name in names} == names


def test_the_token_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    monkeypatch.setenv("HF_TOKEN", "of the environment")
    assert read_token() == "of the environment"
    keep_token(" mine\n")
    assert read_token() == "mine"
    assert token_file().stat().st_mode & 0o777 == 0o600
    keep_token("")
    assert not token_file().exists()


def test_a_token_that_cannot_be_kept_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    keep_token("old")

    def fail(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UserError, match="cannot be kept: No space left on device"):
        keep_token("new")
    assert read_token() == "old"


@needs_pipes
def test_a_pipe_is_not_waited_for(server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    os.mkfifo(token_file())
    assert read_token() == ""
    record = tmp_path / "models" / REPO / f"{FILE}.part.json"
    record.parent.mkdir(parents=True)
    os.mkfifo(record)
    assert list(unfinished()) == []
    record.unlink()
    os.mkfifo(record.with_name(f"{FILE}.part"))
    with pytest.raises(UserError, match="cannot be written: it is not a file"):
        Download(server, tmp_path / "models").run()


def test_a_token_is_not_read_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    with token_file().open("wb") as file:
        file.truncate(1 << 30)
    tracemalloc.start()
    read_token()
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("size", ["1e999", "-1e999", "NaN", "-5", "1e300", '"x"', "null", str(1 << 51)])
def test_a_damaged_record_costs_no_other(server: HubServer, tmp_path: Path, size: str) -> None:
    one = Download(server, tmp_path)
    one.stop_at = PIECE
    with pytest.raises(Stopped):
        one.run()
    bad = tmp_path / "a" / "b" / "x.gguf.part.json"
    bad.parent.mkdir(parents=True)
    content = {"repo": "a/b", "revision": "main", "files": [{"name": "x.gguf", "size": 77, "sha256": ""}]}
    bad.write_text(json.dumps(content))
    assert [model.repo for model, _ in unfinished(tmp_path)] == ["a/b", REPO]
    bad.write_text(json.dumps(content).replace("77", size))
    assert [model.repo for model, _ in unfinished(tmp_path)] == [REPO]
