"""Calls in answers, by family."""

from __future__ import annotations

import json

import pytest

from kvdesk.tool_calls import HERMES, LLAMA3, MISTRAL, ToolCall, may_call, parse_calls, tool_format

CALL = ToolCall("weather", '{"city": "Rom"}')
HERMES_TEXT = 'I look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Rom"}}\n</tool_call>'
LLAMA_TEXT = '{"name": "weather", "parameters": {"city": "Rom"}}'
MISTRAL_TEXT = '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Rom"}}]'


@pytest.mark.parametrize(
    ("family", "text", "said"),
    [
        (HERMES, HERMES_TEXT, "I look."),
        (LLAMA3, LLAMA_TEXT, ""),
        (LLAMA3, f"<|python_tag|>{LLAMA_TEXT}", ""),
        (MISTRAL, MISTRAL_TEXT, ""),
        (MISTRAL, MISTRAL_TEXT.removeprefix("[TOOL_CALLS]"), ""),
    ],
)
def test_a_call_is_read(family: str, text: str, said: str) -> None:
    assert parse_calls(family, text) == (said, (CALL,))


def test_several_calls_are_read_in_order() -> None:
    content, calls = parse_calls(HERMES, HERMES_TEXT + HERMES_TEXT.removeprefix("I look."))
    assert (content, len(calls)) == ("I look.", 2)


@pytest.mark.parametrize("family", [HERMES, LLAMA3, MISTRAL, ""])
@pytest.mark.parametrize("text", ["Hello", "<tool_call>{broken", '{"name": 5}', "[1, 2]", "{}", "[" * 5000])
def test_what_is_no_call_stays_text(family: str, text: str) -> None:
    assert parse_calls(family, text) == (text, ())


@pytest.mark.parametrize(("family", "text"), [(HERMES, HERMES_TEXT), (LLAMA3, LLAMA_TEXT), (MISTRAL, MISTRAL_TEXT)])
def test_no_part_of_a_call_is_told_while_it_comes(family: str, text: str) -> None:
    said, _ = parse_calls(family, text)
    for n in range(len(text) + 1):
        assert text[: may_call(family, text[:n])].strip() == said[: len(text[: may_call(family, text[:n])].strip())]


def test_families_are_told_by_their_templates() -> None:
    assert tool_format('{% if tools %}<tool_call>{"name"}</tool_call>{% endif %}') == HERMES
    assert tool_format("{% if tools %}[AVAILABLE_TOOLS]{% endif %}[TOOL_CALLS]") == MISTRAL
    assert tool_format('{% if tools %}"parameters": <|python_tag|>{% endif %}') == LLAMA3
    assert tool_format("{% for m in messages %}{{ m.content }}{% endfor %}") == ""
    assert tool_format("{% if tools %}<function=x>{% endif %}") == ""
    assert json.loads(CALL.arguments) == {"city": "Rom"}
