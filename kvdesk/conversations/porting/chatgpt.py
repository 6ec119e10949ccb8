"""ChatGPT's export: `conversations.json`, or the ZIP it comes in (Settings, Data controls, Export data).

OpenAI publishes neither a schema nor the exporter's source. What is read here is what descriptions and readers made by
others agree on: an array of conversations, each with a `mapping` of nodes and its `current_node`. Unverified.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kvdesk.chat import Conversation
from kvdesk.conversations.markdown_file import fenced
from kvdesk.conversations.porting.branches import Facts, Node, conversation_of, ordered
from kvdesk.conversations.porting.values import LeftOut, conversation_id, identity, items, text_in, time_ms, title_in
from kvdesk.loose_json import obj
from kvdesk.message import Role
from kvdesk.reasoning import written
from kvdesk.values import replace

SECOND_MS: Final = 1000.0
_CITATION: Final = re.compile("\ue200[^\ue200\ue201]*\ue201")
"""References to web pages, which only ChatGPT's page resolves, are between two characters of private use."""
_CANVAS: Final = frozenset(("canmore.create_textdoc", "canmore.update_textdoc"))
"""Calls of the tool that writes a text beside the chat."""
_TOOL_RESULTS: Final = frozenset((
    *("execution_output", "tether_browsing_display", "tether_quote", "sonic_webpage", "system_error"),
    *("computer_output", "model_editable_context"),
))  # fmt: skip


def matches(value: Any) -> bool:
    return isinstance(obj(value).get("mapping"), dict)


def convert(value: Mapping[str, Any], _file: str) -> tuple[Conversation, LeftOut]:
    """One conversation of the array. Raises Malformed."""
    left_out: LeftOut = Counter()
    mapping = obj(value.get("mapping"))
    prompt, model = "", text_in(value.get("default_model_slug"))
    nodes: dict[str, Node] = {}
    for name in ordered(mapping, "children"):
        node = obj(mapping[name])
        message = obj(node.get("message"))
        prompt = prompt or _instructions(message)
        parent = node.get("parent")
        parent = parent if isinstance(parent, str) else None
        if message.get("recipient") in _CANVAS:
            nodes[name] = _canvas_node(parent, message, _canvas_of(mapping, node), left_out)
        else:
            nodes[name] = _node(parent, message, left_out)
        if nodes[name].role == "assistant" and not nodes[name].model:
            nodes[name] = replace(nodes[name], model=model)
    own = text_in(value.get("conversation_id")) or text_in(value.get("id")) or identity(*mapping)
    facts = Facts(
        conversation_id("ChatGPT", own),
        title_in(value.get("title")),
        prompt,
        time_ms(value.get("create_time"), SECOND_MS),
        time_ms(value.get("update_time"), SECOND_MS),
        archived=value.get("is_archived") is True,
    )
    current = value.get("current_node")
    return conversation_of(facts, nodes, current if isinstance(current, str) else None), left_out


def _instructions(message: Mapping[str, Any]) -> str:
    """What the user told ChatGPT about all conversations ("custom instructions"), if that is what the message is."""
    content, metadata = obj(message.get("content")), obj(message.get("metadata"))
    told = obj(metadata.get("user_context_message_data"))
    texts = (
        *(content.get(name) for name in ("user_profile", "user_instructions")),
        *(told.get(name) for name in ("about_user_message", "about_model_message")),
    )
    is_told = content.get("content_type") == "user_editable_context" or metadata.get("is_user_system_message") is True
    return "\n\n".join(filter(None, (text_in(text).strip() for text in texts))) if is_told else ""


def _node(parent: str | None, message: Mapping[str, Any], left_out: LeftOut) -> Node:
    """The node as it is imported; what of it is left out is counted."""
    role = obj(message.get("author")).get("role")
    metadata, content = obj(message.get("metadata")), obj(message.get("content"))
    kind = content.get("content_type")
    empty = Node(parent)
    if not content or kind == "user_editable_context" or metadata.get("is_user_system_message") is True:
        return empty
    if role == "tool" or (isinstance(kind, str) and kind in _TOOL_RESULTS):
        _text_of(content, left_out)  # pictures a tool made are counted
        if not obj(metadata.get("canvas")):  # which says no more than that the canvas was made
            left_out["tool results"] += 1
        return empty
    text = _text_of(content, left_out)
    if metadata.get("is_visually_hidden_from_conversation") is True or role == "system":
        if text.strip():
            left_out["hidden messages" if role != "system" else "system messages"] += 1
        return empty
    if role == "assistant" and message.get("recipient") not in (None, "all"):
        left_out["tool calls"] += 1
        return empty
    if role not in ("user", "assistant"):
        left_out["other content"] += 1
        return empty
    for attachment in items(metadata.get("attachments")):
        if not text_in(obj(attachment).get("mime_type") or obj(attachment).get("mimeType")).startswith("image/"):
            left_out["files"] += 1
    if not text.strip():
        return empty
    return _shown(parent, "user" if role == "user" else "assistant", text, message)


def _shown(parent: str | None, role: Role, text: str, message: Mapping[str, Any]) -> Node:
    model = text_in(obj(message.get("metadata")).get("model_slug"))
    return Node(parent, role, text, time_ms(message.get("create_time"), SECOND_MS), model)


def _canvas_of(mapping: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the tool answered about the canvas: `title` and `textdoc_type`."""
    for name in items(node.get("children")):
        answer = obj(obj(mapping.get(name)).get("message")) if isinstance(name, str) else {}
        if canvas := obj(obj(answer.get("metadata")).get("canvas")):
            return canvas
    return {}


def _canvas_node(parent: str | None, message: Mapping[str, Any], canvas: Mapping[str, Any], left_out: LeftOut) -> Node:
    """What was written into a canvas, under its name. Of a change only the new texts."""
    content = obj(message.get("content"))
    written_text = text_in(content.get("text")) or "".join(text_in(part) for part in items(content.get("parts")))
    try:
        call = obj(json.loads(written_text, strict=False))
    except (ValueError, RecursionError):  # cut off, as where the answer was stopped
        call = {}
    texts = [call.get("content"), *(obj(update).get("replacement") for update in items(call.get("updates")))]
    found = [text for text in map(text_in, texts) if text.strip()]
    if not found and written_text.strip() and not call:
        found = [written_text]
    if not found:
        left_out["tool calls"] += 1
        return Node(parent)
    kind = text_in(call.get("type")) or text_in(canvas.get("textdoc_type"))
    if kind.startswith("code"):
        found = [fenced(text, _language(kind.partition("/")[2])) for text in found]
    name = title_in(call.get("name")) or title_in(canvas.get("title"))
    return _shown(parent, "assistant", "\n\n".join([f"**{name}**", *found] if name else found), message)


def _language(name: str) -> str:
    return re.sub(r"[^\w+#.-]", "", name)


def _text_of(content: Mapping[str, Any], left_out: LeftOut) -> str:
    match content.get("content_type"):
        case "thoughts":
            return _thoughts(content.get("thoughts"))
        case "reasoning_recap":  # "Thought for 5 seconds"
            return ""
        case "code":
            code = text_in(content.get("text"))
            language = _language(text_in(content.get("language")))
            return fenced(code, "" if language == "unknown" else language) if code.strip() else ""
    if "parts" not in content:
        return text_in(content.get("text"))
    texts = [_part(part, left_out) for part in items(content.get("parts"))]
    whole = "\n".join(text for text in texts if text)
    whole, n_citations = _CITATION.subn("", whole)
    if n_citations:
        left_out["citations"] += n_citations
    return whole


def _thoughts(value: Any) -> str:
    told = [value] if isinstance(value, str) else [obj(thought).get("content") for thought in items(value)]
    text = "\n\n".join(filter(None, (text_in(one).strip() for one in told)))
    return written(text) if text else ""


def _part(part: Any, left_out: LeftOut) -> str:
    if isinstance(part, str):
        return text_in(part)
    kind = text_in(obj(part).get("content_type"))
    if kind == "audio_transcription":
        return text_in(obj(part).get("text"))
    if "image" in kind:
        left_out["pictures"] += 1
        return "[picture]"
    if "audio" in kind or "video" in kind:
        left_out["sound"] += 1
    elif part is not None:
        left_out["other content"] += 1
    return ""
