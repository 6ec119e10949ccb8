"""What is installed: versions of all that decides how kvdesk behaves, and licences of the packages it needs.

Imports llama.cpp's binding: call it when it is asked for, not at start.
"""

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import apsw
from PySide6.QtCore import QLocale, qVersion
from PySide6.QtGui import QGuiApplication

from kvdesk import paths
from kvdesk.experiments.child import machine
from kvdesk.ui.shell.about_dialog import AboutFacts

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NOTICE_PART = re.compile(r"^={20,}\n(.+)\n(.+)\n={20,}$", re.MULTILINE)


def versions() -> dict[str, str]:
    """Names and versions; processor and memory of this machine; "built for": CPU features that llama.cpp uses."""
    found = machine()
    return {
        "kvdesk": found.pop("kvdesk"),
        "Python": found.pop("Python"),
        "Qt": qVersion(),
        "Qt platform": QGuiApplication.platformName(),
        "SQLite": apsw.sqlite_lib_version(),
        **found,
        "language": QLocale().name(),
    }


def about_facts() -> AboutFacts:
    """For the dialog. A packaged kvdesk brings all licences in one file."""
    shown = tuple(versions().items())
    if (bundle := paths.bundle_dir()) is not None and (bundle / "NOTICE.txt").is_file():
        notice = (bundle / "NOTICE.txt").read_text(encoding="utf-8", errors="replace")
        return AboutFacts(shown, tuple(_NOTICE_PART.findall(notice)), notice)
    licences = {f"{part.name} {part.version}": _licence(part) for part in _needed("kvdesk")}
    return AboutFacts(shown, tuple(sorted(licences.items(), key=lambda one: one[0].lower())))


def _needed(name: str, seen: frozenset[str] = frozenset({"kvdesk"})) -> Iterator[Distribution]:
    """A package and all it needs, as far as they are installed: of kvdesk its extras too, which the application is."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    yield found
    for line in found.requires or ():
        needed = _NAME.match(line)
        if needed is None or ("extra ==" in line and name != "kvdesk"):
            continue
        if needed.group().lower() not in seen:
            seen |= {needed.group().lower()}
            yield from _needed(needed.group(), seen)


def _licence(part: Distribution) -> str:
    """Its name as the package says it."""
    said = part.metadata.json
    named = said.get("license_expression") or said.get("license")
    if named:
        return str(named).splitlines()[0][:80]
    classified = [one.rpartition(" :: ")[2] for one in said.get("classifier", ()) if one.startswith("License ::")]
    return ", ".join(classified) or "see the package"
