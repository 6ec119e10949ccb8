"""The request of `POST /v1/responses`, OpenAI's protocol of items, and what it is as a chat request."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import Field

from kvdesk.server.errors import ApiError
from kvdesk.server.schemas import (
    MOST_MESSAGES,
    MOST_PASSED_OVER,
    Body,
    ChatOptions,
    ChatRequest,
    ResponseFormat,
    Whole,
    as_chat,
    parsed,
)

ENCRYPTED: Final = "reasoning.encrypted_content"
"""What a client includes that keeps no responses here and sends reasoning back itself."""
_SEALED: Final = "kvdesk:"
_PARTS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""Types of parts, and the field that has the text."""

Find = Callable[[str], dict[str, Any]]
"""The item that an id refers to. Raises ApiError."""


class TextConfig(Body):
    format: dict[str, Any] | None = None


class ReasoningConfig(Body):
    effort: str | None = None
    summary: str | None = None
    max_tokens: Whole | None = None


class ResponsesRequest(ChatOptions):
    """Tools that are no functions run on OpenAI's side, or have another form of call: they are passed over."""

    input: str | list[Any]
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = Field(None, max_length=1000)
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool = True
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    max_output_tokens: Whole | None = Field(None, ge=1)
    store: bool = True
    previous_response_id: str | None = None
    include: list[str] | None = None
    metadata: dict[str, Any] | None = None
    background: bool = False
    conversation: Any = None
    prompt: Any = None

    def passed_over(self) -> tuple[str, ...]:
        kinds = [str(tool.get("type")) for tool in self.tools or () if tool.get("type") != "function"]
        names = [f"tools.{kind}" for kind in dict.fromkeys(kinds) if kind.isidentifier()]
        return (*super().passed_over(), *names)[:MOST_PASSED_OVER]


def chat_of_response(
    request: ResponsesRequest, before: Sequence[dict[str, Any]], find: Find
) -> tuple[ChatRequest, list[dict[str, Any]]]:
    """The chat request, and its messages without the instructions, which are those of this response alone.

    before  messages of the response that this one follows
    Raises ApiError with the place of what is wrong.
    """
    for name in ("background", "conversation", "prompt"):
        if getattr(request, name):
            raise ApiError(400, f"The field {name} is not supported.", name, "unsupported_parameter")
    given = [{"role": "user", "content": request.input}] if isinstance(request.input, str) else request.input
    if not given or len(given) > MOST_MESSAGES:
        raise _wrong("input", f"it has 1 to {MOST_MESSAGES:,} items")
    history = messages_of_items(given, find, before)
    first = [{"role": "system", "content": request.instructions}] if request.instructions else []
    form, reasoning = request.text.format if request.text is not None else None, request.reasoning
    more = {
        "tools": _tools(request.tools or ()) or None,
        "tool_choice": request.tool_choice,
        "parallel_tool_calls": request.parallel_tool_calls,
        "max_tokens": request.max_output_tokens,
        "reasoning": reasoning.model_dump(exclude_none=True) if reasoning is not None else None,
        "response_format": _format(form) if form is not None else None,
    }
    return as_chat(request, _one_system([*first, *history]), more), history


def messages_of_items(items: Sequence[Any], find: Find, before: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Messages of a chat: the items of one answer, its reasoning, text and calls, are one. Raises ApiError."""
    messages = list(before)
    is_answer = False  # the last message goes on
    for i, item in enumerate(items):
        at = f"input.{i}"
        if not isinstance(item, dict):
            raise _wrong(at, "it is an item")
        if item.get("type") == "item_reference":
            item = find(_string(item, "id", at))
        kind = item.get("type", "message")
        role = item.get("role") if kind == "message" else None
        if kind == "function_call_output":
            output = _text(item.get("output"), f"{at}.output", "\n")
            messages.append({"role": "tool", "tool_call_id": _string(item, "call_id", at), "content": output})
        elif kind == "message" and role != "assistant":
            if role not in ("user", "system", "developer"):
                raise _wrong(f"{at}.role", "it is user, assistant, system or developer")
            messages.append({"role": role, "content": _text(item.get("content"), f"{at}.content", "\n")})
        elif kind in ("message", "function_call", "reasoning"):
            if not is_answer:
                messages.append({"role": "assistant", "content": ""})
            messages[-1] = _with_item(messages[-1], kind, item, at)
            is_answer = True
            continue
        else:
            raise ApiError(400, f"{at}: items of the type {kind!s:.100} are not supported.", at, "unsupported_value")
        is_answer = False
    return messages


def sealed(thought: str) -> str:
    """Reasoning as text that a client hands back unread. Nothing is secret in it."""
    return _SEALED + base64.b64encode(thought.encode("utf-8", "surrogatepass")).decode()


def _with_item(answer: dict[str, Any], kind: str, item: dict[str, Any], at: str) -> dict[str, Any]:
    """The answer with one item more."""
    match kind:
        case "message":
            return {**answer, "content": answer["content"] + _text(item.get("content"), f"{at}.content", "")}
        case "reasoning":
            thought = answer.get("reasoning_content", "") + _thought(item, at)
            return {**answer, "reasoning_content": thought} if thought else answer
    function = {"name": _string(item, "name", at), "arguments": _string(item, "arguments", at)}
    call = {"id": _string(item, "call_id", at), "type": "function", "function": function}
    return {**answer, "tool_calls": [*answer.get("tool_calls", ()), call]}


def _thought(item: dict[str, Any], at: str) -> str:
    """From its text, or as it was sealed here; "" of another server's."""
    if content := item.get("content"):
        if not isinstance(content, list):
            raise _wrong(f"{at}.content", "it is a list of parts")
        return "".join(_string(part, "text", f"{at}.content.{j}") for j, part in enumerate(content))
    kept = item.get("encrypted_content")
    if not isinstance(kept, str) or not kept.startswith(_SEALED):
        return ""
    try:
        return base64.b64decode(kept.removeprefix(_SEALED), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _text(content: object, at: str, between: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _wrong(at, "it is a text, or a list of parts")
    texts = []
    for j, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in _PARTS:
            what = f"parts of the type {kind:.100}" if isinstance(kind, str) else "such parts"
            raise ApiError(400, f"{at}.{j}: {what} are not supported.", f"{at}.{j}", "unsupported_value")
        texts.append(_string(part, _PARTS[kind], f"{at}.{j}"))
    return between.join(texts)


def _one_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the instructions that come one after the other at the beginning in one message: many templates take no
    second.
    """
    n = next((i for i, one in enumerate(messages) if one["role"] not in ("system", "developer")), len(messages))
    if n < 2:
        return messages
    return [{"role": "system", "content": "\n".join(one["content"] for one in messages[:n])}, *messages[n:]]


def _tools(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for i, tool in enumerate(tools):
        if tool.get("type") != "function":
            continue
        function: dict[str, Any] = {"name": _string(tool, "name", f"tools.{i}")}
        if isinstance(tool.get("description"), str):
            function["description"] = tool["description"]
        parameters = tool.get("parameters") or {}
        if not function["name"] or not isinstance(parameters, dict):
            raise _wrong(f"tools.{i}", "it has a name, and a JSON schema as parameters")
        found.append({"type": "function", "function": {**function, "parameters": parameters}})
    return found


def _format(form: dict[str, Any]) -> ResponseFormat:
    kind, schema = form.get("type"), form.get("schema")
    if kind in ("text", "json_object"):
        return parsed(ResponseFormat, {"type": kind})
    if kind != "json_schema" or not isinstance(schema, dict):
        raise _wrong("text.format", "it is text, json_object, or json_schema with a schema")
    return parsed(ResponseFormat, {"type": kind, "json_schema": {"schema": schema}})


def _string(value: object, name: str, at: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str):
        raise _wrong(f"{at}.{name}", "it is a text")
    return found


def _wrong(at: str, said: str) -> ApiError:
    return ApiError(400, f"{at}: {said}.", at, "invalid_value")
