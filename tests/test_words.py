"""The code, with its texts and comments, has no words that a native engineer would not write."""

from tests.places import ROOT
from tests.words import FOREIGN

PACKAGE = ROOT / "kvdesk"
PROSE = PACKAGE / "experiments" / "sample_text.py"
"""A story that experiments read."""


def test_code_is_written_as_one_speaks() -> None:
    assert [
        f"{file.relative_to(ROOT)}:{line}: {found[0]}"
        for file in sorted({*PACKAGE.rglob("*.py")} - {PROSE})
        for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        for found in FOREIGN.finditer(text)
    ] == []
