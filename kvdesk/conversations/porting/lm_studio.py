"""LM Studio's conversations: `~/.lmstudio/conversations/*.conversation.json`, or a ZIP of them.

LM Studio is closed, and says that nobody should rely on this format. What is read here is what readers made by others
of its versions 0.3 and 0.4 agree on: messages with `versions`, of which one is `currentlySelected`. Unverified.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kvdesk.chat import Conversation
from kvdesk.conversations.porting.branches import Facts, Node, conversation_of
from kvdesk.conversations.porting.values import LeftOut, conversation_id, items, text_in, time_ms, title_in
from kvdesk.loose_json import obj
from kvdesk.message import Role
from kvdesk.reasoning import written

_PROMPT = "llm.prediction.systemPrompt"


def matches(value: Any) -> bool:
    messages = obj(value).get("messages")
    if not isinstance(messages, list):
        return False
    if not messages:
        return "perChatPredictionConfig" in value or "clientInput" in value
    return any(isinstance(obj(message).get("versions"), list) for message in messages)


def convert(value: Mapping[str, Any], file: str) -> tuple[Conversation, LeftOut]:
    """One file. It has no id: its name and the time it was made identify it. Raises Malformed."""
    left_out: LeftOut = Counter()
    last_model = text_in(obj(value.get("lastUsedModel")).get("identifier"))
    prompt = _system_prompt(value)
    nodes: dict[str, Node] = {}
    parent: str | None = None  # the version that was shown: what comes next follows it
    for place, message in enumerate(items(value.get("messages"))):
        versions = items(obj(message).get("versions"))
        if not versions:
            left_out["other content"] += 1
        selected = obj(message).get("currentlySelected")
        if isinstance(selected, bool) or not isinstance(selected, int) or not 0 <= selected < len(versions):
            selected = len(versions) - 1
        for number, version in enumerate(versions):
            role = obj(version).get("role")
            text = _text_of(obj(version), left_out)
            if role == "system" and text.strip():
                prompt = prompt or text
                text = ""
            elif role not in ("user", "assistant") and text.strip():
                left_out["other content"] += 1
                text = ""
            who: Role = "user" if role == "user" else "assistant"
            model = text_in(obj(obj(version).get("senderInfo")).get("senderName")) or last_model
            nodes[f"{place}.{number}"] = Node(parent, who, text if text.strip() else None, 0, model)
        if versions:
            parent = f"{place}.{selected}"
    created_ms = time_ms(value.get("createdAt"))
    times = (time_ms(value.get(name)) for name in ("userLastMessagedAt", "assistantLastMessagedAt"))
    facts = Facts(
        conversation_id("LM Studio", file, str(created_ms)),
        title_in(value.get("name")),
        prompt,
        created_ms,
        max(*times, created_ms),
        pinned=value.get("pinned") is True,
    )
    return conversation_of(facts, nodes, parent), left_out


def _system_prompt(value: Mapping[str, Any]) -> str:
    """That of this chat if it has its own settings, else the older field of the conversation."""
    for field in items(obj(value.get("perChatPredictionConfig")).get("fields")):
        if obj(field).get("key") == _PROMPT and text_in(obj(field).get("value")).strip():
            return text_in(obj(field).get("value"))
    return text_in(value.get("systemPrompt"))


def _text_of(version: Mapping[str, Any], left_out: LeftOut) -> str:
    if not isinstance(version.get("steps"), list):
        return "\n".join(filter(None, _parts(version.get("content"), left_out, reasoning=False)))
    texts: list[str] = []
    for step in items(version.get("steps")):
        kind = obj(step).get("type")
        if kind == "contentBlock":
            reasoning = obj(obj(step).get("style")).get("type") == "thinking"
            text = "".join(_parts(obj(step).get("content"), left_out, reasoning=reasoning)).strip()
            if text:
                texts.append(written(text) if reasoning else text)
        elif kind == "toolStatus":
            left_out["tool calls"] += 1
        elif kind != "debugInfoBlock":  # times and settings, which are no part of the chat
            left_out["other content"] += 1
    return "\n\n".join(texts)


def _parts(content: Any, left_out: LeftOut, *, reasoning: bool) -> list[str]:
    """The texts of a message or step. The model's own marks around its reasoning are replaced by `<think>`."""
    if isinstance(content, str):
        return [text_in(content)]
    texts: list[str] = []
    for part in items(content):
        kind = obj(part).get("type")
        if kind == "text":
            if not (reasoning and obj(part).get("isStructural") is True):
                texts.append(text_in(obj(part).get("text")))
        elif kind == "file":
            is_picture = obj(part).get("fileType") == "image"
            left_out["pictures" if is_picture else "files"] += 1
            texts.append("[picture]" if is_picture else "[file]")
        elif kind in ("toolCallRequest", "toolCallResult"):
            left_out["tool calls" if kind == "toolCallRequest" else "tool results"] += 1
        else:
            left_out["other content"] += 1
    return texts
