"""JSON schemas become grammars that allow what they describe; what cannot be one is a sentence with its place."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from kvdesk.errors import SchemaError, UserError
from kvdesk.grammar.json_schema import gbnf_of
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
EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"  # of Zod


def allows_text(schema: object, text: str) -> bool:
    state = GrammarState(checked(gbnf_of(json.dumps(schema))), lambda _: None)
    position = state.after(1, text.encode())
    return position is not None and position.complete


def allows(schema: object, value: object) -> bool:
    return allows_text(schema, json.dumps(value, ensure_ascii=False))


def of_text(**keywords: object) -> dict[str, object]:
    return {"type": "string", **keywords}


def of_object(*required: str, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required)}


ANY: tuple[object, ...] = ({"a": [1.5, None]}, [], 'x\n"', 3, -0.5e-7, False, None)
INTEGER: dict[str, Any] = {"type": "integer"}
TEXT: dict[str, Any] = {"type": "string"}
EXAMPLES: tuple[tuple[object, tuple[object, ...], tuple[object, ...]], ...] = (
    # what is any value, and what is any object
    ({}, ({"a": [1, True]}, {}), ([1], "x", 1)),
    (True, ANY, ()),
    ({"description": "any"}, ANY, ()),
    ({"title": "X", "default": None, "examples": [3]}, ANY, ()),
    (of_object("x", x=True), tuple({"x": value} for value in ANY), ({}, [1])),
    (of_object("x", x={}), tuple({"x": value} for value in ANY), ({},)),
    ({"type": "array", "items": {"title": "any"}}, (list(ANY), []), ({}, 1)),
    ({"not": {"type": "string"}}, ANY, ()),
    (of_object("x", x={"not": {"type": "string"}}), ({"x": 1},), ({},)),
    # types
    ({"type": "boolean"}, (True, False), (None, 0)),
    ({"type": ["null", "integer"]}, (None, 12, -3, 0), ("x", 1.5, True)),
    ({"type": "number"}, (1, -1.5, 2e-10, 0.1, 1e22), ("1", None)),
    ({"minimum": 2}, (2, 3.5), ("x",)),
    ({"enum": ['a"b\\', "ü", 3, None, {"x": [1]}]}, ('a"b\\', "ü", 3, None, {"x": [1]}), ("a", 4, {"x": [2]})),
    ({"type": ["string", "null"], "enum": ["a", None, 3]}, ("a", None), (3,)),
    ({"const": "x\n"}, ("x\n",), ("x",)),
    # choices, and schemas that count together
    ({"anyOf": [of_text(format="date"), {"type": ["null", "boolean"]}]}, (None, "2026-02-03", True), ("x", 1)),
    ({"oneOf": [INTEGER, {"type": "number"}]}, (1, 1.5), ("1",)),
    ({"allOf": [of_object("a", a=INTEGER), of_object("b", b=TEXT)]}, ({"a": 1, "b": "x"},), ({"a": 1}, {"b": "x"})),
    (
        {**of_object(a=INTEGER, b=INTEGER), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ({"a": 1}, {"b": 1}, {"a": 1, "b": 2}),
        ({}, {"a": "x"}),
    ),
    ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": INTEGER}, "description": "x"}, (1,), ("x",)),
    ({"allOf": [of_text(pattern="^a"), {"pattern": "z$"}]}, ("az", "abz"), ("ab", "bz")),
    ({"allOf": [{"type": ["string", "integer"]}, {"type": ["number", "null"]}]}, (1,), ("x", None, 1.5)),
    # objects
    (PERSON, ({"größe": "x", "kind": 'a"b\\', "tags": [1, 2]},), ({"größe": "x", "kind": "ü", "tags": []},)),
    (
        of_object("b", a=INTEGER, b=INTEGER, c=INTEGER),
        ({"b": 1}, {"a": 1, "b": 2}, {"b": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}),
        ({}, {"a": 1}, {"a": 1, "c": 2}, {"b": 1, "a": 2}, {"b": 1, "d": 2}),
    ),
    (of_object(a=INTEGER, b=INTEGER), ({}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}), ({"b": 1, "a": 1}, {"c": 1})),
    ({"type": "object", "required": ["a"]}, ({"a": 1}, {"a": None, "b": "x"}), ({}, {"b": 1})),
    ({"type": "object", "additionalProperties": INTEGER}, ({}, {"a": 1, "b": 2}), ({"a": "x"},)),
    ({"type": "object", "additionalProperties": False}, ({},), ({"a": 1},)),
    (
        {**of_object("ab", ab=TEXT), "additionalProperties": INTEGER},
        ({"ab": "x"}, {"ab": "x", "a": 1, "abc": 2}),
        ({"ab": "x", "a": "y"}, {"a": 1}),
    ),
    ({"patternProperties": {"^x-": INTEGER}, "additionalProperties": False}, ({}, {"x-a": 1}), ({"a": 1}, {"x-a": ""})),
    ({"propertyNames": {"enum": ["a", "b"]}, "additionalProperties": INTEGER}, ({"a": 1, "b": 2},), ({"c": 1},)),
    # arrays
    ({"items": INTEGER, "minItems": 2, "maxItems": 3}, ([1, 2], [1, 2, 3]), ([], [1], [1, 2, 3, 4], ["x", "y"])),
    ({"items": INTEGER, "maxItems": 0}, ([],), ([1],)),
    ({"items": INTEGER, "maxItems": 3000}, ([], [1] * 2500), (["x"],)),
    ({"prefixItems": [INTEGER, TEXT]}, ([1, "x"],), (["x", 1], [1], [1, "x", 2])),
    ({"prefixItems": [INTEGER, TEXT], "items": {"type": "null"}, "minItems": 1}, ([1], [1, "x", None]), ([], [None])),
    ({"items": [INTEGER, TEXT], "additionalItems": False}, ([1, "x"],), ([1],)),
    # texts
    (of_text(minLength=2, maxLength=3), ("ab", 'a"b', "🙂é"), ("", "a", "abcd", 12)),
    (of_text(maxLength=4000), ("x" * 5000,), ()),
    (of_text(maxLength=2.0), ("xy",), ("xyz",)),
    (of_text(pattern="^(a|b){3}\\}[x-z]{2,}$"), ("aba}zz",), ("ab}zz", "aba}z")),
    (of_text(pattern=r"^\d{3}-\w+\s\D\W\S$"), ("123-a_b x-y",), ("12-a x-y", "123-a xay")),
    (of_text(pattern="b+"), ("b", "abc", "xbbx\n"), ("", "ac")),
    (of_text(pattern="^a|b$"), ("ax", "xb"), ("xbx",)),
    (of_text(pattern="^$"), ("",), ("x",)),
    (of_text(pattern=r"^[^\s\"]{2}\\\u00e9$"), ("ab\\é",), ('a"\\é', "a \\é")),
    (of_text(pattern=r"^(?<year>\d\d)(?:x|)\.$"), ("12x.", "12."), ("12xx.", "12xy")),
    (of_text(pattern="^.+$"), ("x", "é"), ("", "a\nb")),
    (of_text(pattern="^a{2,99999}$"), ("aa", "a" * 3000), ("a",)),
    (of_text(pattern="^]}{$"), ("]}{",), ("]",)),
    (of_text(pattern=EMAIL), ("a.b@c.de",), ("a.b", "@c.de")),
    (of_text(pattern=r"^(a|b)\1$"), ("aa", "bb"), ("xa",)),
    (of_text(pattern=r"^\bx\b$"), ("x",), ("xx",)),
    (of_text(pattern="(?i)abc"), ("ABC",), (1,)),
    (of_text(pattern="^(a{1,60}b?){1,60}$"), ("ab",), (1,)),  # too many states: any text
    (of_text(pattern="^[a-z]*$", minLength=2, maxLength=3), ("ab", "abc"), ("a", "abcd", "A1")),
    (of_text(format="date"), ("2026-12-31",), ("2026-13-01", "x")),
    (of_text(format="time"), ("23:59:59Z", "01:02:03.5+01:30"), ("24:00:00Z", "01:02:03")),
    (of_text(format="date-time"), ("2026-12-31T23:59:59.123Z",), ("2026-12-31",)),
    (of_text(format="uuid"), ("01234567-89ab-cdef-0123-456789abcdef",), ("0123",)),
    (of_text(format="email"), ("anything",), (1,)),
    # numbers
    ({"type": "integer", "minimum": 3, "maximum": 120}, (3, 9, 10, 99, 100, 120), (2, 121, -3, 1000, 300)),
    ({"type": "integer", "minimum": -12, "exclusiveMaximum": 0}, (-12, -1), (0, -13, 1)),
    ({"type": "integer", "exclusiveMinimum": 17.5}, (18, 999, 10**12), (17, 1, -20)),
    ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, (6,), (5,)),
    ({"type": "integer", "minimum": -(2**53), "maximum": 2**53}, (0, -5, 2**53), (1.5,)),
    ({"type": "number", "minimum": 0, "maximum": 1}, (0, 0.25, 1), ("x",)),
    # references
    (
        {"$ref": "#/$defs/no_de", "$defs": {"no_de": NODE}},
        ({"next": {"v": 1.5}}, {"next": {"next": {}}}),
        ({"next": 1},),
    ),
    ({"type": "array", "items": {"anyOf": [{"$ref": "#"}, INTEGER]}}, ([1, [2, [3]]],), ([None],)),
    ({"$ref": "#/a%20b/1", "a b": [True, TEXT]}, ("x",), (1,)),
    (
        {
            "allOf": [{"$ref": "#/$defs/a"}, of_object("y", y=INTEGER)],
            "$defs": {"a": of_object("x", x=TEXT, n={"$ref": "#"})},
        },
        ({"x": "a", "y": 3}, {"x": "a", "n": {"x": "b", "y": 1}, "y": 2}),
        ({"x": "a"}, {"x": "a", "n": {"x": "b"}, "y": 2}),
    ),
)


@pytest.mark.parametrize(("schema", "right", "wrong"), EXAMPLES, ids=lambda part: repr(part)[:40])
def test_what_a_schema_describes_is_allowed_and_nothing_else(
    schema: object, right: tuple[object, ...], wrong: tuple[object, ...]
) -> None:
    for value in right:
        assert allows(schema, value), value
    for value in wrong:
        assert not allows(schema, value), value


@pytest.mark.parametrize("text", ['{"a":1,"b":[1,2]}', '{ "a" : 1,\n    "b": [\n        1,\n        2\n    ]\n}'])
def test_blanks_are_free_within_bounds(text: str) -> None:
    schema = of_object("a", "b", a=INTEGER, b={"type": "array", "items": INTEGER})
    assert allows_text(schema, text)
    assert not allows_text(schema, text + " ")
    assert not allows_text(schema, text.replace(":", ":   "))


def test_a_text_may_be_escaped_but_is_always_a_text() -> None:
    assert allows_text(TEXT, '"\\u00e9 \\ud83d\\ude00 \\/ \\n"')
    assert allows_text(of_text(maxLength=1), '"\\ud83d\\ude00"')
    for wrong in ('"\\ud83d"', '"\\ude00"', '"\n"', '"\\x"', '"a'):
        assert not allows_text(TEXT, wrong)


def test_references_in_each_other_are_converted_once() -> None:
    level = {
        i: {"properties": {k: {"$ref": f"#/d/d_{i + 1}"} for k in "ab"}, "required": ["a", "b"]} for i in range(30)
    }
    definitions = {f"d_{i}": content for i, content in level.items()} | {"d_30": {"type": "null"}}
    assert len(gbnf_of(json.dumps({"$ref": "#/d/d_0", "d": definitions}))) < 20_000


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ("", ""),
        ("[1", ""),
        ("3", ""),
        ('{"minimum": NaN}', ""),
        ("[" * 100_000, ""),
        ('{"items":' * 2000 + "1" + "}" * 2000, ""),
        ('{"properties": {"a b": {"type": "zzz"}}}', "properties.a b.type"),
        ('{"type": []}', "type"),
        ("false", ""),
        ('{"properties": {"x": false}}', "properties.x"),
        ('{"properties": {"x": 3}}', "properties.x"),
        ('{"properties": [1]}', "properties"),
        ('{"required": "a"}', "required"),
        ('{"anyOf": [{"enum": []}]}', "anyOf.0.enum"),
        ('{"oneOf": []}', "oneOf"),
        ('{"items": {}, "minItems": 1000000000}', "minItems"),
        ('{"items": {}, "minItems": -1}', "minItems"),
        ('{"items": {}, "minItems": 3, "maxItems": 2}', "maxItems"),
        ('{"items": {"type": "string", "maxLength": true}}', "items.maxLength"),
        ('{"type": "string", "pattern": 3}', "pattern"),
        ('{"type": "string", "pattern": "^(a$"}', "pattern"),
        ('{"type": "string", "pattern": "a)"}', "pattern"),
        ('{"type": "string", "pattern": "[a"}', "pattern"),
        ('{"type": "string", "pattern": "[b-a]"}', "pattern"),
        ('{"type": "string", "pattern": "a{3,2}"}', "pattern"),
        ('{"type": "string", "pattern": "^a{99999}$"}', "pattern"),
        ('{"type": "string", "pattern": "^*$"}', "pattern"),
        ('{"type": "string", "pattern": "a**"}', "pattern"),
        ('{"type": "string", "pattern": "a\\\\"}', "pattern"),
        ('{"type": "string", "pattern": "\\\\q"}', "pattern"),
        ('{"type": "string", "pattern": "a$b"}', "pattern"),
        (json.dumps({"type": "string", "pattern": "(" * 900}), "pattern"),
        (json.dumps({"type": "string", "pattern": "a" * 1001}), "pattern"),
        ('{"patternProperties": {"(": {}}}', "patternProperties.("),
        ('{"type": "integer", "minimum": 3, "maximum": 2}', ""),
        ('{"type": "integer", "minimum": "3"}', "minimum"),
        ('{"allOf": [{"type": "string"}, {"type": "null"}]}', "allOf.1.type"),
        ('{"enum": ["a"], "type": "integer"}', "enum"),
        ('{"$ref": "#/d/a", "d": {"a": {"$ref": "#/d/a"}}}', "d.a"),
        ('{"$ref": "#/d/a", "d": {"a": {"anyOf": [{"$ref": "#/d/b"}, true]}, "b": {"$ref": "#/d/a"}}}', "d.b"),
        ('{"$ref": "https://example.org/schema.json"}', "$ref"),
        ('{"items": {"$ref": "#/nowhere"}}', "items.$ref"),
        ('{"items": {"$ref": "#nowhere"}}', "items.$ref"),
        (json.dumps({"properties": {f"p{i}": {} for i in range(3000)}}), ""),
        (json.dumps({"properties": {"a\n" * 500: {"type": "zzz"}}}), None),
    ],
    ids=lambda part: repr(part)[:40],
)
def test_what_cannot_be_converted_is_a_sentence_with_its_place(schema: str, place: str | None) -> None:
    with pytest.raises(SchemaError) as refused:
        gbnf_of(schema)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert len(sentence) < 320
    assert sentence.endswith(".")
    assert not any(word in sentence for word in ("rule", "::=", "object has no", "recursion", "NoneType"))
    if place is not None:
        assert refused.value.place == place
        assert place in sentence


# --- schemas that others make -----------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Leaf(BaseModel):
    kind: Literal["leaf"]
    colour: Colour | None = None


class Branch(BaseModel):
    kind: Literal["branch"]
    children: list[Branch | Leaf]
    note: Any = None
    weight: float = Field(1.0, gt=0, description="how much")
    names: dict[str, tuple[int, str]] = {}


def test_a_schema_of_pydantic_allows_what_its_model_writes() -> None:
    schema = Branch.model_json_schema()
    leaf = Leaf(kind="leaf", colour=Colour.BLUE)
    tree = Branch(kind="branch", children=[leaf, Branch(kind="branch", children=[], names={"x": (1, "ü")})], note=[1])
    assert allows_text(schema, tree.model_dump_json())
    assert allows_text(schema, tree.model_dump_json(indent=2))
    assert not allows_text(schema, tree.model_dump_json().replace("leaf", "twig"))


# --- generated schemas ------------------------------------------------------------------------------------------------

Pair = tuple[dict[str, Any], Any]
"""A schema and an instance of it."""
names = st.sampled_from(["a", "ab", "b", "ü", 'q"', "x y"])


def _pair_of_text(text: str) -> st.SearchStrategy[Pair]:
    limits = {"minLength": max(0, len(text) - 1), "maxLength": len(text) + 1}
    return st.sampled_from([TEXT, {**TEXT, **limits}, {"const": text}, {"enum": ["other", text]}]).map(
        lambda schema: (schema, text)
    )


def _pair_of_number(number: int) -> st.SearchStrategy[Pair]:
    limits = st.tuples(st.integers(0, 2000), st.integers(0, 2000))
    return limits.map(lambda by: ({**INTEGER, "minimum": number - by[0], "maximum": number + by[1]}, number))


def _objects(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def pair(members: dict[str, tuple[Pair, bool, bool]]) -> Pair:
        properties = {name: schema for name, ((schema, _), _, _) in members.items()}
        required = [name for name, (_, is_required, _) in members.items() if is_required]
        value = {
            name: value for name, ((_, value), is_required, is_there) in members.items() if is_required or is_there
        }
        return {"type": "object", "properties": properties, "required": required}, value

    return st.dictionaries(names, st.tuples(inner, st.booleans(), st.booleans()), max_size=4).map(pair)


def _arrays(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def pair(items: list[Pair]) -> Pair:
        return {"prefixItems": [schema for schema, _ in items], "type": "array"}, [value for _, value in items]

    same = st.tuples(inner, st.integers(0, 3)).map(
        lambda of: ({"items": of[0][0], "minItems": of[1], "type": "array"}, [of[0][1]] * of[1])
    )
    return st.lists(inner, min_size=1, max_size=3).map(pair) | same


pairs: st.SearchStrategy[Pair] = st.recursive(
    st.text(max_size=6).flatmap(_pair_of_text)
    | st.integers(-3000, 3000).flatmap(_pair_of_number)
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: ({"type": "number"}, x))
    | st.sampled_from([({"type": "boolean"}, True), ({"type": "null"}, None), ({"title": "any"}, [{"a": 1}])])
    | st.from_regex(re.compile(r"^[a-c]\d{1,3}(x|\.)?\Z", re.ASCII)).map(
        lambda x: ({"type": "string", "pattern": r"^[a-c]\d{1,3}(x|\.)?$"}, x)
    ),
    lambda inner: (
        _objects(inner)
        | _arrays(inner)
        | st.tuples(inner, inner).map(lambda two: ({"anyOf": [two[0][0], two[1][0]]}, two[1][1]))
    ),
    max_leaves=6,
)


@given(pairs, st.sampled_from([None, 2]))
def test_an_instance_of_a_schema_is_allowed(pair: Pair, indent: int | None) -> None:
    schema, value = pair
    assert allows_text(schema, json.dumps(value, ensure_ascii=False, indent=indent))


words = st.sampled_from(
    ["type", "properties", "items", "enum", "anyOf", "allOf", "$ref", "pattern", "required", "minItems", "prefixItems"]
)
values = st.sampled_from(["object", "array", "string", "#", "#/items", "^a+$", 2, 0, None, True])
schemas = st.recursive(
    values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(words, schemas, max_size=4))
def test_any_schema_is_a_grammar_or_a_sentence(schema: dict[str, Any]) -> None:
    with suppress(UserError):
        assert checked(gbnf_of(json.dumps(schema))).rules
