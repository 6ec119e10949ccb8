"""Why a window does not open: the shared libraries that Qt's plug-in for the display lacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvdesk.app import display

LDD = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibxcb-cursor.so.0 => /lib/x86_64-linux-gnu/libxcb-cursor.so.0 (0x00007fb7)
\tlibxcb-keysyms.so.1 => not found
\tlibxcb-icccm.so.4 => not found
\tlibQt6Core.so.6 => /opt/Qt/lib/libQt6Core.so.6 (0x00007fb7)
\tlibxcb-icccm.so.4 => not found
"""


@pytest.fixture
def ldd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs: an `ldd` that lacks two libraries, and `apt`."""
    for name, text in {"ldd": f"#!/bin/sh\ncat <<'END'\n{LDD}END\n", "apt": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="plug-ins for X11 and Wayland")
@pytest.mark.parametrize(
    ("env", "names"),
    [
        ({"DISPLAY": ":0"}, ["libqxcb.so"]),
        ({"WAYLAND_DISPLAY": "wayland-0"}, ["libqwayland.so"]),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, ["libqxcb.so", "libqwayland.so"]),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen:size=1"}, ["libqoffscreen.so"]),
        ({}, []),
    ],
)
def test_the_plug_ins_are_those_that_qt_tries(env: dict[str, str], names: list[str]) -> None:
    assert [file.name for file in display.plugins(env)] == names


@pytest.mark.skipif(sys.platform != "linux", reason="ldd")
def test_missing_libraries_are_named_with_the_command_that_installs_them(ldd: Path) -> None:
    assert (ldd / "ldd").is_file()
    assert display.why_no_window({"DISPLAY": ":9"}) == (
        "Qt cannot open a window on this display (DISPLAY=:9): libxcb-icccm.so.4 and libxcb-keysyms.so.1 are missing. "
        "Install with: sudo apt install libxcb-icccm4 libxcb-keysyms1"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="X11")
def test_the_program_says_it_and_ends(ldd: Path, tmp_path: Path) -> None:
    """The display does not exist, so Qt gives up; that a library is missing is the scripted `ldd`'s word."""
    env = {"PATH": f"{ldd}{os.pathsep}{os.environ['PATH']}", "DISPLAY": ":4711", "KVDESK_HOME": str(tmp_path / "home")}
    ended = subprocess.run(
        [sys.executable, "-m", "kvdesk"],
        env=env | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].endswith("sudo apt install libxcb-icccm4 libxcb-keysyms1")
    assert "Traceback" not in ended.stderr


def test_a_display_that_nobody_serves_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "missing_libraries", lambda _files: [])
    said = display.why_no_window({"DISPLAY": ":9", "QT_QPA_PLATFORM": ""})
    assert said == f"Qt cannot open a window on this display (DISPLAY=:9). {display.WITHOUT_DISPLAY}"


@pytest.mark.parametrize(
    ("soname", "package"),
    [
        ("libxcb-render-util.so.0", "libxcb-render-util0"),
        ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
        ("libX11-xcb.so.1", "libx11-xcb1"),
        ("libdbus-1.so.3", "libdbus-1-3"),
        ("libz.so.1", "zlib1g"),
    ],
)
def test_debian_calls_a_package_after_its_library(soname: str, package: str) -> None:
    assert display.debian_package(soname) == package


def test_the_set_up_and_the_window_name_the_same_packages() -> None:
    import machine

    tables = {**machine.LIBRARIES, **machine.X11_LIBRARIES, **machine.WAYLAND_LIBRARIES}
    assert {name: display.debian_package(name) for name in tables} == tables


def test_a_module_of_qt_that_cannot_be_loaded_is_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "missing_libraries", lambda _files: ["libGL.so.1"])
    error = ImportError("libEGL.so.1: cannot open shared object file: No such file or directory")
    assert "libEGL.so.1 and libGL.so.1 are missing" in display.missing_import(error)
    assert display.missing_import(ImportError("No module named 'x'")) == ""
