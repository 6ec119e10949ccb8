"""What documents promise a reader: an answer within two clicks of the start page, and sentences one reads once."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import pytest
from reference import BLOCK

from tests.docs.headings import sections
from tests.places import ROOT
from tests.words import FOREIGN

DOCS = ROOT / "docs"
START = (DOCS / "README.md").read_text(encoding="utf-8")
QUESTIONS = {
    # asked on the start page: words of the answer
    "What is `n_kv`?": ("last used one", "length that costs time"),
    "Why was my second answer slow?": ("*Why?*", "first token that differs"),
    "Does q8_0 hurt?": ("Not measurably", "q4_0 for K does"),
    "Which model fits my computer?": ("size of its file", "Speed halves"),
    "Is it private?": ("sends nothing", "no telemetry"),
    "My agent reads everything again. What do I do?": ("kvdesk launch", "kvdesk doctor LOG"),
    "How do I add a graph, a setting, an operation?": ("viewmodel/measurements.py", "architecture.md#where-to-add"),
    "How much memory does the cache take?": ("Cells ×", "117 MB"),
    "Why did the answer stop?": ("Length limit reached", "full-context.md"),
    "Can I use it from my editor?": ("Serve on this computer", "serving.md"),
}
A_MINUTE = 200
"""Words that one reads in a minute."""
A_PAGE = 1200
"""Words of a page that is no reference."""
REFERENCE = {
    "architecture.md", "commands.md", "glossary.md", "known-limits.md", "serving-reference.md", "settings-reference.md",
    "tests.md", "zh/commands.md", "zh/settings-reference.md",
    "developers/peers.md", "developers/reading-beside.md",
}  # fmt: skip
MOVED = "reading-beside.md"
"""Leads to a page elsewhere, since code names it."""
LEARNED_FROM = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *(DOCS / f"{name}.md" for name in ("install", "first-ten-minutes", "reading-the-map", "kv-cache", "faq")),
    *(DOCS / f"{name}.md" for name in ("troubleshooting", "serving", "connecting", "tools", "agents", "exports")),
    *(
        DOCS / f"{name}.md"
        for name in ("debug-another-cache", "doctor", "proxy", "slot-files", "testing-agents", "watch")
    ),
    *sorted((DOCS / "guide").glob("*.md")),
]
MOST_WORDS = 17
"""Of a sentence, in the mean of a page."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_within_two_clicks(question: str) -> None:
    row = re.search(rf"(?m)^\| {re.escape(question)} \| \[[^]]+\]\(([^)#]+)#([^)]+)\) \|$", START)
    assert row, "the start page does not ask it, or its answer has no anchor"
    words = sections((DOCS / row[1]).read_text(encoding="utf-8"))[row[2]].split()
    assert [part for part in QUESTIONS[question] if part not in " ".join(words)] == []
    assert len(words) <= A_MINUTE


def test_every_page_is_reached_from_the_start_in_two_clicks() -> None:
    seen = {"README.md"}
    for _click in range(2):
        seen |= {link for page in seen for link in _links(page)}
    pages = {path.relative_to(DOCS) for path in DOCS.rglob("*.md")}
    assert {str(page) for page in pages if page.parts[0] != "zh"} - seen == {MOVED}


def _links(page: str) -> set[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [(DOCS / page).parent.joinpath(link).resolve() for link in re.findall(r"\]\(([^)#:]+\.md)", text)]
    return {str(path.relative_to(DOCS)) for path in found if path.is_relative_to(DOCS)}


def test_only_reference_is_long() -> None:
    pages = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    assert {name for name, text in pages.items() if len(text.split()) > A_PAGE} <= REFERENCE


@pytest.mark.parametrize("path", LEARNED_FROM, ids=lambda path: path.stem)
def test_sentences_are_short(path: Path) -> None:
    lengths = [len(sentence.split()) for sentence in _sentences(path.read_text(encoding="utf-8"))]
    assert len(lengths) > 8
    assert mean(lengths) <= MOST_WORDS


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda path: path.stem)
def test_words_are_those_of_a_native_engineer(path: Path) -> None:
    """What follows from declarations has the words of the code."""
    assert FOREIGN.findall(BLOCK.sub("", path.read_text(encoding="utf-8"))) == []


def _sentences(text: str) -> list[str]:
    """Those of paragraphs and entries of lists: no headings, code, tables and pictures."""
    text = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", text)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-#|!]|\d+\.) ?)", text)
    prose = [block for block in blocks if block.strip() and not block.lstrip().startswith(("#", "|", "!", "["))]
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", block).replace("*", "") for block in prose]
    return [sentence for block in plain for sentence in re.split(r"(?<=[.?!])\s+", block.strip()) if sentence]


def test_the_site_has_every_page_once() -> None:
    """`make docs` finds out, too; this needs no mkdocs."""
    listed = re.findall(r"(?m): (\S+\.md)$", (ROOT / "packaging/site/mkdocs.yml").read_text(encoding="utf-8"))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {MOVED}
    answers = {page for page in pages if page.startswith("questions/")} - {"questions/README.md"}
    assert sorted(listed) == sorted([*(pages - answers), "CHANGELOG.md", "CONTRIBUTING.md"])
