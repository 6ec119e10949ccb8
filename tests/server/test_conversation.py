"""The messages of a request as kvdesk's."""

from typing import Any

import pytest

from kvdesk.message import TurnStats, new_conversation_id
from kvdesk.server.errors import ApiError
from kvdesk.server.request.conversation import GivenAnswer, GivenAnswers, chains, messages_of, with_tokens
from kvdesk.tool_calls import ToolCall

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


def test_the_model_is_told_of_a_picture_in_a_result_and_a_question_with_one_is_refused() -> None:
    """An agent that has once read a picture sends it with every later request."""
    parts = [
        {"type": "text", "text": "logo.png"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    ]
    result = {"role": "tool", "tool_call_id": "c", "content": parts}
    assert texts(result) == [("tool", "logo.png\n[The tool returned a picture, which this model cannot see.]")]
    with pytest.raises(ApiError, match="image_url are not supported"):
        texts({"role": "user", "content": parts})


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


ARGUMENTS = '{"city": "Zürich", "days": null, "exact": {"b": 1, "a": null}}'
QUESTION = {"role": "user", "content": "Where?"}


def history(arguments: str = ARGUMENTS, text: str = "I look.\n", call: str = "c1") -> list[dict[str, Any]]:
    """A question, an answer that calls, and what the tool said; `call` is the id."""
    function = {"name": "look", "arguments": arguments}
    calls = [{"id": call, "type": "function", "function": function}]
    answer = {"role": "assistant", "content": text, "tool_calls": calls}
    return [QUESTION, answer, {"role": "tool", "tool_call_id": call, "content": "here"}]


def known_tokens(*messages: dict[str, Any]) -> list[tuple[int, ...]]:
    """Token ids of the answers among the messages, after two answers were given here: one that calls, one that says."""
    known, chat = GivenAnswers(), new_conversation_id()
    stats = TurnStats(1, 0, 1, 1, 0.0, 0.0, 0.0)
    for before, answer in (
        ([QUESTION], GivenAnswer("I look.\n<call>", (1, 2), stats, "I look.\n", (ToolCall("look", ARGUMENTS),))),
        (history(), GivenAnswer("There.\n", (3, 4), stats, "There.\n")),
    ):
        *_, chain = chains(messages_of(before, chat), "", "")
        known.add(chain, answer)
    return [m.tokens for m in with_tokens(messages_of(messages, chat), known, "", "") if m.role == "assistant"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"arguments": '{"days":null,"exact":{"a":null,"b":1},"city":"Zürich"}'},
        {"arguments": '{"city": "Z\\u00fcrich", "exact": {"b": 1}}'},
        {"text": "I look."},
        {"call": "toolu_7"},
    ],
)
def test_an_answer_that_its_client_writes_again_is_the_same_answer(more: dict[str, str]) -> None:
    last = {"role": "assistant", "content": "There."}
    assert known_tokens(*history(**more), last, QUESTION) == [(1, 2), (3, 4)]


def test_an_answer_that_is_continued_goes_on_from_what_the_client_sent() -> None:
    """Another blank at its end is another beginning of what follows."""
    assert known_tokens(*history(), {"role": "assistant", "content": "There."}) == [(1, 2), ()]
    assert known_tokens(*history(), {"role": "assistant", "content": "There.\n"}) == [(1, 2), (3, 4)]


def test_an_answer_that_its_client_edits_is_another() -> None:
    edited = history(arguments=ARGUMENTS.replace("Zürich", "Bern"))
    assert known_tokens(*edited, {"role": "assistant", "content": "There."}, QUESTION) == [(), ()]
