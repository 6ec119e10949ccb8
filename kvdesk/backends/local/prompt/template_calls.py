"""Finds how a chat template writes tool calls, by rendering calls that differ in one thing and comparing.

A model of a family writes calls as its template does. Knows nothing of Jinja2 and tokens.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kvdesk.backends.local.prompt.template_traits import (
    QUESTION,
    SAID,
    Render,
    TemplateTraits,
    behind_question,
    common_start,
    try_render,
)
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.call_format import GENERIC, ID, INDEX, KEY, KNOWN, NAME, CallFormat, NamedArguments, Pair
from kvdesk.loose_json import json_value
from kvdesk.reasoning import MARK
from kvdesk.values import replace

Arguments = Mapping[str, Any]

_RESULT = "Rresultr"
_NAME, _OTHER = "Nnamen", "Mmorem"
_KEY, _SECOND, _VALUE, _WORD, _NUMBER = "Kkeyk", "Llastl", "Vvaluev", "Wwordw", 73519
_IDS: Final = (("aBcD12345", "eFgH67890"), (f"functions.{_NAME}:0", f"functions.{_OTHER}:1"))
"""Ids of two calls: as Mistral's templates accept them, and with the name in them (Kimi)."""
_ONE: Final[Arguments] = {_KEY: _VALUE}


class _Call(NamedTuple):
    """Where one call's parts are in a text."""

    name: int
    name_end: int
    arguments: int
    end: int


def with_calls(traits: TemplateTraits, render: Render, source: str) -> TemplateTraits:
    """Add how the template behind `render` treats tools and calls to its traits."""
    takes_tools = _NAME in try_render(render, [_asked()], True, _TOOLS)
    known = next((form for text, form in KNOWN.items() if takes_tools and text in source), None)
    found = call_format_of(render, source)
    calls = found or known
    return replace(
        traits,
        calls=calls or GENERIC,
        takes_tools=takes_tools and calls is not None,
        writes_calls=found is not None or "tool_calls" in source,
        takes_results="tool_responses" in source and _takes_results(render),
    )


def _takes_results(render: Render) -> bool:
    """Whether results are written like messages of any role, unless they are in the message of their call."""
    call = {"id": _IDS[0][0], "type": "function", "function": {"name": _NAME, "arguments": _ONE}}
    calling = {"role": "assistant", "content": "", "tool_calls": [call]}
    alone, any_role, inside = (
        try_render(render, [_asked(), {**calling, **more}, *results], True, _TOOLS)
        for more, results in (
            ({}, [{"role": "tool", "content": _RESULT}]),
            ({}, [{"role": _WORD, "content": _RESULT}]),
            ({"tool_responses": [{"name": _NAME, "response": _RESULT}]}, []),
        )
    )
    return bool(alone) and any_role.replace(_WORD, "tool") == alone and _RESULT in inside


def call_format_of(render: Render, source: str) -> CallFormat | None:
    """The format of calls in the template behind `render`; None if it writes none."""
    if "tool" not in source:
        return None
    for ids in _IDS:
        for with_results in (False, True):
            for as_text in (False, True):
                if (found := _Probe(render, ids, with_results, as_text).format()) is not None:
                    return found
    return None


class _Probe:
    """One way to give calls to a template: with these ids, with or without results, arguments as JSON text or as an
    object.
    """

    def __init__(self, render: Render, ids: tuple[str, str], with_results: bool, as_text: bool) -> None:
        self._render, self._ids, self._with_results, self._as_text = render, ids, with_results, as_text

    def format(self) -> CallFormat | None:
        one = self._written((_NAME, _ONE))
        call = _find(one)
        if call is None:
            return None
        is_json, as_text = _json_kind(one[call.arguments : call.end])
        named = None
        if not is_json:
            if (found := self._named(one, call)) is None:
                return None
            call, named = found
        said = {"role": "assistant", "content": SAID}
        plain = behind_question(try_render(self._render, [_asked(), said], False)).partition(SAID)
        begun = behind_question(try_render(self._render, [_asked()], True, _TOOLS))
        head = self._behind_header(one[: call.name], plain[0], begun)
        middle, tail = one[call.name_end : call.arguments], _without_end(one[call.end :], plain[2])
        start, between, end = "", None, ""
        if (two := self._second(call)) is not None:
            gap, middle_2, rest = two
            rest, middle = _without_end(rest, plain[2]), _numbered(middle, middle_2)
            head = _numbered(head[::-1], gap[::-1])[::-1]
            gap = _numbered(gap[::-1], head[::-1])[::-1]
            n_head = _same_end(head, gap)
            n_tail = _same_start(tail, gap[: len(gap) - n_head])
            start, head = head[: len(head) - n_head], head[len(head) - n_head :]
            end, tail = rest[n_tail:] if rest.startswith(tail[:n_tail]) else "", tail[:n_tail]
            between = gap[n_tail : len(gap) - n_head]
        middle, tail = middle.replace(_NAME, NAME), tail.replace(_NAME, NAME)
        return CallFormat(start.lstrip(), head, middle, tail, between, end.rstrip(), named, as_text)

    @staticmethod
    def _behind_header(one: str, plain: str, begun: str) -> str:
        """What a model writes before the first name: the text without the beginning of the turn."""
        head = one[common_start(one, plain) :]
        header = begun.strip().rpartition("\n")[2]
        if header and header in head:  # preceded by an empty turn
            head = head.rpartition(header)[2]
        return one[len(begun) :] if not head.strip() and one.startswith(begun) else head

    def _second(self, call: _Call) -> tuple[str, str, str] | None:
        """For an answer with two calls: the text between the first arguments and the second name, after that name, and
        after the second arguments. None if the template does not write two calls.
        """
        text = self._written((_NAME, _ONE), (_OTHER, _ONE))
        width, gap = call.end - call.arguments, call.arguments - call.name_end
        name, other = text.find(_NAME), text.rfind(_OTHER)
        first_end = name + len(_NAME) + gap + width
        begin = other + len(_OTHER) + gap
        if min(name, other) < 0 or first_end > other or begin + width > len(text):
            return None
        return text[first_end:other], text[other + len(_OTHER) : begin], text[begin + width :]

    def _named(self, one: str, call: _Call) -> tuple[_Call, NamedArguments] | None:
        """The format of arguments that are not JSON."""
        two = self._written((_NAME, {_KEY: _VALUE, _SECOND: _WORD}))
        number = self._written((_NAME, {_KEY: _NUMBER}))
        first = _parts(one[call.name_end :], _KEY, _VALUE)
        second = _parts(two[two.find(_NAME) + len(_NAME) :], _SECOND, _WORD)
        other = _parts(number[number.find(_NAME) + len(_NAME) :], _KEY, str(_NUMBER))
        if first is None or second is None or other is None:
            return None
        before, between, behind = first
        both = second[0]
        gap = both.rpartition(_VALUE)[2]  # between the first value and the second name
        gap, behind_key = gap.replace(_KEY, KEY), behind.replace(_KEY, KEY)
        n_before = _same_end(before, gap)
        n_behind = _same_start(behind_key, gap[: len(gap) - n_before])
        string = Pair(gap[len(gap) - n_before :], between, behind_key[:n_behind])
        rest = behind_key[n_behind:]
        number_behind = other[2].replace(_KEY, KEY)
        if not number_behind.endswith(rest):
            return None
        start = before[: len(before) - n_before]
        plain = Pair(other[0][len(start) :], other[1], number_behind[: len(number_behind) - len(rest)])
        at = call.name_end + len(start)
        end = len(one) - len(behind) + len(string.behind.replace(KEY, _KEY))
        named = NamedArguments(string, plain, gap[n_behind : len(gap) - n_before], self._item(string))
        return _Call(call.name, call.name_end, at, end), named

    def _item(self, pair: Pair) -> str:
        """The name of list items if nested values are also pairs; "" if not."""
        nested = {_KEY: [_WORD, {_SECOND: _VALUE}]}
        text = self._written((_NAME, nested))
        inside = text.partition(_KEY + pair.between)[2]
        item = inside.removeprefix(pair.before).partition(pair.between)[0]
        return item if item and NamedArguments(pair, pair, item=item).written(nested) in text else ""

    def _written(self, *calls: tuple[str, Arguments]) -> str:
        given = [
            {
                "id": identity,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments) if self._as_text else arguments},
            }
            for identity, (name, arguments) in zip(self._ids, calls, strict=False)
        ]
        messages: list[Mapping[str, Any]] = [_asked(), {"role": "assistant", "content": "", "tool_calls": given}]
        if self._with_results:
            messages += [
                {"role": "tool", "content": _RESULT, "tool_call_id": identity, "name": name}
                for identity, (name, _) in zip(self._ids, calls, strict=False)
            ]
        text = behind_question(try_render(self._render, messages, False, _TOOLS))
        if _NAME not in self._ids[0]:
            for identity in self._ids:
                text = text.replace(identity, ID)
        return text


def _asked() -> Mapping[str, Any]:
    return {"role": "user", "content": QUESTION}


def _tool(name: str) -> Mapping[str, Any]:
    parameters = {"type": "object", "properties": {_KEY: {"type": "string"}, _SECOND: {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": "Ddoesd", "parameters": parameters}}


_TOOLS: Final = (_tool(_NAME), _tool(_OTHER))


def _find(text: str) -> _Call | None:
    """The single call in a text; arguments that are not JSON extend from the name to the value."""
    at = text.find(_NAME)
    behind = at + len(_NAME)
    key = text.find(_KEY, behind)
    if at < 0 or key < 0:
        return None
    decoder = json.JSONDecoder()
    for begin in range(key, behind - 1, -1):
        if text[begin] in '{"':
            try:
                value, end = decoder.raw_decode(text, begin)
            except ValueError:
                continue
            if _ONE in (value, json_value(value)):
                return _Call(at, behind, begin, end)
    value_at = text.find(_VALUE, key)
    return _Call(at, behind, behind, value_at + len(_VALUE)) if value_at > key else None


def _json_kind(text: str) -> tuple[bool, bool]:
    """Whether a text is the JSON of an object, and whether it is one inside a string."""
    value = json_value(text)
    inner = json_value(value)
    return isinstance(value, dict) or isinstance(inner, dict), isinstance(inner, dict)


def _parts(text: str, key: str, value: str) -> tuple[str, str, str] | None:
    """The text before a name, between it and its value, and after that."""
    before, found, rest = text.partition(key)
    between, also, behind = rest.partition(value)
    return (before, between, behind) if found and also else None


def _numbered(one: str, other: str) -> str:
    """The first text, with its only digit that differs from the other replaced by `INDEX`."""
    at = common_prefix(one, other)
    is_number = at < min(len(one), len(other)) and all(c == INDEX or c.isdigit() for c in (one[at], other[at]))
    return one[:at] + INDEX + one[at + 1 :] if is_number else one


def _without_end(text: str, end: str) -> str:
    """A text without its ending shared with a plain answer's end."""
    end = end.strip()
    for begin in (0, *(mark.start() for mark in MARK.finditer(end) if mark.start())):
        if end and (at := text.find(end[begin:])) >= 0:
            return text[:at]
    return text


def _same_start(one: str, other: str) -> int:
    """Number of characters both begin with, not cutting a mark."""
    n = common_prefix(one, other)
    inside = [m.start() for text in (one, other) for m in MARK.finditer(text) if m.start() < n < m.end()]
    return min([n, *inside])


def _same_end(one: str, other: str) -> int:
    """Number of characters both end with, not cutting a mark."""
    n = common_prefix(one[::-1], other[::-1])
    inside = [
        len(text) - m.end() for text in (one, other) for m in MARK.finditer(text) if m.start() < len(text) - n < m.end()
    ]
    return min([n, *inside])
