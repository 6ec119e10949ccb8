"""What tool servers offered last, in a file."""

from pathlib import Path

import pytest

from kvdesk.store import tool_lists
from kvdesk.tools.servers import Tool

LISTS = {"abc": (Tool("read", "Reads “a file”.", '{"type":"object"}'), Tool("x")), "https://example.org": ()}


def test_lists_come_back(tmp_path: Path) -> None:
    tool_lists.write(tmp_path / "tools.json", LISTS)
    assert tool_lists.read(tmp_path / "tools.json") == LISTS


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 5}', '{"a": [{"name": 5}]}', '{"a": [{"name": "x", "schema": "{"}]}', "[" * 100_000]
)
def test_what_is_damaged_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "tools.json").write_text(text)
    assert tool_lists.read(tmp_path / "tools.json") == {}


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    assert tool_lists.read(tmp_path / "tools.json") == {}
