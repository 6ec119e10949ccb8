"""Requests of an agent compared as texts and tokens: what continues, and what is named where one does not."""

import copy
from typing import Any

import pytest

from kvdesk.errors import UserError
from kvdesk.testing import CacheMiss, KvCache
from kvdesk.testing.prompts import asked_of
from kvdesk.testing.stable import first_difference

SYSTEM = {"role": "system", "content": "You keep a lighthouse."}
HELLO = {"role": "user", "content": "Is the lamp lit?"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "lamp", "arguments": '{"floor": 3}'}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "It is lit."}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("lamp", "horn")]
FIRST = {"model": "m", "tools": TOOLS, "messages": [SYSTEM, HELLO]}
SECOND = {**FIRST, "messages": [SYSTEM, HELLO, CALL, RESULT]}


def changed(body: dict[str, Any], *path: str | int, to: object) -> dict[str, Any]:
    """A copy with another value at a place."""
    made: Any = copy.deepcopy(body)
    at = made
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return made  # type: ignore[no-any-return]


def said(*requests: Any) -> str:
    with pytest.raises(CacheMiss) as found:
        KvCache().assert_prefix_stable(requests)
    return str(found.value)


ANTHROPIC: list[dict[str, Any]] = [
    {
        "system": [{"type": "text", "text": "You keep a lighthouse.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "Is the lamp lit?"}],
    },
    {
        "system": "You keep a lighthouse.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Is the lamp lit?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "lamp", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "It is lit."}]},
        ],
    },
]


class Dumped:
    """As the package openai gives a message."""

    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        assert exclude_none
        return {"role": "assistant", "tool_calls": CALL["tool_calls"]}


@pytest.mark.parametrize(
    "requests",
    [
        [FIRST, SECOND, FIRST],
        [[SYSTEM, HELLO], [SYSTEM, HELLO, CALL, RESULT]],
        [[SYSTEM, HELLO], [SYSTEM, HELLO, Dumped(), RESULT], [SYSTEM, HELLO, CALL, RESULT, HELLO]],
        ANTHROPIC,
        [
            [HELLO, {"role": "assistant", "content": "I look."}],
            [HELLO, {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use"}]}],
        ],
        ["<|im_start|>user\nHi", "<|im_start|>user\nHi<|im_end|>"],
        [[1, 2, 3], (1, 2, 3, 4)],
        [{"prompt": [1, 2]}, {"prompt": [1, 2, 3]}],
        [{"input": "Hi"}, {"input": "Hi, who is there?"}],
        [{"messages": [{**HELLO, "id": "a"}]}, {"messages": [{**HELLO, "id": "b", "annotations": []}]}],
    ],
)
def test_what_continues_passes(requests: list[Any]) -> None:
    KvCache().assert_prefix_stable(requests)


@pytest.mark.parametrize(
    ("second", "field", "at"),
    [
        (changed(SECOND, "messages", 0, "content", to="You keep a garden."), "messages[0].content", 11),
        (changed(SECOND, "messages", 0, "role", to="developer"), "messages[0].role", 0),
        (changed(SECOND, "messages", 1, "content", to="Was it lit?"), "messages[1].content", 0),
        (changed(SECOND, "messages", 1, "name", to="Ann"), "messages[1].name", 0),
        (changed(SECOND, "tools", to=TOOLS[::-1]), "tools[0]", 43),
        (changed(SECOND, "tools", to=[*TOOLS, TOOLS[0]]), "tools[2]", 0),
        (changed(SECOND, "model", to="n"), "model", 0),
    ],
)
def test_the_first_field_that_differs_is_found(second: dict[str, Any], field: str, at: int) -> None:
    found = first_difference(asked_of(FIRST, 1), asked_of(second, 2))
    assert (found.field, found.at) == (field, at)


def test_what_differs_behind_the_first_messages_is_found_by_field() -> None:
    third = changed(SECOND, "messages", 2, "tool_calls", 0, "id", to="c2")
    found = first_difference(asked_of(SECOND, 1), asked_of(third, 2))
    assert (found.message, found.role, found.field) == (3, "assistant", "messages[2].tool_calls")
    assert found.same == sum(map(len, (SYSTEM["content"], HELLO["content"]))) + 1 + found.at + sum(
        len(text) for path, text in asked_of(SECOND, 1).parts[0].fields.items() if path.startswith("tools")
    )


def test_a_date_is_named_with_both_texts() -> None:
    dated = [
        {"messages": [{"role": "system", "content": f"Today is 2026-05-{day}. You keep a lighthouse."}, HELLO]}
        for day in (12, 13)
    ]
    assert said(*dated) == (
        "Request 2 does not begin with request 1: 18 of 59 characters are the same.\n"
        "The first difference is in messages[0].content, at character 18 (message 1, system):\n"
        "  request 1: 'Today is 2026-05-12. You keep a lighthouse.'\n"
        "  request 2: 'Today is 2026-05-13. You keep a lighthouse.'\n"
        "Message 1 changed. Usual cause: the system prompt contains the date or the time."
    )


def test_the_system_prompt_of_anthropic_is_the_first_message() -> None:
    first, second = ANTHROPIC[0], changed(ANTHROPIC[1], "system", to="You keep a garden.")
    told = said(first, second)
    assert "in system, at character 11 (message 1, system):" in told
    assert "  request 2: 'You keep a garden.'" in told


def test_tools_in_another_order_are_named() -> None:
    assert said(FIRST, changed(FIRST, "tools", to=TOOLS[::-1])).endswith("The client sent its tools in another order.")


def test_what_is_gone_from_a_message_is_shown_as_nothing() -> None:
    third = changed(SECOND, "messages", 2, to={"role": "assistant", "content": "It is."})
    told = said(SECOND, {**third, "messages": [*third["messages"], HELLO]})
    assert "in messages[2].tool_calls, at character 0 (message 3, assistant):" in told
    assert "  request 2: (nothing)" in told


def test_the_first_token_that_differs_is_named() -> None:
    assert said([1, 2, 3, 4], [1, 2, 9, 4, 5]) == (
        "Request 2 does not begin with request 1: token 2 of 4 is the first that differs.\n"
        "  request 1: 3 4\n"
        "  request 2: 9 4 5"
    )


def test_a_later_request_is_named_by_its_number() -> None:
    assert said(FIRST, SECOND, changed(SECOND, "messages", 0, "content", to="")).startswith(
        "Request 3 does not begin with request 2:"
    )


@pytest.mark.parametrize(
    ("requests", "sentence"),
    [
        ([FIRST], "A single request cannot be compared"),
        ([FIRST, {**FIRST, "model": "m"}], "Requests 1 and 2 are the same object: keep a copy"),
        ([FIRST["messages"], FIRST["messages"]], "Requests 1 and 2 are the same object: keep a copy"),
        ([[1, 2], "a text"], "Token ids and texts cannot be compared."),
        ([FIRST, {"messages": "?"}, {"messages": 3}], "Request 3 is neither"),
        ([FIRST, {}], "Request 2 is neither a request body nor messages, a text or token ids."),
    ],
)
def test_what_cannot_be_compared_is_said(requests: list[Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        KvCache().assert_prefix_stable(requests)
