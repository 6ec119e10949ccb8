"""JSON schemas become grammars that allow what they describe; what cannot be converted is one sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.backends.local.llama.json_schema import gbnf_of
from kvdesk.errors import UserError
from kvdesk.grammar.state import GrammarState, checked

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/no_de"}, "v": {"type": "number"}}}
PERSON = {
    "type": "object",
    "properties": {
        "größe": {"type": "string", "maxLength": 1000},
        "kind": {"enum": ['a"b\\', "ü", 3]},
        "tags": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 500},
    },
    "required": ["größe", "kind", "tags"],
}


def allows(schema: object, text: str) -> bool:
    state = GrammarState(checked(gbnf_of(json.dumps(schema))), lambda _: None)
    position = state.after(1, text.encode())
    return position is not None and position.complete


@pytest.mark.parametrize(
    ("schema", "text", "wrong"),
    [
        ({}, '{"a": [1, true]}', "[1]"),
        (PERSON, '{"größe": "x","kind": "a\\"b\\\\","tags":[1,2]}', '{"größe":"x","kind":"ü","tags":[]}'),
        ({"$ref": "#/$defs/no_de", "$defs": {"no_de": NODE}}, '{"next": {"v": 1.5}}', '{"next": 1}'),
        ({"type": "string", "pattern": "^(a|b){3}\\}[x-z]{2,}$"}, '"aba}zz"', '"ab}zz"'),
        ({"anyOf": [{"type": "string", "format": "date"}, {"type": ["null", "boolean"]}]}, "null", '"x"'),
        ({"const": "x\n"}, '"x\\n"', '"x"'),
    ],
    ids=str,
)
def test_what_a_schema_describes_is_allowed(schema: dict[str, object], text: str, wrong: str) -> None:
    assert allows(schema, text)
    assert not allows(schema, wrong)


def test_references_in_each_other_are_converted_once() -> None:
    """llama-cpp-python's converter alone would take a billion steps."""
    level = {
        i: {"properties": {k: {"$ref": f"#/d/d_{i + 1}"} for k in "ab"}, "required": ["a", "b"]} for i in range(30)
    }
    definitions = {f"d_{i}": content for i, content in level.items()} | {"d_30": {"type": "null"}}
    assert len(gbnf_of(json.dumps({"$ref": "#/d/d_0", "d": definitions}))) < 20_000


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "[1",
        "3",
        "[" * 100_000,
        '{"a":' * 2000 + "1" + "}" * 2000,
        '{"type": "zzz"}',
        '{"items": {}, "minItems": 1000000000}',
        '{"items": {}, "minItems": -1}',
        '{"items": {}, "minItems": 3, "maxItems": 2}',
        '{"type": "string", "maxLength": 1e9}',
        '{"type": "string", "pattern": "^]$"}',
        '{"type": "string", "pattern": "^a{99999}$"}',
        '{"type": "string", "pattern": "^(?=a)$"}',
        '{"type": "string", "pattern": "^*$"}',
        '{"$ref": "#/d/a", "d": {"a": {"$ref": "#/d/a"}}}',
        '{"$ref": "https://example.org/schema.json"}',
        '{"$ref": "#/nowhere"}',
        json.dumps({"properties": {f"p{i}": {} for i in range(3000)}}),
    ],
    ids=lambda schema: repr(schema[:40]),
)
def test_what_cannot_be_converted_is_a_sentence(schema: str) -> None:
    with pytest.raises(UserError) as refused:
        checked(gbnf_of(schema))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 320


words = st.sampled_from(
    ["type", "properties", "items", "enum", "anyOf", "allOf", "$ref", "pattern", "required", "minItems"]
)
values = st.sampled_from(["object", "array", "string", "#", "#/items", "^a+$", 2, 0, None, True])
schemas = st.recursive(
    values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(words, schemas, max_size=4))
def test_any_schema_is_a_grammar_or_a_sentence(schema: dict[str, Any]) -> None:
    with suppress(UserError):
        assert checked(gbnf_of(json.dumps(schema))).rules
