"""Tool servers that nobody here wrote: the examples of `mcp` itself, of the protocol of 2026-07-28 and of earlier ones.

`KVDESK_MCP_EXAMPLES` names the folder `examples` of the repository of `mcp` (https://github.com/modelcontextprotocol/
python-sdk), whose servers run with this Python over pipes and over HTTP. `KVDESK_MCP_EXAMPLES_1` names the same folder
of `mcp` 1, and `KVDESK_MCP_PYTHON_1` a Python with `mcp<2`: those speak 2025-11-25.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from kvdesk.settings import ToolServer
from kvdesk.tools.servers import ToolsListed
from tests.places import free_port
from tests.tools.conftest import PATIENCE_S, Heard

NEW, OLD = os.environ.get("KVDESK_MCP_EXAMPLES", ""), os.environ.get("KVDESK_MCP_EXAMPLES_1", "")
OLD_PYTHON = os.environ.get("KVDESK_MCP_PYTHON_1", "")
pytestmark = [
    pytest.mark.stress,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not (NEW or OLD), reason="KVDESK_MCP_EXAMPLES names no folder"),
]
Call = tuple[str, dict[str, Any], str]
"""Tool, arguments, and what the result has; "" if it is an error."""
STORIES: dict[str, tuple[Call, ...]] = {
    "tools": (
        ("calc", {"op": "mul", "a": 6, "b": 7}, "42"),
        ("calc", {"op": "none", "a": 1, "b": 2}, ""),
        ("echo", {"text": "Grüße"}, "Grüße"),
    ),
    "error_handling": (("divide", {"a": 1, "b": 4}, "0.25"), ("divide", {"a": 1, "b": 0}, ""), ("restricted", {}, "")),
    "lifespan": (("lookup", {"key": "nowhere"}, ""),),
    "streaming": (("countdown", {"steps": 3}, "completed"),),
    "schema_validators": (
        ("greet_pydantic", {"who": {"name": "Ada", "title": "friend"}}, "Hello Ada"),
        ("greet_dict", {"who": {"name": "Ada"}}, "Hello Ada"),
        ("greet_dataclass", {"who": "Ada"}, ""),
    ),
    "stickynotes": (("add_note", {"text": "buy milk"}, "id"), ("remove_note", {"note_id": "none"}, "false")),
    "subscriptions": (("edit_note", {"name": "todo", "text": "x"}, "saved"),),
    "dual_era": (("greet", {"name": "Ada"}, "modern"),),
    "reconnect": (("add", {"a": 2, "b": 3}, "5"),),
    "parallel_calls": (("meet", {"tag": "a", "party": ["a"]}, "a"),),
    "sampling": (("summarize", {"text": "A long text."}, ""),),
    "legacy_elicitation": (("register_user", {}, ""),),
    "roots": (("show_roots", {}, ""),),
    "mrtr": (("deploy", {"env": "test"}, ""),),
    "refund_desk": (("refund_order", {"order_id": "none", "reason": "broken"}, ""),),
}
REFUSED = {
    "mrtr": "It asked you a question.",
    "snippets/servers/sampling": "It asked the model for an answer.",
    "snippets/servers/elicitation": "It asked you a question.",
}
"""What a server asked for, as the person reads it. Since 2026-07-28 most cannot ask in the middle of a call."""
WEB: dict[str, tuple[Call, ...]] = {
    "json_response": (("greet", {"name": "Ada"}, "Hello, Ada!"),),
    "stateless_legacy": (("greet", {"name": "Ada"}, "Hello, Ada!"),),
    "standalone_get": (("add_note", {"content": "buy milk"}, "registered"),),
    "tools": STORIES["tools"],
}
OLD_EXAMPLES: dict[str, tuple[Call, ...]] = {
    "fastmcp/echo": (("echo_tool", {"text": "Grüße"}, "Grüße"),),
    "fastmcp/complex_inputs": (
        ("name_shrimp", {"tank": {"shrimp": [{"name": "Bob"}]}, "extra_names": ["Al"]}, "Bob"),
        ("name_shrimp", {"tank": 1, "extra_names": []}, ""),
    ),
    "fastmcp/parameter_descriptions": (("greet_user", {"name": "Ada", "times": 2}, "Hello Ada!\nHello Ada!"),),
    "fastmcp/unicode_example": (("hello_unicode", {}, "世界"), ("list_emoji_categories", {}, "Smileys")),
    "fastmcp/logging_and_progress": (),
    "fastmcp/icons_demo": (),
    "snippets/servers/structured_output": (
        ("get_weather", {"city": "Paris"}, "temperature"),
        ("list_cities", {}, "London"),
        ("get_user", {}, ""),
    ),
    "snippets/servers/sampling": (("generate_poem", {"topic": "sea"}, ""),),
    "snippets/servers/elicitation": (("book_table", {"date": "2024-12-25", "time": "19:00", "party_size": 2}, ""),),
}
"""Of `mcp` 1, over pipes. Those without calls are listed alone."""
EVERYTHING: tuple[Call, ...] = (
    ("test_simple_text", {}, "simple text"),
    ("test_image_content", {}, "not shown to the model"),
    ("test_audio_content", {}, "not shown to the model"),
    ("test_embedded_resource", {}, "embedded resource"),
    ("test_multiple_content_types", {}, "ultiple content"),
    ("test_tool_with_logging", {}, "ool"),
    ("test_tool_with_progress", {}, ""),
    ("test_sampling", {"prompt": "Hi"}, ""),
    ("test_elicitation", {"message": "Hi"}, ""),
    ("test_error_handling", {}, ""),
)


def played(heard: Heard, server: ToolServer, calls: tuple[Call, ...]) -> str:
    """The version of the protocol, after all calls."""
    assert heard.started(server).tools
    version = heard.states[-1].version
    for tool, arguments, wanted in calls:
        found = heard.call(tool, most=10_000, **arguments)
        assert found.text, tool
        assert wanted in found.text, (tool, found.text)
        assert not (wanted and found.failed), (tool, found.text)
    return version


@contextmanager
def serving(*command: str, folder: Path) -> Iterator[ToolServer]:
    """A server with an address; `PORT` in the command is a free port."""
    port = free_port()
    with subprocess.Popen([part.replace("PORT", str(port)) for part in command], cwd=folder) as process:
        try:
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end and process.poll() is None:
                with socket.socket() as trying:
                    if trying.connect_ex(("127.0.0.1", port)) == 0:
                        break
            yield ToolServer(name="test", url=f"http://127.0.0.1:{port}/mcp")
        finally:
            process.kill()


@pytest.fixture
def heard() -> Iterator[Heard]:
    with Heard() as found:
        yield found


@pytest.mark.skipif(not NEW, reason="KVDESK_MCP_EXAMPLES names no folder")
@pytest.mark.parametrize("name", STORIES)
def test_stories_over_pipes(name: str, heard: Heard) -> None:
    server = ToolServer(name="test", command=sys.executable, args=("-m", f"stories.{name}.server"), folder=NEW)
    assert played(heard, server, STORIES[name]) >= "2026-07-28"
    if name in REFUSED:
        assert any(REFUSED[name] in state.sentence for state in heard.states), heard.states


@pytest.mark.skipif(not NEW, reason="KVDESK_MCP_EXAMPLES names no folder")
@pytest.mark.parametrize("name", WEB)
def test_stories_over_http(name: str, heard: Heard) -> None:
    command = (sys.executable, "-m", f"stories.{name}.server", "--http", "--port", "PORT")
    with serving(*command, folder=Path(NEW)) as server:
        assert played(heard, server, WEB[name])


@pytest.mark.skipif(not NEW, reason="KVDESK_MCP_EXAMPLES names no folder")
def test_a_story_that_adds_a_tool_while_it_runs(heard: Heard) -> None:
    args = ("-m", "stories.subscriptions.server")
    heard.started(ToolServer(name="test", command=sys.executable, args=args, folder=NEW))
    heard.call("enable_search")
    while not isinstance(event := heard.next(), ToolsListed):
        pass
    assert [tool.name for tool in event.tools] == ["edit_note", "enable_search", "search"]
    assert "todo" in heard.call("search", query="milk").text


def old_example(name: str) -> ToolServer:
    run = "import runpy, sys; runpy.run_path(sys.argv[1])['mcp'].run()"
    return ToolServer(name="test", command=OLD_PYTHON, args=("-c", run, str(Path(OLD) / f"{name}.py")))


@pytest.mark.skipif(not OLD, reason="KVDESK_MCP_EXAMPLES_1 names no folder")
@pytest.mark.parametrize("name", OLD_EXAMPLES)
def test_examples_of_an_old_protocol_over_pipes(name: str, heard: Heard) -> None:
    assert played(heard, old_example(name), OLD_EXAMPLES[name]) == "2025-11-25"
    if name in REFUSED:
        assert any(REFUSED[name] in state.sentence for state in heard.states), heard.states


@pytest.mark.skipif(not OLD, reason="KVDESK_MCP_EXAMPLES_1 names no folder")
def test_an_example_of_an_old_protocol_that_adds_a_tool_while_it_runs(heard: Heard) -> None:
    heard.started(old_example("snippets/servers/tool_change_notifications"))
    heard.call("register_plugin", name="spell")
    while not isinstance(heard.next(), ToolsListed):
        pass


@pytest.mark.skipif(not OLD, reason="KVDESK_MCP_EXAMPLES_1 names no folder")
def test_everything_of_an_old_protocol_over_http(heard: Heard) -> None:
    command = (OLD_PYTHON, "-m", "mcp_everything_server", "--port", "PORT")
    with serving(*command, folder=Path(OLD) / "servers" / "everything-server") as server:
        assert played(heard, server, EVERYTHING) == "2025-11-25"
