"""What Ollama's clients ask."""

import json
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk import __version__
from kvdesk.loose_json import object_in
from kvdesk.server.errors import ApiError
from kvdesk.server.ollama.chat import OllamaChatRequest, chat_of_ollama
from kvdesk.server.request.schemas import parsed


def test_the_open_model_is_listed_and_shown(http: httpx.Client) -> None:
    assert http.get("/api/version").json() == {"version": __version__}
    (one,) = http.get("/api/tags").json()["models"]
    assert one["name"] == one["model"] == http.get("/v1/models").json()["data"][0]["id"]
    assert one["size"] > 0
    shown = http.post("/api/show", json={"model": one["name"]}).json()
    assert shown["details"] == one["details"]
    assert (one["details"]["format"], one["details"]["family"]) == ("gguf", "llama")
    assert shown["model_info"]["llama.context_length"] > 0
    assert "<|im_start|>" in shown["template"]
    assert {"completion", "tools"} <= set(shown["capabilities"])
    assert http.post("/api/show", content=b"no").status_code == 400


def chat(http: httpx.Client, **fields: Any) -> httpx.Response:
    messages = [{"role": "user", "content": "Say hello."}]
    return http.post("/api/chat", json={"model": "any", "messages": messages, "options": {"num_predict": 5}, **fields})


def test_an_answer_streams_as_lines(http: httpx.Client) -> None:
    whole = chat(http, stream=False).json()
    answer = chat(http)
    assert answer.headers["content-type"] == "application/x-ndjson"
    *parts, last = (json.loads(line) for line in answer.text.splitlines())
    assert "".join(part["message"]["content"] for part in parts) == whole["message"]["content"]
    assert [part["done"] for part in parts] == [False] * len(parts)
    for end in (whole, last):
        assert (end["done"], end["done_reason"], end["eval_count"]) == (True, "length", 5)
        assert end["total_duration"] == end["prompt_eval_duration"] + end["eval_duration"]


def test_a_schema_and_tools_reach_the_model(http: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    options = {"num_predict": 60, "temperature": 0}
    said = chat(http, format=schema, stream=False, options=options).json()["message"]["content"]
    assert json.loads(said)["n"] in (1, 2)
    call = {"function": {"name": "look", "arguments": {"at": "sea"}}}
    history = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "thinking": "At what?", "tool_calls": [call]},
        {"role": "tool", "tool_name": "look", "content": "It is blue."},
    ]
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    assert chat(http, messages=history, tools=[tool], think=False, stream=False).json()["done"] is True


@pytest.mark.parametrize(("name", "value"), [("num_predict", "many"), ("temperature", "hot"), ("stop", [1])])
def test_a_wrong_option_is_called_as_the_client_calls_it(name: str, value: object) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "options": {name: value}}
    with pytest.raises(ApiError, match=f"^options.{name}: ") as raised:
        chat_of_ollama(parsed(OllamaChatRequest, body))
    assert raised.value.param == f"options.{name}"


@pytest.mark.parametrize("text", ["", "[1]", '{"city": "Ro', "[" * 100_000])
def test_arguments_that_were_cut_off_are_none(text: str) -> None:
    assert object_in(text) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": []},
        {"messages": [{"role": "user", "content": "x", "images": ["AAAA"]}]},
        {"format": "xml"},
        {"options": {"temperature": "hot"}},
        {"options": {"num_predict": 0}},
        {"tools": [{"type": "function"}]},
    ],
)
def test_what_is_none_is_refused_in_ollama_s_form(http: httpx.Client, fields: dict[str, Any]) -> None:
    answer = chat(http, **fields)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)
