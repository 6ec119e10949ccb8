"""Which shared libraries a Linux bundle brings, which are the system's, and whether any is missing.

Owns the list of libraries that every desktop has and that must be the system's own (as AppImage's exclude list has it:
graphics drivers are loaded into them), each with its Debian package. Everything else must be in the bundle.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

SYSTEM: Mapping[str, str] = {
    "ld-linux-x86-64.so.2": "libc6",
    "libc.so.6": "libc6",
    "libdl.so.2": "libc6",
    "libm.so.6": "libc6",
    "libpthread.so.0": "libc6",
    "librt.so.1": "libc6",
    "libutil.so.1": "libc6",
    "libgcc_s.so.1": "libgcc-s1",
    "libstdc++.so.6": "libstdc++6",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libX11.so.6": "libx11-6",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb.so.1": "libxcb1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libdrm.so.2": "libdrm2",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0 | libglib2.0-0t64",
    "libgthread-2.0.so.0": "libglib2.0-0 | libglib2.0-0t64",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libz.so.1": "zlib1g",
}
VERSIONS: Mapping[str, str] = {"libstdc++6": "libstdc++6 (>= 12)"}
"""The compiler that builds the engine is the one of Debian 12."""


def is_elf(file: Path) -> bool:
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def needed_by(file: Path) -> set[str]:
    """The names in the file's dynamic section."""
    said = subprocess.run(["objdump", "-p", str(file)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\s+NEEDED\s+(\S+)", said, re.MULTILINE))


def glibc_of(files: Iterable[Path]) -> str:
    """The newest glibc that any of the files asks for."""
    found = {(2, 17)}
    for file in files:
        said = subprocess.run(["objdump", "-p", str(file)], capture_output=True, text=True, check=True).stdout
        found |= {(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", said)}
    return ".".join(str(part) for part in max(found))


def prune(bundle: Path) -> list[str]:
    """Remove the system's own libraries from the bundle, and then those that only they needed. Answers their names."""
    removed = []
    unneeded = [file for file in bundle.glob("_internal/*.so*") if file.name in SYSTEM]
    while unneeded:
        for file in unneeded:
            file.unlink()
            removed.append(file.name)
        asked = set[str]().union(*(needed_by(file) for file in bundle.rglob("*") if is_elf(file)))
        libraries = [file for file in bundle.glob("_internal/lib*.so*") if not file.name.startswith("libpython")]
        unneeded = [file for file in libraries if file.name not in asked]
    return removed


def system_libraries(bundle: Path) -> tuple[set[str], dict[str, str]]:
    """What the bundle asks of the system, and what nobody has: names with the first file that needs them."""
    ours = {file.name for file in bundle.rglob("*")}
    asked: set[str] = set()
    missing: dict[str, str] = {}
    for file in sorted(file for file in bundle.rglob("*") if is_elf(file)):
        for name in needed_by(file) - ours:
            if name in SYSTEM:
                asked.add(name)
            else:
                missing.setdefault(name, str(file.relative_to(bundle)))
    return asked, missing


def depends(bundle: Path) -> str:
    """The `Depends:` of the Debian package."""
    asked, _ = system_libraries(bundle)
    glibc = glibc_of(file for file in bundle.rglob("*") if is_elf(file))
    versions = {**VERSIONS, "libc6": f"libc6 (>= {glibc})"}
    packages = {SYSTEM[name] for name in asked} | {"libc6"}
    return ", ".join(versions.get(package, package) for package in sorted(packages))
