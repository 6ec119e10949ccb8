"""The notice in every package: what is in it, of which version, and under which licence, with all texts.

Everything is read from what was really installed; only the texts of Qt, llama.cpp and the font of formulas, which
wheels lack, are files of this folder. Run by the Python of the packaging environment:
`python packaging/notice.py BUNDLE BUILT_FROM NAME …`.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

LICENCES = Path(__file__).resolve().parent / "licences"
ROOT = LICENCES.parent.parent
FONTS = ROOT / "resources" / "fonts"
TEXT_FILE = re.compile(r"licen[cs]e|copying|notice", re.IGNORECASE)
TEXTS_HERE = {
    "pyside6-essentials": "qt.txt",
    "shiboken6": "",
    "llama-cpp-python": "llama.cpp.txt",
    "ziamath": "stix.txt",
}
RULE = "=" * 100


def is_here(name: str) -> bool:
    """Whether a package of the lock file is for this system: what is for others only was not installed."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def distribution_part(name: str) -> str:
    """One Python package: name, version, licence, and the texts it carries."""
    found = importlib.metadata.distribution(name)
    said = found.metadata.json
    licence = str(said.get("license_expression") or said.get("license") or "see below")
    files = [file for file in found.files or () if ".dist-info" in str(file) and TEXT_FILE.search(file.name)]
    texts = [Path(str(found.locate_file(file))).read_text("utf-8", errors="replace").strip() for file in files]
    if here := TEXTS_HERE.get(name):
        texts.append((LICENCES / here).read_text(encoding="utf-8").strip())
    return part(f"{found.metadata['Name']} {found.version}", licence.splitlines()[0], texts)


def part(title: str, licence: str, texts: Iterable[str]) -> str:
    return "\n\n".join([f"{RULE}\n{title}\n{licence}\n{RULE}", *texts])


def system_parts(bundle: Path) -> Iterator[str]:
    """The libraries that were taken from this Linux system, by their Debian package and its copyright file."""
    packages: dict[str, list[str]] = {}
    for file in sorted(bundle.glob("_internal/lib*.so*")):
        if file.is_symlink() or file.name.startswith("libpython"):
            continue
        said = subprocess.run(["dpkg", "-S", f"*/{file.name}"], capture_output=True, text=True, check=False).stdout
        if owner := said.split(":")[0].strip():
            packages.setdefault(owner, []).append(file.name)
    for package, names in sorted(packages.items()):
        copyright_file = Path(f"/usr/share/doc/{package}/copyright")
        text = copyright_file.read_text(encoding="utf-8", errors="replace").strip() if copyright_file.is_file() else ""
        yield part(f"{package} ({', '.join(names)})", "as Debian states it", [text])


def python_part() -> str:
    text = (Path(sysconfig.get_path("stdlib")) / "LICENSE.txt").read_text(encoding="utf-8", errors="replace")
    return part(f"Python {sys.version.split()[0]}", "Python Software Foundation License 2", [text.strip()])


def fonts_part() -> str:
    """The fonts of the window: what was made from which, and each one's licence."""
    files = [FONTS / "README.md", *sorted(FONTS.glob("*-OFL.txt"))]
    return part("Fonts", "SIL Open Font License 1.1", [file.read_text(encoding="utf-8").strip() for file in files])


def notice(bundle: Path, built_from: str, names: Iterable[str]) -> str:
    """The whole text."""
    own = (ROOT / "LICENSE").read_text(encoding="utf-8").strip()
    bootloader = (
        "The program's start code is PyInstaller's bootloader (GPL-2.0-or-later with an exception that lets programs "
        "of any licence be distributed with it)."
    )
    model = "The embedded model is SmolLM2-135M-Instruct by Hugging Face, under the Apache License 2.0 (above)."
    gnu = [(LICENCES / name).read_text(encoding="utf-8").strip() for name in ("LGPL-3.0.txt", "GPL-3.0.txt")]
    parts = [
        f"kvdesk and everything that is shipped with it\n\n{built_from}\n\n{bootloader}\n{model}",
        part("kvdesk", "Apache-2.0", [own]),
        python_part(),
        fonts_part(),
        *(distribution_part(name) for name in sorted(names) if is_here(name)),
        *(system_parts(bundle) if sys.platform.startswith("linux") else ()),
        part("GNU licences", "LGPL-3.0, GPL-3.0", gnu),
    ]
    return "\n\n\n".join(parts) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    inside = folder / "Contents" / "Resources" if folder.suffix == ".app" else folder / "_internal"
    (inside / "NOTICE.txt").write_text(notice(folder, sys.argv[2], sys.argv[3:]), encoding="utf-8")
