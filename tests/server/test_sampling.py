"""From the fields of a request to how its answers are sampled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kvdesk.server.errors import ApiError
from kvdesk.server.sampling import check_schema, sampling_of
from kvdesk.server.schemas import ChatRequest, parsed
from kvdesk.settings import Sampling

HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}


def request(**fields: Any) -> ChatRequest:
    return parsed(ChatRequest, {**HI, **fields})


def sampled(**fields: Any) -> Sampling:
    return sampling_of(request(**fields), Sampling(), 512)


def of_schema(schema: object) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


WRONG = {"properties": {"x": {"type": "string", "pattern": "(a"}}}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": of_schema(WRONG)}, "response_format.json_schema.schema.properties.x.pattern"),
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
    ],
)
def test_an_answer_is_as_long_as_its_request_says_or_the_server(fields: dict[str, Any], usual: int, most: int) -> None:
    assert sampling_of(request(**fields), Sampling(), 512, usual).max_tokens == most
