"""The request of `POST /v1/messages`, Anthropic's protocol, and what it is as a chat request.

A text is never altered: also a header in the system prompt that changes with every request reaches the model.
"""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import Field

from kvdesk.server.errors import invalid
from kvdesk.server.request.parts import FunctionsRequest, response_format, string, text_of, text_of_part
from kvdesk.server.request.schemas import MOST_MESSAGES, Body, ChatRequest, as_chat

_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}


class OutputConfig(Body):
    """`format`: {"type": "json_schema", "schema"}."""

    effort: str | None = None
    format: dict[str, Any] | None = None


class MessagesToolChoice(Body):
    type: str
    name: str | None = None
    disable_parallel_tool_use: bool = False


class MessagesRequest(FunctionsRequest):
    """`/v1/messages`. `max_tokens` may be missing, as with llama-server. `output_format` is what `output_config.format`
    was first; packages of that time send it.
    """

    FUNCTIONS, SCHEMA = (None, "custom"), "input_schema"
    messages: list[dict[str, Any]] = Field(min_length=1, max_length=MOST_MESSAGES)
    system: str | list[dict[str, Any]] | None = None
    stop_sequences: list[str] | None = None
    tool_choice: MessagesToolChoice | None = None
    output_config: OutputConfig | None = None
    output_format: dict[str, Any] | None = None


def chat_of_messages(request: MessagesRequest) -> ChatRequest:
    """Raises ApiError with the place of what is wrong."""
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": text_of(request.system, "system")})
    for i, message in enumerate(request.messages):
        messages += _messages_of(message, f"messages.{i}")
    choice, output = request.tool_choice, request.output_config
    more: dict[str, Any] = {
        "stop": request.stop_sequences,
        "tools": request.chat_tools(),
        "reasoning_effort": output.effort if output is not None else None,
        "response_format": response_format(request.output_format, "output_format"),
    }
    if output is not None and output.format is not None:
        more["response_format"] = response_format(output.format, "output_config.format")
    if choice is not None:
        more["tool_choice"] = _choice(choice)
        more["parallel_tool_calls"] = not choice.disable_parallel_tool_use
    return as_chat(request, messages, more)


def _messages_of(message: dict[str, Any], at: str) -> Iterator[dict[str, Any]]:
    """One message, or several: the results of tools are their own messages, where they are among the texts."""
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise invalid(f"{at}.role", "must be user, assistant or system")
    if isinstance(content, str):
        yield {"role": role, "content": content}
    elif role == "assistant":
        yield _answer(content, f"{at}.content")
    else:
        texts: list[str] = []
        for where, kind, block in _blocks(content, f"{at}.content"):
            if kind == "tool_result" and role == "user":
                if texts:
                    yield {"role": role, "content": "\n".join(texts)}
                    texts = []
                yield _result(block, where)
            else:
                texts.append(text_of_part(block, where))
        if texts or not content:
            yield {"role": role, "content": "\n".join(texts)}


def _answer(content: object, at: str) -> dict[str, Any]:
    """The blocks of an answer belong together as they came: text with nothing between."""
    texts, thoughts, calls = [], [], []
    for where, kind, block in _blocks(content, at):
        match kind:
            case "thinking":
                thoughts.append(string(block, "thinking", where))
            case "redacted_thinking":
                pass
            case "tool_use":
                arguments = block.get("input", {})
                if not isinstance(arguments, dict):
                    raise invalid(f"{where}.input", "must be an object")
                function = {"name": string(block, "name", where), "arguments": arguments}
                calls.append({"id": block.get("id"), "type": "function", "function": function})
            case _:
                texts.append(text_of_part(block, where))
    found: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        found["reasoning_content"] = "".join(thoughts)
    if calls:
        found["tool_calls"] = calls
    return found


def _result(block: dict[str, Any], at: str) -> dict[str, Any]:
    content = block.get("content")
    text = "" if content is None else text_of(content, f"{at}.content", is_result=True)
    return {"role": "tool", "tool_call_id": string(block, "tool_use_id", at), "content": text}


def _blocks(content: object, at: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Place, type and block of each."""
    if not isinstance(content, list):
        raise invalid(at, "must be a string, or a list of blocks")
    for j, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
            raise invalid(f"{at}.{j}", "must be a block with a type")
        yield f"{at}.{j}", kind, block


def _choice(choice: MessagesToolChoice) -> str | dict[str, Any]:
    if choice.type == "tool" and choice.name is not None:
        return {"type": "function", "function": {"name": choice.name}}
    if choice.type not in _CHOICES:
        raise invalid("tool_choice", "must be auto, any, none, or tool with a name")
    return _CHOICES[choice.type]
