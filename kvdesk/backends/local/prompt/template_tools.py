"""Writes tools, calls and results as text, for templates that do not know them."""

import json
from collections.abc import Sequence
from typing import Any, Final

from kvdesk.call_format import RESULT, TOLD, CallFormat
from kvdesk.loose_json import obj
from kvdesk.message import Message, MessageId, fields_of, fields_text
from kvdesk.values import replace

_RESULT_END: Final = RESULT.rpartition("}")[2]


def calls_as_text(messages: Sequence[Message], form: CallFormat) -> Sequence[Message]:
    """The messages for a template that leaves calls in the text of answers."""
    found = []
    for message in messages:
        fields = fields_of(message)
        if calls := fields.pop("tool_calls", None):
            pairs = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
            pairs = [(name, obj(given)) for name, given in pairs]
            said = message.text if message.tokens else "\n".join(filter(None, (message.text, form.written(pairs))))
            fields.pop("content", None)
            message = replace(message, text=said, fields=fields_text(fields))
        found.append(message)
    return found


def results_as_questions(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages for a template without results of tools."""
    found: list[Message] = []
    for message in messages:
        if message.role != "tool":
            found.append(message)
            continue
        result = RESULT.format(result=message.text)
        if found and found[-1].text.endswith(_RESULT_END):  # many templates require alternating turns
            result = f"{found.pop().text}\n{result}"
        found.append(replace(message, role="user", text=result, fields=""))
    return found


def results_in_calls(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as templates get them, for one that takes results in the message of their calls, followed by the answer.
    llama-server does the same (`gemma4.cpp`), but parses results that are JSON; here they stay text.
    """
    found: list[dict[str, Any]] = []
    for message in messages:
        last = found[-1] if found else {}
        calls, results = last.get("tool_calls"), last.get("tool_responses", [])
        if message["role"] == "tool" and calls:
            call = calls[min(len(results), len(calls) - 1)]
            last["tool_responses"] = [*results, {"name": call["function"]["name"], "response": message["content"]}]
        elif message["role"] == "assistant" and results and not message.get("tool_calls") and not last["content"]:
            last["content"] = message["content"]
        else:
            found.append({**message})
    return found


def told_of_tools(messages: Sequence[Message], tools: str, form: CallFormat) -> Sequence[Message]:
    """The messages with a system prompt that describes the tools."""
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in json.loads(tools))
    told = TOLD.format(tools=lines, example=form.written([("function", {"argument": "value"})]))
    if messages[0].role == "system":
        return [replace(messages[0], text=f"{messages[0].text}\n\n{told}"), *messages[1:]]
    return [
        replace(messages[0], id=MessageId(""), role="system", text=told, tokens=(), fields="", stats=None),
        *messages,
    ]
