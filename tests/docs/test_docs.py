"""What README and docs say can be done, can be done: links lead somewhere, commands and options exist."""

import io
import re
import runpy
import shlex
import tomllib
from contextlib import redirect_stdout
from functools import cache

import pytest
from markdown_it import MarkdownIt
from translated_docs import code

from kvdesk import __version__
from kvdesk.__main__ import COMMANDS, main
from tests.docs.headings import sections
from tests.places import ROOT

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


MARKDOWN = MarkdownIt("commonmark").enable("table")
RELEASED = r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)"
"""The heading of a version in the changelog."""
COMMAND_LINES = sorted({span for text in TEXTS.values() for span in code(text) if re.match(r"kvdesk\s+[a-z-]", span)})


def test_links_lead_somewhere() -> None:
    assert [
        f"{name}: {target}#{anchor}"
        for name, text in TEXTS.items()
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", text)
        if not target.startswith("https://")
        if not (file := (ROOT / name).parent / target if target else ROOT / name).exists()
        or (anchor and anchor not in sections(file.read_text(encoding="utf-8")))
    ] == []


def test_emphasis_is_no_asterisk_on_a_forge() -> None:
    """As in `**答案。**是`: CommonMark ends no emphasis between a full stop and a letter."""
    assert [
        f"{name}: {part.content}"
        for name, text in TEXTS.items()
        for block in MARKDOWN.parse(text)
        for part in block.children or ()
        if part.type == "text" and re.search(r"\*\w", part.content)
    ] == []


def test_every_picture_is_shown_and_made() -> None:
    script = runpy.run_path(str(ROOT / "packaging/screenshots.py"))
    made = {script["file_of"](name) for name in script["EVERY_NAME"]}
    assert {f"docs/images/{file.name}" for file in (ROOT / "docs/images").iterdir()} == made
    for file in made:
        assert any(file.removeprefix("docs/") in text for text in TEXTS.values()), file


def test_make_targets_exist() -> None:
    targets = {target for text in TEXTS.values() for target in re.findall(r"(?m)(?:^|`)make ([a-z-]+)", text)}
    assert targets <= set(re.findall(r"(?m)^([a-z-]+):", MAKEFILE))


@cache
def usage(*arguments: str) -> str:
    """The help of a command."""
    shown = io.StringIO()
    with redirect_stdout(shown), pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0
    return shown.getvalue()


def unknown(line: str) -> list[str]:
    """The command and the options of a line that do not exist."""
    ours = re.split(r"\s--\s", re.sub(r"[\[\]…]", " ", line))[0]  # the rest is another program's
    words = shlex.split(ours)[1:]
    command = words[0] if words[0] in COMMANDS else None
    if not command and not words[0].startswith("--"):
        return words[:1]
    what = [word for word in words[1:2] if word in ("engine", "peers")]
    text = usage(command, *what) if command else usage()
    options = [word for word in words if word.startswith("--") and word != "--help"]
    return [option for option in options if not re.search(rf"{option}\b", text)]


def test_commands_and_options_exist() -> None:
    assert len(COMMAND_LINES) > 100
    assert {line: found for line in COMMAND_LINES if (found := unknown(line))} == {}


def test_the_readme_is_read_in_a_minute() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 110


def test_changes_keep_their_form() -> None:
    """That of keepachangelog.com, short enough to be read by a user."""
    text = TEXTS["CHANGELOG.md"]
    coming, *versions = re.findall(r"(?m)^## (.*)$", text)
    assert coming == "[Unreleased]"
    assert [version for version in versions if not re.fullmatch(RELEASED, version)] == []
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"(?m)^### (.*)$", text)) <= kinds
    entries = [line for line in text.splitlines() if line.startswith("- ")]
    assert [entry for entry in entries if len(entry) > 160] == []
    assert max(len(part.splitlines()) for part in text.split("\n## ")) <= 120


def test_modules_named_in_the_architecture_exist() -> None:
    rooms = {path.stem for path in (ROOT / "kvdesk").iterdir()}
    named = [span for span in code(TEXTS["docs/architecture.md"]) if span.split(".")[0] in rooms]
    assert len(named) > 30
    for span in named:
        path = ROOT / "kvdesk" / span.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists(), f"{span} is named and does not exist"


def test_files_named_in_documents_exist() -> None:
    for name, text in TEXTS.items():
        for path in re.findall(r"`((?:kvdesk|packaging|docs|tests|resources)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{name}: {path}"


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dynamic"] == ["version"], "it has one place: kvdesk/__init__.py"
    dates = dict(re.findall(rf"(?m)^## {RELEASED}$", TEXTS["CHANGELOG.md"]))
    metainfo = (ROOT / "packaging/linux/kvdesk.metainfo.xml").read_text(encoding="utf-8")
    assert re.findall(r'<release version="(.+)" date="(.+)">', metainfo) == list(dates.items())
    assert next(iter(dates)) == __version__
    for page in ("docs/install.md", "docs/zh/install.md"):
        assert set(re.findall(r"kvdesk[-_](\d+\.\d+\.\d+)", TEXTS[page])) == {__version__}
    assert TEXTS[f"docs/release-{__version__}.md"].startswith(f"# kvdesk {__version__}\n")
