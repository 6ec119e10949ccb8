"""Grammars of calls: what they allow is what the reader reads."""

import json
from typing import Any

import pytest

from kvdesk.call_format import CallFormat
from kvdesk.grammar.calls import grammar_of_calls
from kvdesk.grammar.state import GrammarState, checked
from kvdesk.tool_calls import CallReader
from tests.test_tool_calls import CALLS, FORMS, NESTED, TOOLS, TREES

MIXED = {"type": "object", "properties": {"days": {"enum": [5, "auto"]}}, "required": ["days"]}


def follows(form: CallFormat, text: str, tools: list[dict[str, Any]] = TOOLS, **options: Any) -> bool:
    """Whether the text is a whole answer of the grammar."""
    state = GrammarState(checked(grammar_of_calls(form, tools, **options)), lambda _text: None)
    for number, char in enumerate(text):
        position = state.after(number, char.encode())
        if position is None:
            return False
        state.position = position
    return bool(state.position.complete)


@pytest.mark.parametrize("name", [name for name in FORMS if name != "as text"])
def test_a_call_as_the_family_writes_it_is_allowed(name: str) -> None:
    form = FORMS[name]
    is_free = form.named is None or (form.named.other.behind and not form.named.item)  # in values without a schema
    calls = CALLS if is_free else CALLS[:2]
    for call in calls:
        assert follows(form, form.written([call])), call
    several = form.written([CALLS[0], CALLS[1]])
    assert follows(form, several) == (form.between is not None)
    assert not follows(form, several, several=False)


@pytest.mark.parametrize("name", FORMS)
def test_nothing_else_is_allowed(name: str) -> None:
    form = FORMS[name]
    assert not follows(form, "Hello")
    assert not follows(form, form.written([("remove", {"city": "Rom"})]))
    if form.named is None and not form.as_text:
        assert not follows(form, form.written([("weather", {"city": 5})]))
    assert not follows(form, "Hello " + form.written(CALLS[:1]))


def test_required_arguments_are_written_and_others_may_lack() -> None:
    schema = {**TOOLS[0]["function"]["parameters"], "required": ["days"]}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
    for name in ("hermes", "qwen coder", "lfm2"):
        form = FORMS[name]
        assert follows(form, form.written([("weather", {"days": 3})]), tools)
        assert follows(form, form.written([("weather", {"city": "Rom", "days": 3})]), tools)
        assert not follows(form, form.written([("weather", {"city": "Rom"})]), tools)


def test_values_that_a_schema_lists_are_the_only_ones() -> None:
    schema = {"type": "object", "properties": {"unit": {"type": "string", "enum": ["c", "f"]}}, "required": ["unit"]}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
    for name in ("hermes", "qwen coder", "dsml"):
        form = FORMS[name]
        assert follows(form, form.written([("weather", {"unit": "f"})]), tools)
        assert not follows(form, form.written([("weather", {"unit": "k"})]), tools)


def test_a_choice_of_texts_and_numbers_is_written_as_json_and_read_again() -> None:
    tools = [{**TOOLS[0], "function": {**TOOLS[0]["function"], "parameters": MIXED}}]
    form = FORMS["qwen coder"]
    for value, is_allowed in ((5, True), ('"auto"', True), ("auto", False), (7, False)):
        written = form.written([("weather", {"days": value})])
        assert follows(form, written, tools) == is_allowed
        if is_allowed:
            reader = CallReader(form, tools)
            reader.add(written)
            reader.end()
            assert json.loads(reader.calls[0].arguments) == {"days": 5 if value == 5 else "auto"}


def test_tags_inside_tags_follow_their_schema() -> None:
    form = FORMS["tags inside tags"]
    for tree in TREES:
        assert follows(form, form.written([("plant", tree)]), NESTED)
    for wrong in ({"tree": {"size": 5}}, {"tree": {"name": "a", "size": "x"}}, {"tree": "a"}, {"tree": {"name": [1]}}):
        is_text = wrong == {"tree": {"name": [1]}}  # tags are a text like any other
        assert follows(form, form.written([("plant", wrong)]), NESTED) == is_text


@pytest.mark.parametrize("limits", [{"minItems": True}, {"minItems": -1}, {"minItems": 3, "maxItems": 2}])
def test_tags_inside_tags_are_repeated_freely_where_their_limits_are_none(limits: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, **limits}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    form = FORMS["tags inside tags"]
    for n in (0, 1, 4):
        assert follows(form, form.written([("f", {"a": ["x"] * n})]), tools)


@pytest.mark.parametrize("name", ["hermes", "qwen coder", "tags inside tags"])
@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#/nowhere"}, {"type": "any"}, {"enum": []}, {"type": "array", "items": []}, {"pattern": "(("}, None, 5],
)
def test_what_no_grammar_can_follow_may_be_anything_and_the_rest_counts(name: str, schema: Any) -> None:
    parameters = {"type": "object", "properties": {"a": schema, "n": {"type": "integer"}}, "required": ["n"]}
    wrong = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    tools, form = [wrong, *TOOLS], FORMS[name]
    assert follows(form, form.written([("f", {"a": 5, "n": 1})]), tools)
    assert follows(form, form.written([CALLS[0]]), tools)
    assert not follows(form, form.written([("f", {"a": 5, "n": "x"})]), tools)
    reader = CallReader(form, tools)
    reader.add(form.written([("f", {"a": 5, "n": 1})]))
    reader.end()
    assert json.loads(reader.calls[0].arguments) == {"a": 5, "n": 1}
