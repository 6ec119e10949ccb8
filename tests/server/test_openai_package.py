"""The `openai` package, which nobody here wrote, against the server and a model."""

import json
import math
from typing import Any

import openai
import pytest

MODEL = "the one that is open"
SYSTEM = {"role": "system", "content": "You are a patient teacher who explains things to children in short sentences."}


def asked(text: str) -> list[Any]:
    return [SYSTEM, {"role": "user", "content": text}]


def chat(client: openai.OpenAI, text: str, **more: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=asked(text), **more)


def test_a_chat_is_answered(client: openai.OpenAI) -> None:
    done = chat(client, "What is a cat?", max_tokens=8)
    choice = done.choices[0]
    assert done.object == "chat.completion"
    assert done.model.startswith(("talking", "SmolLM2"))
    assert (choice.message.role, choice.finish_reason) == ("assistant", "length")
    assert choice.message.content
    assert done.usage.completion_tokens == 8
    assert done.usage.total_tokens == done.usage.prompt_tokens + 8


def test_a_stream_says_the_same_as_the_whole(client: openai.OpenAI) -> None:
    whole = chat(client, "Tell me a long story.", max_tokens=12)
    with chat(
        client, "Tell me a long story.", max_tokens=12, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens == 12


def test_two_answers_share_the_prompt(client: openai.OpenAI) -> None:
    done = chat(client, "Say something about rain.", max_tokens=10, n=2, seed=3, temperature=1.5)
    assert [choice.index for choice in done.choices] == [0, 1]
    assert done.choices[0].message.content != done.choices[1].message.content
    assert done.usage.completion_tokens <= 20
    again = chat(client, "Say something about rain.", max_tokens=10, n=2, seed=3, temperature=1.5)
    assert [choice.message.content for choice in again.choices] == [choice.message.content for choice in done.choices]


def test_an_answer_follows_a_json_schema(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "legs": {"type": "integer", "maximum": 9, "minimum": 0},
        },
        "required": ["name", "legs"],
        "additionalProperties": False,
    }
    done = chat(
        client,
        "Describe a dog as JSON.",
        max_tokens=60,
        response_format={"type": "json_schema", "json_schema": {"name": "animal", "schema": schema}},
    )
    found = json.loads(done.choices[0].message.content or "")
    assert set(found) == {"name", "legs"}
    assert isinstance(found["legs"], int)
    assert done.choices[0].finish_reason == "stop"


def test_a_grammar_leaves_no_other_word(client: openai.OpenAI) -> None:
    done = chat(client, "Is water wet?", max_tokens=10, extra_body={"grammar": 'root ::= "maybe" | "perhaps"'})
    assert done.choices[0].message.content in ("maybe", "perhaps")


def test_logprobs_are_of_the_tokens_that_were_chosen(client: openai.OpenAI) -> None:
    done = chat(client, "Count to three.", max_tokens=6, logprobs=True, top_logprobs=3, temperature=0.0)
    logprobs = done.choices[0].logprobs
    assert "".join(token.token for token in logprobs.content) == done.choices[0].message.content
    for token in logprobs.content:
        assert token.top_logprobs[0].token == token.token, "greedy takes the likeliest"
        assert token.top_logprobs[0].logprob == token.logprob <= 0.0
        assert len(token.top_logprobs) == 3
        assert sum(math.exp(one.logprob) for one in token.top_logprobs) <= 1.0 + 1e-9


def test_an_answer_ends_before_a_stop_string(client: openai.OpenAI) -> None:
    whole = chat(client, "Tell me about the sea.", max_tokens=20).choices[0].message.content
    stop = whole.split()[3]
    done = chat(client, "Tell me about the sea.", max_tokens=20, stop=[stop])
    assert done.choices[0].message.content == whole[: whole.index(stop)]
    assert done.choices[0].finish_reason == "stop"


def test_a_stop_string_inside_reasoning_ends_nothing(client: openai.OpenAI) -> None:
    grammar = r'root ::= "<think>\nQuestion: what?\n</think>\n\nThe answer. Question: none."'
    request: Any = {"stop": ["Question:"], "extra_body": {"grammar": grammar}}
    done = chat(client, "Hello", **request)
    message = done.choices[0].message
    assert (message.content, message.reasoning_content) == ("The answer. ", "Question: what?")
    assert done.choices[0].finish_reason == "stop"
    with chat(client, "Hello", **request, stream=True) as stream:
        deltas = [chunk.choices[0].delta for chunk in stream if chunk.choices]
    assert "".join(getattr(delta, "reasoning_content", "") or "" for delta in deltas) == "Question: what?"
    assert "".join(delta.content or "" for delta in deltas) == "The answer. "
    request["extra_body"]["reasoning_format"] = "none"
    whole = chat(client, "Hello", **request)
    assert whole.choices[0].message.content == "<think>\nQuestion: what?\n</think>\n\nThe answer. "


WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 4}, "days": {"type": "integer", "enum": [1, 2]}},
            "required": ["city", "days"],
        },
    },
}


def test_a_tool_is_called_where_one_must_be(client: openai.OpenAI) -> None:
    request: Any = {
        "model": MODEL,
        "messages": asked("How is the weather in Rome?"),
        "tools": [WEATHER],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "temperature": 0.0,
    }
    done: Any = client.chat.completions.create(**request)
    assert done.choices[0].finish_reason == "tool_calls"
    assert done.choices[0].message.content is None
    (call,) = done.choices[0].message.tool_calls
    assert call.type == "function"
    assert call.function.name == "get_weather"
    arguments = json.loads(call.function.arguments)
    assert set(arguments) == {"city", "days"}
    assert arguments["days"] in (1, 2)
    with client.chat.completions.create(**request, stream=True) as stream:
        deltas = [call for chunk in stream if chunk.choices for call in chunk.choices[0].delta.tool_calls or ()]
    parts = [delta.function.arguments or "" for delta in deltas if delta.function]
    assert json.loads("".join(parts)) == arguments
    history: Any = [
        *request["messages"],
        done.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    again: Any = client.chat.completions.create(model=MODEL, messages=history, tools=[WEATHER], max_tokens=4)
    cached = again.usage.prompt_tokens_details.cached_tokens or 0
    assert cached >= done.usage.total_tokens - 2, "the call is in the cache as the model wrote it"


def test_beside_tools_an_answer_follows_its_schema_or_calls(client: openai.OpenAI) -> None:
    """As the Agents SDK, pydantic-ai and the AI SDK ask if an agent with tools has a type of output."""
    schema = {"type": "object", "properties": {"legs": {"enum": [2, 4]}}, "required": ["legs"]}
    request: Any = {
        "model": MODEL,
        "messages": asked("How is the weather in Rome?"),
        "tools": [WEATHER],
        "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "animal", "schema": schema}},
        "temperature": 0.0,
        "max_tokens": 100,
    }
    said = client.chat.completions.create(**request, logit_bias={"<": -100})
    assert said.choices[0].finish_reason == "stop"
    assert json.loads(said.choices[0].message.content or "")["legs"] in (2, 4)
    for more in ({"logit_bias": {"<": 100}}, {"tool_choice": "required"}):
        called: Any = client.chat.completions.create(**request, **more)
        assert called.choices[0].finish_reason == "tool_calls", more
        (call,) = called.choices[0].message.tool_calls
        assert set(json.loads(call.function.arguments)) == {"city", "days"}


def test_a_tool_whose_parameters_no_grammar_can_follow_keeps_nothing_from_being_answered(client: openai.OpenAI) -> None:
    """Tools of MCP servers have what their makers wrote."""
    odd: Any = {"type": "object", "properties": {"a": {"$ref": "#/components/x"}, "b": {"type": "any"}}}
    tools: Any = [
        WEATHER,
        {"type": "function", "function": {"name": "odd", "parameters": odd}},
        {"type": "function", "function": {"name": "none", "description": "Takes nothing", "parameters": None}},
    ]
    request: Any = {"model": MODEL, "messages": asked("Hello"), "tools": tools, "temperature": 0.0}
    assert client.chat.completions.create(**request, max_tokens=3).choices[0].finish_reason == "length"
    choice: Any = {"type": "function", "function": {"name": "odd"}}
    done: Any = client.chat.completions.create(**request, tool_choice=choice, max_tokens=400)
    assert {call.function.name for call in done.choices[0].message.tool_calls} == {"odd"}


def test_a_prompt_is_only_read_where_no_token_is_wanted(client: openai.OpenAI) -> None:
    question = "Which of the seven seas is the one that no river ever reaches?"
    done = chat(client, question, max_tokens=0)
    assert (done.choices[0].message.content, done.choices[0].finish_reason) == ("", "length")
    assert done.usage.completion_tokens == 0
    with chat(client, question, max_completion_tokens=0, stream=True) as stream:
        deltas = [chunk.choices[0] for chunk in stream if chunk.choices]
    assert [one.finish_reason for one in deltas] == [None, "length"]
    after = chat(client, question, max_tokens=1)
    assert after.usage.prompt_tokens_details.cached_tokens == after.usage.prompt_tokens - 1


def test_as_many_prompts_are_answered_as_langchain_sends(client: openai.OpenAI) -> None:
    done = client.completions.create(model=MODEL, prompt=[f"Number {n}" for n in range(20)], max_tokens=1)
    assert [choice.index for choice in done.choices] == [*range(20)]


def test_a_suffix_is_what_comes_behind_the_answer_or_refused(client: openai.OpenAI) -> None:
    request: Any = {"model": MODEL, "prompt": "def one():\n", "max_tokens": 2}
    plain: Any = client.completions.create(**request, suffix="")
    if plain.model != "talking":  # the embedded model has no tokens for it
        with pytest.raises(openai.APIStatusError, match="501"):
            client.completions.create(**request, suffix="\n\ndef two(): ...")
        return
    filled: Any = client.completions.create(**request, suffix="\n\ndef two(): ...")
    assert filled.usage.prompt_tokens > plain.usage.prompt_tokens + 3
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(**{**request, "prompt": [1, 2]}, suffix="x")
    assert caught.value.param == "suffix"


def test_a_completion_goes_on_with_its_prompt(client: openai.OpenAI) -> None:
    done: Any = client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=4, logprobs=2)
    assert "Paris" in done.choices[0].text or done.model == "talking", "random weights do not know it"
    assert done.usage.prompt_tokens < 10, "no template is around it"
    other = client.completions.create(model=MODEL, prompt="Puffins live on", max_tokens=4)
    assert other.choices[0].text != done.choices[0].text
    assert "".join(done.choices[0].logprobs.tokens or []) == done.choices[0].text
    with client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=4, stream=True) as stream:
        assert "".join(chunk.choices[0].text for chunk in stream if chunk.choices) == done.choices[0].text


@pytest.mark.parametrize("prompt", ["Puffins live on", [7, 8, 9]])
def test_a_prompt_comes_back_before_its_answers(client: openai.OpenAI, prompt: Any) -> None:
    asked: dict[str, Any] = {"model": MODEL, "prompt": prompt, "max_tokens": 3}
    plain = client.completions.create(**asked).choices[0].text
    (echoed,) = client.completions.create(**asked, echo=True).choices
    assert echoed.text.endswith(plain)
    assert len(echoed.text) > len(plain)
    with client.completions.create(**asked, echo=True, stream=True) as stream:
        assert "".join(chunk.choices[0].text for chunk in stream) == echoed.text
    (alone,) = client.completions.create(**{**asked, "max_tokens": 0}, echo=True).choices
    assert alone.text + plain == echoed.text


def test_the_model_that_is_open_is_listed(client: openai.OpenAI) -> None:
    (model,) = client.models.list().data
    assert client.models.retrieve(model.id).id == model.id
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4o")


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"temperature": 9.0}, "temperature"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"functions": [{"name": "look"}]}, "functions"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools.0"),
        ({"top_logprobs": 2}, "top_logprobs"),
    ],
)
def test_what_is_not_supported_is_refused_and_named(client: openai.OpenAI, more: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, "Hello", extra_body=more)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def test_unknown_fields_are_passed_over_and_listed_once(
    client: openai.OpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    many = {f"wibble_{i}": i for i in range(30)}
    fields = {"provider": "low", "näme": 1, "a\nb": 1, "user": "me", "modalities": ["text"], **many}
    for stream in (False, True):
        with (
            caplog.at_level("INFO", "kvdesk.server"),
            client.chat.completions.with_streaming_response.create(
                model=MODEL, messages=asked("Hello"), max_tokens=1, stream=stream, extra_body=fields
            ) as answer,
        ):
            names = answer.headers["x-kvdesk-passed-over"].split(", ")
            assert names == ["provider", *list(many)[:19]]
            answer.read()
    said = [record.getMessage() for record in caplog.records if "ignored fields" in record.getMessage()]
    assert len(said) == 1
    assert "provider, wibble_0" in said[0]


def test_a_field_inside_another_is_listed_with_it_and_known_ones_are_not(client: openai.OpenAI) -> None:
    create = client.completions.with_raw_response.create
    options = {"include_usage": True, "continuous_usage_stats": True}
    answer = create(model=MODEL, prompt="Hi", max_tokens=1, extra_body={"wibble": "x", "stream_options": options})
    assert answer.headers["x-kvdesk-passed-over"] == "wibble, stream_options.continuous_usage_stats"
    assert "x-kvdesk-passed-over" not in create(model=MODEL, prompt="Hi", max_tokens=1, seed=1, user="me").headers


def test_a_history_with_empty_contents_is_answered(client: openai.OpenAI) -> None:
    messages: list[Any] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": None},
        {"role": "assistant"},
        {"role": "user", "content": "Are you there?"},
    ]
    done = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=4)
    assert done.choices[0].message.content


def test_a_prompt_that_does_not_fit_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, "word " * 2000, stream=True)
    assert caught.value.code == "context_length_exceeded"
    assert isinstance(caught.value.body, dict)
    n_tokens, n_ctx = caught.value.body["n_prompt_tokens"], caught.value.body["n_ctx"]
    assert n_tokens > n_ctx > 0
    assert f"request ({n_tokens} tokens) exceeds the available context size ({n_ctx} tokens)" in str(caught.value)


def test_a_wrong_key_is_refused(running: Any) -> None:
    wrong = openai.OpenAI(base_url=running.server.url, api_key="sk-wrong", max_retries=0)
    with wrong, pytest.raises(openai.AuthenticationError):
        wrong.models.list()
