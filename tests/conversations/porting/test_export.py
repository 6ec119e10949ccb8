"""Export to a file: Markdown, HTML that does nothing by itself, and a whole file or none."""

from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from kvdesk.chat import Conversation
from kvdesk.conversations.porting import export
from kvdesk.errors import UserError
from kvdesk.message import Attachment, ConversationId, Message, MessageId
from kvdesk.values import replace

JSON, MARKDOWN, HTML = export.EXPORT_FORMATS
C = ConversationId("c")
EVIL = (
    '<script>alert("x")</script> <img src=x onerror=alert(1)> ![p](https://example.org/p.png) [l](javascript:alert(1))'
)


def a_chat(*texts: str, title: str = "Tides & <moon>") -> Conversation:
    messages = tuple(
        Message(MessageId(str(n)), C, MessageId(str(n - 1)) if n else None, "assistant" if n % 2 else "user", text)
        for n, text in enumerate(texts)
    )
    return Conversation(C, title, 0, messages[-1].id, "Be <brief>.", 1, 2, messages=messages)


class Tags(HTMLParser):
    """The tags of a file, and the addresses in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


def test_html_is_one_file_that_loads_and_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chats.html"
    chats = [a_chat(EVIL, f"<think>hm</think>**Bold** {EVIL}\n\n| a |\n|---|\n| b |\n\n```py\n<b>\n```", title=EVIL)]
    assert export.write(path, HTML, chats) == 1
    text = path.read_text("utf-8")
    found = Tags(text)
    assert not found.tags & {"script", "img", "link", "iframe", "object", "embed", "form", "input", "base"}
    assert "src" not in found.attributes
    assert not [name for name in found.attributes if name.startswith("on")]
    assert found.attributes["href"] == {"https://example.org/p.png"}
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert {"strong", "table", "details", "pre"} <= found.tags
    assert "&lt;script&gt;" in text


def test_html_shows_the_branch_that_is_shown(tmp_path: Path) -> None:
    chat = a_chat("Ask", "Old answer")
    new = Message(MessageId("new"), C, MessageId("0"), "assistant", "New answer")
    chat = Conversation(C, "T", 0, new.id, messages=(*chat.messages, new))
    for form in (HTML, MARKDOWN):
        path = tmp_path / f"x{form.ending}"
        export.write(path, form, [chat])
        assert "New answer" in path.read_text("utf-8")
        assert "Old answer" not in path.read_text("utf-8")


def test_markdown_of_several_chats(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    assert export.write(path, MARKDOWN, [a_chat("Hi", "Ho", title="One"), a_chat("Hi", title="Two")]) == 2
    text = path.read_text("utf-8")
    assert text.startswith("# One\n\n## System prompt\n\nBe <brief>.\n\n## You\n\nHi\n\n## Answer\n\nHo\n\n# Two\n")


def test_markdown_closes_what_a_message_leaves_open(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    texts = ("<!-- why", "Sure:\n````py\nprint(1)", "<details>\n\n- ~~~\n  a", "$$\nx +", "<think>\nhm")
    chat = replace(a_chat(*texts), system_prompt="```\nBe brief")
    export.write(path, MARKDOWN, [chat, a_chat("Hi", title="Two")])
    text = path.read_text("utf-8")
    tokens = MarkdownIt("commonmark").parse(text)
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open" and not token.level]
    assert headings == [
        *("Tides & <moon>", "System prompt", "You", "Answer", "You", "Answer", "You"),
        *("Two", "System prompt", "You"),
    ]
    assert "print(1)\n````\n\n## You" in text
    assert "a\n  ~~~\n\n</details>\n\n## Answer\n\n$$\nx +\n$$\n\n## You\n\n<think>\nhm\n\n</think>\n\n# Two" in text


@pytest.mark.parametrize("form", export.EXPORT_FORMATS, ids=lambda form: form.name)
def test_a_failure_leaves_the_file_that_was_there(tmp_path: Path, form: export.ExportFormat) -> None:
    def failing() -> Iterator[Conversation]:
        yield a_chat("Hi")
        raise UserError("The database is damaged.")

    path = tmp_path / f"x{form.ending}"
    path.write_text("before", "utf-8")
    with pytest.raises(UserError, match="database"):
        export.write(path, form, failing())
    assert path.read_text("utf-8") == "before"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(UserError, match="could not be written to"):
        export.write(tmp_path / "none" / "x", form, [])


@pytest.mark.parametrize("form", export.EXPORT_FORMATS, ids=lambda form: form.name)
def test_attachments_are_in_the_file(tmp_path: Path, form: export.ExportFormat) -> None:
    chat = a_chat("Read this")
    attached = replace(chat.messages[0], attachments=(Attachment("a.md", "text", "low ````tide````"),))
    path = tmp_path / "x"
    export.write(path, form, [replace(chat, messages=(attached,))])
    text = path.read_text("utf-8")
    assert "a.md" in text
    assert "low ````tide````" in text
    if form is MARKDOWN:
        assert "`````\nlow" in text


def test_the_ending_names_the_format() -> None:
    assert export.format_of(Path("A.JSON")) is JSON
    assert export.format_of(Path("a.html")) is HTML
    assert export.format_of(Path("a.doc")) is None
