"""What llama.cpp's web UI (llama-server) exports, in the four forms it has had. Read from the exporters' own source.

{"conv": …, "messages": […]}, or an array of those   tools/server/webui/src/lib/stores/conversations.svelte.ts
JSON lines: a "session", then each "message"; a ZIP  tools/ui/src/lib/stores/conversations.svelte.ts
    of several such files
a dump of the browser's database ("export database") tools/server/webui/src/utils/storage.ts (dexie-export-import)
{"id", "lastModified", "messages": […]}              the same file, LSConversation: the oldest, without branches
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kvdesk.chat import Conversation
from kvdesk.conversations.porting.branches import Facts, Node, conversation_of
from kvdesk.conversations.porting.json_stream import Value, too_large
from kvdesk.conversations.porting.values import (
    LARGEST_VALUE,
    Kind,
    LeftOut,
    conversation_id,
    items,
    text_in,
    time_ms,
    title_in,
)
from kvdesk.loose_json import obj
from kvdesk.message import Attachment, AttachmentKind
from kvdesk.reasoning import written
from kvdesk.translation import tr

_OTHERS: Final[Mapping[str, Kind]] = {
    "IMAGE": "pictures",
    "IMAGEFILE": "pictures",
    "AUDIO": "sound",
    "AUDIOFILE": "sound",
    "VIDEO": "sound",
}
_TEXTS: Final[Mapping[str, AttachmentKind]] = {
    "TEXT": "text",
    "TEXTFILE": "text",
    "CONTEXT": "pasted",
    "PDF": "pdf",
    "PDFFILE": "pdf",
    "MCP_PROMPT": "text",
    "MCP_RESOURCE": "text",
}
"""Attachments by their type (`AttachmentType`, `MessageExtra`), with what they are called here."""


def expanded(found: Iterable[Value]) -> Iterator[Value]:
    """The values of a file, with JSON lines and dumps of the database as one {"conv", "messages"} each."""
    session: dict[str, Any] | None = None
    n_characters = 0
    for value in found:
        record = obj(value.value)
        kind = record.get("type")
        if kind == "session":
            if session is not None:
                yield Value({}, session, n_characters)
            session, n_characters = {"conv": record, "messages": []}, value.n_characters
        elif session is not None and kind == "message":
            session["messages"].append(record.get("message"))
            n_characters += value.n_characters
            if n_characters > LARGEST_VALUE:
                raise too_large()
        elif record.get("formatName") == "dexie":
            yield from (Value({}, one, value.n_characters) for one in _of_dump(record))
        elif session is None:
            yield value
    if session is not None:
        yield Value({}, session, n_characters)


def _of_dump(dump: Mapping[str, Any]) -> list[dict[str, Any]]:
    tables = {
        text_in(obj(table).get("tableName")): items(obj(table).get("rows"))
        for table in items(obj(dump.get("data")).get("data"))
    }
    messages: dict[Any, list[Any]] = {}
    for message in tables.get("messages", []):
        messages.setdefault(_name(obj(message).get("convId")), []).append(message)
    return [
        {"conv": conv, "messages": messages.get(_name(obj(conv).get("id")), [])}
        for conv in tables.get("conversations", [])
    ]


def matches(value: Any) -> bool:
    found = obj(value)
    if isinstance(found.get("conv"), dict) and isinstance(found.get("messages"), list):
        return True
    return "lastModified" in found and isinstance(found.get("messages"), list)


def convert(value: Mapping[str, Any], _file: str) -> tuple[Conversation, LeftOut]:
    """One conversation. Raises Malformed."""
    left_out: LeftOut = Counter()
    is_oldest = "conv" not in value
    conv = value if is_oldest else obj(value.get("conv"))
    nodes: dict[str, Node] = {}
    prompts: dict[str, str] = {}
    previous: str | None = None
    for place, message in enumerate(items(value.get("messages"))):
        found = obj(message)
        name = _name(found.get("id")) or f"place {place}"
        parent = previous if is_oldest or "parent" not in found else _name(found.get("parent"))
        if found.get("role") == "system" and text_in(found.get("content")).strip():
            prompts[name] = text_in(found.get("content"))
        nodes[name] = _node(parent, found, left_out, "timestamp" if "timestamp" in found else "id")
        previous = name
    current = _name(conv.get("currNode")) or previous
    prompt, n_other = _prompt_of(nodes, prompts, current)
    if n_other:
        left_out["system messages"] += n_other
    facts = Facts(
        conversation_id("llama.cpp", _name(conv.get("id")) or "\n".join(nodes)),
        title_in(conv.get("name")),
        prompt,
        updated_ms=time_ms(conv.get("lastModified")),
    )
    return conversation_of(facts, nodes, current), left_out


def _name(value: Any) -> str | None:
    """Ids were numbers at first, and -1 meant none."""
    if isinstance(value, bool) or value in (None, "", -1) or not isinstance(value, int | str):
        return None
    return str(value)


def _prompt_of(nodes: Mapping[str, Node], prompts: Mapping[str, str], current: str | None) -> tuple[str, int]:
    """The system message of the branch that is shown, else the first there is; and how many others there are."""
    at, seen, found = current, set[str](), ""
    while at is not None and at in nodes and at not in seen:
        seen.add(at)
        found = prompts.get(at, found)
        at = nodes[at].parent
    found = found or next(iter(prompts.values()), "")
    return found, sum(prompt != found for prompt in prompts.values())


def _node(parent: str | None, message: Mapping[str, Any], left_out: LeftOut, time_name: str) -> Node:
    role = message.get("role")
    if message.get("type") == "root" or role == "system":
        return Node(parent)
    if role == "tool":
        left_out["tool results"] += 1
        return Node(parent)
    if role not in ("user", "assistant"):
        left_out["other content"] += 1
        return Node(parent)
    calls = message.get("toolCalls") or message.get("tool_calls")
    if calls and calls != "[]":
        left_out["tool calls"] += max(1, len(items(calls)))
    reasoning = (text_in(message.get("reasoningContent")) or text_in(message.get("thinking"))).strip()
    text = text_in(message.get("content"))
    if reasoning:
        text = written(reasoning, text)
    attachments: list[Attachment] = []
    for extra in map(obj, items(message.get("extra"))):
        kind = text_in(extra.get("type")).upper()
        content = text_in(extra.get("content"))
        if kind in _TEXTS and content.strip():
            name = title_in(extra.get("name")) or tr("pasted text")
            attachments.append(Attachment(name, _TEXTS[kind], content))
        else:
            left_out[_OTHERS.get(kind, "files")] += 1
            text += "\n\n[picture]" if _OTHERS.get(kind) == "pictures" else ""
    shown = text if text.strip() or attachments else None
    return Node(
        parent,
        "user" if role == "user" else "assistant",
        shown,
        time_ms(message.get(time_name)),
        text_in(message.get("model")),
        tuple(attachments),
    )
