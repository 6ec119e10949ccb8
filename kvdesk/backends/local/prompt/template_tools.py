"""Writes tools, calls, results and messages as templates take them that know no other form."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvdesk.call_format import RESULT, TOLD, CallFormat
from kvdesk.loose_json import obj
from kvdesk.message import Message, MessageId, fields_of, fields_text
from kvdesk.values import replace

_RESULT_END: Final = RESULT.rpartition("}")[2]
_MISSING: Final = {"description": "", "parameters": {"type": "object", "properties": {}}}
"""What a tool has that does not say it."""
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


def one_call_each(messages: Sequence[Message]) -> list[Message]:
    """The messages with one call in each answer, and its results behind it, as Llama 3's templates want it."""
    found: list[Message] = []
    waiting: list[Message] = []  # calls without a result
    for message in messages:
        fields = fields_of(message)
        calls = fields.get("tool_calls") or ()
        if message.role == "tool" and waiting:
            asked = next((one for one in waiting if _id_of_call(one) == fields.get("tool_call_id")), waiting[0])
            waiting = [one for one in waiting if one is not asked]
            at = next(i for i, one in enumerate(found) if one is asked)
            found.insert(at + 1, message)
            continue
        waiting = []
        if len(calls) > 1:
            more = replace(message, id=MessageId(""), text="", tokens=())
            message = replace(message, tokens=(), fields=fields_text({**fields, "tool_calls": calls[:1]}))
            waiting = [message, *(replace(more, fields=fields_text({"tool_calls": [call]})) for call in calls[1:])]
        found += waiting or [message]
    return found


def _id_of_call(message: Message) -> Any:
    return fields_of(message)["tool_calls"][0].get("id")


def with_objects(messages: Sequence[Message]) -> list[Message]:
    """The messages with an object for arguments of calls that are none, such as JSON that a model did not end. Agents
    send such a call again with every later request.
    """
    found = []
    for message in messages:
        fields = fields_of(message)
        if calls := fields.get("tool_calls"):
            fields["tool_calls"] = [
                {**call, "function": _with_object(call["function"])} if "function" in call else call for call in calls
            ]
            message = replace(message, fields=fields_text(fields))
        found.append(message)
    return found


def _with_object(function: Mapping[str, Any]) -> dict[str, Any]:
    given = function["arguments"]
    return {**function, "arguments": given if isinstance(given, dict) else {"arguments": given}}


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


def complete(tools: str) -> str:
    """The tools, each function with a description and parameters, as llama-server gives them: some templates fail
    without.
    """
    found = []
    for tool in json.loads(tools):
        given = {name: value for name, value in tool.get("function", _MISSING).items() if value is not None}
        found.append({**tool, "function": {"name": "", **_MISSING, **given}} if _MISSING.keys() - given else tool)
    return json.dumps(found, ensure_ascii=False)


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
