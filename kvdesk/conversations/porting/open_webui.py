"""Open WebUI's chats: "Export chats" (all of them, one array) and the download of one chat as JSON.

Read from the program's own source (`backend/open_webui/models/chats.py`): records with a `chat`, whose `history` has
`messages` by id and the `currentId`. Before it had branches, `messages` was an array.
"""

import re
from collections import Counter
from collections.abc import Mapping
from html import unescape
from typing import Any, Final

from kvdesk.chat import Conversation
from kvdesk.conversations.porting.branches import Facts, Node, conversation_of, ordered
from kvdesk.conversations.porting.values import LeftOut, conversation_id, identity, items, text_in, time_ms, title_in
from kvdesk.loose_json import obj
from kvdesk.message import Attachment
from kvdesk.reasoning import written

_SECOND_MS: Final = 1000.0
_DETAILS: Final = re.compile(
    r"<details\b(?P<attributes>[^>]*)>\s*(?:<summary>.*?</summary>)?(?P<body>.*?)(?:</details>\s*|\Z)", re.DOTALL
)
"""Reasoning and calls of tools are in the text of an answer, as HTML."""
_KIND: Final = re.compile(r"""\btype=["'](\w+)["']""")


def matches(value: Any) -> bool:
    chat = _chat(value)
    if isinstance(obj(chat.get("history")).get("messages"), dict):
        return True
    return chat is not value and isinstance(chat.get("messages"), list)


def convert(value: Mapping[str, Any], _file: str) -> tuple[Conversation, LeftOut]:
    """One chat. Raises Malformed."""
    left_out: LeftOut = Counter()
    chat = _chat(value)
    history = obj(chat.get("history"))
    messages = dict(obj(history.get("messages"))) or _chained(items(chat.get("messages")))
    prompt = text_in(obj(chat.get("params")).get("system")) or text_in(chat.get("system"))
    nodes: dict[str, Node] = {}
    for name in ordered(messages, "childrenIds"):
        message = obj(messages[name])
        parent = message.get("parentId")
        if message.get("role") == "system":
            text = _text_of(message, left_out)
            if prompt and text.strip():
                left_out["system messages"] += 1
            prompt = prompt or text
        nodes[name] = _node(parent if isinstance(parent, str) else None, message, left_out)
    current = history.get("currentId")
    facts = Facts(
        conversation_id("Open WebUI", text_in(value.get("id")) or text_in(chat.get("id")) or identity(*messages)),
        title_in(value.get("title")) or title_in(chat.get("title")),
        prompt,
        time_ms(value.get("created_at"), _SECOND_MS) or time_ms(chat.get("timestamp"), _SECOND_MS),
        time_ms(value.get("updated_at"), _SECOND_MS),
        pinned=value.get("pinned") is True,
        archived=value.get("archived") is True,
    )
    last = next(reversed(messages), None)
    return conversation_of(facts, nodes, current if isinstance(current, str) else last), left_out


def _chat(value: Any) -> Mapping[str, Any]:
    """The chat in a record of the database, or the chat alone."""
    found = obj(value)
    return obj(found["chat"]) if isinstance(found.get("chat"), dict) else found


def _chained(messages: list[Any]) -> dict[str, Any]:
    """The messages of an array, each with the one that it follows."""
    chained: dict[str, Any] = {}
    previous: str | None = None
    for place, message in enumerate(messages):
        name = text_in(obj(message).get("id")) or f"place {place}"
        chained[name] = dict(obj(message)) | {"parentId": previous}
        previous = name
    return chained


def _node(parent: str | None, message: Mapping[str, Any], left_out: LeftOut) -> Node:
    role = message.get("role")
    if role == "system":
        return Node(parent)
    if role not in ("user", "assistant"):
        left_out["tool results" if role == "tool" else "other content"] += 1
        return Node(parent)
    text = _text_of(message, left_out)
    attachments: list[Attachment] = []
    for file in map(obj, items(message.get("files"))):
        content = text_in(obj(obj(file.get("file")).get("data")).get("content"))
        if file.get("type") == "image" or text_in(file.get("content_type")).startswith("image/"):
            left_out["pictures"] += 1
            text += "\n\n[picture]"
        elif content.strip():
            attachments.append(Attachment(title_in(file.get("name")) or "file", "text", content))
        else:
            left_out["files"] += 1
    return Node(
        parent,
        "user" if role == "user" else "assistant",
        text.strip() if text.strip() or attachments else None,
        time_ms(message.get("timestamp"), _SECOND_MS),
        text_in(message.get("model")) or text_in(message.get("modelName")),
        tuple(attachments),
    )


def _text_of(message: Mapping[str, Any], left_out: LeftOut) -> str:
    content = message.get("content")
    texts: list[str] = []
    for part in items(content):
        kind = text_in(obj(part).get("type"))
        if "text" in kind:
            texts.append(text_in(obj(part).get("text")))
        else:
            left_out["pictures" if "image" in kind else "other content"] += 1
            texts.append("[picture]" if "image" in kind else "")
    text = text_in(content) or "\n".join(filter(None, texts))
    if message.get("role") != "assistant":
        return text
    text = text if text.strip() else _output_text(items(message.get("output")))

    def plain(found: re.Match[str]) -> str:
        kind = _KIND.search(found["attributes"])
        if kind is None or kind[1] not in ("reasoning", "tool_calls", "code_interpreter"):
            return found[0]
        if kind[1] != "reasoning":
            left_out["tool calls"] += 1
            return ""
        quoted = unescape(found["body"]).strip()
        thought = "\n".join(line.removeprefix(">").removeprefix(" ") for line in quoted.splitlines())
        return written(thought) + "\n\n" if thought.strip() else ""

    return _DETAILS.sub(plain, text)


def _output_text(output: list[Any]) -> str:
    """The text of an answer that is stored in parts alone."""
    texts: list[str] = []
    for item in map(obj, output):
        parts = items(item.get("content")) or items(item.get("summary"))
        text = "".join(text_in(obj(part).get("text")) for part in parts)
        if text.strip():
            texts.append(written(text) if item.get("type") == "reasoning" else text)
    return "\n\n".join(texts)
