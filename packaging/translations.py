"""Brings the catalogues of `resources/translations` up to date: `python packaging/translations.py [--check]`.

    texts       `pyside6-lupdate` finds every `tr("…")` and `marked("…")` of kvdesk for each kvdesk_<language>.ts
    catalogue   `pyside6-lrelease` makes kvdesk_<language>.qm, which the application loads and which is committed

A language is offered where there is a .qm. A text that is not translated yet is shown in English, so that nobody waits
for somebody who writes Chinese. `--check` changes nothing and tells which texts and documents wait; with `--release`
it fails where one does. Must never know: what a text means.
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

import translated_docs
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


def unfinished(ts: Path) -> list[str]:
    """The texts without a translation that somebody has looked at."""
    return [entry.source for entry in entries(ts) if not entry.finished]


def waiting(ts: Path, package: Path) -> list[str]:
    """The texts of `package` that are not translated in the catalogue, also where it is older than they are."""
    with tempfile.TemporaryDirectory() as folder:
        now = Path(folder) / ts.name
        now.write_bytes(ts.read_bytes())
        update(now, package)
        return unfinished(now)


def all_waiting() -> list[str]:
    """A sentence for each catalogue with texts that wait, and for each difference of a Chinese document."""
    told = []
    for ts in _catalogues():
        if texts := waiting(ts, ROOT / "kvdesk"):
            lines = "".join(f"\n    {text!r}" for text in texts)
            told.append(f"{ts.stem}: {len(texts)} texts wait for their translation and are shown in English:{lines}")
    return told + translated_docs.behind()


def update(ts: Path, package: Path) -> None:
    """Add the texts of `package` to the catalogue, and take out those that are in it no more."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources.lst"
        sources.write_text("\n".join(map(str, sorted(package.rglob("*.py")))), encoding="utf-8")
        _call("pyside6-lupdate", f"@{sources}", *_LUPDATE, "-ts", str(ts))


def release(ts: Path) -> None:
    """Make the .qm beside `ts`, of what is finished."""
    _call("pyside6-lrelease", "-silent", "-nounfinished", str(ts), "-qm", str(ts.with_suffix(".qm")))


def _catalogues() -> list[Path]:
    return sorted(TRANSLATIONS.glob("kvdesk_*.ts"))


def _call(tool: str, *arguments: str) -> None:
    subprocess.run([str(BIN / tool), *arguments], check=True)


def check(*, to_release: bool) -> int:
    """Tell what waits; the exit code, which is 1 where something does that is to be released."""
    told = all_waiting()
    for sentence in told:
        print(f"{'error' if to_release else 'warning'}: {sentence}")
    return int(to_release and bool(told))


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="packaging/translations.py", description="Bring the catalogues up to date.")
    parser.add_argument("--check", action="store_true", help="change nothing; tell which texts and documents wait")
    parser.add_argument("--release", action="store_true", help="with --check: fail where one waits")
    options = parser.parse_args(argv)
    if options.release and not options.check:
        parser.error("--release goes with --check")
    if options.check:
        return check(to_release=options.release)
    for ts in _catalogues():
        update(ts, ROOT / "kvdesk")
        release(ts)
        print(f"{ts.stem}: {len(entries(ts))} texts, {len(unfinished(ts))} shown in English until they are translated")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
