"""How the models of a family write calls of tools: a value that prompt, parser and grammar share. No Qt, no engine."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from kvdesk.loose_json import obj
from kvdesk.reasoning import MARK
from kvdesk.values import dataclass, replace

ID: Final = "\x00"
"""In a literal: where the id of the call is."""
INDEX: Final = "\x01"
"""In a literal: where the number of the call is."""
KEY: Final = "\x02"
"""In a literal: where the name of the argument is once more."""
NAME: Final = "\x03"
"""In a literal: where the name of the tool is once more."""
_MOST_REFERENCES: Final = 10
"""From one schema to the next."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Literals of one named argument: `before` NAME `between` VALUE `behind`."""

    before: str
    between: str
    behind: str


@dataclass(frozen=True, slots=True)
class NamedArguments:
    """Arguments that are written one by one.

    string     of a text, which is written as it is
    other      of any other value, which is written as JSON
    separator  between two
    item       name of each item of a list, where lists and objects are pairs inside pairs; "": they are JSON
    """

    string: Pair
    other: Pair
    separator: str = ""
    item: str = ""

    def written(self, arguments: Mapping[str, Any]) -> str:
        """As a model writes them."""
        return self.separator.join(self._pair(key, value) for key, value in arguments.items())

    def _pair(self, key: str, value: Any) -> str:
        pair = self.string if isinstance(value, str) else self.other
        return f"{pair.before}{key}{pair.between}{self._value(value)}{pair.behind.replace(KEY, key)}"

    def _value(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if self.item and isinstance(value, dict | list):
            pairs = value.items() if isinstance(value, dict) else ((self.item, one) for one in value)
            return "".join(self._pair(key, one) for key, one in pairs)
        return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class CallFormat:
    """`start`, calls with `between` between them, `end`. A call is `head` NAME `middle` ARGUMENTS `tail`.

    between    None: an answer has one call at most
    as_text    the arguments are a JSON string that has their JSON
    named      None: the arguments are one JSON object
    """

    start: str
    head: str
    middle: str
    tail: str
    between: str | None
    end: str
    named: NamedArguments | None = None
    as_text: bool = False

    @property
    def texts(self) -> frozenset[str]:
        """Marks in the literals, which may be control tokens."""
        return _marks_of(self)

    @property
    def opening(self) -> str:
        """What shows that calls begin: up to the last mark before a name; "" if only the name does."""
        before = re.split(f"[{ID}{INDEX}{KEY}{NAME}]", (self.start + self.head).strip())[0]
        marks = [mark.end() for mark in MARK.finditer(before)]
        if marks:
            return before[: marks[-1]]
        return "{" if before.startswith("{") else before

    def without(self, ends: Collection[str]) -> CallFormat:
        """The form without the tokens that end an answer, and what is after them."""
        tail, end = (_before(part, ends) for part in (self.tail, self.end))
        between = self.between
        if between is not None and _before(between, ends) != between:
            between = None
        return replace(self, tail=tail, end=end if tail == self.tail else "", between=between)

    def written(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Calls as a model writes them: names, and arguments."""
        if not calls:
            return ""
        parts = [self._written(name, arguments, i) for i, (name, arguments) in enumerate(calls)]
        return (self.start + (self.between or "").join(parts) + self.end).strip()

    def _written(self, name: str, arguments: Mapping[str, Any], index: int) -> str:
        if self.named is None:
            given = json.dumps(arguments, ensure_ascii=False)
            given = json.dumps(given, ensure_ascii=False) if self.as_text else given
        else:
            given = self.named.written(arguments)
        whole = f"{self.head}{name}{self.middle}{given}{self.tail}"
        return whole.replace(NAME, name).replace(INDEX, str(index)).replace(ID, f"call{index:05}")


@lru_cache(maxsize=16)
def _marks_of(form: CallFormat) -> frozenset[str]:
    pairs = () if form.named is None else (form.named.string, form.named.other)
    inner = [part for pair in pairs for part in (pair.before, pair.between, pair.behind)]
    literals = (form.start, form.head, form.middle, form.tail, form.between or "", form.end, *inner)
    return frozenset(mark for literal in literals for mark in MARK.findall(literal))


def _before(text: str, ends: Collection[str]) -> str:
    at = min((found for end in ends if end and (found := text.find(end)) >= 0), default=len(text))
    return text[:at]


GENERIC: Final = CallFormat("", '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", "\n", "")
"""For templates that know no tools: as Hermes 2 Pro and Qwen write calls. The system prompt tells the model of it."""
_PYTHON: Final = NamedArguments(Pair("", '="', '"'), Pair("", "=", ""), ", ")
_LFM2: Final = CallFormat("<|tool_call_start|>[", "", "(", ")", ", ", "]<|tool_call_end|>", _PYTHON)
KNOWN: Final[Mapping[str, CallFormat]] = {
    "<|tool_list_start|>": _LFM2,
    "List of tools: [": _LFM2,
    "<|tool_call|>": CallFormat("<|tool_call|>[", '{"name": "', '", "arguments": ', "}", ", ", "]"),
}
"""Of families whose template describes tools and leaves the calls in the text, by a text of their templates: LFM2
(Liquid's model card), Granite 3 (IBM's)."""
TOLD: Final = (
    "# Tools\n\nYou may call one or more of these functions to help with the user's query. Each line is the JSON "
    "schema of one:\n<tools>\n{tools}\n</tools>\n\n"
    "To call a function, write its name and arguments exactly like this:\n{example}"
)
"""What the system prompt says of tools where the template knows none."""
RESULT: Final = "<tool_response>\n{result}\n</tool_response>"


def takes_text(schema: Any) -> bool:
    """Whether the values of a JSON schema are texts and nothing else: these are written as they are."""
    if not isinstance(schema, dict):
        return False
    choices = schema["enum"] if isinstance(schema.get("enum"), list) else []
    return schema.get("type") in ("string", ["string"]) or (
        bool(choices) and all(isinstance(choice, str) for choice in choices)
    )


def referred(schema: Any, whole: Mapping[str, Any]) -> Any:
    """The schema that `$ref` names in the whole one; itself without a reference, or with one that leads nowhere."""
    found = schema
    for _ in range(_MOST_REFERENCES):
        ref = obj(found).get("$ref")
        if not isinstance(ref, str):
            return found
        found = whole
        for part in ref.removeprefix("#/").split("/"):
            found = obj(found).get(part)
        if not isinstance(found, dict):
            break
    return schema
