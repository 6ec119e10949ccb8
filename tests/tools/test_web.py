"""A server with an address: its headers, its tools, and when it refuses or nobody is there."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("mcp")

from kvdesk.settings import ToolServer
from tests.tools.conftest import SERVER, Heard


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, str(SERVER.with_name("web_server.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.kill()


def web(url: str) -> ToolServer:
    return ToolServer(name="test", url=url, headers=("Authorization",))


def test_a_server_over_http_is_called_with_its_headers(heard: Heard, url: str) -> None:
    listed = heard.started(web(url), Authorization="Bearer secret")
    assert [tool.name for tool in listed.tools] == ["greet"]
    assert heard.call("greet", name="Ada").text == "Hello, Ada!"
    heard.clients.stop("test")
    heard.until("off")


def test_a_server_that_refuses_says_so(heard: Heard, url: str) -> None:
    heard.clients.start(web(url), {})
    assert heard.until("failed").sentence


def test_an_address_where_nobody_answers_is_said(heard: Heard) -> None:
    heard.clients.start(web("http://127.0.0.1:9/mcp"), {})
    assert heard.until("failed").sentence
