"""The grammar of calls of tools, in GBNF, from the form in which a family writes them and the schemas of the tools."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvdesk.call_format import ID, INDEX, KEY, NAME, CallFormat, NamedArguments, Pair, referred, takes_text
from kvdesk.errors import SchemaError
from kvdesk.grammar.gbnf import ROOT
from kvdesk.grammar.json_schema import gbnf_of
from kvdesk.grammar.schema_parts import Part, counts
from kvdesk.loose_json import obj

_PARTS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(?<![\w-])[A-Za-z][\w-]*')
_SLOTS: Final = re.compile(f"([{ID}{INDEX}])")
_SLOT_RULES: Final = {ID: "[a-zA-Z0-9]{9}", INDEX: "[0-9]{1,4}"}
_ANY: Final = {"type": "object"}
_DEFS: Final = ("$defs", "definitions")


def grammar_of_calls(
    form: CallFormat, tools: Sequence[Mapping[str, Any]], *, several: bool = True, blanks: bool = True
) -> str:
    """The grammar of an answer that calls one of these tools, or several, and says nothing else.

    tools   as the protocol has them: functions with name and parameters
    blanks  it may begin with some

    Raises SchemaError if one of them has parameters that no grammar can follow.
    """
    rules = _Rules(form)
    calls = [rules.call(i, tool["function"]) for i, tool in enumerate(tools)]
    rules.add("call", " | ".join(calls))
    root = ["[ \\n]{0,4}"] if blanks else []
    root.append(_literal((form.start + _lead(form)).lstrip()))
    root.append("call")
    if several and form.between is not None:
        root.append(f"( {_literal(form.between + _lead(form))} call )*")
    root.append(_literal(form.end))
    rules.add(ROOT, " ".join(part for part in root if part))
    return rules.text()


def _lead(form: CallFormat) -> str:
    """Of the head, blanks that may be left out at the beginning."""
    return form.head[: len(form.head) - len(form.head.lstrip())]


class _Rules:
    def __init__(self, form: CallFormat) -> None:
        self._form = form
        self._bodies: dict[str, str] = {}
        self._whole: Mapping[str, Any] = {}  # the schema of the tool at hand
        self._referred: dict[str, str] = {}  # rules of what it refers to

    def add(self, name: str, body: str) -> str:
        self._bodies[name] = body
        return name

    def text(self) -> str:
        return "".join(f"{name} ::= {body}\n" for name, body in self._bodies.items())

    def call(self, number: int, function: Mapping[str, Any]) -> str:
        form, name, prefix = self._form, str(function["name"]), f"t{number}"
        schema = function.get("parameters")
        schema = schema if isinstance(schema, dict) and schema else _ANY
        self._whole, self._referred = schema, {}
        if form.named is not None:
            arguments = self._named(prefix, form.named, schema)
        elif form.as_text:
            arguments = self._schema(prefix, {"type": "string"})
        else:
            arguments = self._schema(prefix, {"type": "object", **schema})
        before = _literal(form.head.lstrip() + name + form.middle.replace(NAME, name))
        return self.add(prefix, " ".join(part for part in (before, arguments, _literal(form.tail)) if part))

    def _schema(self, prefix: str, schema: Any) -> str:
        """A rule of the JSON that a schema describes."""
        try:
            text = gbnf_of(json.dumps(schema))
        except SchemaError as error:
            raise SchemaError(str(error), error.place) from None

        def renamed(found: re.Match[str]) -> str:
            part = found[0]
            return part if part[0] in '"[' else f"{prefix}-{part}"

        for line in text.splitlines():
            if line.strip():
                name, _, body = line.partition("::=")
                self.add(f"{prefix}-{name.strip()}", _PARTS.sub(renamed, body.strip()))
        return f"{prefix}-{ROOT}"

    def _named(self, prefix: str, named: NamedArguments, schema: Mapping[str, Any]) -> str:
        """Arguments one by one in the order of the schema, those that are not required left out or not."""
        properties = obj(schema.get("properties"))
        required = schema.get("required") if isinstance(schema.get("required"), list) else []
        first, behind = f"{prefix}-none", f"{prefix}-none"
        self.add(first, '""')
        for number, (key, inner) in reversed(list(enumerate(properties.items()))):
            pair = self._pair(f"{prefix}p{number}", named, str(key), inner)
            is_needed = key in (required or ())
            separated = " ".join(part for part in (_literal(named.separator), pair) if part)
            new_first = f"{prefix}-f{number}"
            new_behind = f"{prefix}-b{number}"
            self.add(new_first, f"{pair} {behind}" + ("" if is_needed else f" | {first}"))
            self.add(new_behind, f"{separated} {behind}" + ("" if is_needed else f" | {behind}"))
            first, behind = new_first, new_behind
        return first

    def _pair(self, prefix: str, named: NamedArguments, key: str, schema: Any) -> str:
        schema = obj(schema)
        plain = referred(schema, self._whole) if named.item else schema
        is_text = takes_text(plain)
        texts = [one for one in plain.get("enum") or () if isinstance(one, str)] if is_text else []
        pair: Pair = named.string if is_text else named.other
        before = _literal(pair.before + key + pair.between)
        behind = pair.behind.replace(KEY, key)
        if texts:
            value = f"( {' | '.join(map(_literal, texts))} ) {_literal(behind)}"
        elif is_text:
            value = self._until(f"{prefix}-text", behind)
        else:
            value = f"{self._value(prefix, named, schema)} {_literal(behind)}"
        return self.add(prefix, f"{before} {value}".strip())

    def _value(self, prefix: str, named: NamedArguments, schema: Mapping[str, Any]) -> str:
        """A value that is no text: JSON, or pairs inside pairs."""
        ref = schema.get("$ref")
        if not named.item or not isinstance(ref, str):
            return self._nested(prefix, named, schema)
        if ref not in self._referred:
            rule = self._referred[ref] = f"{prefix}-referred"
            self.add(rule, self._nested(rule, named, referred(schema, self._whole)))
        return self._referred[ref]

    def _nested(self, prefix: str, named: NamedArguments, schema: Mapping[str, Any]) -> str:
        kind = schema.get("type") if named.item else None
        if kind == "object" and schema.get("properties"):
            return self._named(f"{prefix}o", named, schema)
        if kind == "array" and isinstance(schema.get("items"), dict):
            item = self._pair(f"{prefix}i", named, named.item, schema["items"])
            least, most = counts((Part(schema),), "minItems", "maxItems")
            return f"{item}{{{least or 0},{'' if most is None else most}}}"
        return self._schema(prefix, {**{name: self._whole[name] for name in _DEFS if name in self._whole}, **schema})

    def _until(self, prefix: str, end: str) -> str:
        """Any text and the first `end`: states of Knuth, Morris and Pratt's automaton, one rule each."""
        fail = [0] * (len(end) + 1)
        for i in range(1, len(end)):
            k = fail[i]
            while k and end[i] != end[k]:
                k = fail[k]
            fail[i + 1] = k + (end[i] == end[k])
        for state in range(len(end)):
            targets = {}
            for char in sorted(set(end)):
                k = state
                while k and end[k] != char:
                    k = fail[k]
                targets[char] = k + (end[k] == char)
            choices = [f"[^{''.join(map(_in_class, sorted(set(end))))}] {prefix}-0"]
            for char, target in targets.items():
                rest = "" if target == len(end) else f" {prefix}-{target}"
                choices.append(_literal(char) + rest)
            self.add(f"{prefix}-{state}", " | ".join(choices))
        return f"{prefix}-0"


def _literal(text: str) -> str:
    """Symbols of a literal, with slots; "" for none."""
    parts = []
    for part in _SLOTS.split(text):
        if part in _SLOT_RULES:
            parts.append(_SLOT_RULES[part])
        elif part:
            quoted = part.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
            parts.append('"' + quoted.replace("\t", "\\t") + '"')
    return " ".join(parts)


def _in_class(char: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char, f"\\{char}" if char in "\\]-^[" else char)
