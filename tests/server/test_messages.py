"""`/v1/messages`: over HTTP with a model, and with a back end whose answers are given."""

import json
from datetime import datetime
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.answer_reader import AnswerDelta, AnswerReader, CallDelta
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.chat import Generate, TextDelta, ToolChoice
from kvdesk.server.answering import Choice
from kvdesk.server.anthropic.events import SIGNATURE, MessageEvents
from kvdesk.server.chat import Answer
from kvdesk.server.openai.responses_events import ResponseEvents
from kvdesk.server.openai.responses_request import ResponsesRequest
from kvdesk.server.request.schemas import parsed
from kvdesk.settings import Sampling
from tests.server.conftest import KEY, Running
from tests.server.scripted import THINKING, Calling

TOOL = {"name": "weather", "description": "It tells the weather.", "input_schema": {"type": "object"}}
HELLO = {"messages": [{"role": "user", "content": "How is the weather in Rom?"}], "max_tokens": 20}
CALL = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rom"}}
USER = {"role": "user", "content": "Hi"}


def events_of(http: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Of a stream; each is named by its type."""
    text = http.post("messages", json={**body, "stream": True}).text
    pairs = [part.split("\n", 1) for part in text.strip().split("\n\n")]
    events = [json.loads(data.removeprefix("data: ")) for _, data in pairs]
    assert [name for name, _ in pairs] == [f"event: {event['type']}" for event in events]
    return events


def built(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that a client makes of a stream."""
    message: dict[str, Any] = {}
    texts: list[str] = []
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
                texts.append("")
            case "content_block_delta":
                (name,) = set(event["delta"]) - {"type"}
                if name == "partial_json":
                    texts[-1] += event["delta"][name]
                else:
                    message["content"][event["index"]][name] += event["delta"][name]
            case "content_block_stop":
                if message["content"][event["index"]]["type"] == "tool_use":
                    message["content"][-1]["input"] = json.loads(texts[-1])
            case "message_delta":
                message |= event["delta"] | {"usage": event["usage"]}
    return message


def test_reasoning_text_and_calls_are_blocks_and_come_back_as_they_were_written(
    backend: Calling, scripted_http: httpx.Client
) -> None:
    backend.text = THINKING
    body = {**HELLO, "tools": [TOOL]}
    whole = scripted_http.post("messages", json=body).raise_for_status().json()
    thought, said, call = whole["content"]
    assert thought == {"type": "thinking", "thinking": "They want to know.", "signature": SIGNATURE}
    assert said == {"type": "text", "text": "I look."}
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "weather", {"city": "Rom"})
    assert (whole["type"], whole["role"], whole["stop_reason"]) == ("message", "assistant", "tool_use")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "sunny"}]}
    messages = [*HELLO["messages"], {"role": "assistant", "content": whole["content"]}]  # type: ignore[misc]
    again = scripted_http.post(
        "messages", json={**body, "messages": [*messages, {"role": "user", "content": [result]}]}
    ).json()
    assert again["content"] == [{"type": "text", "text": "It is sunny"}]
    assert again["stop_reason"] == "end_turn"
    answer, told = backend.asked[1].messages[1:]
    assert answer.text == THINKING, "as the model wrote it, with the ids that it has"
    assert answer.tokens
    assert (told.role, told.text, json.loads(told.fields)) == ("tool", "sunny", {"tool_call_id": call["id"]})


def test_the_end_of_a_call_comes_before_the_text_behind_it() -> None:
    """Also where both come at once, as they do after a client has read slowly."""
    conversation = ConversationId("c")
    event = TextDelta(conversation, MessageId("m"), "", ())
    answer = Answer(Choice(0, Generate(conversation, event.answer, (), Sampling())), AnswerReader())
    deltas = [
        AnswerDelta(said="I look.", calls=(CallDelta(0, "c", "weather", '{"ci'),)),
        AnswerDelta(said="Done.", calls=(CallDelta(0, "c", "", 'ty": "Rom"}'),)),
    ]
    message = MessageEvents(conversation, "m")
    blocks = [one for delta in deltas for one in message.events(answer, event, delta)]
    assert [one["index"] for one in blocks if one["type"] == "content_block_delta"] == [0, 1, 1, 2]
    response = ResponseEvents(parsed(ResponsesRequest, {"input": "Hi"}), conversation, "m", lambda _response: None)
    items = [one for delta in deltas for one in response.events(answer, event, delta)]
    assert [one["output_index"] for one in items if one["type"].endswith(".delta")] == [0, 1, 1, 2]


def test_a_stream_brings_the_same_message(backend: Calling, scripted_http: httpx.Client) -> None:
    backend.text = THINKING
    body = {**HELLO, "tools": [TOOL]}
    whole, events = scripted_http.post("messages", json=body).json(), events_of(scripted_http, body)
    message = built(events)
    for one in (whole, message):
        one["id"] = one["content"][2]["id"] = ""
    assert message == whole
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["message_start", "ping", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    deltas = [event["delta"]["type"] for event in events if event["type"] == "content_block_delta"]
    assert list(dict.fromkeys(deltas)) == ["thinking_delta", "signature_delta", "text_delta", "input_json_delta"]


def test_blocks_become_messages_in_their_order(backend: Calling, scripted_http: httpx.Client) -> None:
    header = "x-anthropic-billing-header: cc_version=2.1; cch=a5145;"
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no"},
        {"type": "tool_result", "tool_use_id": "t1", "content": [picture, {"type": "document", "source": {}}]},
    ]
    text = [{"type": "text", "text": "And", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "now?"}]
    messages = [
        USER,
        {"role": "assistant", "content": [{"type": "text", "text": "I "}, {"type": "text", "text": "look."}, CALL]},
        {"role": "user", "content": [*results, *text]},
    ]
    messages.append({"role": "user", "content": []})
    system = [{"type": "text", "text": header}, {"type": "text", "text": "Be brief."}]
    scripted_http.post("messages", json={"messages": messages, "system": system, "tools": [TOOL]}).raise_for_status()
    (asked,) = backend.asked
    assert [(one.role, one.text) for one in asked.messages] == [
        ("system", f"{header}\nBe brief."),
        ("user", "Hi"),
        ("assistant", "I look."),
        ("tool", "no"),
        (
            "tool",
            (
                "[The tool returned a picture, which this model cannot see.]\n"
                "[The tool returned a file, which this model cannot read.]"
            ),
        ),
        ("user", "And\nnow?"),
        ("user", ""),
    ]
    (call,) = json.loads(asked.messages[2].fields)["tool_calls"]
    assert (call["id"], call["function"]["arguments"]) == ("t1", {"city": "Rom"})
    (tool,) = json.loads(asked.tools)
    assert tool["function"] == {
        "name": "weather",
        "description": TOOL["description"],
        "parameters": TOOL["input_schema"],
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, ToolChoice()),
        ({"type": "any"}, ToolChoice(must=True)),
        ({"type": "tool", "name": "weather"}, ToolChoice(must=True, names=("weather",))),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice(several=False)),
        ({"type": "none"}, None),
    ],
)
def test_a_choice_of_tools_is_handed_on(
    backend: Calling, scripted_http: httpx.Client, choice: dict[str, Any], expected: ToolChoice | None
) -> None:
    scripted_http.post("messages", json={**HELLO, "tools": [TOOL], "tool_choice": choice}).raise_for_status()
    assert backend.asked[0].choice == expected


def test_options_are_those_of_chat_completions(backend: Calling, scripted_http: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    more = {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "stop_sequences": ["END"],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}},
        "top_k": 7,
        "min_p": 0.25,
        "metadata": {"user_id": "u"},
        "context_management": {"edits": []},
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    }
    answer = scripted_http.post("messages", json={**HELLO, **more}).raise_for_status()
    (asked,) = backend.asked
    assert asked.reasoning_budget == 1024
    assert json.loads(asked.variables)["enable_thinking"] is True
    assert json.loads(asked.variables)["reasoning_effort"] == "low"
    assert (asked.sampling.stop, asked.sampling.top_k, asked.sampling.min_p) == (("END",), 7, 0.25)
    assert (asked.sampling.max_tokens, json.loads(asked.sampling.json_schema)) == (20, schema)
    assert not asked.tools
    assert answer.headers["x-kvdesk-passed-over"] == "context_management, tools.web_search_20250305"


def test_the_older_name_of_a_format_is_taken(backend: Calling, scripted_http: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    form = {"output_format": {"type": "json_schema", "schema": schema}}
    scripted_http.post("messages", json={**HELLO, **form}).raise_for_status()
    assert json.loads(backend.asked[0].sampling.json_schema) == schema


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages.0.role"),
        ({"messages": [USER, {"role": "assistant", "content": [7]}]}, "messages.1.content.0"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": [{**CALL}]}]}, "messages.0.content.0"),
        ({"system": [{"type": "text"}]}, "system.0.text"),
        ({"tools": [{"input_schema": {}}]}, "tools.0.name"),
        ({"tool_choice": {"type": "tool"}, "tools": [TOOL]}, "tool_choice"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"output_config": {"format": {"type": "json"}}}, "output_config.format"),
        ({"output_format": {"type": "json"}}, "output_format"),
        ({"n": 2}, "n"),
    ],
)
def test_what_is_wrong_is_named_in_anthropics_form(http: httpx.Client, more: dict[str, Any], place: str) -> None:
    answer = http.post("/v1/messages", json={**HELLO, **more})
    body = answer.json()
    assert (answer.status_code, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")
    assert body["error"]["message"].startswith(f"{place}: "), body


def test_a_prompt_that_does_not_fit_is_refused_in_words_that_clients_know(http: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "long " * 3000}], "max_tokens": 5}
    answer = http.post("/v1/messages", json=body)
    n_tokens = http.post("/v1/messages/count_tokens", json=body).raise_for_status().json()["input_tokens"]
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"prompt is too long: {n_tokens} tokens > 1024 maximum"


def test_a_key_may_come_as_anthropics_clients_send_it(running: Running) -> None:
    for headers, status in (
        ({"x-api-key": KEY.value}, 200),
        ({"x-api-key": KEY.value, "authorization": "Bearer other"}, 200),
        ({"x-api-key": "wrong"}, 401),
    ):
        with running.http(headers=headers) as http:
            answer = http.post("/v1/messages/count_tokens", json=HELLO)
            assert answer.status_code == status
    assert answer.json()["error"]["type"] == "authentication_error"


def test_why_an_answer_ended_is_named(http: httpx.Client) -> None:
    body = {**HELLO, "grammar": 'root ::= "one, two, three"', "stop_sequences": ["never", ", t"]}
    whole = http.post("/v1/messages", json=body).raise_for_status().json()
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("stop_sequence", ", t")
    assert whole["content"] == [{"type": "text", "text": "one"}]
    cut = http.post("/v1/messages", json={**body, "max_tokens": 1}).raise_for_status().json()
    assert (cut["stop_reason"], cut["stop_sequence"], cut["usage"]["output_tokens"]) == ("max_tokens", None, 1)
    none = http.post("/v1/messages", json={**body, "max_tokens": 0}).raise_for_status().json()
    assert (none["content"], none["stop_reason"], none["usage"]["output_tokens"]) == ([], "max_tokens", 0)


def test_an_answer_that_is_begun_is_continued_without_its_beginning(http: httpx.Client) -> None:
    begun = {"role": "assistant", "content": "one, "}
    body = {**HELLO, "messages": [*HELLO["messages"], begun], "grammar": 'root ::= "one, two"'}  # type: ignore[misc]
    whole = http.post("/v1/messages", json=body).raise_for_status().json()
    assert whole["content"] == [{"type": "text", "text": "two"}]


def test_models_have_what_anthropics_clients_read(http: httpx.Client) -> None:
    listed = http.get("/v1/models").raise_for_status().json()
    (model,) = listed["data"]
    assert (listed["has_more"], listed["first_id"], listed["last_id"]) == (False, model["id"], model["id"])
    assert (model["type"], model["display_name"]) == ("model", model["id"])
    assert datetime.fromisoformat(model["created_at"]).timestamp() == model["created"]


def test_why_names_the_header_that_claude_code_changes_with_every_request(inspector: httpx.Client) -> None:
    header = "x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch={};"
    tail = [{"type": "text", "text": "You are Claude Code, and you answer in short sentences. " * 5}]
    for changing in ("a5145", "09bc7"):
        system = [{"type": "text", "text": header.format(changing)}, *tail]
        found = inspector.post("/v1/messages", json={**HELLO, "system": system, "max_tokens": 2}).raise_for_status()
    assert "CLAUDE_CODE_ATTRIBUTION_HEADER=0" in found.json()["prefix_cache"]["message"]
