"""More than 200 ways in which a tool server misbehaves, as a local one and over HTTP. Each ends in a sentence for
the person or the model, another server goes on, nothing is left running, and no call is made that nobody asked for.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

pytest.importorskip("mcp")

from kvdesk.settings import ToolServer
from kvdesk.tools import client
from kvdesk.tools.servers import CallEnded, ServerState, ToolsListed
from tests.tools import hostile
from tests.tools.conftest import Heard, local
from tests.tools.hostile_web import HTTP, Web, serving

pytestmark = [pytest.mark.stress, pytest.mark.timeout(300)]
STEPS: Final = ("initialize", "tools/list", "tools/call")
HANGS_S: Final = 4.0
"""Instead of two minutes, in the cases that never begin."""
CALL_S: Final = 1.0
PROTOCOL, ENDED = "It violates the protocol.", "It has ended."
SENT_BY_US: Final = {"server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"}
SENT_BY_US_TOO: Final = {"ping", "notifications/cancelled"}


@pytest.fixture(scope="module")
def heard() -> Iterator[Heard]:
    """One loop for all servers, with a good one on it."""
    with Heard() as found:
        found.started(local(name="good"))
        yield found


@pytest.fixture(autouse=True)
def nothing_is_lost(heard: Heard) -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    heard.states.clear()
    yield
    heard.clients.stop("test")
    assert heard.call("echo", server="good", text="still here").text == "still here"
    left = [one for one in psutil.Process().children(recursive=True) if one not in before]
    assert psutil.wait_procs(left, 15)[1] == []


def started(heard: Heard, server: ToolServer) -> ServerState:
    """Its state once it is known."""
    heard.clients.start(server, {})
    while (state := heard.until("on", "failed")).name != "test":
        pass
    return state


def stdio(log: Path, kind: str, name: str) -> ToolServer:
    return ToolServer(name="test", command=sys.executable, args=(hostile.__file__, str(log), kind, name))


def is_sentence(text: str) -> bool:
    """What a person can read: one line, not long, no words of a programmer, nothing that turns text."""
    return (
        bool(re.fullmatch(r"\S.{5,520}[.!?]", text))
        and not re.search(r"Traceback|validation error|[a-z]Error\b|\bNone\b|0x[0-9a-f]{6}", text)
        and not any(unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs") for c in text)
    )


def call(heard: Heard, seconds: float = 30.0) -> CallEnded:
    return heard.call("echo", seconds=seconds, text="hello")


def sent(log: Path) -> list[dict[str, object]]:
    """Nothing to a server that had not begun when its time was over."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def check_asked(log: Path, n_calls: int) -> None:
    """It got what a client sends, as many calls as a person allowed, and errors for what it asked."""
    got = sent(log)
    methods = [one["method"] for one in got if "method" in one]
    assert set(methods) <= SENT_BY_US | SENT_BY_US_TOO
    assert methods.count("tools/call") == n_calls
    answers = [one for one in got if "method" not in one]
    assert all("error" in one for one in answers), answers


@pytest.mark.parametrize("act", hostile.SILENT | hostile.ENDING | hostile.ERRORS | hostile.HARMLESS)
@pytest.mark.parametrize("step", STEPS)
def test_an_act(heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, act: str) -> None:
    log = tmp_path / "log"
    ends, is_call = act in hostile.ENDING, step == "tools/call"
    if act in hostile.SILENT and not is_call:
        monkeypatch.setattr(client, "START_S", HANGS_S)
    state = started(heard, stdio(log, step, act))
    if not is_call and act not in hostile.HARMLESS:
        assert state.state == "failed"
        assert is_sentence(state.sentence), state
        check_asked(log, 0)
        assert call(heard).text.startswith("The server test does not run.")
        return
    assert state.state == "on", state
    found = call(heard, CALL_S if act in hostile.SILENT else 30.0)
    if act in hostile.HARMLESS:
        assert (found.text, found.failed) == ("hello", False)
    else:
        assert is_sentence(found.text), found.text
        assert found.failed
        assert found.text.startswith("The tool did not answer" if act in hostile.SILENT else "The tool failed: ")
    if act in hostile.ASKS:
        assert hostile.ASKS[act] in [one.sentence for one in heard.states]
    check_asked(log, 1)
    if ends:
        assert is_sentence(failed(heard).sentence)


def failed(heard: Heard) -> ServerState:
    """Its last state, whether that is heard already or not."""
    return next((one for one in heard.states if one.state == "failed"), None) or heard.until("failed")


@pytest.mark.parametrize("act", hostile.LATER)
@pytest.mark.parametrize("step", STEPS)
def test_an_act_behind_an_answer(heard: Heard, tmp_path: Path, step: str, act: str) -> None:
    state = started(heard, stdio(tmp_path / "log", step, act))
    found = call(heard)
    assert found.text == "hello" or is_sentence(found.text), found.text
    assert state.state == "failed" or failed(heard).sentence == "It sent too many messages and was stopped."


@pytest.mark.parametrize("name", [*hostile.LISTS, *hostile.PAGES])
def test_a_list(heard: Heard, tmp_path: Path, name: str) -> None:
    log = tmp_path / "log"
    heard.clients.start(stdio(log, "list", name), {})
    listed, state = None, None
    while state is None:
        event = heard.next()
        listed = event if isinstance(event, ToolsListed) else listed
        state = event if isinstance(event, ServerState) and event.state in ("on", "failed") else None
    if name in hostile.REFUSED or name == "a cursor that is a number":
        assert (state.state, state.sentence) == ("failed", PROTOCOL)
        check_asked(log, 0)
        return
    assert state.state == "on", state
    tools = {tool.name: tool for tool in listed.tools}
    assert len(tools) == len(listed.tools) <= 200
    if name in hostile.EMPTY:
        assert not tools
        return
    assert (tools["echo"].schema == '{"properties":{},"type":"object"}') == (name in hostile.ANY)
    assert len(tools["echo"].description) <= 4001
    assert len(tools["echo"].schema) <= 20_000
    assert call(heard, 5.0).text == "called"
    check_asked(log, 1)


@pytest.mark.parametrize("name", hostile.RESULTS)
def test_a_result(heard: Heard, tmp_path: Path, name: str) -> None:
    log = tmp_path / "log"
    assert started(heard, stdio(log, "result", name)).state == "on"
    found = call(heard)
    if name in hostile.WRONG:
        assert (found.text, found.failed) == (f"The tool failed: {PROTOCOL}", True)
    else:
        assert found.text == hostile.GOOD[name][1]
        assert found.failed == name.startswith("an error")
    assert heard.call("echo", text="again").text == found.text, "it goes on"
    check_asked(log, 2)


@pytest.mark.parametrize("name", hostile.VERSIONS)
def test_a_version(heard: Heard, tmp_path: Path, name: str) -> None:
    log = tmp_path / "log"
    state = started(heard, stdio(log, "version", name))
    assert state.state == "failed" or call(heard).text == "hello"
    assert state.state == "on" or is_sentence(state.sentence), state
    assert (state.state == "on") == (name in ("an old one", "the last with a handshake", "no capabilities")
                                     or "a name that turns" in name), state  # fmt: skip


# --- over HTTP ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", HTTP)
@pytest.mark.parametrize("step", STEPS)
def test_an_answer_of_http(heard: Heard, monkeypatch: pytest.MonkeyPatch, step: str, act: str) -> None:
    if HTTP[act].is_silent and step != "tools/call":
        monkeypatch.setattr(client, "START_S", HANGS_S)
    with serving(step, act) as web:
        state = started(heard, ToolServer(name="test", url=web.url))
        if step != "tools/call" and not HTTP[act].is_harmless:
            assert state.state == "failed"
            assert is_sentence(state.sentence), state
            assert HTTP[act].says in state.sentence
            check_web(web, 0)
            return
        assert state.state == "on", state
        found = call(heard, CALL_S if HTTP[act].is_silent else 30.0)
        if HTTP[act].is_harmless:
            assert (found.text, found.failed) == ("hello", False)
        else:
            assert is_sentence(found.text), found.text
            assert found.failed
            assert HTTP[act].says in found.text or HTTP[act].is_silent
        check_web(web, 1)


def check_web(web: Web, n_calls: int) -> None:
    methods = [one.get("method") for one in web.got]
    assert set(methods) <= {*SENT_BY_US, *SENT_BY_US_TOO, None}
    assert methods.count("tools/call") == n_calls or web.follows
    assert all("error" in one for one in web.got if "method" not in one)
    assert set(web.elsewhere) <= {"/register"}, "nothing is sent to another address"
