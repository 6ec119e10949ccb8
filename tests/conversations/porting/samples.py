"""Small files in the formats of other programs, written for the tests."""

import json
from pathlib import Path
from typing import Any

DAY_S = 1_700_000_000.25


def chatgpt_message(
    name: str, role: str, *parts: Any, kind: str = "text", at: float | None = DAY_S, **more: Any
) -> dict[str, Any]:
    content: dict[str, Any] = {"content_type": kind, "parts": list(parts)}
    message: dict[str, Any] = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": content,
    }
    return message | {"status": "finished_successfully", "recipient": "all", "metadata": {}} | more


def chatgpt_node(name: str, parent: str | None, message: dict[str, Any] | None, *children: str) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": list(children), "message": message}


def chatgpt_conversation() -> dict[str, Any]:
    """A question with two answers, the second made with a tool; instructions, a picture, a file and a citation."""
    told = chatgpt_message("told", "user", kind="user_editable_context", metadata={
        "is_visually_hidden_from_conversation": True, "is_user_system_message": True,
    })  # fmt: skip
    told["content"] = {
        "content_type": "user_editable_context",
        "user_profile": "I am a sailor.",
        "user_instructions": "Be brief.",
    }
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 10}
    files = [{"name": "a.png", "mime_type": "image/png"}, {"name": "b.pdf", "mimeType": "application/pdf"}]
    attached = {"attachments": files}
    thoughts = chatgpt_message("think", "assistant", kind="thoughts")
    thoughts["content"] = {"content_type": "thoughts", "thoughts": [{"summary": "Tides", "content": "The moon pulls."}]}
    call = chatgpt_message("call", "assistant", kind="code", recipient="python")
    call["content"] = {"content_type": "code", "language": "python", "text": "print(6 * 7)"}
    result = chatgpt_message("result", "tool", kind="execution_output")
    result["content"] = {"content_type": "execution_output", "text": "42"}
    ask = chatgpt_message("ask", "user", picture, "Why are there tides?", kind="multimodal_text", metadata=attached)
    first = chatgpt_message("first", "assistant", "No idea.", metadata={"model_slug": "gpt-4o"})
    cited = "The moon.\ue200cite\ue202turn0search1\ue201"
    second = chatgpt_message("second", "assistant", cited, at=DAY_S + 9, metadata={"model_slug": "o3"})
    nodes = [
        chatgpt_node("root", None, None, "hidden"),
        chatgpt_node("hidden", "root", chatgpt_message("hidden", "system", "", at=None), "told"),
        chatgpt_node("told", "hidden", told, "ask"),
        chatgpt_node("ask", "told", ask, "first", "think"),
        chatgpt_node("first", "ask", first),
        chatgpt_node("think", "ask", thoughts, "call"),
        chatgpt_node("call", "think", call, "result"),
        chatgpt_node("result", "call", result, "second"),
        chatgpt_node("second", "result", second),
    ]
    return {
        "title": "Tides",
        "create_time": DAY_S,
        "update_time": DAY_S + 60,
        "mapping": {node["id"]: node for node in nodes},
        "current_node": "second",
        "conversation_id": "11111111-2222-3333-4444-555555555555",
        "is_archived": False,
        "plugin_ids": None,
    }


def lm_studio_conversation() -> dict[str, Any]:
    """A question; two answers, the second shown, with reasoning and a call of a tool; another question."""

    def text(said: str, **more: Any) -> dict[str, Any]:
        return {"type": "text", "text": said, "fromDraftModel": False, "tokensCount": 3, **more}

    def answer(*steps: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "multiStep",
            "role": "assistant",
            "senderInfo": {"senderName": "qwen3-4b"},
            "steps": list(steps),
        }

    thinking = [text("<think>", isStructural=True), text("Moon"), text(" or sun?"), text("</think>", isStructural=True)]
    return {
        "name": "Tides again",
        "pinned": False,
        "createdAt": 1_700_000_000_123,
        "userLastMessagedAt": 1_700_000_009_000,
        "tokenCount": 42,
        "systemPrompt": "old field",
        "messages": [
            {"versions": [{"type": "singleStep", "role": "user", "content": [
                {"type": "text", "text": "Why tides?"},
                {"type": "file", "fileIdentifier": "1 - 2.png", "fileType": "image", "sizeBytes": 9},
            ]}], "currentlySelected": 0},
            {"versions": [
                answer({"type": "contentBlock", "content": [text("Wind.")]}),
                answer(
                    {"type": "contentBlock", "style": {"type": "thinking"}, "content": thinking},
                    {"type": "contentBlock", "content": [
                        text("The "), text("moon."), {"type": "toolCallRequest", "name": "x", "parameters": {}},
                    ], "genInfo": {"stats": {"tokensPerSecond": 9.5}}},
                    {"type": "debugInfoBlock", "debugInfo": "…"},
                ),
            ], "currentlySelected": 1},
            {"versions": [{"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Thanks"}]}],
             "currentlySelected": 0},
        ],
        "usePerChatPredictionConfig": True,
        "perChatPredictionConfig": {"fields": [
            {"key": "llm.prediction.temperature", "value": 0.7},
            {"key": "llm.prediction.systemPrompt", "value": "Be brief."},
        ]},
        "clientInput": "",
        "lastUsedModel": {"identifier": "gemma-3-1b"},
    }  # fmt: skip


def llama_session() -> dict[str, Any]:
    """As `ExportedConversation`: a root, a system message, a question with two answers, one with an attached file."""

    def message(name: str, parent: str | None, role: str, content: str, *children: str, **more: Any) -> dict[str, Any]:
        number = int(name[1:])
        found = {"id": name, "convId": "c-1", "type": "text", "timestamp": 1_700_000_000_000 + number, "role": role}
        return found | {"content": content, "parent": parent, "children": list(children), "thinking": ""} | more

    file = {"type": "TEXT", "name": "tide.csv", "content": "a,b"}
    calls = '[{"id":"1"}]'
    picture = {"type": "IMAGE", "name": "m.png", "base64Url": "data:image/png;base64,AAAA"}
    return {
        "conv": {"id": "c-1", "name": "Tides", "lastModified": 1_700_000_060_000, "currNode": "m5"},
        "messages": [
            message("m0", None, "system", "", "m1", type="root"),
            message("m1", "m0", "system", "Be brief.", "m2", type="system"),
            message("m2", "m1", "user", "Why tides?", "m3", "m4", extra=[file, picture]),
            message("m3", "m2", "assistant", "Wind.", model="smol", timings={"predicted_n": 3, "predicted_ms": 9.5}),
            message("m4", "m2", "assistant", "", "m5", model="qwen", reasoningContent="Look it up.", toolCalls=calls),
            message("m6", "m4", "tool", "the moon", "m5", toolCallId="1"),
            message("m5", "m6", "assistant", "The moon.", model="qwen"),
        ],
    }  # fmt: skip


def jsonl(session: dict[str, Any]) -> str:
    """As `serializeSessionToJsonl` writes it: tool calls parsed, the conversation's members in the first line."""
    lines = [{"type": "session", "harness": "llama.app"} | session["conv"]]
    for message in session["messages"]:
        calls = {"toolCalls": json.loads(message["toolCalls"])} if message.get("toolCalls") else {}
        lines.append({"type": "message", "message": message | calls})
    return "\n".join(map(json.dumps, lines))


def dexie_dump(session: dict[str, Any]) -> dict[str, Any]:
    """As dexie-export-import writes a database of two tables."""
    tables = {"conversations": [session["conv"]], "messages": session["messages"]}
    return {
        "formatName": "dexie",
        "formatVersion": 1,
        "data": {
            "databaseName": "LlamacppWebui",
            "databaseVersion": 1,
            "tables": [{"name": name, "schema": "&id", "rowCount": len(rows)} for name, rows in tables.items()],
            "data": [{"tableName": name, "inbound": True, "rows": rows} for name, rows in tables.items()],
        },
    }


def oldest_session() -> dict[str, Any]:
    """As the web UI kept conversations in the browser's localStorage at first: ids are times, no branches."""
    return {
        "id": "conv-1700000000000",
        "lastModified": 1_700_000_060_000,
        "messages": [
            {"id": 1_700_000_000_001, "role": "user", "content": "Why tides?"},
            {"id": 1_700_000_000_002, "role": "assistant", "content": "The moon.", "timings": {"prompt_n": 1}},
        ],
    }


def open_webui_chat() -> dict[str, Any]:
    """A record of the database: a question with a file and a picture; two answers, one with reasoning and a tool."""
    reasoning = '<details type="reasoning" done="true" duration="2">\n<summary>Thought for 2 seconds</summary>\n'
    call = '<details type="tool_calls" done="true" id="1" name="x">\n<summary>Tool Executed</summary>\n</details>\n'
    file = {"type": "file", "name": "tide.csv", "file": {"id": "f", "data": {"content": "a,b"}}}
    picture = {"type": "image", "url": "data:image/png;base64,AAAA"}

    def message(name: str, parent: str | None, role: str, content: str, *children: str, **more: Any) -> dict[str, Any]:
        found = {"id": name, "parentId": parent, "childrenIds": list(children), "role": role, "content": content}
        return found | {"timestamp": 1_700_000_000} | more

    thought = f"{reasoning}> The moon &amp; the sun\n> pull.\n</details>\n{call}The moon."
    messages = [
        message("u", None, "user", "Why tides?", "b", "a", files=[file, picture]),
        message("a", "u", "assistant", thought, model="qwen3:4b", modelName="Qwen"),
        message("b", "u", "assistant", "Wind.", model="smol"),
    ]
    return {
        "id": "chat-1",
        "user_id": "me",
        "title": "Tides",
        "chat": {
            "title": "Tides",
            "models": ["qwen3:4b"],
            "params": {"system": "Be brief."},
            "history": {"messages": {one["id"]: one for one in messages}, "currentId": "a"},
            "messages": messages[:2],
            "timestamp": 1_700_000_000_000,
        },
        "created_at": 1_700_000_000,
        "updated_at": 1_700_000_060,
    }


def jan_lines() -> list[dict[str, Any]]:
    """The lines of `messages.jsonl`: instructions, a question with a picture, a call of a tool, an answer."""

    def message(name: str, role: str, *parts: Any) -> dict[str, Any]:
        found = {"id": name, "object": "thread.message", "thread_id": "t-1", "role": role, "content": list(parts)}
        return found | {"status": "ready", "created_at": 1_700_000_000, "completed_at": 1_700_000_001}

    def text(said: str, kind: str = "text") -> dict[str, Any]:
        return {"type": kind, "text": {"value": said, "annotations": []}}

    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    return [
        message("0", "system", text("Be brief.")),
        message("1", "user", text("Why tides?"), picture),
        message("2", "assistant", {"type": "tool_call", "tool_name": "x"}, text("Let me see.")),
        message("3", "tool", text("the moon")),
        message("4", "assistant", text("Look it up.", "reasoning"), text("The moon.")),
    ]


def written(path: Path, value: Any) -> Path:
    """The value as a JSON file."""
    path.write_text(json.dumps(value), "utf-8")
    return path
