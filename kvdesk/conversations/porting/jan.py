"""Jan's messages: `threads/*/messages.jsonl` in its data folder, or a ZIP of several.

Read from the program's own source (`core/src/types/message/messageEntity.ts`): each line is a message of a thread.
Title and instructions are in another file, `thread.json`, which is not read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kvdesk.chat import Conversation
from kvdesk.conversations.porting.branches import Facts, Node, conversation_of
from kvdesk.conversations.porting.json_stream import Value, too_large
from kvdesk.conversations.porting.values import (
    LARGEST_VALUE,
    LeftOut,
    conversation_id,
    identity,
    items,
    text_in,
    time_ms,
)
from kvdesk.loose_json import obj
from kvdesk.reasoning import written

_SECOND_MS: Final = 1000.0
_LINES: Final = "lines of Jan"
"""The member of the values that `gathered` makes; no file has it."""


def gathered(found: Iterable[Value]) -> Iterator[Value]:
    """The values of a file, with the lines of a thread as one value."""
    lines: list[Any] = []
    thread: Any = None
    n_characters = 0
    for value in found:
        record = obj(value.value)
        is_message = _is_message(record)
        if not (is_message or lines):
            yield value
            continue
        if lines and is_message and record.get("thread_id") != thread:
            yield Value({}, {_LINES: lines}, n_characters)
            lines, n_characters = [], 0
        if is_message:
            thread = record.get("thread_id")
        lines.append(value.value)
        n_characters += value.n_characters
        if n_characters > LARGEST_VALUE:
            raise too_large()
    if lines:
        yield Value({}, {_LINES: lines}, n_characters)


def _is_message(record: Mapping[str, Any]) -> bool:
    if "role" not in record or "content" not in record:
        return False
    texts = (obj(part).get("text") for part in items(record["content"]))
    return record.get("object") == "thread.message" or any("value" in obj(text) for text in texts)


def matches(value: Any) -> bool:
    return isinstance(obj(value).get(_LINES), list)


def convert(value: Mapping[str, Any], _file: str) -> tuple[Conversation, LeftOut]:
    """One thread. Raises Malformed."""
    left_out: LeftOut = Counter()
    nodes: dict[str, Node] = {}
    thread = prompt = ""
    previous: str | None = None
    for place, message in enumerate(map(obj, items(value.get(_LINES)))):
        name = text_in(message.get("id")) or f"place {place}"
        name = name if name not in nodes else f"{name} {place}"
        thread = thread or text_in(message.get("thread_id"))
        text = _text_of(message, left_out)
        if message.get("role") == "system":
            if prompt and text.strip():
                left_out["system messages"] += 1
            prompt = prompt or text
        nodes[name] = _node(previous, message, text, left_out)
        previous = name
    facts = Facts(conversation_id("Jan", thread or identity(*nodes)), system_prompt=prompt)
    return conversation_of(facts, nodes, previous), left_out


def _node(parent: str | None, message: Mapping[str, Any], text: str, left_out: LeftOut) -> Node:
    role = message.get("role")
    if role not in ("user", "assistant"):
        if role != "system":
            left_out["tool results" if role == "tool" else "other content"] += 1
        return Node(parent)
    shown = text if text.strip() else None
    created_ms = time_ms(message.get("created_at"), _SECOND_MS)
    return Node(parent, "user" if role == "user" else "assistant", shown, created_ms)


def _text_of(message: Mapping[str, Any], left_out: LeftOut) -> str:
    content = message.get("content")
    thoughts: list[str] = []
    texts = [text_in(content)]
    for part in items(content):
        kind = text_in(obj(part).get("type"))
        held = obj(part).get("text")
        text = text_in(obj(held).get("value")) or text_in(held)
        if kind == "reasoning":
            thoughts.append(text)
        elif "image" in kind:
            left_out["pictures"] += 1
            texts.append("[picture]")
        elif kind == "tool_call":
            left_out["tool calls"] += 1
        elif text or kind == "text":
            texts.append(text)
        else:
            left_out["other content"] += 1
    said = "\n".join(filter(None, texts))
    thought = "\n\n".join(filter(None, thoughts))
    return written(thought, said) if thought.strip() else said
