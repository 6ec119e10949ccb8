"""Servers that run: what they offer, their calls, and how each of them can fail."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

pytest.importorskip("mcp")

from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost

from kvdesk.settings import ToolServer
from kvdesk.tools import client
from kvdesk.tools.client import ToolClients
from kvdesk.tools.servers import CallEnded, ToolsListed
from tests.tools.conftest import PATIENCE_S, SERVER, Heard, Kept, local, old
from tests.tools.server import TOOLS


@pytest.fixture(scope="module")
def running() -> Iterator[Heard]:
    """With a server, for calls that leave it as it was."""
    with Heard() as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-secret")
        found.started(local(), OWN="1")
        yield found


def test_a_server_is_started_lists_its_tools_is_called_and_ended(heard: Heard) -> None:
    listed = heard.started(local())
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    assert listed.tools[0].description == "Says the text again."
    assert heard.states[-1].version >= "2025-11-25"
    found = heard.call("echo", text="Grüße")
    assert (found.text, found.failed) == ("Grüße", False)
    heard.clients.stop("test")
    assert heard.until("off").sentence == ""
    after = heard.call("echo", text="Hi")
    assert (after.text, after.failed) == ("The server test does not run.", True)


def test_an_error_of_a_tool_is_its_result(running: Heard) -> None:
    assert running.call("fail").text == "No such file."
    assert running.call("fail").failed


def test_a_server_gets_what_it_needs_of_the_environment_and_its_own_variables(running: Heard) -> None:
    names = running.call("environment", most=10_000).text.split()
    assert {"PATH", "OWN"} <= set(names)
    assert not {"OPENAI_API_KEY", "KVDESK_HOME", "KVDESK_LANGUAGE"} & set(names)


def test_a_long_result_is_cut_and_says_so(running: Heard) -> None:
    assert running.call("long", most=1000).text == "x" * 1000 + "\n[999,000 more characters were left out]"


def listed_after(heard: Heard, tool: str) -> list[str]:
    """Names of the tools that a server lists when it has announced others."""
    heard.clients.call(1, "test", tool, {}, PATIENCE_S, 1000)
    while not isinstance(event := heard.next(), ToolsListed):
        pass
    return [one.name for one in event.tools]


def test_the_tools_of_a_server_that_announces_others_are_listed_again(heard: Heard) -> None:
    heard.started(local(file="growing_server.py"))
    assert heard.states[-1].version >= "2026-07-28"
    assert listed_after(heard, "grow") == ["grow", "shout"]
    assert heard.call("shout", text="hi").text == "HI"


def test_so_are_those_of_a_server_of_an_old_protocol(heard: Heard) -> None:
    heard.started(old())
    assert heard.states[-1].version == "2024-11-05"
    assert "grown" in listed_after(heard, "grow")


def test_so_are_those_of_a_server_with_an_address(heard: Heard) -> None:
    command = [sys.executable, str(SERVER.with_name("growing_server.py")), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            heard.started(ToolServer(name="test", url=f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"))
            assert listed_after(heard, "grow") == ["grow", "shout"]
        finally:
            process.kill()


def test_a_lost_subscription_is_opened_again_and_the_tools_listed_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before: after a sleep of the computer there is no network yet, and the server would be given up."""
    monkeypatch.setattr(client, "_LISTED_AGAIN_S", 0.01)
    ends = iter((SubscriptionLost("asleep"), MCPError(-1, "no network"), None))
    is_changed: list[bool] = []

    class Streams:
        def __init__(self, running: client._Running) -> None:
            self.running = running

        @asynccontextmanager
        async def listen(self, **_: object) -> AsyncIterator[AsyncIterator[None]]:
            is_changed.append(self.running._changed.is_set())
            end = next(ends)
            if isinstance(end, MCPError):
                raise end

            async def changes() -> AsyncIterator[None]:
                if end is not None:
                    raise end
                return
                yield

            yield changes()

    async def listened() -> bool:
        running = client._Running(local(), {}, lambda _: None, Kept())
        await running._listen(Streams(running))  # type: ignore[arg-type]
        return running._changed.is_set()

    assert asyncio.run(asyncio.wait_for(listened(), 10))
    assert is_changed == [False, False, False]


# --- servers that fail ----------------------------------------------------------------------------------------------


def test_a_call_that_hangs_is_ended_and_the_server_goes_on(running: Heard) -> None:
    assert running.call("hang", seconds=0.2).text == "The tool did not answer within 0.2 seconds."
    assert running.call("echo", text="still here").text == "still here"


def test_a_server_that_dies_in_a_call_leaves_its_last_words(heard: Heard) -> None:
    heard.started(old())
    found = heard.call("die")
    assert found.failed
    assert found.text.startswith("The tool failed: ")
    state = heard.states[-1] if heard.states[-1].state == "failed" else heard.until("failed")
    assert state.sentence == "It has ended."
    assert "Its exit code is 1." in state.detail
    assert "I give up." in state.detail


def test_a_server_that_dies_at_its_start_leaves_its_last_words(heard: Heard) -> None:
    heard.clients.start(old("dies"), {})
    state = heard.until("failed")
    assert state.sentence == "It has ended."
    assert "No configuration." in state.detail


def test_a_program_that_does_not_exist_is_named(heard: Heard) -> None:
    heard.clients.start(local().model_copy(update={"command": "no-such-program-9"}), {})
    assert "There is no program no-such-program-9." in heard.until("failed").detail


@pytest.mark.skipif(sys.platform == "win32", reason="a script of POSIX")
def test_a_program_is_looked_for_in_the_folder_in_which_it_starts(heard: Heard, tmp_path: Path) -> None:
    script = tmp_path / "serve"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} {SERVER}\n")
    script.chmod(0o755)
    server = ToolServer(name="test", command="./serve", folder=str(tmp_path))
    assert [tool.name for tool in heard.started(server).tools] == list(TOOLS)


@pytest.mark.parametrize("values", [{"A=B": "x"}, {"A": "x\0y"}])
def test_a_variable_that_no_program_can_have_is_named(heard: Heard, values: dict[str, str]) -> None:
    heard.clients.start(local(), values)
    detail = heard.until("failed").detail
    assert "Traceback" not in detail
    assert "illegal environment variable name" in detail or "embedded null byte" in detail


def test_a_server_that_says_nothing_can_be_stopped(heard: Heard) -> None:
    heard.clients.start(old("silent"), {})
    heard.until("starting")
    heard.clients.stop("test")
    heard.until("off")


def test_a_server_that_floods_is_ended(heard: Heard) -> None:
    heard.started(old())
    assert heard.call("flood").failed
    state = heard.states[-1] if heard.states[-1].state == "failed" else heard.until("failed")
    assert state.sentence == "It sent too many messages and was stopped."


@pytest.mark.parametrize(("tool", "sentence"), [("sample", "It asked the model"), ("elicit", "It asked you")])
def test_what_a_server_asks_for_is_refused_and_said(heard: Heard, tool: str, sentence: str) -> None:
    heard.started(old())
    assert heard.call(tool).failed
    assert any(state.sentence.startswith(sentence) for state in heard.states), heard.states
    assert heard.call("echo", text="still here").text == "still here"


def test_a_server_of_the_old_protocol_whose_list_is_strange_is_used_as_far_as_it_goes(heard: Heard) -> None:
    listed = heard.started(old())
    assert heard.states[-1].version == "2024-11-05"
    assert [tool.name for tool in listed.tools] == ["echo", "flood", "sample", "elicit", "broken", "liar"]
    assert listed.tools[4].schema == '{"properties":{"a":{"pattern":"((","type":"string"}},"type":"object"}'
    assert heard.call("liar").text == "The tool failed: It violates the protocol."


def test_a_tool_that_breaks_the_protocol_spoils_no_other(heard: Heard) -> None:
    listed = heard.started(old("lies"))
    assert (listed.tools[-1].name, listed.tools[-1].schema) == ("lie", '{"properties":{},"type":"object"}')
    assert heard.call("echo", text="still here").text == "still here"


# --- ends -----------------------------------------------------------------------------------------------------------


def test_a_call_that_is_cancelled_tells_nothing(running: Heard) -> None:
    running.clients.call(99, "test", "hang", {}, 60.0, 100)
    running.clients.cancel(99)
    assert isinstance(running.call("echo", text="next"), CallEnded)


def test_no_process_is_left(heard: Heard) -> None:
    before = psutil.Process().children(recursive=True)
    heard.started(old())
    children = [one for one in psutil.Process().children(recursive=True) if one not in before]
    assert len(children) >= 2, "the one between, and the server"
    heard.clients.close()
    _, alive = psutil.wait_procs(children, 10)
    assert alive == []


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="prctl(2)")
HOLDER = """
import sys
from tests.tools.conftest import Heard, old
Heard().started(old("stays"))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there the job of the process does it")
@pytest.mark.parametrize("between_too", [False, pytest.param(True, marks=LINUX)])
def test_servers_end_with_kvdesk_even_when_it_is_killed(between_too: bool) -> None:
    """Alone, or with the processes between it and its servers, as `pkill -9 -f kvdesk` does. This one ignores the end
    of its input.
    """
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        between = psutil.Process(process.pid).children()
        servers = [server for one in between for server in one.children()]
        assert len(servers) == 1
        process.kill()
        for one in between if between_too else ():
            one.kill()
    _, alive = psutil.wait_procs([*between, *servers], 20)
    assert alive == []


def test_nothing_is_imported_and_no_thread_made_before_a_server_is_started() -> None:
    clients = ToolClients(lambda _: None, Kept())
    clients.stop("x")
    clients.cancel(1)
    clients.close()
    assert clients._thread is None
