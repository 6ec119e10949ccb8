"""Calls in answers: read as they come, in the forms in which families write them."""

import json
from typing import Any

import pytest

from kvdesk.call_format import GENERIC, KEY, KNOWN, CallFormat, NamedArguments, Pair
from kvdesk.tool_calls import CallReader
from kvdesk.values import replace

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "weather_map",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}, "tags": {"type": "array"}}},
        },
    },
]
_TAGGED = Pair("\n<parameter=", ">\n", "\n</parameter>")
_NESTED = Pair("]<]m[>[<", ">", f"]<]m[>[</{KEY}>")
_MARKED = '<|"|>'
FORMS = {
    "hermes": GENERIC,
    "llama3": CallFormat("", '{"name": "', '", "parameters": ', "}", None, ""),
    "mistral": CallFormat("[TOOL_CALLS][", '{"name": "', '", "arguments": ', "}", ", ", "]"),
    "mistral 3": CallFormat("", "[TOOL_CALLS]", "[ARGS]", "", "", ""),
    "deepseek": CallFormat("<|calls|>", "<|call|>", "<|sep|>", "<|call_end|>", "", "<|calls_end|>"),
    "name as key": CallFormat("<|tools|>[", '{"', '": ', "}", ", ", "]<|tools_end|>"),
    "qwen coder": CallFormat(
        "", "<tool_call>\n<function=", ">", "\n</function>\n</tool_call>", "\n", "", NamedArguments(_TAGGED, _TAGGED)
    ),
    "minimax": CallFormat(
        "<calls>", '\n<invoke name="', '">', "\n</invoke>", "", "\n</calls>",
        NamedArguments(Pair("\n<", ">", f"</{KEY}>"), Pair("\n<", ">", f"</{KEY}>")),
    ),
    "tags inside tags": CallFormat(
        "<calls>", '\n]<]m[>[<invoke name="', '">', "]<]m[>[</invoke>", "", "\n</calls>",
        NamedArguments(_NESTED, _NESTED, item="item"),
    ),
    "dsml": CallFormat(
        "<|calls|>", '\n<|invoke name="', '">', "\n</|invoke>", "", "\n</|calls|>",
        NamedArguments(
            Pair('\n<p name="', '" string="true">', "</p>"), Pair('\n<p name="', '" string="false">', "</p>")
        ),
    ),
    "gemma": CallFormat(
        "", "<|tool_call>call:", "{", "}<tool_call|>", "", "",
        NamedArguments(Pair("", f":{_MARKED}", _MARKED), Pair("", ":", ""), ","),
    ),
    "lfm2": KNOWN["<|tool_list_start|>"],
    "as text": CallFormat("", "<call>", "<args>", "</call>", "", "", as_text=True),
}  # fmt: skip
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("weather", {"city": "Rom"}),
    ("weather", {"city": "São Paulo", "days": 3}),
    ("weather_map", {"text": "def f():\n    return [1, {}]\n", "tags": ["a", 1]}),
]


def read(form: CallFormat, text: str, step: int = 1, tools: list[dict[str, Any]] = TOOLS) -> CallReader:
    """Text in steps; nothing that was told is ever taken back."""
    reader = CallReader(form, tools)
    told, arguments = "", [""] * 9
    for at in range(0, len(text), step):
        reader.add(text[at : at + step])
        assert reader.said.startswith(told)
        told = reader.said
        for i, call in enumerate(reader.calls):
            assert call.arguments.startswith(arguments[i])
            arguments[i] = call.arguments
    reader.end()
    assert reader.said.startswith(told)
    return reader


def values(reader: CallReader) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in reader.calls]


@pytest.mark.parametrize("name", FORMS)
def test_what_a_family_writes_is_read(name: str) -> None:
    form = FORMS[name]
    for step in (1, 2, 7, 1000):
        for call in CALLS:
            reader = read(form, form.written([call]), step)
            assert (values(reader), reader.said) == ([call], ""), step
        if form.between is not None:
            several = [CALLS[2], CALLS[0]]
            reader = read(form, form.written(several) + "\n", step)
            assert (values(reader), reader.said) == (several, ""), step


@pytest.mark.parametrize("name", [name for name in FORMS if name != "llama3"])
def test_what_is_said_before_a_call_is_told(name: str) -> None:
    reader = read(FORMS[name], "I look. 1 < 2 [x]\n\n" + FORMS[name].written(CALLS[:1]))
    assert (values(reader), reader.said) == (CALLS[:1], "I look. 1 < 2 [x]")


@pytest.mark.parametrize("name", FORMS)
def test_what_is_no_call_stays_text(name: str) -> None:
    for text in ("Hello", "<tool_call>{broken", '{"name": 5}', "[1, 2]", "{}", "[" * 500, "<", "a\n\nb"):
        reader = read(FORMS[name], text)
        assert (reader.calls, reader.said) == ([], text)


@pytest.mark.parametrize("name", FORMS)
def test_a_tool_that_was_not_offered_is_no_call(name: str) -> None:
    text = FORMS[name].written([("remove_everything", {"city": "Rom"})])
    reader = read(FORMS[name], text)
    assert (reader.calls, reader.said) == ([], text)


@pytest.mark.parametrize("text", ['{"name": "Bob", "age": 5}', '{"name": "weather"}', '{"city": "Rom"}'])
def test_an_object_that_looks_like_a_call_stays_text(text: str) -> None:
    assert read(FORMS["llama3"], text).calls == []


@pytest.mark.parametrize("name", [name for name in FORMS if name != "llama3"])
def test_json_that_looks_like_a_call_without_its_marks_is_an_answer_where_one_is_json(name: str) -> None:
    reader = CallReader(FORMS[name], TOOLS, is_exact=True)
    text = '{"name": "weather", "arguments": {"city": "Rom"}}'
    reader.add(text)
    assert (reader.said, reader.calls) == (text, [])


@pytest.mark.parametrize("name", FORMS)
def test_an_answer_that_is_json_is_told_as_it_comes_and_calls_are_read(name: str) -> None:
    reader = CallReader(FORMS[name], TOOLS, is_exact=True)
    reader.add('{"city": "Rom", "da')
    assert reader.said.startswith('{"city": "Rom"')
    reader = CallReader(FORMS[name], TOOLS, is_exact=True)
    reader.add(FORMS[name].written(CALLS[:1]))
    reader.end()
    assert values(reader) == CALLS[:1]


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("name", FORMS)
def test_a_call_without_the_marks_of_its_family_is_read_where_an_answer_begins(name: str, step: int) -> None:
    written = [json.dumps({"name": tool, "arguments": arguments}, indent=2) for tool, arguments in CALLS]
    one, two = written[0], "\n".join(written[1:])
    for text, calls, said in (
        (one, CALLS[:1], ""),
        (f"```json\n{one}\n```", CALLS[:1], ""),
        (f"\n```\n{one}\n```\n\nI look.", CALLS[:1], "I look."),
        (f"```json\n{two}\n```", CALLS[1:], ""),
    ):
        if name == "llama3" and text.startswith("{"):
            continue  # its own form, whose first field is read in another test
        reader = read(FORMS[name], text, step)
        assert (values(reader), reader.said.strip()) == (calls, said)
    marked = FORMS[name].written(CALLS[:1])
    for text in ('{"city": "Rom"}', '```json\n{"name": "Bob", "arguments": {}}\n```', "```\na = 1\n```", "```js", "``"):
        reader = read(FORMS[name], text, step)
        assert (reader.calls, reader.said) == ([], text)
        if name != "llama3" and len(text) > 6:
            reader = read(FORMS[name], f"{text}\n{marked}", step)
            assert (values(reader), reader.said) == (CALLS[:1], text)


def test_an_object_that_is_no_call_is_told_as_it_comes() -> None:
    reader = CallReader(GENERIC, TOOLS)
    reader.add('{"city": "Rom", "pop')
    assert reader.said == '{"city": "Rom", "pop'


def test_names_and_arguments_come_in_any_order_and_under_other_names() -> None:
    for inner in (
        '{"arguments": {"city": "Rom"}, "name": "weather"}',
        '{"name":"weather","parameters":{"city":"Rom"}}',
    ):
        assert values(read(GENERIC, f"<tool_call>{inner}</tool_call>")) == CALLS[:1]
    assert (
        values(read(FORMS["llama3"], '<|python_tag|>{"name": "weather", "parameters": {"city": "Rom"}}')) == CALLS[:1]
    )


def test_the_end_of_a_call_inside_a_string_is_a_part_of_it() -> None:
    call = ("weather", {"city": "}\n</tool_call>"})
    assert values(read(GENERIC, GENERIC.written([call]))) == [call]


def test_an_answer_that_is_cut_keeps_what_it_called() -> None:
    whole = GENERIC.written([CALLS[2]])
    reader = read(GENERIC, whole[: whole.index("return")])
    (call,) = reader.calls
    assert (call.name, call.is_whole, reader.said) == ("weather_map", False, "")
    assert call.arguments.rstrip() == '{"text": "def f():\\n'


def test_arguments_of_every_type_are_read_where_values_show_their_end() -> None:
    inner = "city:QQa, } bQQ,more:{a:[1,QQxQQ],b:true},n:null".replace("QQ", _MARKED)
    text = "<|tool_call>call:weather{" + inner + "}<tool_call|>"
    ((_, arguments),) = values(read(FORMS["gemma"], text))
    assert arguments == {"city": "a, } b", "more": {"a": [1, "x"], "b": True}, "n": None}
    text = "<|tool_call_start|>[weather(city='it\\'s', days=3, more={'a': [True, None]})]<|tool_call_end|>"
    ((_, arguments),) = values(read(FORMS["lfm2"], text))
    assert arguments == {"city": "it's", "days": 3, "more": {"a": [True, None]}}


_TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"$ref": "#/$defs/Name"},
        "size": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
    "required": ["name"],
}
NESTED: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "plant",
            "parameters": {
                "type": "object",
                "properties": {"tree": {"$ref": "#/$defs/Tree"}, "more": {"type": "object"}},
                "$defs": {"Tree": _TREE, "Name": {"type": "string"}},
            },
        },
    }
]
TREES: list[dict[str, Any]] = [
    {"tree": {"name": "5", "size": 5, "tags": ["1", ""], "children": [{"name": "a"}, {"name": "b", "children": []}]}},
    {"tree": {"name": "item", "children": [{"name": "<x>\n", "children": [{"name": "tree", "tags": ["tags"]}]}]}},
]


@pytest.mark.parametrize("pair", [_NESTED, Pair("<p name=", ">", "</p>")])
@pytest.mark.parametrize("step", [1, 5, 1000])
def test_tags_inside_tags_are_read_as_their_schema_says(step: int, pair: Pair) -> None:
    form = replace(FORMS["tags inside tags"], named=NamedArguments(pair, pair, item="item"))
    for tree in TREES:
        reader = read(form, form.written([("plant", tree)]), step, NESTED)
        assert (values(reader), reader.said) == ([("plant", tree)], "")
    free = {"more": {"a": {"a": True}, "list": [1, [2]], "item": 0}}
    assert values(read(form, form.written([("plant", free)]), step, NESTED)) == [("plant", free)]
    json_inside = form.written([("plant", {"more": '{"a": [1]}'})])
    assert values(read(form, json_inside, step, NESTED)) == [("plant", {"more": {"a": [1]}})]


@pytest.mark.parametrize(
    ("name", "inner"), [("tags inside tags", "]<]m[>[<a>" * 5000), ("gemma", "city:" + "[" * 5000)]
)
def test_values_that_are_nested_too_deeply_stay_text(name: str, inner: str) -> None:
    text = FORMS[name].written([("weather_map", {})]).replace('map">', f'map">{inner}').replace("{}", "{" + inner + "}")
    assert read(FORMS[name], text, len(text)).said == text


def test_without_tools_all_is_text() -> None:
    reader = CallReader(GENERIC)
    reader.add(GENERIC.written(CALLS[:1]))
    assert reader.said == GENERIC.written(CALLS[:1])
