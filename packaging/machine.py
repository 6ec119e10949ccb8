"""What the machine must have before anything of kvdesk's is installed: shared libraries, a compiler, a display.

Owns the lists and the detection, and the one `apt-get` call. Must never know: the environment, the lock file,
kvdesk itself. Standard library only; runs on Linux, macOS and Windows.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Shared libraries that Qt and the engine load and do not bring along, each with the Debian package that has it.
LIBRARIES: Mapping[str, str] = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgomp.so.1": "libgomp1",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libz.so.1": "zlib1g",
}
X11_LIBRARIES: Mapping[str, str] = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
WAYLAND_LIBRARIES: Mapping[str, str] = {
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
}
PACKAGE_TOOLS: Mapping[str, str] = {"objdump": "binutils", "strip": "binutils", "dpkg-deb": "dpkg", "xz": "xz-utils"}
"""Programs that packages are made with, each with its Debian package."""
TEST_TOOLS: Mapping[str, str] = {"debootstrap": "debootstrap", "qemu-x86_64": "qemu-user"}
"""Programs that packages are tried with."""
EVERY_DISPLAY: Mapping[str, str] = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}
"""An environment with each kind of display there is."""
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
AMX_HEADER = Path(__file__).resolve().parent / "amx.h"

OFFSCREEN_PLATFORMS = ("offscreen", "minimal", "vnc", "linuxfb")


@dataclass(frozen=True)
class Missing:
    """Something the machine lacks, and the Debian package that has it."""

    what: str
    package: str


def loads(soname: str) -> bool:
    """Whether the dynamic linker finds the library and everything it needs."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def wants_display(env: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether a window could open here, as far as the environment says."""
    if env.get("QT_QPA_PLATFORM", "").split(":")[0] in OFFSCREEN_PLATFORMS:
        return False
    return not platform.startswith("linux") or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


def needed_libraries(env: Mapping[str, str]) -> dict[str, str]:
    """The libraries Qt will load here: those of a real display only if there is one."""
    needed = dict(LIBRARIES)
    if wants_display(env):
        if env.get("DISPLAY"):
            needed.update(X11_LIBRARIES)
        if env.get("WAYLAND_DISPLAY"):
            needed.update(WAYLAND_LIBRARIES)
    return needed


def missing_libraries(env: Mapping[str, str], loads: Callable[[str], bool] = loads) -> list[Missing]:
    return [Missing(soname, package) for soname, package in needed_libraries(env).items() if not loads(soname)]


def missing_compiler(which: Callable[[str], str | None] = shutil.which) -> list[Missing]:
    """The engine is C and C++. CMake and Ninja are not asked for: the lock file brings them."""
    missing = []
    if not any(which(name) for name in (os.environ.get("CC") or "cc", "gcc", "clang")):
        missing.append(Missing("a C compiler", "gcc"))
    if not any(which(name) for name in (os.environ.get("CXX") or "c++", "g++", "clang++")):
        missing.append(Missing("a C++ compiler", "g++"))
    return missing


def has_amx(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor has AMX, as Linux tells."""
    return cpuinfo.exists() and "amx_tile" in cpuinfo.read_text(encoding="utf-8", errors="replace")


def engine_settings(env: Mapping[str, str], macros: Callable[[str], str]) -> list[str]:
    """How the engine is compiled for this processor, as settings of its build: without AMX where it has that.

    llama.cpp fills the tiles' configuration on the stack, and what compilers know of `_tile_loadconfig` lets them leave
    most of that out (GCC 12's amxtileintrin.h): the first tile instruction ends the program. llama.cpp PR #26954.
    With `KVDESK_AMX` in `env`, other than 0, it is compiled with AMX, and `amx.h` says what is read.
    `macros`: what a compiler defines for this processor, by its name.
    """
    with_amx = env.get("KVDESK_AMX", "") not in ("", "0")
    settings = []
    for language, variable, default in (("C", "CC", "cc"), ("CXX", "CXX", "c++")):
        if with_amx and language == "C":  # only C++ has such instructions
            continue
        if "__AMX_TILE__" in macros(env.get(variable) or default):
            flags = f"-include {shlex.quote(str(AMX_HEADER))}" if with_amx else NO_AMX
            wanted = f"{env.get(f'{language}FLAGS', '')} {flags}".strip()
            settings.append(f"cmake.define.CMAKE_{language}_FLAGS={wanted}")
    return settings


def native_macros(compiler: str) -> str:
    """What the compiler defines when it compiles for this processor; "" if it cannot tell."""
    command = [*compiler.split(), "-march=native", "-dM", "-E", "-x", "c", os.devnull]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def missing_venv() -> list[Missing]:
    """Debian takes `ensurepip` out of its Python; the package that has it carries the version in its name."""
    if importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        return []
    return [Missing("Python's venv module", f"python{sys.version_info.major}.{sys.version_info.minor}-venv")]


def missing_tools(tools: Mapping[str, str], which: Callable[[str], str | None] = shutil.which) -> list[Missing]:
    return [Missing(f"the program {name}", package) for name, package in tools.items() if not which(name)]


def missing_libpython() -> list[Missing]:
    """A package carries Python as a shared library, which Debian has beside its Python."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if sysconfig.get_config_var("Py_ENABLE_SHARED") or loads(f"libpython{version}.so.1.0"):
        return []
    return [Missing("Python's shared library", f"libpython{version}")]


def missing_on_linux(env: Mapping[str, str], *, to_build: bool, to_package: bool = False) -> list[Missing]:
    """Everything missing here.

    `to_build`: the environment is not complete yet, so a compiler is needed as well; where packages can be installed,
    the libraries of every kind of display are too, for the day there is one. `to_package`: they are, because they are
    packed.
    """
    missing = missing_libraries(EVERY_DISPLAY if to_package or (to_build and can_install(env)) else env)
    if to_package:
        missing = missing_tools(PACKAGE_TOOLS) + missing_libpython() + missing
    return missing_venv() + missing_compiler() + missing if to_build else missing


def packages_of(missing: Iterable[Missing]) -> list[str]:
    """The Debian packages to install, each once, in alphabetical order."""
    return sorted({item.package for item in missing})


def can_install(env: Mapping[str, str]) -> bool:
    """Whether packages can be installed without a question: root and apt."""
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get", path=env.get("PATH")) is not None


def apt_commands(packages: Iterable[str]) -> list[list[str]]:
    return [["apt-get", "update", "-q"], ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]]


def explanation(missing: Iterable[Missing], *, has_apt: bool) -> str:
    """What is missing and the exact command that brings it, for a person."""
    missing = list(missing)
    lines = ["This machine lacks " + ", ".join(item.what for item in missing) + "."]
    if has_apt:
        lines += ["Install it and run the same command again:", ""]
        lines += ["    sudo apt install " + " ".join(packages_of(missing))]
    else:
        lines += ["Install it with this system's package manager and run the same command again."]
        lines += ["On Debian the packages are called: " + " ".join(packages_of(missing))]
    return "\n".join(lines)


def compiler_advice(platform: str = sys.platform) -> str | None:
    """On macOS and Windows: how to get a compiler, or None if there is one."""
    if platform == "darwin":
        if subprocess.run(["xcode-select", "-p"], capture_output=True, check=False).returncode == 0:
            return None
        return "This Mac lacks a C++ compiler. Install it and run the same command again:\n\n    xcode-select --install"
    if platform == "win32":
        vswhere = Path(os.environ.get("PROGRAMFILES(X86)", "C:/")) / "Microsoft Visual Studio/Installer/vswhere.exe"
        compiler = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"
        asked = ["-products", "*", "-requires", compiler, "-property", "displayName"]
        if vswhere.exists():
            found = subprocess.run([str(vswhere), *asked], capture_output=True, text=True, check=False)
            if found.stdout.strip():
                return None
        return (
            "This PC lacks a C++ compiler. Install it and run the same command again:\n\n"
            "    winget install Microsoft.VisualStudio.2022.BuildTools --override "
            '"--passive --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended"'
        )
    return None


if __name__ == "__main__":  # asked again in a fresh process, after an installation
    still = missing_on_linux(os.environ, to_build="--to-build" in sys.argv, to_package="--to-package" in sys.argv)
    if still:
        print(explanation(still, has_apt=True))
    raise SystemExit(bool(still))
