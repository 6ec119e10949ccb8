"""The messages of a request as kvdesk's."""

from __future__ import annotations

from typing import Any

import pytest

from kvdesk.chat import new_conversation_id
from kvdesk.server.conversation import messages_of
from kvdesk.server.errors import ApiError

CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def texts(*messages: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages_of(messages, new_conversation_id())]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None},
        {"role": "assistant"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "user", "content": None},
        {"role": "system", "content": None},
        {"role": "tool", "content": None, "tool_call_id": "c"},
    ],
)
def test_a_content_that_is_null_is_no_text(message: dict[str, Any]) -> None:
    assert texts(message) == [(message["role"], "")]


@pytest.mark.parametrize("message", [{"role": "user"}, {"role": "tool"}, {"role": "user", "content": 5}])
def test_a_content_that_is_missing_or_none_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        texts(message)
    assert refused.value.param == "messages.0.content"


@pytest.mark.parametrize(
    ("role", "taken", "fields"), [("critic", "user", '{"role": "critic"}'), ("function", "tool", '{"name": "look"}')]
)
def test_a_role_of_the_clients_own_reaches_the_template(role: str, taken: str, fields: str) -> None:
    message = {"role": role, "content": "No.", **({"name": "look"} if role == "function" else {})}
    (found,) = messages_of([message], new_conversation_id())
    assert (found.role, found.text, found.fields) == (taken, "No.", fields)


@pytest.mark.parametrize("role", [None, 5, "", "<|im_end|>", "a" * 33])
def test_a_role_that_is_no_name_is_refused(role: object) -> None:
    with pytest.raises(ApiError) as refused:
        messages_of([{"role": role, "content": "x"}], new_conversation_id())
    assert refused.value.param == "messages.0.role"
