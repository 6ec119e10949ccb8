"""A request of an agent as named parts, in the order in which a prompt has them.

Pure. Takes the bodies of OpenAI's and Anthropic's protocols, messages alone, rendered texts and token ids. Leaves out
what no prompt has: ids of messages, and marks of where a provider shall cache.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from kvdesk.cache.reuse.prompt_change import Prompt, prompt_of_json
from kvdesk.errors import UserError
from kvdesk.loose_json import obj
from kvdesk.translation import tr
from kvdesk.values import dataclass

Request = Mapping[str, Any] | Sequence[Any] | str
"""A request body, messages, a rendered prompt, or token ids. Objects with `model_dump`, such as the messages of the
package openai, count as what they dump.
"""
_HEAD: Final = ("model", "chat_template_kwargs", "tools", "functions", "documents")
_SYSTEM: Final = ("system", "instructions")
_MESSAGES: Final = ("messages", "input", "prompt")
_NO_PROMPT: Final = frozenset({"id", "status", "annotations", "cache_control"})


@dataclass(frozen=True, slots=True)
class Part:
    """A message: who says it, and its fields with their texts by path ("messages[0].content"). The first part of a
    request is no message: it has what precedes all of them, such as tools.
    """

    role: str
    path: str
    fields: Mapping[str, str]

    @property
    def n_characters(self) -> int:
        return sum(map(len, self.fields.values()))


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. tokens: of a prompt that is given as such, which has no parts then; prompt: as causes are found in."""

    body: Mapping[str, Any]
    parts: tuple[Part, ...] = ()
    tokens: tuple[int, ...] = ()
    prompt: Prompt | None = None


def asked_of(request: Request, number: int) -> Asked:
    """Raises UserError, with the number of the request, for what is none."""
    body = _body(_plain(request))
    name = next((name for name in _MESSAGES if body.get(name)), "")
    given = body.get(name)
    if isinstance(given, list) and _is_tokens(given):
        return Asked(body, tokens=tuple(given))
    if not isinstance(given, str) and not (isinstance(given, list) and all(isinstance(one, dict) for one in given)):
        sentence = tr("Request {n} is neither a request body nor messages, a text or token ids.")
        raise UserError(sentence.format(n=number))
    system = next((field for field in _SYSTEM if body.get(field)), "")
    known = {**body, "system": body.get(system)} if system else body
    return Asked(body, tuple(_parts(body, system, name)), prompt=prompt_of_json(known))


def _body(request: Any) -> Mapping[str, Any]:
    if isinstance(request, dict):
        return request
    return {"prompt" if isinstance(request, str) or _is_tokens(request) else "messages": request}


def _is_tokens(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(type(one) is int for one in value)


def _plain(value: Any) -> Any:
    """Objects as what they dump, at any depth, without what no prompt has."""
    if isinstance(value, str | int | float | None):
        return value
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items() if name != "cache_control"}
    return [_plain(part) for part in value] if isinstance(value, Sequence) else value


def _parts(body: Mapping[str, Any], system: str, name: str) -> Iterator[Part]:
    yield Part("", "", dict(_head(body)))
    if system:
        yield Part("system", system, dict(_content(body[system], system)))
    given = body[name]
    if isinstance(given, str):
        yield Part("", name, {name: given})
        return
    for i, message in enumerate(given):
        path = f"{name}[{i}]"
        yield Part(str(message.get("role", message.get("type", ""))), path, dict(_fields(message, path)))


def _head(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in _HEAD:
        value = body.get(name)
        for i, one in enumerate(value if isinstance(value, list) else ()):
            yield f"{name}[{i}]", _text(one)
        if value and not isinstance(value, list):
            yield name, _text(value)


def _fields(message: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, value in message.items():
        if name == "content":
            yield from _content(value, f"{path}.content")
        elif name not in _NO_PROMPT and name != "role" and value not in (None, "", [], {}):
            yield f"{path}.{name}", _text(value)


def _content(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """The text, also where it comes in blocks; then each block behind those, by its place."""
    blocks = value if isinstance(value, list) else [{"text": _text(value)}] if value else []
    texts = list(takewhile(lambda text: isinstance(text, str), map(_block_text, blocks)))
    if texts:
        yield path, "\n".join(map(str, texts))
    for i, block in enumerate(blocks[len(texts) :], start=len(texts)):
        yield f"{path}[{i}]", _block_text(block) or _text(block)


def _block_text(block: Any) -> str | None:
    text = obj(block).get("text")
    return text if isinstance(text, str) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
