"""Brings the catalogues of `resources/translations` up to date: `python packaging/translations.py [--unfinished]`.

    texts       `pyside6-lupdate` finds every `tr("…")` and `marked("…")` of kvdesk for each kvdesk_<language>.ts
    catalogue   `pyside6-lrelease` makes kvdesk_<language>.qm, which the application loads and which is committed

A language is offered where there is a .qm; a catalogue with unfinished entries gets none, so that nobody meets half a
translation. `--unfinished` makes it all the same, to look at it. Must never know: what a text means.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from setup import BIN, ROOT

TRANSLATIONS = ROOT / "resources" / "translations"
_LUPDATE = ("-silent", "-locations", "none", "-no-obsolete", "-sort-messages", "-tr-function-alias", "tr+=marked")
"""No line numbers, and sorted by the text: a catalogue changes only where a text does."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of the program and its translations, one for each form of the plural."""

    source: str
    translations: tuple[str, ...]
    finished: bool


def entries(ts: Path) -> list[Entry]:
    """Those of a .ts file, in its order."""
    found = []
    for message in ET.parse(ts).iter("message"):
        translation = message.find("translation")
        assert translation is not None, message.findtext("source")
        texts = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
        finished = translation.get("type") != "unfinished" and all(texts)
        found.append(Entry(message.findtext("source") or "", tuple(texts), finished))
    return found


def unfinished(ts: Path) -> int:
    """The number of entries without a translation that somebody has looked at."""
    return sum(not entry.finished for entry in entries(ts))


def update(ts: Path, package: Path) -> None:
    """Add the texts of `package` to the catalogue, and take out those that are in it no more."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources.lst"
        sources.write_text("\n".join(map(str, sorted(package.rglob("*.py")))), encoding="utf-8")
        _call("pyside6-lupdate", f"@{sources}", *_LUPDATE, "-ts", str(ts))


def release(ts: Path, *, though_unfinished: bool = False) -> bool:
    """Make the .qm beside `ts`, or remove it where entries are unfinished; whether there is one now."""
    qm = ts.with_suffix(".qm")
    if unfinished(ts) and not though_unfinished:
        qm.unlink(missing_ok=True)
        return False
    _call("pyside6-lrelease", "-silent", str(ts), "-qm", str(qm))
    return True


def _call(tool: str, *arguments: str) -> None:
    subprocess.run([str(BIN / tool), *arguments], check=True)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="packaging/translations.py", description="Bring the catalogues up to date.")
    parser.add_argument("--unfinished", action="store_true", help="make a .qm of unfinished catalogues too")
    options = parser.parse_args(argv)
    for ts in sorted(TRANSLATIONS.glob("kvdesk_*.ts")):
        update(ts, ROOT / "kvdesk")
        made = release(ts, though_unfinished=options.unfinished)
        print(f"{ts.stem}: {len(entries(ts))} texts, {unfinished(ts)} unfinished; {'made' if made else 'not offered'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
