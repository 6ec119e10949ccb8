"""Brings the catalogues of `resources/translations` up to date: `python packaging/translations.py [--check]`.

    texts       Babel finds every `tr("…")`, `plural("…", "…", n)` and `marked("…")` of kvdesk for each
                kvdesk_<language>.po
    catalogue   kvdesk_<language>.mo, which the application loads and which is committed

A language is offered if there is a .mo. A text that is not translated yet is shown in English, so that nobody waits
for somebody who writes Chinese. `--check` changes nothing and tells which texts and documents wait; with `--release`
it fails where one does. Must never know: what a text means.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import translated_docs
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from setup import ROOT

from kvdesk.whole_file import replacing

TRANSLATIONS = ROOT / "resources" / "translations"
_KEYWORDS: Mapping[str, Any] = {"tr": None, "marked": None, "plural": (1, 2)}


def read(po: Path) -> Catalog:
    with po.open("rb") as file:
        return read_po(file, po.stem.removeprefix("kvdesk_"))


def texts(catalogue: Catalog) -> list[Message]:
    """Those of the program, without the header."""
    return [message for message in catalogue if message.id]


def source(message: Message) -> str:
    """The text of the program; of two forms that for several, since Chinese has only one."""
    return message.id if isinstance(message.id, str) else message.id[-1]


def forms(message: Message) -> tuple[str, ...]:
    """The translations, empty ones too: more than one if the text has a plural and the language several forms."""
    if isinstance(message.id, str):
        return (str(message.string or ""),)
    return tuple(map(str, message.string)) if message.string else ("",)


def unfinished(catalogue: Catalog) -> list[str]:
    """The texts without a translation that somebody has looked at."""
    return [source(message) for message in texts(catalogue) if message.fuzzy or not all(forms(message))]


def updated(po: Path, package: Path) -> Catalog:
    """The catalogue with the texts of `package` and no others."""
    found = Catalog()
    for _file, _line, text, _comments, _context in extract_from_dir(package, keywords=_KEYWORDS, comment_tags=()):
        found.add(text)
    catalogue = read(po)
    catalogue.update(found, no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    return catalogue


def all_waiting() -> list[str]:
    """A sentence for each catalogue with texts that wait, and for each difference of a Chinese document."""
    told = []
    for po in _catalogues():
        if wait := unfinished(updated(po, ROOT / "kvdesk")):
            lines = "".join(f"\n    {text!r}" for text in wait)
            told.append(f"{po.stem}: {len(wait)} texts wait for their translation and are shown in English:{lines}")
    return told + translated_docs.behind()


def save(catalogue: Catalog, po: Path) -> None:
    """Write the .po, sorted and without line numbers: it changes only where a text does."""
    with replacing(po) as part, part.open("wb") as file:
        write_po(file, catalogue, width=120, no_location=True, sort_output=True)


def release(po: Path) -> None:
    """Make the .mo beside `po`, of what is finished."""
    with replacing(po.with_suffix(".mo")) as part, part.open("wb") as file:
        write_mo(file, read(po))


def _catalogues() -> list[Path]:
    return sorted(TRANSLATIONS.glob("kvdesk_*.po"))


def check(*, to_release: bool) -> int:
    """Tell what waits; the exit code, which is 1 if something does that is to be released."""
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
    for po in _catalogues():
        catalogue = updated(po, ROOT / "kvdesk")
        save(catalogue, po)
        release(po)
        waiting = len(unfinished(catalogue))
        print(f"{po.stem}: {len(catalogue)} texts, {waiting} shown in English until they are translated")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
