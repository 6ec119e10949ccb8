"""What a template gets of tools: the same text for the same tools."""

import json

import pytest

from kvdesk.tools import schemas
from kvdesk.tools.servers import Tool

ANY = '{"properties":{},"type":"object"}'
TEXT = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}


def test_order_of_servers_tools_and_fields_changes_nothing() -> None:
    one = schemas.taken("read", "Reads.", TEXT)
    other = schemas.taken("read", "Reads.", dict(reversed(TEXT.items())))
    assert one == other
    assert one is not None
    lists = [("git", [Tool("log"), Tool("add")]), ("files", [one])]
    assert schemas.offer(lists).text == schemas.offer([(s, t[::-1]) for s, t in lists[::-1]]).text
    names = [tool["function"]["name"] for tool in json.loads(schemas.offer(lists).text)]
    assert names == ["read", "add", "log"], "by server, then by tool: the schemas of a server are one span"


def test_a_server_more_leaves_the_text_of_those_before_it() -> None:
    before = schemas.offer([("a", [Tool("x")])]).text
    assert schemas.offer([("a", [Tool("x")]), ("b", [Tool("y")])]).text.startswith(before[:-1])


def test_a_name_that_two_servers_have_tells_them_apart() -> None:
    offer = schemas.offer([("b", [Tool("read")]), ("a", [Tool("read")])])
    assert offer.tools == {"read": ("a", "read"), "b_read": ("b", "read")}


@pytest.mark.parametrize("name", ["", "two words", "x" * 65, 5, None, "a\n", "</tool_call>", "1st"])
def test_a_name_that_no_model_could_write_is_no_tool(name: object) -> None:
    assert schemas.taken(name, "", {}) is None


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "array"},
        {"type": "object", "properties": []},
        {"type": "object", "description": "x" * schemas.MOST_SCHEMA},
    ],
)
def test_what_is_no_schema_takes_any_object(schema: object) -> None:
    assert schemas.taken("a", None, schema).schema == ANY


def test_a_long_description_is_cut() -> None:
    assert len(schemas.taken("a", "x" * 10_000, {}).description) == schemas.MOST_DESCRIPTION + 1


def test_no_tools_are_no_text() -> None:
    assert schemas.offer([]).text == schemas.offer([("a", [])]).text == ""
