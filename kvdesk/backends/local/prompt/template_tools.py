"""Writes tools, calls and results as text, messages in turn and short ids, for templates that know no other."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from kvdesk.call_format import RESULT, TOLD, CallFormat
from kvdesk.loose_json import obj
from kvdesk.message import Message, MessageId, fields_of, fields_text
from kvdesk.values import replace

_RESULT_END: Final = RESULT.rpartition("}")[2]
_SHORT: Final = re.compile(r"[a-zA-Z0-9]{9}")


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


def questions_in_turn(messages: Sequence[Message]) -> list[Message]:
    """The messages with questions in a row as one, and an answer without words between a result and a question. It has
    a blank: Ministral's template refuses an empty one.
    """
    found: list[Message] = []
    for message in messages:
        before = found[-1].role if found else "system"
        if message.role == before == "user":
            text = "\n\n".join(filter(None, (found.pop().text, message.text)))
            message = replace(message, text=text)
        elif message.role == "user" and before == "tool":
            found.append(replace(message, id=MessageId(""), role="assistant", text=" ", tokens=(), fields=""))
        found.append(message)
    return found


def with_short_ids(messages: Sequence[Message]) -> list[Message]:
    """The messages with ids as Mistral's templates want them: nine letters and digits. A result without an id is that
    of the next call: Ollama's clients send none.
    """
    found: list[Message] = []
    ids: dict[str, str] = {}
    waiting: list[str] = []  # ids of calls without a result
    for n, message in enumerate(messages):
        fields = fields_of(message)
        if calls := fields.get("tool_calls"):
            waiting = [_short(str(call.get("id") or ""), f"{n} {i}") for i, call in enumerate(calls)]
            fields["tool_calls"] = [{**call, "id": short} for call, short in zip(calls, waiting, strict=True)]
            ids |= {str(call.get("id")): short for call, short in zip(calls, waiting, strict=True)}
        elif message.role == "tool":
            given = str(fields.get("tool_call_id") or "")
            known = ids.get(given) if given else None
            short = known or (waiting[0] if waiting else _short(given, f"{n}"))
            waiting = [one for one in waiting if one != short]
            fields["tool_call_id"] = short
        else:
            found.append(message)
            continue
        found.append(replace(message, fields=fields_text(fields)))
    return found


def _short(identity: str, place: str) -> str:
    """The id, or one made of it or of its place, which stays the same in later turns."""
    if _SHORT.fullmatch(identity):
        return identity
    return hashlib.sha256((identity or place).encode("utf-8", "replace")).hexdigest()[:9]


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
