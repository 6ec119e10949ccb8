"""Tools over HTTP: with a back end whose answers are given, since the embedded model calls none."""

import json
from typing import Any

import openai
import pytest

from kvdesk.protocol.chat import ToolChoice
from kvdesk.thinking import switch
from kvdesk.values import replace
from tests.server.scripted import CALLING, WEATHER, Calling


def test_a_call_comes_as_the_protocol_has_it_and_its_answer_goes_back(
    backend: Calling, scripted: openai.OpenAI
) -> None:
    messages: list[Any] = [{"role": "user", "content": "How is the weather in Rom?"}]
    done = scripted.chat.completions.create(model="x", messages=messages, tools=[WEATHER])
    choice = done.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I look.")
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Rom"})
    messages += [
        choice.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    again = scripted.chat.completions.create(model="x", messages=messages, tools=[WEATHER])
    assert again.choices[0].message.content == "It is sunny"
    asked = backend.asked
    assert json.loads(asked[0].tools) == [WEATHER]
    assert asked[1].messages[1].text == CALLING, "as the model wrote it, with the ids that it has"
    assert asked[1].messages[1].tokens
    assert (asked[1].messages[2].role, json.loads(asked[1].messages[2].fields)["tool_call_id"]) == ("tool", call.id)


def test_a_stream_tells_no_part_of_a_call_as_text(scripted: openai.OpenAI) -> None:
    with scripted.chat.completions.create(
        model="x", messages=[{"role": "user", "content": "How is the weather?"}], tools=[WEATHER], stream=True
    ) as stream:
        deltas = [chunk.choices[0] for chunk in stream if chunk.choices]
    assert "".join(one.delta.content or "" for one in deltas).strip() == "I look."
    calls = [call for one in deltas for call in one.delta.tool_calls or ()]
    assert [call.function.name for call in calls if call.function and call.function.name] == ["weather"]
    assert len({call.index for call in calls}) == 1
    assert json.loads("".join(call.function.arguments or "" for call in calls if call.function)) == {"city": "Rom"}
    assert deltas[-1].finish_reason == "tool_calls"


def test_without_tools_the_text_is_what_the_model_wrote(backend: Calling, scripted: openai.OpenAI) -> None:
    backend.calls = False
    for more in ({}, {"tools": [WEATHER], "tool_choice": "none"}):
        done = scripted.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}], **more)  # type: ignore[call-overload]
        assert done.choices[0].message.content == CALLING
    asked = backend.asked
    assert [(bool(command.tools), command.choice) for command in asked] == [(False, None), (True, None)]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice()),
        ("required", ToolChoice(must=True)),
        ({"type": "function", "function": {"name": "weather"}}, ToolChoice(must=True, names=("weather",))),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [WEATHER]}},
            ToolChoice(names=("weather",)),
        ),
    ],
)
def test_what_may_be_called_is_asked_for(
    backend: Calling, scripted: openai.OpenAI, choice: Any, expected: ToolChoice
) -> None:
    asked: Any = {"model": "x", "messages": [{"role": "user", "content": "Hello"}], "tools": [WEATHER]}
    scripted.chat.completions.create(**asked, tool_choice=choice)
    scripted.chat.completions.create(**asked, tool_choice=choice, parallel_tool_calls=False)
    first, second = (command.choice for command in backend.asked)
    assert (first, second) == (expected, replace(expected, several=False))


@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "required"},
        {"tools": [WEATHER], "tool_choice": "perhaps"},
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        {"tools": [WEATHER], "tool_choice": {"type": "function"}},
    ],
)
def test_a_choice_that_cannot_be_is_refused(scripted: openai.OpenAI, more: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        scripted.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}], **more)
    assert caught.value.param == "tool_choice"


def test_an_answer_that_follows_a_schema_is_no_call(backend: Calling, scripted: openai.OpenAI) -> None:
    """Also where it looks like one without the marks of its family."""
    backend.text = '{"name": "weather", "arguments": {}}'
    request: Any = {"model": "x", "messages": [{"role": "user", "content": "Hello"}], "tools": [WEATHER]}
    done = scripted.chat.completions.create(**request, response_format={"type": "json_object"})
    assert (done.choices[0].message.tool_calls, done.choices[0].message.content) == (None, backend.text)
    backend.text = CALLING
    called = scripted.chat.completions.create(**request, response_format={"type": "json_object"})
    assert called.choices[0].finish_reason == "tool_calls"
    assert [(command.choice, command.sampling.json_schema) for command in backend.asked] == [(ToolChoice(), "{}")] * 2


def test_what_the_template_is_told_is_handed_on(backend: Calling, scripted: openai.OpenAI) -> None:
    more = {"chat_template_kwargs": {"enable_thinking": False, "style": "brief"}}
    scripted.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}], extra_body=more)
    (asked,) = backend.asked
    assert json.loads(asked.variables) == switch(False) | {"thinking_budget": 0, "style": "brief"}
