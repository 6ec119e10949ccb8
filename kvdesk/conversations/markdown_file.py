"""A conversation as a file that people and other programs can read: Markdown, the shown branch, as it was written."""

import re
from collections.abc import Sequence

from kvdesk.chat import Conversation
from kvdesk.conversations.left_open import closed
from kvdesk.conversations.tool_steps import without_calls
from kvdesk.message import Message


def as_markdown(conversation: Conversation, messages: Sequence[Message]) -> str:
    """Title, system prompt and messages; each under the name of who wrote it. Answers are Markdown already; what one
    of them leaves open is closed.
    """
    parts = [f"# {conversation.title or 'New chat'}"]
    if conversation.system_prompt.strip():
        parts += ["## System prompt", closed(conversation.system_prompt.strip())]
    for message in messages:
        if message.role == "tool":
            parts += [f"## {call_line(message)}", fenced(message.text)]
            continue
        who = "You" if message.role == "user" else message.model or "Answer"
        parts += [f"## {who}", closed(without_calls(message).strip())]
        for attachment in message.attachments:
            parts += [f"Attached: {attachment.name}", fenced(attachment.text)]
        if message.note:
            parts.append(f"*{message.note}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def call_line(message: Message) -> str:
    """The call whose result a message is, in one line."""
    use = message.use
    return "Tool" if use is None else f"Tool {use.tool}({' '.join(use.arguments.split())})"


def fenced(text: str, language: str = "") -> str:
    """As code, whatever fences are in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
