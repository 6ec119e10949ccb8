"""Folders and files of a home: nobody else may read them, and nothing in them can block."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk import paths
from kvdesk.errors import UserError
from kvdesk.library.download import unfinished
from kvdesk.library.hub import read_token, token_file
from tests.needs import needs_pipes


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode) & 0o777


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists, and its profile folders are private")
def test_what_is_made_and_what_was_made_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("KVDESK_HOME", str(home))
    (home / "states").mkdir(parents=True)
    old = [home / "kvdesk.sqlite3", home / "settings.json", home / "states" / "index.json"]
    for file in old:
        file.write_text("secret")
    others = home / "holiday.jpg"
    others.write_text("shared on purpose")
    paths.make_private()
    new = paths.log_dir() / "kvdesk.log"
    new.write_text("secret")
    assert [oct(mode(file)) for file in (*old, new)] == ["0o600"] * 4
    assert [oct(mode(folder)) for folder in (home, home / "states", home / "log")] == ["0o700"] * 3
    assert oct(mode(others)) == "0o644"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists, and its profile folders are private")
def test_a_folder_that_others_use_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    tmp_path.chmod(0o1777)  # as /tmp is
    (tmp_path / "kvdesk.sqlite3").write_text("secret")
    paths.make_private()
    assert oct(mode(tmp_path)) == "0o777"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists, and its profile folders are private")
def test_the_folder_of_a_user_becomes_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVDESK_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("platformdirs.user_data_dir", lambda *_args, **_more: str(tmp_path / "data"))
    monkeypatch.setattr("platformdirs.user_log_dir", lambda *_args, **_more: str(tmp_path / "log"))
    (tmp_path / "data").mkdir(mode=0o755)
    paths.make_private()
    assert oct(mode(tmp_path / "data")) == "0o700"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_the_target_of_a_link_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    target = tmp_path / "elsewhere"
    target.write_text("not ours")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.json").symlink_to(target)
    paths.make_private()
    assert oct(mode(target)) == "0o644"


@pytest.mark.parametrize("home", ["portable", "~/portable"])
def test_a_home_is_the_same_in_every_folder(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes run in another one, and nobody replaced ~ in a service file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("KVDESK_HOME", home)
    monkeypatch.chdir(tmp_path)
    assert paths.states_dir() == tmp_path / "portable" / "states"
    assert paths.log_dir() == tmp_path / "portable" / "log"


def test_without_a_home_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the user of a container that no file names."""
    for variable in ("KVDESK_HOME", "HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="KVDESK_HOME"):
        paths.data_dir()
    assert not paths.settings_file(make_folder=False).exists()
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "kvdesk.sqlite3").touch()
    paths.make_private()
    assert [file.name for file in tmp_path.iterdir()] == ["home"]


@needs_pipes
def test_only_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / ("x" * 300), tmp_path / "missing"):
        with pytest.raises(OSError):  # noqa: PT011 - every kind of it
            paths.open_regular(path)


@needs_pipes
def test_a_pipe_in_place_of_what_the_hub_left_neither_blocks_nor_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    os.mkfifo(token_file())
    folder = tmp_path / "models" / "owner" / "name"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "model.gguf.part.json")
    assert read_token() == ""
    assert list(unfinished()) == []


def test_only_so_much_of_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    assert paths.read_regular(tmp_path / "file", 4) == b"1234"
    with pytest.raises(OSError, match="it is too large"):
        paths.read_regular(tmp_path / "file", 3)


@pytest.mark.parametrize(
    ("path", "in_file", "name"),
    [
        ("/m/Qwen3-0.6B-Q4_K_M.gguf", "Qwen3 0.6B", "Qwen3-0.6B-Q4_K_M"),
        ("/m/big-00001-of-00003.gguf", "", "big"),
        ("/jan/models/phi/model.gguf", "x", "phi"),
        ("/ollama/blobs/sha256-" + "0a" * 32, "Llama 3.2 1B", "Llama 3.2 1B"),
        ("/ollama/blobs/sha256-" + "0a" * 32, "", "sha256-" + "0a" * 32),
    ],
)
def test_a_model_has_one_name(path: str, in_file: str, name: str) -> None:
    assert paths.model_name(Path(path), in_file) == name
