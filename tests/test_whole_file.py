import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import kvdesk
from kvdesk import whole_file
from kvdesk.whole_file import replacing, write_whole


def test_a_file_is_replaced_when_all_of_the_new_one_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with replacing(path) as part:
        part.write_bytes(b"ne")
        assert path.read_bytes() == b"old"
        part.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_what_ends_the_writing_leaves_the_file_that_was_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def write() -> None:
        with replacing(path) as part:
            part.write_bytes(b"ne")
            raise error

    with pytest.raises(type(error)):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(OSError):  # noqa: PT011  # another class on every system
        write_whole(tmp_path / "a.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("n_refused", [1, 3])
def test_a_file_that_another_program_looks_at_is_replaced_a_moment_later(
    n_refused: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    refusals = iter([PermissionError("in use")] * n_refused)
    replace = Path.replace

    def refused(path: Path, target: Path) -> Path:
        for error in refusals:
            raise error
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", refused)
    monkeypatch.setattr(whole_file, "PATIENCE_S", 60.0)
    write_whole(tmp_path / "a.json", b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new"
    refusals = iter([PermissionError("in use")])
    monkeypatch.setattr(whole_file, "PATIENCE_S", 0.0)
    with pytest.raises(PermissionError):
        write_whole(tmp_path / "a.json", b"newer")
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.skipif(not hasattr(os, "mknod") or os.geteuid() != 0, reason="only root makes devices, on a Unix")
def test_a_device_stays_in_its_place(tmp_path: Path) -> None:
    """As /dev/null, in whose place root could put a file."""
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (tmp_path / "link").symlink_to("null")
    for path in (device, tmp_path / "link"):
        with pytest.raises(OSError, match="it is not a file"):
            write_whole(path, b"new")
    assert device.is_char_device()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "null"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_what_a_killed_process_left_is_removed_and_that_of_a_running_one_is_not(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"[a].json.{ended.pid}.part"
    running = tmp_path / f"[a].json.{os.getppid()}.part"
    other = tmp_path / f"b.json.{ended.pid}.part"
    for path in (left, running, other):
        path.write_bytes(b"half")
    write_whole(tmp_path / "[a].json", b"new")
    assert not left.exists()
    assert running.exists()
    assert other.exists()


@pytest.mark.parametrize("number", [1 << 31, 1 << 32, 99999999999, 1 << 64])
def test_a_number_that_is_no_process_is_none(tmp_path: Path, number: int) -> None:
    left = tmp_path / f"a.json.{number}.part"
    left.touch()
    write_whole(tmp_path / "a.json", b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new"
    assert not left.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
def test_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_whole(path, b"new", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600


def test_nobody_writes_a_file_in_its_place() -> None:
    """But for reports of commands, which may go to a terminal or a pipe, and what only developers run."""
    root = Path(kvdesk.__file__).parent
    in_place = re.compile(r"(?<!part)\.(write_text|write_bytes|open\(\"[wx]\")|setFileName\(|\.save\(str\(")
    found = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if in_place.search(path.read_text())}
    assert {name for name in found if not name.startswith("dev/")} == {"cli/audit.py", "cli/verify_engine.py"}
