"""The grammar of calls of tools, in GBNF, from the form in which a family writes them and the schemas of the tools."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvdesk.call_format import ID, INDEX, KEY, NAME, CallFormat, NamedArguments, Pair, referred, takes_text
from kvdesk.errors import SchemaError
from kvdesk.grammar.gbnf import ROOT
from kvdesk.grammar.json_rules import PRIMITIVES
from kvdesk.grammar.json_schema import gbnf_of
from kvdesk.grammar.schema_parts import Part, counts
from kvdesk.loose_json import obj

_PARTS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(?<![\w-])[A-Za-z][\w-]*')
_SLOTS: Final = re.compile(f"([{ID}{INDEX}])")
_SLOT_RULES: Final = {ID: "[a-zA-Z0-9]{9}", INDEX: "[0-9]{1,4}"}
_ANY: Final = {"type": "object"}
_DEFS: Final = ("$defs", "definitions")


def grammar_of_calls(
    form: CallFormat, tools: Sequence[Mapping[str, Any]], *, several: bool = True, blanks: bool = True, schema: str = ""
) -> str:
    """The grammar of an answer that calls one of these tools, or several, and says nothing else. A part of their
    parameters that no grammar can follow may be anything: one tool of many, from a program that the person did not
    write, must not keep all answers from being written.

    tools   as the protocol has them: functions with name and parameters
    blanks  it may begin with some
    schema  JSON schema of an answer that calls nothing; "": it calls

    Raises SchemaError if no grammar can follow `schema`.
    """
    rules = _Rules(form)
    calls = [rules.call(i, tool["function"]) for i, tool in enumerate(tools)]
    rules.add("call", " | ".join(calls))
    parts = [_literal((form.start + _lead(form)).lstrip()), "call"]
    if several and form.between is not None:
        parts.append(f"( {_literal(form.between + _lead(form))} call )*")
    parts.append(_literal(form.end))
    body = " ".join(part for part in parts if part)
    if schema:
        body = f"( {body} | {rules.described('answer', gbnf_of(schema))} )"
    rules.add(ROOT, f"[ \\n]{{0,4}} {body}" if blanks else body)
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
            arguments = self._schema(prefix, _loosened({"type": "object", **schema}))
        before = _literal(form.head.lstrip() + name + form.middle.replace(NAME, name))
        return self.add(prefix, " ".join(part for part in (before, arguments, _literal(form.tail)) if part))

    def _schema(self, prefix: str, schema: Any) -> str:
        """A rule of the JSON that a schema describes; of any value where no grammar can follow it."""
        return self.described(prefix, _followed(schema) or gbnf_of("true"))

    def described(self, prefix: str, grammar: str) -> str:
        """The root of another grammar, whose rules come in: those that are the same in each once."""

        def renamed(found: re.Match[str]) -> str:
            part = found[0]
            return part if part[0] in '"[' or part in PRIMITIVES else f"{prefix}-{part}"

        for line in grammar.splitlines():
            if line.strip():
                name, _, body = line.partition("::=")
                self.add(_PARTS.sub(renamed, name.strip()), _PARTS.sub(renamed, body.strip()))
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
            try:
                least, most = counts((Part(schema),), "minItems", "maxItems")
            except SchemaError:
                least, most = None, None
            return f"{item}{{{least or 0},{'' if most is None else most}}}"
        return self._schema(prefix, {**_defs(self._whole), **schema} or True)  # nothing at all would mean an object

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


def _loosened(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of arguments, in which a property that no grammar can follow may be anything."""
    if _followed(schema):
        return schema
    properties = {
        name: inner if _followed({**_defs(schema), "properties": {name: inner}}) else True
        for name, inner in obj(schema.get("properties")).items()
    }
    found = {**schema, "properties": properties}
    return found if _followed(found) else _ANY


def _followed(schema: Any) -> str:
    """The grammar of the JSON that a schema describes; "" if none can follow it."""
    try:
        return gbnf_of(json.dumps(schema))
    except SchemaError:
        return ""


def _defs(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the parts of a schema may refer to."""
    return {name: schema[name] for name in _DEFS if name in schema}


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
