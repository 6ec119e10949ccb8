"""Tools over HTTP: with a back end whose answers are given, since the embedded model calls none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.chat import ConversationId, Message, MessageId
from kvdesk.protocol.chat import Generate, ToolChoice
from kvdesk.thinking import at_effort, switch
from kvdesk.values import replace
from tests.server.scripted import CALLING, WEATHER, Calling, serving

TEMPLATE = (
    "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for call in m.tool_calls %}<call>{{ call.function.name }}: {{ call.function.arguments | tojson }}</call>"
    "{% endfor %}"
    "{% endfor %}"
)


@pytest.fixture
def scripted() -> Iterator[tuple[Calling, openai.OpenAI]]:
    with serving() as (backend, server), openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        yield backend, client


def test_a_call_comes_as_the_protocol_has_it_and_its_answer_goes_back(
    scripted: tuple[Calling, openai.OpenAI],
) -> None:
    backend, client = scripted
    messages: list[Any] = [{"role": "user", "content": "How is the weather in Rom?"}]
    done = client.chat.completions.create(model="x", messages=messages, tools=[WEATHER])
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
    again = client.chat.completions.create(model="x", messages=messages, tools=[WEATHER])
    assert again.choices[0].message.content == "It is sunny"
    asked = [command for command in backend.handled if isinstance(command, Generate)]
    assert json.loads(asked[0].tools) == [WEATHER]
    assert asked[1].messages[1].text == CALLING, "as the model wrote it, with the ids that it has"
    assert asked[1].messages[1].tokens
    assert (asked[1].messages[2].role, json.loads(asked[1].messages[2].fields)["tool_call_id"]) == ("tool", call.id)


def test_a_stream_tells_no_part_of_a_call_as_text(scripted: tuple[Calling, openai.OpenAI]) -> None:
    _, client = scripted
    with client.chat.completions.create(
        model="x", messages=[{"role": "user", "content": "How is the weather?"}], tools=[WEATHER], stream=True
    ) as stream:
        deltas = [chunk.choices[0] for chunk in stream if chunk.choices]
    assert "".join(one.delta.content or "" for one in deltas).strip() == "I look."
    calls = [call for one in deltas for call in one.delta.tool_calls or ()]
    assert [call.function.name for call in calls if call.function and call.function.name] == ["weather"]
    assert len({call.index for call in calls}) == 1
    assert json.loads("".join(call.function.arguments or "" for call in calls if call.function)) == {"city": "Rom"}
    assert deltas[-1].finish_reason == "tool_calls"


def test_without_tools_the_text_is_what_the_model_wrote(scripted: tuple[Calling, openai.OpenAI]) -> None:
    backend, client = scripted
    backend.calls = False
    for more in ({}, {"tools": [WEATHER], "tool_choice": "none"}):
        done = client.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}], **more)  # type: ignore[call-overload]
        assert done.choices[0].message.content == CALLING
    asked = [command for command in backend.handled if isinstance(command, Generate)]
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
    scripted: tuple[Calling, openai.OpenAI], choice: Any, expected: ToolChoice
) -> None:
    backend, client = scripted
    asked: Any = {"model": "x", "messages": [{"role": "user", "content": "Hello"}], "tools": [WEATHER]}
    client.chat.completions.create(**asked, tool_choice=choice)
    client.chat.completions.create(**asked, tool_choice=choice, parallel_tool_calls=False)
    first, second = (command.choice for command in backend.handled if isinstance(command, Generate))
    assert (first, second) == (expected, replace(expected, several=False))


@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "required"},
        {"tools": [WEATHER], "tool_choice": "perhaps"},
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        {"tools": [WEATHER], "tool_choice": {"type": "function"}},
        {"tools": [WEATHER], "tool_choice": "required", "response_format": {"type": "json_object"}},
    ],
)
def test_a_choice_that_cannot_be_is_refused(scripted: tuple[Calling, openai.OpenAI], more: Any) -> None:
    _, client = scripted
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}], **more)
    assert caught.value.param == "tool_choice"


def test_an_answer_that_follows_a_schema_is_no_call(scripted: tuple[Calling, openai.OpenAI]) -> None:
    backend, client = scripted
    backend.calls = False  # as the engine says where nothing may be called
    done = client.chat.completions.create(
        model="x",
        messages=[{"role": "user", "content": "Hello"}],
        tools=[WEATHER],
        response_format={"type": "json_object"},
    )
    assert (done.choices[0].message.tool_calls, done.choices[0].message.content) == (None, CALLING)


def test_a_template_sees_tools_and_the_fields_of_messages() -> None:
    calls = [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Rom"}}}]
    messages = [
        Message(MessageId(f"m{i}"), ConversationId("c"), None, role, text, fields=fields)  # type: ignore[arg-type]
        for i, (role, text, fields) in enumerate(
            [("user", "Hi", ""), ("assistant", "", json.dumps({"tool_calls": calls})), ("tool", "sunny", "")]
        )
    ]
    rendered = ChatTemplate(TEMPLATE).rendering(messages, add_generation_prompt=True, tools=json.dumps([WEATHER])).text
    assert rendered.startswith('<tools>[{"type"')
    assert rendered.endswith('<user>Hi<assistant><call>weather: {"city": "Rom"}</call><tool>sunny')


@pytest.mark.parametrize(
    ("more", "variables"),
    [
        ({}, {}),
        ({"reasoning_effort": "low"}, switch(True) | at_effort("low")),
        ({"reasoning_effort": "none"}, switch(False) | {"thinking_budget": 0}),
        (
            {"chat_template_kwargs": {"enable_thinking": False, "style": "brief"}},
            switch(False) | {"thinking_budget": 0, "style": "brief"},
        ),
        ({"enable_thinking": True}, switch(True)),
    ],
)
def test_what_the_template_is_told_is_handed_on(
    scripted: tuple[Calling, openai.OpenAI], more: dict[str, Any], variables: dict[str, Any]
) -> None:
    backend, client = scripted
    client.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}], extra_body=more)
    (asked,) = [command for command in backend.handled if isinstance(command, Generate)]
    assert (json.loads(asked.variables) if asked.variables else {}) == variables
