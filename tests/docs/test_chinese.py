"""README and user guide in Chinese are in step with the English ones: the same parts, commands and pictures."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_docs import code
from tests.places import ROOT

PAIRS = {"README.md": "docs/zh/README.md", "docs/user-guide.md": "docs/zh/user-guide.md"}


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def levels(written: str) -> list[int]:
    """Of its headings, in their order."""
    without_code = re.sub(r"(?ms)^(`{3,4})\w*\n.*?^\1", "", written)
    return [len(marks) for marks in re.findall(r"(?m)^(#+) ", without_code)]


@pytest.mark.parametrize("path", PAIRS)
def test_they_have_the_same_parts(path: str) -> None:
    assert levels(text(path)) == levels(text(PAIRS[path]))


@pytest.mark.parametrize("path", PAIRS)
def test_they_show_the_same_commands(path: str) -> None:
    def commands(written: str) -> set[str]:
        return {line for line in code(written) if re.match(r"(kvdesk|make|sudo|sh|py) ", line)}

    assert commands(text(path))
    assert commands(text(path)) == commands(text(PAIRS[path]))


@pytest.mark.parametrize("path", PAIRS)
def test_they_show_the_same_pictures_and_rows_of_tables(path: str) -> None:
    def pictures(written: str) -> list[str]:
        return re.findall(r"images/(?:zh-)?([\w-]+)\.png", written)

    def rows(written: str) -> int:
        return len(re.findall(r"(?m)^\|", written))

    english, chinese = text(path), text(PAIRS[path])
    assert (pictures(chinese), rows(chinese)) == (pictures(english), rows(english))


@pytest.mark.parametrize("path", PAIRS)
def test_they_lead_to_each_other(path: str) -> None:
    assert "[简体中文](" in text(path)
    assert "[English](" in text(PAIRS[path])
