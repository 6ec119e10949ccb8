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


def test_no_proxy_is_asked_for_a_server_on_this_computer(
    heard: Heard, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert heard.started(web(url), Authorization="Bearer secret").tools


def test_blanks_around_a_key_are_left_out(heard: Heard, url: str) -> None:
    assert heard.started(web(url), Authorization=" Bearer secret\n").tools


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer se\ncret"}, {"X-Key": "Bearer ßecret"}, {"X Key": "secret"}]
)
def test_a_header_that_cannot_be_sent_is_named_and_its_value_is_not(
    heard: Heard, url: str, headers: dict[str, str]
) -> None:
    heard.clients.start(web(url), headers)
    state = heard.until("failed")
    assert state.sentence == f"The header {next(iter(headers))} has characters that no header can have."
    assert "cret" not in state.detail


def test_a_server_that_refuses_says_so(heard: Heard, url: str) -> None:
    heard.clients.start(web(url), {})
    assert heard.until("failed").sentence


def test_an_address_where_nobody_answers_is_said(heard: Heard) -> None:
    heard.clients.start(web("http://127.0.0.1:9/mcp"), {})
    assert heard.until("failed").sentence
