"""The parts of packaging that need nothing built: lock files, icons, what is shipped, whose libraries are missing."""

import io
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import icons
import libraries
import notice
import package
import pytest
import setup
from setup import SetupError

from tests.places import ROOT

LINUX = ROOT / "packaging" / "linux"


def test_what_is_shipped_follows_from_the_lock_file() -> None:
    names = package.shipped(setup.blocks(setup.LOCK.read_text(encoding="utf-8")))
    assert {"pyside6-essentials", "shiboken6", "llama-cpp-python", "diskcache", "numpy", "pydantic-core"} <= set(names)
    assert not {"pytest", "mypy", "cmake", "gguf", "rich"} & set(names)


def test_the_lock_file_of_packaging_names_no_host() -> None:
    lock = package.LOCK.read_text(encoding="utf-8")
    assert not re.search(r"https?:|index-url|find-links", lock)
    blocks = setup.blocks(lock)
    assert "pyinstaller" in blocks
    assert all("--hash=sha256:" in block for block in blocks.values())


def test_a_missing_library_is_found_in_the_log() -> None:
    line = "122 WARNING: Library not found: could not resolve 'libxcb-cursor.so.0', dependency of '/a/libqxcb.so'."
    assert package.not_found(f"1 INFO: x\n{line}\n") == [("libxcb-cursor.so.0", "/a/libqxcb.so")]
    line = r"WARNING: Library not found: could not resolve 'x.dll', dependency of 'C:\\site-packages\\PySide6\\y.dll'."
    assert package.not_found(line) == [("x.dll", "PySide6/y.dll")]


@pytest.mark.parametrize(("file", "fails"), [("PySide6/y.so", True), ("PySide6/left-out.so", False)])
def test_a_library_that_the_bundle_lacks_ends_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, fails: bool
) -> None:
    log, inside = tmp_path / "log", tmp_path / "bundle"
    log.write_text("Library not found: could not resolve 'old', dependency of 'an earlier build'\n", encoding="utf-8")
    (inside / "PySide6").mkdir(parents=True)
    (inside / "PySide6/y.so").touch()

    def build(_text: str, _command: Sequence[str | Path], _env: Mapping[str, str] | None = None) -> None:
        with log.open("a", encoding="utf-8") as said:
            said.write(
                f"WARNING: Library not found: could not resolve 'libx.so', dependency of '/site-packages/{file}'.\n"
            )

    monkeypatch.setattr(setup, "LOG", log)
    monkeypatch.setattr(setup, "step", build)
    monkeypatch.setattr(package, "INSIDE", inside)
    monkeypatch.setattr(package, "embedded_model", lambda: "")
    with pytest.raises(setup.SetupError, match=r"libx\.so for PySide6/y\.so") if fails else nullcontext():
        package.make_bundle()


def test_the_notice_names_the_fonts_and_their_licence() -> None:
    text = notice.fonts_part()
    assert all(name in text for name in ("Inter 4.001", "JetBrains Mono 2.211", "Noto Emoji 3.006"))
    assert text.count("SIL OPEN FONT LICENSE Version 1.1") == 3


def test_the_kinds_of_processor_of_an_engine(tmp_path: Path) -> None:
    wheel = tmp_path / "engine.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name in ("libggml-cpu-haswell.so", "libggml-cpu-armv8.2_1.so", "libggml-cpu.so.0", "libggml-base.so"):
            file.writestr(f"llama_cpp/lib/{name}", b"")
    assert package.variants(wheel) == ["armv8.2_1", "haswell"]


def test_icons_are_there_in_every_size(tmp_path: Path) -> None:
    icons.draw(tmp_path)
    for size in icons.SIZES:
        data = (tmp_path / f"{size}.png").read_bytes()
        assert struct.unpack(">II", data[16:24]) == (size, size)
    ico = (tmp_path / "kvdesk.ico").read_bytes()
    assert struct.unpack("<HHH", ico[:6]) == (0, 1, len(icons.ICO_SIZES))
    length, offset = struct.unpack("<II", ico[14:22])
    assert ico[offset : offset + length] == (tmp_path / "16.png").read_bytes()
    icns = (tmp_path / "kvdesk.icns").read_bytes()
    assert struct.unpack(">I", icns[4:8]) == (len(icns),)


@pytest.mark.skipif(not shutil.which("objdump"), reason="binutils is not installed")
def test_the_systems_libraries_are_taken_out_with_what_only_they_need(tmp_path: Path) -> None:
    inside = tmp_path / "_internal"
    inside.mkdir()
    glib = next(Path("/usr/lib").rglob("libglib-2.0.so.0"), None)
    pcre = next(Path("/usr/lib").rglob("libpcre2-8.so.0"), None)
    if glib is None or pcre is None:
        pytest.skip("there is no GLib here")
    for file in (glib, pcre):
        shutil.copy(file, inside / file.name)
    assert libraries.prune(tmp_path) == ["libglib-2.0.so.0", "libpcre2-8.so.0"]
    assert not list(inside.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        ["desktop-file-validate", LINUX / "kvdesk.desktop"],
        ["appstreamcli", "validate", "--no-net", LINUX / "kvdesk.metainfo.xml"],
        ["sh", "-n", LINUX / "install.sh"],
        ["sh", "-n", LINUX / "make-appimage.sh"],
        ["sh", "-n", ROOT / "packaging/macos/make-dmg.sh"],
        ["sh", "-n", ROOT / "packaging/macos/keychain.sh"],
    ],
    ids=lambda command: f"{command[0]} {command[-1].name}",
)
def test_desktop_files_and_scripts_are_valid(command: list[str | Path]) -> None:
    if not shutil.which(str(command[0])):
        pytest.skip(f"{command[0]} is not installed")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


# --- the .run -------------------------------------------------------------------------------------------------------

needs_installer = pytest.mark.skipif(
    f"{platform.system()} {platform.machine()}" != "Linux x86_64" or not shutil.which("xz"), reason="it is for Linux"
)


def run_file(folder: Path, version: str) -> Path:
    """A small program, packed as kvdesk is."""
    tree = folder / "tree"
    program = tree / "lib/kvdesk/kvdesk"
    for file, text in ((program, f"#!/bin/sh\necho {version}\n"), (tree / "share/applications/kvdesk.desktop", "")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or (LINUX / "kvdesk.desktop").read_text("utf-8"))
    program.chmod(0o755)
    (tree / "bin").mkdir()
    (tree / "bin/kvdesk").symlink_to("../lib/kvdesk/kvdesk")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz") as packed:
        packed.add(tree, ".")
    head = (LINUX / "install.sh").read_text("utf-8").replace("@VERSION@", version)
    file = folder / f"kvdesk-{version}.run"
    file.write_bytes(head.replace("@LINES@", str(head.count("\n") + 1)).encode() + archive.getvalue())
    shutil.rmtree(tree)
    return file


def installed(file: Path, prefix: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", file, "--prefix", prefix], capture_output=True, text=True, check=False)


@needs_installer
def test_it_is_installed_updated_and_removed_below_a_folder_of_any_name(tmp_path: Path) -> None:
    prefix = tmp_path / "R&D | mine"
    for version in ("1.0", "1.1"):
        assert installed(run_file(tmp_path, version), prefix).returncode == 0
        assert subprocess.check_output([prefix / "bin/kvdesk"], text=True) == f"{version}\n"
    desktop = (prefix / "share/applications/kvdesk.desktop").read_text("utf-8")
    assert f'\nExec="{prefix}/bin/kvdesk" %f\n' in desktop
    subprocess.run([prefix / "lib/kvdesk/uninstall"], check=True)
    assert list(prefix.iterdir()) == []


@needs_installer
def test_a_file_that_is_not_complete_removes_nothing(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    assert installed(run_file(tmp_path, "1.0"), prefix).returncode == 0
    newer = run_file(tmp_path, "1.1")
    newer.write_bytes(newer.read_bytes()[:-40])
    ended = installed(newer, prefix)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "This file is damaged or not complete. Nothing was changed.\n"
    assert subprocess.check_output([prefix / "bin/kvdesk"], text=True) == "1.0\n"


@pytest.mark.parametrize("name", ["setup", "package", "package_test"])
def test_what_a_bare_machine_runs_imports_nothing_that_is_installed(name: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'packaging')!r}); import {name}"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    """What `check_translations` runs tells of these texts that wait, and fails if there are any."""
    script = tmp_path / "packaging" / "translations.py"
    script.parent.mkdir(exist_ok=True)
    expected = "import sys\nassert sys.argv[1:] == ['--check', '--release']\n"
    script.write_text(f"{expected}print({told!r})\nsys.exit({bool(told):d})")
    monkeypatch.setattr(package, "ROOT", tmp_path)


def test_a_release_fails_while_a_text_waits_for_its_translation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checker(tmp_path, monkeypatch, "error: kvdesk_zh_CN: 2 texts wait")
    with pytest.raises(SetupError, match=r"(?s)A release needs its translations\..*2 texts wait.*--untranslated"):
        package.check_translations()
    checker(tmp_path, monkeypatch, "")
    package.check_translations()


@pytest.mark.parametrize(
    ("options", "packed"), [(["--bundle-only"], False), (["--bundle-only", "--untranslated"], True)]
)
def test_packages_for_oneself_need_no_translation(
    options: list[str],
    packed: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def pack() -> list[str]:
        raise SetupError("packs")

    checker(tmp_path, monkeypatch, "2 texts wait")
    monkeypatch.setattr(setup, "check_machine", lambda **_: None)
    monkeypatch.setattr(setup, "set_up", lambda: None)
    monkeypatch.setattr(package, "BUILD", tmp_path / "build")
    monkeypatch.setattr(package, "make_environment", pack)
    assert package.main(options) == 1
    assert ("packs" in capsys.readouterr().err) == packed
