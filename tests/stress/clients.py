"""What programs do with a server, by the name of their library: tools, structured output and reasoning settings. Run by
`test_clients` with the Python that has the libraries: URL NAME. It ends with an error where one fails. Whether a model
calls a tool that it may call is its own affair.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pydantic import BaseModel

QUESTION = "Use the tool: how is the weather in Rome?"
ABOUT = "Ann is 31 years old. Give her name and age."
KEY = "none"
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def weather(city: str) -> str:
    """Weather of a city."""
    return f"sunny in {city}"


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


def with_openai(url: str) -> None:
    openai: Any = import_module("openai")

    client = openai.OpenAI(base_url=url, api_key=KEY, timeout=600, max_retries=0)
    asked = [{"role": "user", "content": QUESTION}]
    called = client.chat.completions.create(
        model="m", messages=asked, tools=[WEATHER], tool_choice="required", max_tokens=100, reasoning_effort="low"
    )
    (call,) = called.choices[0].message.tool_calls[:1]
    assert call.function.name == "weather"
    told = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    again = [*asked, called.choices[0].message, told]
    said = client.chat.completions.create(model="m", messages=again, tools=[WEATHER], tool_choice="none", max_tokens=30)
    assert said.choices[0].message.content
    parsed = client.chat.completions.parse(
        model="m", messages=[{"role": "user", "content": ABOUT}], response_format=Person, max_tokens=60
    )
    assert parsed.choices[0].message.parsed.name


def with_instructor(url: str) -> None:
    instructor: Any = import_module("instructor")
    openai: Any = import_module("openai")

    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(openai.OpenAI(base_url=url, api_key=KEY, timeout=600), mode=mode)
        messages = [{"role": "user", "content": ABOUT}]
        found = client.chat.completions.create(
            model="m", messages=messages, response_model=Person, max_tokens=100, max_retries=0
        )
        assert isinstance(found, Person), mode


def with_langchain_openai(url: str) -> None:
    tool: Any = import_module("langchain_core.tools").tool
    chat: Any = import_module("langchain_openai").ChatOpenAI

    model = chat(base_url=url, api_key=KEY, model="m", max_tokens=100, timeout=600, reasoning_effort="low")
    assert model.bind_tools([tool(weather)], tool_choice="any").invoke(QUESTION).tool_calls[0]["name"] == "weather"
    for method in ("function_calling", "json_schema"):
        assert isinstance(model.with_structured_output(Person, method=method).invoke(ABOUT), Person), method


def with_pydantic_ai(url: str) -> None:
    agent: Any = import_module("pydantic_ai").Agent
    chat_model: Any = import_module("pydantic_ai.models.openai").OpenAIChatModel
    provider: Any = import_module("pydantic_ai.providers.openai").OpenAIProvider

    model = chat_model("m", provider=provider(base_url=url, api_key=KEY))
    settings = {"max_tokens": 100, "timeout": 600, "openai_reasoning_effort": "low"}
    assert agent(model, output_type=Person, model_settings=settings).run_sync(ABOUT).output.name
    native: Any = import_module("pydantic_ai").NativeOutput(Person)
    assert agent(model, output_type=native, model_settings=settings).run_sync(ABOUT).output.name
    assert agent(model, tools=[weather], model_settings=settings).run_sync(QUESTION).output


def with_litellm(url: str) -> None:
    litellm: Any = import_module("litellm")

    def ask(text: str, **more: Any) -> Any:
        messages = [{"role": "user", "content": text}]
        server = {"model": "hosted_vllm/m", "api_base": url, "api_key": KEY}
        return litellm.completion(**server, messages=messages, max_tokens=100, reasoning_effort="low", **more)

    called = ask(QUESTION, tools=[WEATHER], tool_choice="required")
    assert called.choices[0].message.tool_calls[0].function.name == "weather"
    said = ask(ABOUT, response_format=Person)
    assert Person.model_validate_json(said.choices[0].message.content).name
    parts = list(ask(ABOUT, stream=True, stream_options={"include_usage": True}))
    assert "".join(part.choices[0].delta.content or "" for part in parts if part.choices)


def with_llm(url: str) -> None:
    chat: Any = import_module("llm.default_plugins.openai_models").Chat

    model = chat("kvdesk", model_name="m", api_base=url, supports_schema=True, supports_tools=True, reasoning=True)
    model.key = KEY
    assert '"age"' in model.prompt(ABOUT, schema=Person, stream=False, reasoning_effort="low").text()
    assert model.chain(QUESTION, tools=[weather], stream=False).text()


def with_ollama(url: str) -> None:
    client: Any = import_module("ollama").Client(host=url.removesuffix("/v1"))

    assert client.list().models[0].digest == client.ps().models[0].digest
    assert client.show("m").modelinfo
    assert client.pull("m").status == "success"
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": ABOUT}], "options": {"seed": 1}}
    assert Person.model_validate_json(client.chat(**asked, format=Person.model_json_schema()).message.content).name
    *_, last = client.chat(**asked, tools=[weather], stream=True)
    assert last.done
    assert last.load_duration
    first = client.generate("m", "My name is Ann.", options={"num_predict": 9}, logprobs=True, top_logprobs=2)
    assert first.logprobs
    again = client.generate("m", "What is my name?", context=first.context, options={"num_predict": 9})
    assert again.prompt_eval_count > len(first.context)
    assert len(client.embed("m", ["a", "b"], dimensions=8).embeddings[1]) == 8


def with_anthropic(url: str) -> None:
    client: Any = import_module("anthropic").Anthropic(base_url=url.removesuffix("/v1"), api_key=KEY, max_retries=0)

    function: Any = WEATHER["function"]
    tool = {"name": function["name"], "input_schema": function["parameters"]}
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    called = client.messages.create(**asked, max_tokens=100, tools=[tool], tool_choice={"type": "any"})
    assert (called.stop_reason, called.content[-1].name) == ("tool_use", "weather")
    with client.messages.stream(**asked, max_tokens=20) as stream:
        assert "".join(stream.text_stream) == stream.get_final_message().content[0].text
    n_tokens = client.messages.count_tokens(**asked).input_tokens
    usage = stream.get_final_message().usage
    assert n_tokens == usage.input_tokens + usage.cache_read_input_tokens


CLIENTS: dict[str, Callable[[str], None]] = {
    "openai": with_openai,
    "instructor": with_instructor,
    "langchain-openai": with_langchain_openai,
    "pydantic-ai": with_pydantic_ai,
    "litellm": with_litellm,
    "llm": with_llm,
    "ollama": with_ollama,
    "anthropic": with_anthropic,
}

if __name__ == "__main__":
    CLIENTS[sys.argv[2]](sys.argv[1])
