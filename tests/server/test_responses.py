"""`/v1/responses`: the `openai` package against a model, and against a back end whose answers are given."""

import json
from typing import Any

import httpx2 as httpx
import openai
import pytest

from kvdesk.message import ConversationId
from kvdesk.protocol.chat import ToolChoice
from kvdesk.server import kept_responses
from kvdesk.server.errors import ApiError
from kvdesk.server.openai.responses_events import ResponseEvents
from kvdesk.server.openai.responses_request import ResponsesRequest
from kvdesk.server.request.schemas import parsed
from kvdesk.thinking import at_effort, switch
from tests.server.conftest import INSPECT, Running
from tests.server.scripted import CALLING, THINKING, Calling

TOOL: Any = {
    "type": "function",
    "name": "weather",
    "description": "w",
    "parameters": {"type": "object"},
    "strict": True,
}
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
ASKED = "How is the weather in Rom?"
SEALED: Any = ["reasoning.encrypted_content"]


def output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "sunny"}


def items_of(response: Any) -> list[Any]:
    return [item.model_dump(exclude_none=True) for item in response.output]


@pytest.mark.parametrize("way", ["items", "sealed", "references", "previous"])
def test_an_answer_comes_back_as_it_was_written(backend: Calling, scripted: openai.OpenAI, way: str) -> None:
    backend.text = THINKING
    first: Any = [{"role": "user", "content": ASKED}]
    asked: Any = {"model": "x", "tools": [TOOL], "include": SEALED, "store": way in ("references", "previous")}
    done = scripted.responses.create(input=first, **asked)
    thought, said, call = done.output
    assert (thought.type, said.type, call.type) == ("reasoning", "message", "function_call")
    assert thought.content[0].text == "They want to know."
    assert (done.output_text, done.status) == ("I look.", "completed")
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Rom"})
    back = items_of(done)
    if way == "sealed":
        del back[0]["content"]
    if way == "references":
        back = [{"type": "item_reference", "id": item["id"]} for item in back]
    more = {"previous_response_id": done.id} if way == "previous" else {}
    given: Any = [output(call.call_id)] if way == "previous" else [*first, *back, output(call.call_id)]
    again = scripted.responses.create(input=given, **asked, **more)
    assert again.output_text == "It is sunny"
    answer, told = backend.asked[1].messages[1:]
    assert answer.text == THINKING, "as the model wrote it, with the ids that it has"
    assert answer.tokens
    assert (told.role, told.text, json.loads(told.fields)) == ("tool", "sunny", {"tool_call_id": call.call_id})


def test_tokens_of_reasoning_are_counted_as_in_chat_completions(backend: Calling, scripted: openai.OpenAI) -> None:
    backend.text = THINKING
    of_response = scripted.responses.create(model="x", input=ASKED).usage
    of_chat = scripted.chat.completions.create(model="x", messages=[{"role": "user", "content": ASKED}]).usage
    assert of_response is not None
    assert of_chat is not None
    assert of_chat.completion_tokens_details is not None
    n_thought = of_chat.completion_tokens_details.reasoning_tokens or 0
    assert of_response.output_tokens_details.reasoning_tokens == n_thought > 0


def test_a_stream_brings_the_same_response(backend: Calling, scripted: openai.OpenAI) -> None:
    backend.text = THINKING
    whole = scripted.responses.create(model="x", input=ASKED, tools=[TOOL])
    with scripted.responses.create(model="x", input=ASKED, tools=[TOOL], stream=True) as stream:
        events: list[Any] = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1]
    assert last.type == "response.completed"
    for one, other in zip(items_of(whole), items_of(last.response), strict=True):
        assert {**one, "id": "", "call_id": ""} == {**other, "id": "", "call_id": ""}
    kinds = [event.type.removeprefix("response.") for event in events]
    added = ["output_item.added", "content_part.added"]
    assert list(dict.fromkeys(kinds)) == [
        *("created", "in_progress", *added, "reasoning_text.delta", "reasoning_text.done", "content_part.done"),
        *("output_item.done", "output_text.delta", "output_text.done", "function_call_arguments.delta"),
        *("function_call_arguments.done", "completed"),
    ]
    done = {event.item.id: event.item for event in events if event.type == "response.output_item.done"}
    assert [done[item.id].model_dump() for item in last.response.output] == [
        item.model_dump() for item in last.response.output
    ]
    texts = dict.fromkeys(done, "")
    for event in events:
        if event.type.endswith(".delta"):
            texts[event.item_id] += event.delta
    assert [*texts.values()][:2] == ["They want to know.", "I look."]
    assert json.loads([*texts.values()][2]) == {"city": "Rom"}


def test_items_become_messages(backend: Calling, scripted: openai.OpenAI) -> None:
    items: Any = [
        {"role": "developer", "content": [{"type": "input_text", "text": "Speak English."}]},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "I "}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "look."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rom"}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "no"}, PICTURE]},
    ]
    scripted.responses.create(model="x", input=items, instructions="Be brief.", tools=[TOOL, {"type": "web_search"}])
    (asked,) = backend.asked
    assert [(one.role, one.text) for one in asked.messages] == [
        ("system", "Be brief.\nSpeak English."),
        ("user", "Hi"),
        ("assistant", "I look."),
        ("tool", "no\n[The tool returned a picture, which this model cannot see.]"),
    ]
    (call,) = json.loads(asked.messages[2].fields)["tool_calls"]
    assert call["function"] == {"name": "weather", "arguments": {"city": "Rom"}}
    (tool,) = json.loads(asked.tools)
    assert tool["function"] == {"name": "weather", "description": "w", "parameters": {"type": "object"}}


def test_functions_of_a_namespace_come_back_in_it(backend: Calling, scripted: openai.OpenAI) -> None:
    """As Codex sends those of MCP servers, and knows them in its history."""
    sky: Any = {"type": "namespace", "name": "mcp__sky", "description": "The sky", "tools": [TOOL, {"type": "custom"}]}
    plain: Any = {**TOOL, "name": "plain"}
    call: Any = {
        "type": "function_call",
        "call_id": "c1",
        "namespace": "mcp__sky",
        "name": "weather",
        "arguments": "{}",
    }
    backend.text = CALLING.replace("weather", "mcp__sky__weather")
    asked: Any = {"model": "x", "tools": [sky, plain], "input": [{"role": "user", "content": "Hi"}, call, output("c1")]}
    asked["input"][-1]["output"] = "no sky"
    done = scripted.responses.create(**asked)
    found = items_of(done)[-1]
    assert (found["type"], found["namespace"], found["name"]) == ("function_call", "mcp__sky", "weather")
    with scripted.responses.create(**asked, stream=True) as stream:
        ended = [event.item.model_dump() for event in stream if event.type == "response.output_item.done"]
    assert (ended[-1]["namespace"], ended[-1]["name"]) == ("mcp__sky", "weather")
    command = backend.asked[0]
    assert [tool["function"]["name"] for tool in json.loads(command.tools)] == ["mcp__sky__weather", "plain"]
    (before,) = json.loads(command.messages[1].fields)["tool_calls"]
    assert before["function"]["name"] == "mcp__sky__weather"
    last: Any = [output(found["call_id"])]
    following = scripted.responses.create(model="x", tools=[sky], previous_response_id=done.id, input=last)
    assert following.output_text == "It is sunny"
    (again,) = json.loads(backend.asked[-1].messages[-2].fields)["tool_calls"]
    assert again["function"]["name"] == "mcp__sky__weather"


def test_options_are_those_of_chat_completions(backend: Calling, scripted: openai.OpenAI) -> None:
    schema: Any = {"type": "object", "properties": {"a": {"type": "integer"}}}
    scripted.responses.create(
        model="x",
        input="Hi",
        text={"format": {"type": "json_schema", "name": "n", "schema": schema}},
        reasoning={"effort": "low", "summary": "auto"},
        max_output_tokens=7,
        temperature=0.5,
        extra_body={"min_p": 0.25},
    )
    scripted.responses.create(model="x", input="Hi", tools=[TOOL], tool_choice={"type": "function", "name": "weather"})
    first, second = backend.asked
    assert json.loads(first.sampling.json_schema) == schema
    assert json.loads(first.variables) == switch(True) | at_effort("low")
    assert (first.sampling.max_tokens, first.sampling.temperature, first.sampling.min_p) == (7, 0.5, 0.25)
    assert second.choice == ToolChoice(must=True, names=("weather",))


def test_an_answer_that_is_cut_off_is_incomplete(client: openai.OpenAI) -> None:
    more = {"grammar": 'root ::= "one, two, three"'}
    cut = client.responses.create(model="x", input="Hi", max_output_tokens=1, extra_body=more)
    assert cut.status == cut.output[0].status == "incomplete"
    assert cut.incomplete_details.reason == "max_output_tokens"


def test_tokens_of_the_text_have_probabilities(client: openai.OpenAI) -> None:
    asked: Any = {"model": "x", "input": "Hi", "max_output_tokens": 4, "top_logprobs": 2}
    asked["include"] = ["message.output_text.logprobs"]
    (part,) = client.responses.create(**asked).output[0].content
    assert [len(one.top_logprobs) for one in part.logprobs] == [2] * 4
    with client.responses.create(**asked, stream=True) as stream:
        events = list(stream)
    deltas = [one for event in events if event.type == "response.output_text.delta" for one in event.logprobs]
    (done,) = (event for event in events if event.type == "response.output_text.done")
    assert [one.token for one in deltas] == [one.token for one in done.logprobs] == [one.token for one in part.logprobs]
    del asked["include"]
    assert client.responses.create(**asked).output[0].content[0].logprobs == []


def test_a_response_is_kept_for_its_client_until_it_is_deleted(client: openai.OpenAI, running: Running) -> None:
    kept = client.responses.create(model="x", input="Hi", max_output_tokens=3)
    gone = client.responses.create(model="x", input="Hi", max_output_tokens=3, store=False)
    assert client.responses.retrieve(kept.id).output_text == kept.output_text
    item: Any
    (item,) = client.responses.input_items.list(kept.id)
    assert (item.type, item.role, item.content[0].text) == ("message", "user", "Hi")
    assert item.id
    with running.openai(INSPECT) as other, pytest.raises(openai.NotFoundError):
        other.responses.retrieve(kept.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(gone.id)
    client.responses.delete(kept.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="x", input=[{"type": "item_reference", "id": kept.output[0].id or ""}])
    for identity in (kept.id, gone.id):
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model="x", input="Hi", previous_response_id=identity)
        assert caught.value.code == "previous_response_not_found"


def test_the_oldest_go_where_too_much_is_kept(client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.responses.create(model="x", input="Hi " * 50, max_output_tokens=3)
    monkeypatch.setattr(kept_responses, "MOST_RESPONSE_BYTES", 3000)
    later = [client.responses.create(model="x", input="Hi", max_output_tokens=3) for _ in range(2)]
    assert client.responses.retrieve(later[-1].id).id == later[-1].id
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"input": []}, "input"),
        ({"input": [7]}, "input.0"),
        ({"input": [{"role": "robot", "content": "Hi"}]}, "input.0.role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input.0.content.0"),
        ({"input": [{"type": "web_search_call", "id": "w"}]}, "input.0"),
        ({"input": [{"type": "item_reference", "id": "msg_none"}]}, "input"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "n"}]}, "input.0.arguments"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
        ({"tools": [{"type": "function"}]}, "tools.0.name"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]}, "tools.0.tools.0.name"),
        ({"tools": [{"type": "namespace"}]}, "tools.0.name"),
        ({"background": True}, "background"),
        ({"metadata": {"n": float("inf")}}, None),
        ({"conversation": "c"}, "conversation"),
    ],
)
def test_what_is_wrong_is_named(http: httpx.Client, more: dict[str, Any], place: str | None) -> None:
    body = json.dumps({"input": "Hi", **more}).replace("Infinity", "1e999")
    answer = http.post("/v1/responses", content=body)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["param"] == place, answer.text


def test_tools_that_no_header_can_name_are_passed_over(http: httpx.Client) -> None:
    tools = [{"type": kind} for kind in ("web_search", "näme", "x" * 3000, None)]
    answer = http.post("/v1/responses", json={"input": "Hi", "tools": tools, "max_output_tokens": 1})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-kvdesk-passed-over"] == "tools.web_search, tools.None"


def test_a_stream_that_fails_says_so_last() -> None:
    events = ResponseEvents(parsed(ResponsesRequest, {"input": "Hi"}), ConversationId("c"), "m", lambda _response: None)
    failed = events.failed(ApiError(503, "The engine has ended."))
    assert (failed["type"], failed["sequence_number"]) == ("response.failed", 0)
    assert (failed["response"]["id"], failed["response"]["status"]) == ("resp_c", "failed")
    assert failed["response"]["error"] == {"code": "server_error", "message": "The engine has ended."}
