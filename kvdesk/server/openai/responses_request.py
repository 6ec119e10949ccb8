"""The request of `POST /v1/responses`, OpenAI's protocol of items, and what it is as a chat request."""

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pydantic import Field

from kvdesk.loose_json import obj
from kvdesk.server.errors import ApiError, invalid, unsupported
from kvdesk.server.request.parts import FunctionsRequest, response_format, string, text_of
from kvdesk.server.request.schemas import MOST_MESSAGES, MOST_PROBS, Body, ChatRequest, Whole, as_chat

ENCRYPTED: Final = "reasoning.encrypted_content"
"""What a client includes that keeps no responses here and sends reasoning back itself."""
LOGPROBS: Final = "message.output_text.logprobs"
_SEALED: Final = "kvdesk:"
_NAMESPACE: Final = "namespace"

Find = Callable[[str], dict[str, Any]]
"""The item that an id refers to. Raises ApiError."""


class TextConfig(Body):
    format: dict[str, Any] | None = None


class ResponsesRequest(FunctionsRequest):
    """`/v1/responses`. `store`: the response is kept, so that others can follow it. Tools of the type namespace have
    functions in their own `tools`: so Codex sends those of MCP servers.
    """

    FUNCTIONS, SCHEMA = ("function", _NAMESPACE), "parameters"
    input: str | list[Any]
    instructions: str | None = None
    tool_choice: str | dict[str, Any] | None = None
    text: TextConfig | None = None
    max_output_tokens: Whole | None = Field(None, ge=1)
    top_logprobs: Whole | None = Field(None, ge=0, le=MOST_PROBS)
    store: bool = True
    previous_response_id: str | None = None
    include: list[str] | None = None
    metadata: dict[str, Any] | None = None
    background: bool = False
    conversation: Any = None
    prompt: Any = None

    def items(self) -> list[Any]:
        """A text is a message of the user."""
        text = self.input
        return [{"type": "message", "role": "user", "content": text}] if isinstance(text, str) else text

    def functions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for at, tool in super().functions():
            if tool["type"] != _NAMESPACE:
                yield at, tool
                continue
            namespace, inner = string(tool, "name", at), tool.get("tools")
            for j, function in enumerate(inner if isinstance(inner, list) else ()):
                if obj(function).get("type") == "function":
                    name = string(function, "name", f"{at}.tools.{j}")
                    names = {"name": _full_name(namespace, name), _NAMESPACE: (namespace, name)}
                    yield f"{at}.tools.{j}", {**function, **names}

    def namespaces(self) -> dict[str, tuple[str, str]]:
        """Namespace and name of each function that has one, by the name that the model knows. Raises ApiError."""
        return {tool["name"]: tool[_NAMESPACE] for _, tool in self.functions() if _NAMESPACE in tool}


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
    given = request.items()
    if not given or len(given) > MOST_MESSAGES:
        raise invalid("input", f"must have 1 to {MOST_MESSAGES:,} items")
    history = messages_of_items(given, find, before)
    first = [{"role": "system", "content": request.instructions}] if request.instructions else []
    more = {
        "tools": request.chat_tools(),
        "tool_choice": request.tool_choice,
        "max_tokens": request.max_output_tokens,
        "logprobs": LOGPROBS in (request.include or ()),
        "top_logprobs": request.top_logprobs,
        "response_format": response_format(request.text.format, "text.format") if request.text is not None else None,
    }
    return as_chat(request, _one_system([*first, *history]), more), history


def messages_of_items(items: Sequence[Any], find: Find, before: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Messages of a chat: the items of one answer, its reasoning, text and calls, are one. Raises ApiError."""
    messages = list(before)
    is_answer = False  # the last message goes on
    for i, item in enumerate(items):
        at = f"input.{i}"
        if not isinstance(item, dict):
            raise invalid(at, "must be an item")
        if item.get("type") == "item_reference":
            item = find(string(item, "id", at))
        kind = item.get("type", "message")
        role = item.get("role") if kind == "message" else None
        if kind == "function_call_output":
            output = text_of(item.get("output"), f"{at}.output", is_result=True)
            messages.append({"role": "tool", "tool_call_id": string(item, "call_id", at), "content": output})
        elif kind == "message" and role != "assistant":
            if role not in ("user", "system", "developer"):
                raise invalid(f"{at}.role", "must be user, assistant, system or developer")
            messages.append({"role": role, "content": text_of(item.get("content"), f"{at}.content")})
        elif kind in ("message", "function_call", "reasoning"):
            if not is_answer:
                messages.append({"role": "assistant", "content": ""})
            messages[-1] = _with_item(messages[-1], kind, item, at)
            is_answer = True
            continue
        else:
            raise unsupported(at, f"items of the type {kind!s:.100} are not supported")
        is_answer = False
    return messages


def sealed(thought: str) -> str:
    """Reasoning as text that a client hands back unread. Nothing is secret in it."""
    return _SEALED + base64.b64encode(thought.encode("utf-8", "surrogatepass")).decode()


def _with_item(answer: dict[str, Any], kind: str, item: dict[str, Any], at: str) -> dict[str, Any]:
    """The answer with one item more."""
    match kind:
        case "message":
            return {**answer, "content": answer["content"] + text_of(item.get("content"), f"{at}.content", between="")}
        case "reasoning":
            thought = answer.get("reasoning_content", "") + _thought(item, at)
            return {**answer, "reasoning_content": thought} if thought else answer
    name, namespace = string(item, "name", at), item.get(_NAMESPACE)
    if isinstance(namespace, str):
        name = _full_name(namespace, name)
    function = {"name": name, "arguments": string(item, "arguments", at)}
    call = {"id": string(item, "call_id", at), "type": "function", "function": function}
    return {**answer, "tool_calls": [*answer.get("tool_calls", ()), call]}


def _full_name(namespace: str, name: str) -> str:
    """By which the model knows a function of a namespace."""
    return f"{namespace}{'' if namespace.endswith('_') or name.startswith('_') else '__'}{name}"


def _thought(item: dict[str, Any], at: str) -> str:
    """From its text, or as it was sealed here; "" of another server's."""
    if content := item.get("content"):
        if not isinstance(content, list):
            raise invalid(f"{at}.content", "must be a list of parts")
        return "".join(string(part, "text", f"{at}.content.{j}") for j, part in enumerate(content))
    kept = item.get("encrypted_content")
    if not isinstance(kept, str) or not kept.startswith(_SEALED):
        return ""
    try:
        return base64.b64decode(kept.removeprefix(_SEALED), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _one_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the instructions that come one after the other at the beginning in one message: many templates take no
    second.
    """
    n = next((i for i, one in enumerate(messages) if one["role"] not in ("system", "developer")), len(messages))
    if n < 2:
        return messages
    return [{"role": "system", "content": "\n".join(one["content"] for one in messages[:n])}, *messages[n:]]
