"""Conversations to a file: the formats there are, and the writing, which leaves a whole file or none."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from kvdesk.chat import Conversation
from kvdesk.conversations.collection import now_ms
from kvdesk.conversations.markdown_file import as_markdown
from kvdesk.conversations.porting import html_file, json_file
from kvdesk.conversations.tree import Tree
from kvdesk.errors import UserError, explained
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass
from kvdesk.whole_file import replacing

Lines = Callable[[Iterable[Conversation], int], Iterator[str]]
"""Conversations with their messages, and Unix time in milliseconds, to the text of a file, piece by piece."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format. JSON has all: branches, tokens, statistics, parameters; the others have the branch that is shown."""

    name: str
    ending: str
    lines: Lines


def _markdown(conversations: Iterable[Conversation], _exported_ms: int) -> Iterator[str]:
    for number, conversation in enumerate(conversations):
        branch = Tree(conversation.messages).branch(conversation.leaf)
        yield ("\n" if number else "") + as_markdown(conversation, branch)


JSON: Final = ExportFormat("JSON", ".json", json_file.lines)
MARKDOWN: Final = ExportFormat("Markdown", ".md", _markdown)
HTML: Final = ExportFormat("HTML", ".html", html_file.lines)
EXPORT_FORMATS: Final = (JSON, MARKDOWN, HTML)


def format_of(path: Path) -> ExportFormat | None:
    """The format that the ending of a file names; None if it names none."""
    return next((form for form in EXPORT_FORMATS if path.name.lower().endswith(form.ending)), None)


def format_named(path: Path) -> ExportFormat:
    """The same. Raises UserError if the ending names none."""
    form = format_of(path)
    if form is None:
        endings = ", ".join(known.ending for known in EXPORT_FORMATS)
        raise UserError(tr("{file} must end in one of {endings}.").format(file=path.name, endings=endings))
    return form


def written_sentence(n_conversations: int, path: Path) -> str:
    """What came of an export."""
    return plural("The chat was saved to {file}.", "%n chats were saved to {file}.", n_conversations).format(file=path)


def write(path: Path, form: ExportFormat, conversations: Iterable[Conversation]) -> int:
    """Write the file; returns how many conversations it has. Whatever ends it, such as an error of `conversations`,
    leaves the file that was there. Raises UserError.
    """
    n = 0

    def counted() -> Iterator[Conversation]:
        nonlocal n
        for conversation in conversations:
            n += 1
            yield conversation

    with (
        explained(tr("The chats could not be written to {file}: {why}."), file=path),
        replacing(path) as part,
        part.open("x", encoding="utf-8", errors="replace", newline="\n") as file,
    ):
        file.writelines(form.lines(counted(), now_ms()))
    return n
