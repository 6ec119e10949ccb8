"""Texts, docstrings and comments of the code have no words that a native engineer would not write."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.places import ROOT
from tests.words import FOREIGN

UNREAD: Final[tuple[str, ...]] = ()
"""Rooms of kvdesk that were not read yet."""
PROSE: Final = "experiments/sample_text.py"
"""A story that experiments read."""


def _files() -> Iterator[Path]:
    package = ROOT / "kvdesk"
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package)
        if place.parts[0] not in UNREAD and place.as_posix() != PROSE:
            yield file


def _written(file: Path) -> Iterator[tuple[int, str]]:
    """Comments, and lines of strings, with the numbers of their lines."""
    source = file.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield from enumerate(token.string.splitlines(), token.start[0])


@pytest.mark.parametrize("file", list(_files()), ids=lambda file: str(file.relative_to(ROOT / "kvdesk")))
def test_code_is_written_as_one_speaks(file: Path) -> None:
    assert [f"{line}: {found[0]}" for line, text in _written(file) for found in FOREIGN.finditer(text)] == []
