"""What documents promise a reader: an answer within two clicks of the start page, and sentences one reads once."""

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
    "How do I add a graph, a setting, an operation?": ("graphs/measurements.py", "architecture.md#where-to-add"),
    "How much memory does the cache take?": ("Cells ×", "117 MB"),
    "Why did the answer stop?": ("Length limit reached", "full-context.md"),
    "Can I use it from my editor?": ("Serve on this computer", "serving.md"),
    "Does it use my graphics card?": ("No.", "for processors"),
    "Can I take back what I did to the cache?": ("*Undo*", "from a copy"),
    "What did the cache look like a minute ago?": ("The slider shows the map as it was then",),
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
NOTEBOOK = DOCS / "developers" / "peers.md"
"""What was measured, with its conditions in each sentence."""
ENGLISH = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md")),
    *(path for path in sorted(DOCS.rglob("*.md")) if path.relative_to(DOCS).parts[0] != "zh" and path != NOTEBOOK),
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


def _prose(path: Path) -> str:
    """Without what follows from declarations, which has the words of the code."""
    return BLOCK.sub("", path.read_text(encoding="utf-8"))


def test_sentences_are_short() -> None:
    words = {path: mean(len(sentence.split()) for sentence in _sentences(_prose(path))) for path in ENGLISH}
    assert {path: n for path, n in words.items() if n > MOST_WORDS} == {}


def test_words_are_those_of_a_native_engineer() -> None:
    assert {path: found for path in (*ENGLISH, NOTEBOOK) if (found := FOREIGN.findall(_prose(path)))} == {}


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
    answers = {page for page in pages if page.startswith(("questions/", "zh/questions/")) and "README" not in page}
    assert sorted(listed) == sorted([*(pages - answers), "CHANGELOG.md", "CONTRIBUTING.md"])
