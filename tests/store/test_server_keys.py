"""Keys of servers, with a keyring and without one."""

import errno
import json
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import keyring
import keyring.backend
import keyring.errors
import pytest

from kvdesk import paths
from kvdesk.store.server_keys import ServerKeys

URL = "http://bigbox:8080"


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory. how: "works", "fails", "forgets" what it is told, or "hangs"."""

    priority = 1

    def __init__(self, how: str = "works") -> None:
        self.how, self.kept = how, dict[tuple[str, str], str]()
        self.over = threading.Event()

    def _work(self) -> None:
        if self.how == "fails":
            raise keyring.errors.NoKeyringError("none")
        if self.how == "hangs":
            self.over.wait(10)

    def get_password(self, service: str, username: str) -> str | None:
        self._work()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._work()
        if self.how == "works":
            self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._work()
        if (service, username) not in self.kept:
            raise keyring.errors.PasswordDeleteError("not there")
        del self.kept[service, username]


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Ring]:
    ring = Ring(getattr(request, "param", "works"))
    monkeypatch.setattr(keyring, "get_keyring", lambda: ring)
    yield ring
    ring.over.set()


def test_a_key_is_kept_in_the_keyring(ring: Ring, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    assert ServerKeys(file).get(URL) == ""
    assert ServerKeys(file).keep(URL, "sk-1") == ""
    assert not file.exists()
    assert ring.kept == {("kvdesk", URL): "sk-1"}
    again = ServerKeys(file)
    assert again.get(URL) == "sk-1"
    assert again.keep(URL, "") == ""
    assert ServerKeys(file).get(URL) == ""


@pytest.mark.parametrize("ring", ["fails", "forgets", "hangs"], indirect=True)
def test_without_a_keyring_it_is_in_a_file_of_ones_own_which_is_said(ring: Ring, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    keys = ServerKeys(file, patience_s=0.02)
    assert str(file) in keys.keep(URL, "sk-1")
    assert keys.get(URL) == "sk-1"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    ring.over.set()
    assert ServerKeys(file, patience_s=0.02).get(URL) == "sk-1"
    ServerKeys(file, patience_s=0.02).keep(URL, "")
    assert not file.exists()


def test_a_keyring_that_came_later_takes_the_key_over(ring: Ring, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    ring.how = "fails"
    ServerKeys(file).keep(URL, "sk-1")
    ring.how = "works"
    assert ServerKeys(file).keep(URL, "sk-1") == ""
    assert not file.exists()


@pytest.mark.parametrize("content", [b"{oops", b"[]", b'{"http://bigbox:8080": 5}', b"\xff"])
def test_a_damaged_file_costs_the_keys_in_it_and_nothing_else(ring: Ring, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(content)
    assert ServerKeys(file).get(URL) == ""
    ring.how = "fails"
    ServerKeys(file).keep(URL, "sk-2")
    assert ServerKeys(file).get(URL) == "sk-2"


def test_a_file_that_cannot_be_written_is_said_and_the_key_counts_for_this_run(ring: Ring, tmp_path: Path) -> None:
    ring.how = "fails"
    keys = ServerKeys(tmp_path / "nowhere" / "keys.json")
    assert "used until kvdesk is closed" in keys.keep(URL, "sk-1")
    assert keys.get(URL) == "sk-1"


def refuse_to_write(file: Path) -> None:
    """As a disk that is full or can only be read."""
    file.with_name(f"{file.name}.{os.getpid()}.part").mkdir()


@pytest.mark.parametrize("how", ["fails", "works"])
@pytest.mark.parametrize("key", ["", "sk-2"])
def test_a_key_that_stays_in_the_file_is_said(ring: Ring, tmp_path: Path, how: str, key: str) -> None:
    """Forgotten, or now in a keyring."""
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({URL: "sk-1", "http://other": "sk-3"}))
    ring.how = how
    refuse_to_write(file)
    said = ServerKeys(file).keep(URL, key)
    if key and how == "fails":
        assert "could not be kept" in said
    else:
        assert said.startswith(f"The key could not be deleted from {file}: ")
    assert json.loads(file.read_text()) == {URL: "sk-1", "http://other": "sk-3"}


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_file_that_cannot_be_read_is_not_written(
    ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    ring.how, file = "fails", tmp_path / "keys.json"
    file.write_text(json.dumps({URL: "sk-1"}))

    def fail(path: Path) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(paths, "open_regular", fail)
    assert ServerKeys(file).get(URL) == ""
    assert os.strerror(number) in ServerKeys(file).keep("http://other", "sk-2")
    assert os.strerror(number) in ServerKeys(file).keep(URL, "")
    assert json.loads(file.read_text()) == {URL: "sk-1"}


def test_nothing_of_a_file_is_lost(ring: Ring, tmp_path: Path) -> None:
    ring.how, file = "fails", tmp_path / "keys.json"
    file.write_text('{"http://other": "sk-1", "mood": 5}')
    ServerKeys(file).keep(URL, "sk-2")
    assert json.loads(file.read_text()) == {"http://other": "sk-1", "mood": 5, URL: "sk-2"}
    damaged = file.read_text()[:-1]
    file.write_text(damaged)
    ServerKeys(file).keep(URL, "sk-3")
    assert json.loads(file.read_text()) == {URL: "sk-3"}
    assert file.with_name("keys.json.broken").read_text() == damaged


def test_two_keys_at_the_same_time_are_both_kept(ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring.how, file, meeting = "fails", tmp_path / "keys.json", threading.Barrier(2)
    keys, read_file = ServerKeys(file), ServerKeys._read

    def read(keys: ServerKeys) -> object:
        found = read_file(keys)
        with suppress(threading.BrokenBarrierError):
            meeting.wait(0.2)  # both have read before one has written, if nothing keeps them apart
        return found

    monkeypatch.setattr(ServerKeys, "_read", read)
    writing = [threading.Thread(target=keys.keep, args=(f"http://{n}", f"sk-{n}")) for n in range(2)]
    for thread in writing:
        thread.start()
    for thread in writing:
        thread.join()
    assert json.loads(file.read_text()) == {"http://0": "sk-0", "http://1": "sk-1"}
