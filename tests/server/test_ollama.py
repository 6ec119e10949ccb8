"""What Ollama's clients ask."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.loose_json import object_in
from kvdesk.server.errors import ApiError
from kvdesk.server.ollama.about import quantization
from kvdesk.server.ollama.chat import OllamaChatRequest, chat_of_ollama
from kvdesk.server.request.schemas import parsed
from tests.server.conftest import SETTINGS, Running
from tests.server.scripted import THINKING, WEATHER, Calling


def test_the_open_model_is_listed_and_shown(http: httpx.Client) -> None:
    version = tuple(map(int, http.get("/api/version").json()["version"].split(".")))
    assert version >= (0, 13, 4), "VS Code's Copilot and Codex refuse what calls itself older"
    (one,) = http.get("/api/tags").json()["models"]
    assert one["name"] == one["model"] == http.get("/v1/models").json()["data"][0]["id"]
    assert one["size"] > 0
    shown = http.post("/api/show", json={"model": one["name"]}).json()
    assert shown["details"] == one["details"]
    assert (one["details"]["format"], one["details"]["family"]) == ("gguf", "llama")
    assert shown["model_info"]["llama.context_length"] == SETTINGS.n_ctx, "what a client may use, not what is possible"
    assert shown["model_info"]["general.basename"] == one["name"]
    assert shown["parameters"] == f"num_ctx {SETTINGS.n_ctx}"
    assert shown.get("license", "apache-2.0") == "apache-2.0", "the tiny model names none"
    assert len(one["digest"]) == 64, "`ollama list` shows twelve of them"
    (there,) = http.get("/api/ps").json()["models"]
    assert {name: there[name] for name in ("name", "digest", "details")} == {
        name: one[name] for name in ("name", "digest", "details")
    }
    assert datetime.fromisoformat(there["expires_at"]) > datetime.now(UTC)
    assert "<|im_start|>" in shown["template"]
    assert {"completion", "tools"} <= set(shown["capabilities"]) == set(one["capabilities"])
    assert shown["modified_at"] == one["modified_at"], "by which clients see that a model has changed"
    assert http.post("/api/show", content=b"no").status_code == 400


@pytest.mark.parametrize(
    ("described", "named"),
    [
        ("llama ?B Q4_1", "Q4_1"),
        ("qwen2 1B Q4_K - Medium", "Q4_K_M"),
        ("gemma3 270M (guessed) IQ4_XS - 4.25 bpw", "IQ4_XS"),
    ],
)
def test_a_quantization_has_its_usual_name(described: str, named: str) -> None:
    assert quantization(described) == named


def test_whether_a_server_is_there_needs_no_key(running: Running) -> None:
    with httpx.Client(base_url=running.root) as nobody:
        assert nobody.head("/").status_code == nobody.get("/").status_code == 200


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
        work = end["prompt_eval_duration"] + end["eval_duration"]
        assert end["total_duration"] == work + end["load_duration"] > work, "clients take 0 for missing"


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


def test_calls_have_an_id_and_a_place(backend: Calling, scripted_http: httpx.Client) -> None:
    second = '<tool_call>\n{"name": "weather", "arguments": {"city": "Bern"}}\n</tool_call>'
    backend.text = f"{THINKING}\n{second}"
    asked = {"messages": [{"role": "user", "content": "How is it in Rom and Bern?"}], "tools": [WEATHER]}
    whole = scripted_http.post("../api/chat", json={**asked, "stream": False}).json()["message"]
    streamed = [json.loads(line)["message"] for line in scripted_http.post("../api/chat", json=asked).text.splitlines()]
    (in_stream,) = (message["tool_calls"] for message in streamed if "tool_calls" in message)
    assert whole["thinking"] == "".join(message.get("thinking", "") for message in streamed) == "They want to know."
    for calls in (whole["tool_calls"], in_stream):
        assert [call["function"] for call in calls] == [
            {"index": i, "name": "weather", "arguments": {"city": city}} for i, city in enumerate(("Rom", "Bern"))
        ]
        assert calls[0]["id"] != calls[1]["id"]


def test_a_model_that_is_to_be_loaded_is(http: httpx.Client) -> None:
    for path in ("/api/chat", "/api/generate"):
        for keep_alive, reason in ((-1, "load"), ("5m", "load"), (0, "unload"), ("0s", "unload")):
            found = http.post(path, json={"model": "any", "keep_alive": keep_alive}).raise_for_status().json()
            assert (found["done"], found["done_reason"]) == (True, reason)
    for stream, form in ((True, "application/x-ndjson"), (False, "application/json")):
        pulled = http.post("/api/pull", json={"model": "any", "stream": stream})
        assert (pulled.json(), pulled.headers["content-type"]) == ({"status": "success"}, form)


@pytest.mark.parametrize("limit", [0, -1, -2])
def test_no_limit_is_none(limit: int) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "options": {"num_predict": limit}}
    assert chat_of_ollama(parsed(OllamaChatRequest, body)).max_tokens == -1


def lines_of(http: httpx.Client, **fields: Any) -> list[dict[str, Any]]:
    """Of an answer to one text."""
    body = {"model": "any", "options": {"num_predict": 5}, **fields}
    answer = http.post("/api/generate", json=body).raise_for_status()
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_text_is_answered_as_a_chat_of_one_message_is(http: httpx.Client) -> None:
    (whole,) = lines_of(http, prompt="Say hello.", stream=False)
    assert whole["response"] == chat(http, stream=False).json()["message"]["content"]
    *parts, last = lines_of(http, prompt="Say hello.")
    assert "".join(part["response"] for part in parts) == whole["response"]
    assert (last["response"], last["done"], last["done_reason"], last["eval_count"]) == ("", True, "length", 5)
    (brief,) = lines_of(http, prompt="Say hello.", system="Be brief.", stream=False)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]
    assert brief["response"] == chat(http, messages=messages, stream=False).json()["message"]["content"]
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}
    (form,) = lines_of(http, prompt="A number.", format=schema, options={"num_predict": 60}, stream=False)
    assert json.loads(form["response"])["n"] in (1, 2)


def test_a_text_follows_the_context_of_the_one_before(http: httpx.Client) -> None:
    """As programs that know only `/api/generate` keep a conversation."""
    (first,) = lines_of(http, prompt="Say hello.", stream=False)
    *_, again = lines_of(http, prompt="Say hello.")
    assert again["context"] == first["context"]
    assert len(first["context"]) == first["prompt_eval_count"] + 5
    *_, second = lines_of(http, prompt="And goodbye.", context=first["context"])
    assert second["prompt_eval_count"] > len(first["context"])
    assert second["context"][: len(first["context"])] == first["context"]
    text = http.post("/detokenize", json={"tokens": second["context"]}).json()["content"]
    assert text.index("Say hello.") < text.index("And goodbye.")
    assert "context" not in lines_of(http, prompt="The sea is", raw=True, stream=False)[0]
    answer = http.post("/api/generate", json={"prompt": "x", "context": [1 << 30]})
    assert (answer.status_code, "1073741824" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize("raw", [False, True])
def test_tokens_have_probabilities(http: httpx.Client, raw: bool) -> None:
    fields = {"prompt": "Say hello.", "raw": raw, "logprobs": True, "top_logprobs": 2}
    (whole,) = lines_of(http, **fields, stream=False)
    streamed = [one for line in lines_of(http, **fields) for one in line.get("logprobs", ())]
    assert [one["token"] for one in streamed] == [one["token"] for one in whole["logprobs"]]
    assert len(streamed) == 5
    assert all(one["logprob"] <= 0 and len(one["top_logprobs"]) == 2 and one["bytes"] for one in streamed)
    assert len(chat(http, logprobs=True, stream=False).json()["logprobs"]) == 5
    assert "logprobs" not in chat(http, stream=False).json()
    assert chat(http, logprobs=True, top_logprobs=21).status_code == 400


def test_a_raw_text_goes_on(http: httpx.Client) -> None:
    (whole,) = lines_of(http, prompt="The sea is", raw=True, stream=False, options={"num_predict": 4, "stop": ["~"]})
    plain = http.post("/v1/completions", json={"prompt": "The sea is", "max_tokens": 4}).json()
    assert whole["response"] == plain["choices"][0]["text"]
    assert whole["prompt_eval_count"] == plain["usage"]["prompt_tokens"]
    *parts, last = lines_of(http, prompt="The sea is", raw=True, options={"num_predict": 4})
    assert ("".join(part["response"] for part in parts), last["done_reason"]) == (whole["response"], "length")


def test_a_suffix_is_what_comes_behind(http: httpx.Client) -> None:
    asked = {"prompt": "a = ", "suffix": "\nb = 2", "stream": False, "options": {"num_predict": 4}}
    answer = http.post("/api/generate", json=asked)
    if "insert" in http.post("/api/show", json={}).json()["capabilities"]:
        assert answer.json()["done"] is True
    else:
        assert (answer.status_code, "tokens" in answer.json()["error"]) == (501, True)


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
        {"messages": [{"role": "user", "content": "x", "images": ["AAAA"]}]},
        {"format": "xml"},
        {"options": {"temperature": "hot"}},
        {"tools": [{"type": "function"}]},
    ],
)
def test_what_is_none_is_refused_in_ollama_s_form(http: httpx.Client, fields: dict[str, Any]) -> None:
    answer = chat(http, **fields)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)
