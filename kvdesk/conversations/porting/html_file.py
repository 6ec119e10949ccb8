"""Conversations as one HTML file: nothing is loaded from anywhere, no script, light or dark as the reader's system is.

Of each conversation the branch that is shown. Markdown becomes HTML; tags that were written stay text, pictures become
links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Final

from kvdesk.chat import Conversation
from kvdesk.conversations.markdown_file import call_line
from kvdesk.conversations.tool_steps import without_calls
from kvdesk.conversations.tree import Tree
from kvdesk.message import Message, storable
from kvdesk.quantities import day_text
from kvdesk.reasoning import ReasoningMarks, parts_of
from kvdesk.translation import tr

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

STYLE: Final = """
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #f3f5f8; --quiet: #5a6270; --link: #0a5bb5; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a404b; --soft: #23272e; --quiet: #a3abb9; --link: #7db7ff; }
  body { background: #181b20; color: #e6e9ee; }
}
body { font: 16px/1.55 Inter, system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 3rem; border-bottom: 1px solid var(--line); }
a { color: var(--link); } nav li { margin: .15rem 0; } p, li { overflow-wrap: anywhere; }
article { margin: 1.25rem 0; padding: .1rem 1rem; border-left: 3px solid var(--line); }
article.user { background: var(--soft); border-left-color: var(--link); }
article.user > div { white-space: pre-wrap; padding: .6rem 0; }
header, footer, .facts { color: var(--quiet); font-size: .85rem; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; } code { font: .9em 'JetBrains Mono', monospace; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { border: 1px solid var(--line); padding: .25rem .6rem; }
blockquote { margin-left: 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--quiet); }
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def lines(conversations: Iterable[Conversation], exported_ms: int) -> Iterator[str]:
    """The file, piece by piece."""
    title = tr("Chats")
    exported = tr("Exported from kvdesk on {day}").format(day=day_text(exported_ms))
    yield (
        f'<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n"
        f'<p class="facts">{escape(exported)}</p>\n'
    )
    for conversation in conversations:
        yield _section(conversation)
    yield "</body>\n</html>\n"


def _section(conversation: Conversation) -> str:
    title = conversation.title or tr("New chat")
    parts = [f"<section>\n<h2>{_plain(title)}</h2>"]
    if conversation.created_ms:
        parts.append(f'<p class="facts">{day_text(conversation.created_ms)}</p>')
    if conversation.system_prompt.strip():
        summary = escape(tr("System prompt"))
        parts.append(f"<details><summary>{summary}</summary><pre>{_plain(conversation.system_prompt)}</pre></details>")
    parts += map(_article, Tree(conversation.messages).branch(conversation.leaf))
    return "\n".join([*parts, "</section>\n"])


def _article(message: Message) -> str:
    if message.role == "tool":
        summary = escape(call_line(message))
        result = f"<details><summary>{summary}</summary><pre>{_plain(message.text)}</pre></details>"
        return f'<article class="answer">\n{result}\n</article>'
    is_person = message.role == "user"
    who = tr("You") if is_person else message.model or tr("Answer")
    body = _plain(message.text) if is_person else _answer(without_calls(message), message.marks)
    for attachment in message.attachments:
        body += f"<details><summary>{_plain(attachment.name)}</summary><pre>{_plain(attachment.text)}</pre></details>"
    note = f"\n<footer>{_plain(message.note)}</footer>" if message.note else ""
    kind = "user" if is_person else "answer"
    return f'<article class="{kind}">\n<header>{_plain(who)}</header>\n<div>{body}</div>{note}\n</article>'


def _answer(text: str, marks: ReasoningMarks | None) -> str:
    """Markdown as HTML; reasoning before it folded."""
    folded = ""
    if (parts := parts_of(text, marks)) is not None:
        if thought := text[parts.thought : parts.thought_end]:
            heading = escape(tr("Reasoning"))
            folded = f"<details><summary>{heading}</summary>{_html(thought)}</details>"
        text = text[parts.said : parts.said_end]
    return folded + _html(text)


def _html(text: str) -> str:
    found = _markdown().render(storable(text))
    assert isinstance(found, str)
    return found


def _plain(text: str) -> str:
    return escape(storable(text))


@cache
def _markdown() -> MarkdownIt:
    """As in the window (`kvdesk.ui.markdown.prose`), and without pictures: they would be loaded from elsewhere."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
