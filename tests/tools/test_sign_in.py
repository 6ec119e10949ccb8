"""A server where a person signs in, with a real authorization server on this computer; the browser is `httpx2`."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import pytest

pytest.importorskip("mcp")

from kvdesk.settings import ToolServer
from kvdesk.tools.servers import ServerState, SignInAsked, tokens_of
from tests.tools.conftest import PATIENCE_S, SERVER, Heard, Kept, local


@contextmanager
def serving(*how: str) -> Iterator[ToolServer]:
    command = [sys.executable, str(SERVER.with_name("oauth_server.py")), *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield ToolServer(name="test", url=f"http://127.0.0.1:{int(process.stdout.readline())}/mcp")
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[ToolServer]:
    with serving() as found:
        yield found


def asked(heard: Heard) -> str:
    """The page that the person is asked to open."""
    while not isinstance(event := heard.next(), SignInAsked):
        assert not isinstance(event, ServerState) or event.state == "starting", event
    return event.address


def back_of(page: str) -> str:
    return parse_qs(urlsplit(page).query)["redirect_uri"][0]


def test_a_person_signs_in_once_and_is_known_from_then_on(server: ToolServer) -> None:
    kept = Kept()
    with Heard(kept) as heard:
        heard.clients.start(server, {})
        page = asked(heard)
        assert heard.states[-1].sentence == "It is waiting for you to sign in with your browser."
        assert urlsplit(page).netloc == urlsplit(server.url).netloc
        assert "You can close this page" in httpx.get(page, follow_redirects=True).text
        assert heard.until("on", "failed").state == "on"
        n_asked, n_renewed = map(int, heard.call("counts").text.split())
    with Heard(kept) as heard:
        heard.started(server)
        assert heard.call("counts").text == f"{n_asked} {n_renewed}", "nobody was asked again"
    name = tokens_of(server.url)
    kept.keep(name, json.dumps({**json.loads(kept.get(name)), "over": 1}))
    with Heard(kept) as heard:
        heard.started(server)
        assert heard.call("counts").text == f"{n_asked} {n_renewed + 1}", "renewed without a question"


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"tokens": 1, "client": {"client_id": 5}}', '{"over": "x"}'])
def test_what_was_kept_and_is_damaged_is_asked_for_again(server: ToolServer, damage: str) -> None:
    kept = Kept()
    kept.keep(tokens_of(server.url), damage)
    with Heard(kept) as heard:
        heard.clients.start(server, {})
        assert asked(heard)


def test_whoever_knocks_without_the_state_is_not_let_in(server: ToolServer) -> None:
    with Heard(Kept()) as heard:
        heard.clients.start(server, {})
        page = asked(heard)
        for query in (
            "",
            "?code=stolen",
            "?code=stolen&state=",
            "?code=stolen&state=guessed",
            "?error=x&state=guessed",
        ):
            assert httpx.get(back_of(page) + query).status_code == 404
        door = urlsplit(back_of(page))
        with socket.create_connection((door.hostname, door.port), PATIENCE_S) as other:
            other.sendall(b"hello\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 404")
        assert httpx.get(page, follow_redirects=True).status_code == 200
        assert heard.until("on", "failed").state == "on"


def test_a_person_who_says_no_is_not_signed_in() -> None:
    with serving("no") as server, Heard(Kept()) as heard:
        heard.clients.start(server, {})
        httpx.get(asked(heard), follow_redirects=True)
        state = heard.until("on", "failed")
        assert state.sentence == "You were not signed in.", state


def test_it_can_be_stopped_while_it_waits_and_the_door_is_closed(server: ToolServer) -> None:
    with Heard(Kept()) as heard:
        heard.clients.start(server, {})
        page = asked(heard)
        heard.clients.stop("test")
        heard.until("off")
        with pytest.raises(httpx.ConnectError):
            httpx.get(back_of(page))


class Slow(Kept):
    """Keeps nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may = threading.Event(), threading.Event()

    def keep(self, name: str, text: str) -> str:
        self.begun.set()
        assert self.may.wait(PATIENCE_S)
        return super().keep(name, text)


def test_it_has_ended_when_nothing_more_is_kept(server: ToolServer) -> None:
    kept = Slow()
    with Heard(kept) as heard:
        heard.clients.start(server, {})
        assert kept.begun.wait(PATIENCE_S)
        heard.clients.stop("test")
        heard.clients.start(local(name="other"), {})
        assert heard.until("on", "failed").name == "other"
        heard.clients.stop("test")  # a second one is patient too
        assert heard.call("echo", server="other", text="hello").text == "hello"
        assert all(state.state == "starting" for state in heard.states if state.name == "test")
        kept.may.set()
        heard.until("off")
        assert kept.get(tokens_of(server.url))


def test_a_key_in_a_header_is_taken_for_what_it_is(server: ToolServer) -> None:
    with Heard(Kept()) as heard:
        heard.clients.start(server, {"authorization": "Bearer wrong"})
        assert heard.until("on", "failed").sentence.endswith("(401).")
