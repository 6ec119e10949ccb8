"""Whether there is anything to draw on; and why no window opens: which shared libraries the display's plug-in lacks."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kvdesk.translation import marked, plural, tr

WITHOUT_DISPLAY: Final = marked("`kvdesk chat` and `kvdesk serve` work without one.")
_VARIABLES = "QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"
_PLUGINS: Final = {"DISPLAY": "xcb", "WAYLAND_DISPLAY": "wayland"}
"""The environment variable that says where a display is, and Qt's plug-in for it."""
_PACKAGES: Final = {"libglib-2.0.so.0": "libglib2.0-0", "libgthread-2.0.so.0": "libglib2.0-0", "libz.so.1": "zlib1g"}
"""Debian packages that are not called after their library."""


def has_display() -> bool:
    """Whether Qt can open a window here: always, except on a Unix without X11 and Wayland."""
    if sys.platform in ("win32", "darwin") or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def why_no_window(env: Mapping[str, str]) -> str:
    """Why Qt cannot open a window: the missing libraries and how to get them, or the display's name."""
    where = " ".join(f"{name}={env[name]}" for name in _VARIABLES if env.get(name))
    missing = missing_libraries(plugins(env))
    if missing:
        return tr("Qt cannot open a window on this display ({where}): {missing_sentence}").format(
            where=where, missing_sentence=missing_sentence(missing)
        )
    return tr("Qt cannot open a window on this display ({where}). {without_display}").format(
        where=where, without_display=tr(WITHOUT_DISPLAY)
    )


def missing_sentence(sonames: Iterable[str]) -> str:
    """The libraries, and the command that installs all of them."""
    names = sorted(sonames)
    packages = " ".join(sorted({debian_package(name) for name in names}))
    listed = tr(" and ").join(filter(None, (", ".join(names[:-1]), names[-1])))
    gone = plural("{names} is missing.", "{names} are missing.", len(names))
    if shutil.which("apt"):
        how = tr("Install with: sudo apt install {packages}")
    else:
        how = tr("Install with this system's package manager; Debian's packages: {packages}")
    return f"{gone.format(names=listed)} {how.format(packages=packages)}"


def plugins(env: Mapping[str, str]) -> list[Path]:
    """The files of the plug-ins that Qt tries here: the one that QT_QPA_PLATFORM names, else one for each display."""
    if asked := env.get("QT_QPA_PLATFORM"):
        names = [name.split(":")[0] for name in asked.split(";")]
    else:
        names = [plugin for variable, plugin in _PLUGINS.items() if env.get(variable)]
    spec = find_spec("PySide6")
    folder = Path(spec.origin or "").parent / "Qt/plugins/platforms" if spec else Path()
    return [file for name in names if (file := folder / f"libq{name}.so").is_file()]


def missing_libraries(files: Iterable[Path]) -> list[str]:
    """The names of the shared libraries that the files need, directly or not, and the system lacks, as `ldd` finds
    them; empty if there is no `ldd`."""
    missing: set[str] = set()
    for file in files:
        try:
            said = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False, timeout=10).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        missing |= set(re.findall(r"^\s*(\S+) => not found", said, re.MULTILINE))
    return sorted(missing)


def missing_import(error: ImportError) -> str:
    """The sentence for a module of Qt that could not be loaded since the system lacks a library; else empty."""
    found = re.match(r"(\S+\.so[.\d]*): cannot open shared object file", str(error))
    if not found:
        return ""
    spec = find_spec("PySide6")
    modules = Path(spec.origin or "").parent.glob("Qt[CGW]*.abi3.so") if spec else ()
    return tr("Qt cannot be loaded: {missing_sentence}").format(
        missing_sentence=missing_sentence({found[1], *missing_libraries(modules)})
    )


def debian_package(soname: str) -> str:
    """The Debian package of a library, called after it by Debian's rule: libxcb-icccm.so.4 is in libxcb-icccm4."""
    if soname in _PACKAGES:
        return _PACKAGES[soname]
    name, _, version = soname.lower().partition(".so.")
    return f"{name}{'-' if name[-1:].isdigit() else ''}{version}"


if __name__ == "__main__":  # asked by the set-up: one missing library a line, with its package
    for soname in missing_libraries(plugins(os.environ)):
        sys.stdout.write(f"{soname} {debian_package(soname)}\n")
