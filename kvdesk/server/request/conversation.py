"""The messages of a request as kvdesk's, and the token ids of the answers among them.

A client sends the text of an answer back; tokenized again it could be other tokens than were generated, and every
difference is a prefix lost. So the ids of the latest answers are kept, under all that was before them.
"""

import hashlib
import json
import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.loose_json import json_value, obj
from kvdesk.message import ConversationId, Message, Role, TurnStats, fields_of, fields_text, new_message_id, storable
from kvdesk.server.errors import ApiError, invalid
from kvdesk.server.request.parts import text_of
from kvdesk.tool_calls import ToolCall, told_calls
from kvdesk.values import dataclass, replace

MOST_BYTES: Final = 16_000_000
"""Of all answers that are remembered. The oldest go first."""
_TOKEN_BYTES: Final = 36
_ANSWER_BYTES: Final = 2000  # beside texts and tokens: its numbers, its place
MOST_ALIKE: Final = 16
"""Answers to the same messages."""
_THOUGHTS: Final = ("reasoning_content", "reasoning")
"""What clients call the reasoning of an answer."""
_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_OWN_ROLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,31}")
"""Any other role: the chat template gets it as it is, and takes or refuses it."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer as it was generated, and as its client got it."""

    text: str
    tokens: tuple[int, ...]
    stats: TurnStats
    content: str
    calls: tuple[ToolCall, ...] = ()
    thought: str = ""

    @property
    def n_bytes(self) -> int:
        """Memory, estimated."""
        texts = (self.text, self.content, self.thought, self.stats.why, *(call.arguments for call in self.calls))
        return _ANSWER_BYTES + _TOKEN_BYTES * len(self.tokens) + sum(map(sys.getsizeof, texts))


class GivenAnswers:
    """The latest answers, by what they answered."""

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, list[GivenAnswer]] = OrderedDict()
        self.n_bytes = 0

    def add(self, chain: bytes, answer: GivenAnswer) -> None:
        """`chain`: of all before it (`chains`)."""
        known = self._answers.pop(chain, [])
        kept = self._answers[chain] = [*(one for one in known if one.content != answer.content), answer][-MOST_ALIKE:]
        self.n_bytes += sum(one.n_bytes for one in kept) - sum(one.n_bytes for one in known)
        while self._answers and self.n_bytes > MOST_BYTES:
            _, gone = self._answers.popitem(last=False)
            self.n_bytes -= sum(one.n_bytes for one in gone)

    def find(self, chain: bytes, message: Message) -> GivenAnswer | None:
        """The answer that a message of a client is; the one of which it is most where its text was changed. Clients
        that write an answer again reorder the fields of arguments, leave out null ones, escape letters, strip blanks
        around a text, and give calls other ids: it is the same answer.
        """
        known = self._answers.get(chain, ())
        calls, thought = _without_nulls(_calls_of(message)), thought_of(message)
        for one in known:
            if (
                one.content.strip() == message.text.strip()
                and _without_nulls([*told_calls(one.calls)]) == calls
                and thought in ("", one.thought.strip())
            ):
                return one
        same = [one for one in known if not one.calls and not calls and common_prefix(one.content, message.text)]
        return max(same, key=lambda one: common_prefix(one.content, message.text), default=None)


def messages_of(given: Sequence[dict[str, Any]], conversation: ConversationId) -> tuple[Message, ...]:
    """Raises ApiError with the place of what is wrong."""
    messages = []
    for i, one in enumerate(given):
        at = f"messages.{i}"
        named = one.get("role")
        if not isinstance(named, str) or (named not in _ROLES and not _OWN_ROLE.fullmatch(named)):
            said = "must be a name of at most 32 letters, such as system, user, assistant or tool"
            raise invalid(f"{at}.role", said)
        role = _ROLES.get(named, "user")
        fields: dict[str, Any] = {} if named in _ROLES else {"role": named}
        if role == "assistant" and one.get("tool_calls"):
            fields["tool_calls"] = _tool_calls(one["tool_calls"], at)
        elif role == "tool":
            fields = {name: one[name] for name in ("tool_call_id", "name") if isinstance(one.get(name), str)}
        if role == "assistant" and one.get("function_call"):
            raise ApiError(400, f"{at}.function_call is not supported; tool_calls is.", at, "unsupported_parameter")
        content = one.get("content")
        if content is None and ("content" in one or role == "assistant"):
            content = ""  # such as of an answer that was stopped before it began
        thought = next((t for n in _THOUGHTS if isinstance(t := one.get(n), str)), "")
        if role == "assistant" and thought.strip():
            fields["reasoning_content"] = storable(thought)
        text, more = text_of(content, f"{at}.content", is_result=role == "tool"), fields_text(fields)
        messages.append(Message(new_message_id(), conversation, None, role, text, fields=more))
    return tuple(messages)


def chains(messages: Sequence[Message], tools: str, sharing: str) -> Iterator[bytes]:
    """A hash of all before each message, and one of all of them: the same for histories that only ids and blanks, or
    the order of fields, tell apart.
    """
    digest = hashlib.sha256(f"{sharing}\0{tools}".encode("utf-8", "replace"))
    yield digest.digest()
    for message in messages:
        part = json.dumps([message.role, message.text.strip(), _alike(message)], sort_keys=True)
        digest.update(f"{len(part)}:{part}".encode())
        yield digest.digest()


def with_tokens(messages: Sequence[Message], known: GivenAnswers, tools: str, sharing: str) -> tuple[Message, ...]:
    """The messages, the answers among them as they were generated here."""
    found = []
    for chain, message in zip(chains(messages, tools, sharing), messages, strict=False):
        given = known.find(chain, message) if message.role == "assistant" else None
        goes_on = message is messages[-1] and given is not None and given.content != message.text
        if given is None or not given.tokens or goes_on:  # an answer that is continued: from what the client sent
            found.append(message)
            continue
        fields = fields_of(message)
        thinks = bool(fields.pop("reasoning_content", "")) or not given.thought
        as_given = thinks and given.content.strip() == message.text.strip()
        if given.calls and as_given:  # as the model wrote them; a template that cannot take that has the fields
            fields["content"] = message.text
        if as_given:
            kept = replace(message, text=given.text, fields=fields_text(fields))
            found.append(replace(kept, tokens=given.tokens, stats=given.stats))
        elif given.calls or given.thought:
            found.append(message)
        else:
            found.append(replace(message, tokens=given.tokens, stats=given.stats))
    return tuple(found)


def _alike(message: Message) -> Any:
    """The fields of a message without ids and nulls."""
    fields = fields_of(message)
    fields.pop("tool_call_id", None)
    if "tool_calls" in fields:
        fields["tool_calls"] = [call["function"] for call in fields["tool_calls"]]
    return _without_nulls(fields)


def _without_nulls(value: Any) -> Any:
    """The same without fields that are null, at any depth."""
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list | tuple) else value


def thought_of(message: Message) -> str:
    """The reasoning that a client sends of an answer."""
    return str(fields_of(message).get("reasoning_content", "")).strip()


def _tool_calls(given: object, at: str) -> list[dict[str, Any]]:
    """Arguments as the object that they are the text of: so templates know them."""
    wrong = invalid(f"{at}.tool_calls", "must be a list of functions with name and arguments")
    if not isinstance(given, list):
        raise wrong
    calls = []
    for one in given:
        function = obj(one).get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise wrong
        arguments = function.get("arguments", {})
        if isinstance(arguments, str):
            arguments = json_value(arguments or "{}", arguments)  # else as the model wrote it
        identity = one.get("id") if isinstance(one.get("id"), str) else ""
        calls.append(
            {"id": identity, "type": "function", "function": {"name": function["name"], "arguments": arguments}}
        )
    return calls


def _calls_of(message: Message) -> list[tuple[str, Any]]:
    """Names and arguments as values."""
    calls = fields_of(message).get("tool_calls", ())
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
