"""Whether each request begins with the whole of the one before, as a cache needs it; else the first text that differs.

Pure: no tokens are made of texts here. Where texts are alike, tokens are; where a text goes on, a few tokens at its end
may differ.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.cache.reuse.prompt_change import change_between
from kvdesk.errors import UserError
from kvdesk.testing.prompts import Asked, Part, Request, asked_of
from kvdesk.translation import tr
from kvdesk.values import dataclass

_BEFORE: Final = 24
_AFTER: Final = 48
"""Characters that are quoted before and behind a difference."""
_GROWING: Final = frozenset({"prompt", "input", "content", "reasoning_content", "tool_calls", "arguments", "output"})
"""Fields of the last message that may go on."""
_PLACE: Final = re.compile(r"\[\d+\]$")
_TOKENS: Final = 8
"""Token ids that are quoted behind a difference."""


class CacheMiss(AssertionError):
    """A request reads again what a cache had. `str(error)` names the place, both texts and the usual cause."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two requests.

    message  its number, from 1, the system prompt included; 0: before all messages, such as in the tools
    field    its path in the body; "" of token ids
    at       the first character of the field, or the first token, that differs
    same     characters or tokens before it; of `total` that the earlier request has
    """

    message: int
    role: str
    field: str
    at: int
    before: str
    after: str
    same: int
    total: int


def assert_prefix_stable(requests: Sequence[Request]) -> None:
    """The requests of one conversation, in order. Raises CacheMiss; UserError for what cannot be compared."""
    __tracebackhide__ = True  # pytest shows the line of the test
    if len(requests) < 2:
        raise UserError(tr("A single request cannot be compared: give all requests of a conversation."))
    asked = [asked_of(request, number) for number, request in enumerate(requests, start=1)]
    for number, (one, two) in enumerate(pairwise(requests), start=1):
        if _is_same_object(one, two):
            sentence = tr("Requests {n} and {m} are the same object: keep a copy of each request as it is sent.")
            raise UserError(sentence.format(n=number, m=number + 1))
    for number, (before, after) in enumerate(pairwise(asked), start=1):
        if found := first_difference(before, after):
            raise CacheMiss(_sentences(found, before, after, number))


def _is_same_object(one: Request, two: Request) -> bool:
    """Also messages that two bodies have in common: an agent that goes on has added to both."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one is two or any(one.get(name) is two.get(name) for name in ("messages", "input") if one.get(name))
    return one is two and not isinstance(one, str | tuple)


def first_difference(before: Asked, after: Asked) -> Difference | None:
    """None if one prompt begins with the other. Raises UserError for token ids beside texts."""
    if bool(before.tokens) != bool(after.tokens):
        raise UserError(tr("Token ids and texts cannot be compared."))
    if before.tokens:
        return _token_difference(before.tokens, after.tokens)
    same, total = 0, sum(part.n_characters for part in before.parts)
    for i, (old, new) in enumerate(zip(before.parts, after.parts, strict=False)):
        if old.role != new.role:
            return Difference(i, new.role, f"{new.path}.role", 0, old.role, new.role, same, total)
        goes_on = i > 0 and i == len(before.parts) - 1
        begins = i > 0 and i == len(after.parts) - 1
        if found := _field_difference(old, new, goes_on=goes_on, begins=begins):
            field, at = found
            texts = old.fields.get(field, ""), new.fields.get(field, "")
            alike = [text for name, text in old.fields.items() if name != field and new.fields.get(name) == text]
            return Difference(i, new.role, field, at, *texts, same + sum(map(len, alike)) + at, total)
        same += old.n_characters
    return None


def _token_difference(old: tuple[int, ...], new: tuple[int, ...]) -> Difference | None:
    at = common_prefix(old, new)
    if at == min(len(old), len(new)):
        return None
    before, after = (" ".join(map(str, tokens[at : at + _TOKENS])) for tokens in (old, new))
    return Difference(0, "", "", at, before, after, at, len(old))


def _field_difference(old: Part, new: Part, *, goes_on: bool, begins: bool) -> tuple[str, int] | None:
    """Path and first character. goes_on: a text that grows may be longer in the new part; begins: shorter."""
    for field in dict.fromkeys((*old.fields, *new.fields)):
        one, two = old.fields.get(field, ""), new.fields.get(field, "")
        grows = _PLACE.sub("", field).rpartition(".")[2] in _GROWING
        if one == two or (grows and ((goes_on and two.startswith(one)) or (begins and one.startswith(two)))):
            continue
        return field, common_prefix(one, two)
    return None


def _sentences(found: Difference, before: Asked, after: Asked, number: int) -> str:
    if before.tokens:
        first = tr("Request {m} does not begin with request {n}: token {at:,} of {total:,} is the first that differs.")
        head = first.format(n=number, m=number + 1, at=found.at, total=found.total)
        texts = found.before, found.after
    else:
        first = tr("Request {m} does not begin with request {n}: {same:,} of {total:,} characters are the same.")
        where = tr("The first difference is in {field}, at character {at:,}")
        head = first.format(n=number, m=number + 1, same=found.same, total=found.total) + "\n"
        head += where.format(field=found.field, at=found.at)
        head += tr(" (message {n}, {role}):").format(n=found.message, role=found.role) if found.message else ":"
        texts = quoted(found.before, found.at), quoted(found.after, found.at)
    lines = [head]
    for n, text in zip((number, number + 1), texts, strict=True):
        lines.append(tr("  request {n}: {text}").format(n=n, text=text or tr("(nothing)")))
    if before.prompt and after.prompt and (sentence := change_between(before.prompt, after.prompt).sentence):
        lines.append(sentence)
    return "\n".join(lines)


def quoted(text: str, at: int) -> str:
    """What is around a character, on one line; "" if the text has nothing there and nothing before."""
    part = text[max(0, at - _BEFORE) : at + _AFTER]
    left, right = "…" if at > _BEFORE else "", "…" if at + _AFTER < len(text) else ""
    return f"{left}{part!r}{right}" if part else ""
