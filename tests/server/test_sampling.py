"""From the fields of a request to how its answers are sampled."""

import asyncio
from typing import Any

import pytest

from kvdesk.server.errors import ApiError
from kvdesk.server.request.sampling import check_schema, only_reads, sampling_of
from kvdesk.server.request.schemas import ChatRequest, parsed
from kvdesk.settings import SamplerName, Sampling

HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}


def request(**fields: Any) -> ChatRequest:
    return parsed(ChatRequest, {**HI, **fields})


def sampled(**fields: Any) -> Sampling:
    return sampling_of(request(**fields), Sampling(), 512)


def of_schema(schema: object) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


MANY = ("top_k", "typ_p", "min_p", "temperature")
WRONG = {"properties": {"x": {"type": "string", "pattern": "(a"}}}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": of_schema(WRONG)}, "response_format.json_schema.schema.properties.x.pattern"),
        ({"response_format": of_schema({"items": {"type": "zzz"}})}, "response_format.json_schema.schema.items.type"),
        ({"response_format": of_schema({"$ref": "#/x"})}, "response_format.json_schema.schema.$ref"),
        ({"response_format": of_schema([1])}, "response_format.json_schema.schema"),
        ({"response_format": {"type": "json_object", "schema": WRONG}}, "response_format.schema.properties.x.pattern"),
        ({"json_schema": WRONG}, "json_schema.properties.x.pattern"),
        ({"response_format": {"type": "xml"}}, "response_format"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_place(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        asyncio.run(check_schema(request(**fields)))
    assert (refused.value.status, refused.value.param) == (400, param)


@pytest.mark.parametrize(
    ("form", "schema"),
    [
        ({"type": "text"}, ""),
        ({"type": "json_object"}, "{}"),
        ({"type": "json_schema", "json_schema": {"name": "x"}}, "{}"),
        (of_schema({"properties": {"x": True}}), '{"properties": {"x": true}}'),
    ],
)
def test_an_answer_follows_the_schema_of_its_format(form: dict[str, Any], schema: str) -> None:
    asyncio.run(check_schema(request(response_format=form)))
    assert sampled(response_format=form).json_schema == schema


def test_a_schema_that_is_too_long_is_refused_where_the_client_wrote_it() -> None:
    with pytest.raises(ApiError) as refused:
        sampled(response_format=of_schema({"description": "x" * 200_000}))
    assert refused.value.param == "response_format.json_schema.schema"


@pytest.mark.parametrize(
    ("fields", "usual", "most"),
    [
        ({}, 0, 512),
        ({}, 16, 16),
        ({}, 9000, 512),
        ({"max_tokens": -1}, 16, 16),
        ({"max_tokens": 40}, 16, 40),
        ({"max_completion_tokens": 8}, 16, 8),
        ({"max_tokens": 9000}, 16, 512),
        ({"max_tokens": 0}, 16, 1),
    ],
)
def test_an_answer_is_as_long_as_its_request_says_or_the_server(fields: dict[str, Any], usual: int, most: int) -> None:
    assert sampling_of(request(**fields), Sampling(), 512, usual).max_tokens == most
    assert only_reads(request(**fields)) == (fields == {"max_tokens": 0})


def test_samplers_that_are_not_known_are_reported() -> None:
    assert request(samplers=["top_k", "infill"]).passed_over() == ("samplers.infill",)
    assert request(samplers="ki").passed_over() == ("samplers.i",)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"top_k": -1}, {"top_k": 0}),
        ({"top_k": 40.0, "seed": 7.0, "max_tokens": 2.0}, {"top_k": 40, "seed": 7, "max_tokens": 2}),
        ({"repetition_penalty": 1.25}, {"repeat_penalty": 1.25}),
        ({"repetition_penalty": 1.25, "repeat_penalty": 1.5}, {"repeat_penalty": 1.5}),
        ({"typ_p": 0.5}, {"typical_p": 0.5}),
        ({"repeat_last_n": -1}, {"repeat_last_n": 512}),
        ({"n_predict": 9}, {"max_tokens": 9}),
        ({"samplers": ["top_k", "top_p", "infill"]}, {"samplers": ("top_k", "top_p")}),  # llama.vim, llama.vscode
        ({"samplers": "edkypmxt"}, {"samplers": tuple(name for name in SamplerName if name != "top_n_sigma")}),
        ({"samplers": ["Top-K", "typical_p", "minp", "temp", "temperature"]}, {"samplers": MANY}),
        ({"samplers": []}, {"samplers": ()}),
        ({"temperature": None, "stop": ["", "x"]}, {"temperature": Sampling().temperature, "stop": ("x",)}),
        ({"logit_bias": {"5": -1, " hello": 2.5}}, {"logit_bias": ((5, -1.0), (" hello", 2.5))}),
        ({"logit_bias": [[5, -100], [7.0, False], ["9", 1]]}, {"logit_bias": ((5, -100.0), (7, -100.0), ("9", 1.0))}),
    ],
)
def test_what_clients_write_is_taken(fields: dict[str, Any], found: dict[str, Any]) -> None:
    sampling = sampled(**fields)
    assert {name: getattr(sampling, name) for name in found} == found


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"top_k": 1.5}, "top_k"),
        ({"max_tokens": True}, "max_tokens"),
        ({"repetition_penalty": 100.0}, "repeat_penalty"),
        ({"stop": 3}, "stop"),
        ({"samplers": 3}, "samplers"),
        ({"samplers": [3]}, "samplers"),
        ({"stop": ["x", 3]}, "stop"),
        ({"logit_bias": 3}, "logit_bias"),
        ({"logit_bias": [5]}, "logit_bias"),
        ({"logit_bias": [[5, 1, 2]]}, "logit_bias"),
        ({"logit_bias": [[True, 1]]}, "logit_bias"),
        ({"logit_bias": [[[], 1]]}, "logit_bias"),
        ({"logit_bias": {"5": True}}, "logit_bias"),
        ({"logit_bias": {"5": 10**400}}, "logit_bias"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        sampled(**fields)
    assert (refused.value.status, refused.value.param) == (400, param)
