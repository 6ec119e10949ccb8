"""What llama-server tells of itself and its model, and kvdesk too."""

from typing import Any

import httpx2 as httpx

from tests.server.conftest import SETTINGS


def test_props_say_what_is_served(http: httpx.Client) -> None:
    props = http.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == SETTINGS.n_ctx
    assert props["default_generation_settings"]["params"]["temperature"] == 0.0
    assert props["default_generation_settings"]["params"]["n_predict"] == -1
    assert props["total_slots"] == SETTINGS.n_seq_max
    assert "<|im_start|>" in props["chat_template"]
    assert props["eos_token"] == "<|im_end|>"
    assert props["model_path"].endswith(".gguf")
    assert "/" not in props["model_path"]
    assert http.get("/v1/models").json()["data"][0]["id"] == props["model_alias"]


def test_a_chat_template_is_applied(http: httpx.Client) -> None:
    asked = {"messages": [{"role": "user", "content": "Say <|im_end|>."}], "tools": []}
    prompt = http.post("/apply-template", json=asked).json()["prompt"]
    assert "Say <|im_end|>.<|im_end|>\n" in prompt
    assert prompt.endswith("<|im_start|>assistant\n")
    unbegun = http.post("/apply-template", json={**asked, "add_generation_prompt": False}).json()["prompt"]
    assert f"{unbegun}<|im_start|>assistant\n" == prompt
    answer = {"role": "assistant", "content": "Well, "}
    continued = http.post("/apply-template", json={"messages": [*asked["messages"], answer]}).json()["prompt"]
    assert continued == f"{prompt}Well, "
    ended = {"messages": [*asked["messages"], answer], "add_generation_prompt": False}
    assert http.post("/apply-template", json=ended).json()["prompt"] == f"{prompt}Well, <|im_end|>\n"


def test_there_are_no_adapters(http: httpx.Client) -> None:
    assert http.get("/lora-adapters").json() == []


def test_the_tokens_of_a_chat_are_counted(http: httpx.Client) -> None:
    asked = {"messages": [{"role": "user", "content": "Say hello."}]}
    usage = http.post("/v1/chat/completions", json={**asked, "max_tokens": 1}).json()["usage"]
    for path in ("/chat/completions/input_tokens", "/v1/chat/completions/input_tokens"):
        assert http.post(path, json=asked).json()["input_tokens"] == usage["prompt_tokens"]


def test_an_empty_answer_at_the_end_is_where_this_one_begins(http: httpx.Client) -> None:
    """As llama-server has it, for clients that send the message they are about to fill."""
    asked = [{"role": "user", "content": "Hi"}]
    plain = http.post("/apply-template", json={"messages": asked}).json()
    for empty in ("", None):
        messages = [*asked, {"role": "assistant", "content": empty}]
        assert http.post("/apply-template", json={"messages": messages}).json() == plain


def test_half_a_character_in_any_field_is_replaced(http: httpx.Client) -> None:
    tool = r'{"type": "function", "function": {"name": "f", "description": "\ud800", "parameters": {}}}'
    body = r'{"messages": [{"role": "user", "content": "\ud83d\ude00"}], "tools": [' + tool + "]}"
    answer = http.post("/apply-template", content=body)
    assert answer.status_code == 200, answer.text
    assert "\U0001f600" in answer.json()["prompt"]
    named = http.post("/v1/responses", content=r'{"input": [{"type": "\ud800"}]}')
    assert named.status_code == 400, named.text


def test_a_prompt_that_cannot_be_rendered_is_refused(http: httpx.Client) -> None:
    bodies: list[dict[str, Any]] = [{}, {"messages": []}, {"messages": [{"role": "user"}]}]
    for body in bodies:
        assert http.post("/apply-template", json=body).status_code == 400
