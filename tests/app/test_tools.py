"""Tools in the window, with a real server as a child: from the list of another program to the answer."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

pytest.importorskip("mcp")

from kvdesk import paths
from kvdesk.app.tools import DENIED, NOT_STARTED
from kvdesk.call_format import GENERIC
from kvdesk.message import ConversationId, Message
from kvdesk.protocol.chat import Generate, ModelLoaded, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.prompt import PriceTools, ToolPrice, ToolsPriced
from kvdesk.session.features import ToolDecision
from kvdesk.settings import Settings, ToolServer
from kvdesk.store.server_keys import ServerKeys
from kvdesk.tools.servers import command_line, tokens_of
from kvdesk.ui.messages.tool_message import ToolMessage
from kvdesk.ui.tools.consent_dialog import ConsentDialog, SignInDialog
from tests.app.conftest import Rig
from tests.app.test_controller import STATS, say
from tests.tools.conftest import local, old
from tests.tools.test_sign_in import serving
from tests.ui.samples import MODEL

PATIENCE_MS = 60_000
SERVER = old("plain")


@pytest.fixture
def tools(make_rig: Callable[..., Rig], qtbot: QtBot) -> Rig:
    """A model is open, and a server is set up that never ran."""
    (paths.data_dir() / "tools.json").unlink(missing_ok=True)
    rig = make_rig(settings=Settings(tool_servers=(SERVER,)))
    rig.worker.give(ModelLoaded(MODEL))
    rig.window.show()
    qtbot.waitUntil(lambda: not rig.window.chat.composer.blocked)
    return rig


def chat(rig: Rig) -> ConversationId:
    assert rig.controller.selected is not None
    return rig.controller.selected


def dialogs(rig: Rig) -> list[ConsentDialog]:
    return [one for one in rig.window.findChildren(ConsentDialog) if one.isVisible()]


def consent(rig: Rig, qtbot: QtBot, *, yes: bool = True, for_good: bool = False) -> ConsentDialog:
    qtbot.waitUntil(lambda: len(dialogs(rig)) == 1, timeout=PATIENCE_MS)
    [dialog] = dialogs(rig)
    dialog.for_good.setChecked(for_good)
    (dialog.yes if yes else dialog.no).click()
    return dialog


def switched_on(rig: Rig, qtbot: QtBot, **how: bool) -> None:
    rig.window.commands.tools.switch(chat(rig), "test", on=True)
    consent(rig, qtbot, **how)
    qtbot.waitUntil(lambda: "test" in rig.window.store.tool_lists, timeout=PATIENCE_MS)


def calls(rig: Rig, asked: Generate, tool: str, arguments: dict[str, str]) -> None:
    """The model answers with a call."""
    text = GENERIC.written([(tool, arguments)])
    rig.worker.give(
        TurnStarted(asked.conversation, asked.answer, calls=GENERIC),
        TextDelta(asked.conversation, asked.answer, text, (1, 2, 3)),
        TurnEnded(asked.conversation, asked.answer, "complete", STATS),
    )


def shown(rig: Rig) -> list[Message]:
    return rig.controller.conversations.branch(chat(rig))


def tool_message(rig: Rig) -> ToolMessage:
    found = [one for one in rig.window.chat.view.made().values() if isinstance(one, ToolMessage)]
    return found[-1]


def asks(rig: Rig, qtbot: QtBot, tool: str = "echo", **arguments: str) -> ToolMessage:
    """A question whose answer calls a tool: what is asked of the person."""
    calls(rig, say(rig, "Go"), tool, arguments)
    qtbot.waitUntil(lambda: bool(rig.window.store.tool_questions), timeout=PATIENCE_MS)
    return tool_message(rig)


def n_asked(rig: Rig, qtbot: QtBot, n: int) -> Generate:
    qtbot.waitUntil(lambda: len(rig.worker.asked) == n, timeout=PATIENCE_MS)
    return rig.worker.asked[-1]


def test_from_the_switch_to_the_answer(tools: Rig, qtbot: QtBot) -> None:
    tools.window.commands.tools.switch(chat(tools), "test", on=True)
    dialog = consent(tools, qtbot)
    assert dialog.place.text() == command_line(SERVER), "all of the command"
    qtbot.waitUntil(lambda: "test" in tools.window.store.tool_lists, timeout=PATIENCE_MS)
    question = asks(tools, qtbot, text="Hello")
    offered = [tool["function"]["name"] for tool in json.loads(tools.worker.asked[0].tools)]
    assert offered == sorted(offered)
    assert question._question.text() == "The model wants to call echo of the server test."
    assert question._facts.text() == "Waiting for you"
    assert tools.window.chat.composer.hint.full_text == "Allow or deny the call above  ·  Esc stops the answer"
    assert len(tools.worker.asked) == 1, "nothing runs before it is allowed"
    question.buttons["once"].click()
    second = n_asked(tools, qtbot, 2)
    assert (second.messages[-1].role, second.messages[-1].text) == ("tool", "Hello")
    tools.worker.give(
        TextDelta(second.conversation, second.answer, "It says Hello.", (4,)),
        TurnEnded(second.conversation, second.answer, "complete", STATS),
    )
    qtbot.waitUntil(lambda: not tools.window.store.is_answering)
    assert [message.role for message in shown(tools)] == ["user", "assistant", "tool", "assistant"]
    assert tool_message(tools)._spent.text().startswith("1 of 20 calls")
    stored = tools.store.ask(lambda store: store.all_messages(chat(tools))).result()
    assert [(m.role, m.fields, m.use) for m in stored] == [(m.role, m.fields, m.use) for m in shown(tools)]


def test_a_call_of_a_chat_that_is_not_shown_is_said(tools: Rig, qtbot: QtBot) -> None:
    switched_on(tools, qtbot)
    asked = say(tools, "Go")
    tools.window.commands.new_chat()
    calls(tools, asked, "echo", {"text": "Hello"})
    qtbot.waitUntil(lambda: bool(tools.window.store.tool_questions), timeout=PATIENCE_MS)
    assert tools.window.activity.text == "“Go” asks whether it may call echo."
    composer = tools.window.chat.composer
    assert not composer.is_running
    tools.window.commands.select(asked.conversation)
    qtbot.waitUntil(lambda: composer.hint.full_text.startswith("Allow or deny the call above"), timeout=PATIENCE_MS)


def test_a_server_that_is_asked_for_twice_has_one_question(tools: Rig, qtbot: QtBot) -> None:
    switch = tools.window.commands.tools.switch
    switch(chat(tools), "test", on=True)
    switch(chat(tools), "test", on=False)
    switch(chat(tools), "test", on=True)
    consent(tools, qtbot, yes=False)
    assert dialogs(tools) == []
    switch(chat(tools), "test", on=True)
    consent(tools, qtbot, yes=False)


def test_no_starts_nothing_and_a_call_of_it_says_so_to_the_model(tools: Rig, qtbot: QtBot) -> None:
    tools.window.commands.tools.switch(chat(tools), "test", on=True)
    consent(tools, qtbot, yes=False)
    assert not tools.window.store.tool_states
    switched_on(tools, qtbot)
    tools.window.commands.tools.stop("test")
    qtbot.waitUntil(lambda: tools.window.store.tool_states["test"].state == "off", timeout=PATIENCE_MS)
    asks(tools, qtbot, text="Hello").buttons["once"].click()
    consent(tools, qtbot, yes=False)
    assert n_asked(tools, qtbot, 2).messages[-1].text == NOT_STARTED


def test_a_server_that_was_removed_meanwhile_is_not_started(tools: Rig, qtbot: QtBot) -> None:
    commands = tools.window.commands.tools
    commands.start("test")
    qtbot.waitUntil(lambda: len(dialogs(tools)) == 1)
    commands.forget("test")
    consent(tools, qtbot, for_good=True)
    assert "test" not in tools.window.store.tool_states
    assert tools.window.store.settings.current.tool_grants == ()


def test_all_of_a_command_is_seen(tools: Rig, qtbot: QtBot) -> None:
    hidden = ToolServer(name="evil", command="npx", args=("-y", "<!--", "\u202egpj.exe\n", "&amp;", "-->"))
    tools.window.commands.tools.add(hidden, {})
    tools.window.commands.tools.start("evil")
    dialog = consent(tools, qtbot, yes=False)
    assert dialog.place.textFormat() is Qt.TextFormat.PlainText
    assert dialog.place.text() == r'npx -y "<!--" "\u202egpj.exe\n" "&amp;" "-->"'


@pytest.fixture(scope="module")
def web_server() -> Iterator[ToolServer]:
    with serving() as server:
        yield server


@pytest.fixture
def web(web_server: ToolServer) -> ToolServer:
    """The server `test`, at which nobody has signed in."""
    ServerKeys(paths.keys_file()).keep(tokens_of(web_server.url), "")
    return web_server


@pytest.mark.parametrize("yes", [True, False])
def test_a_page_to_sign_in_is_opened_only_when_a_person_says_so(
    tools: Rig, web: ToolServer, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, yes: bool
) -> None:
    opened: list[str] = []

    def open_url(url: QUrl) -> bool:
        opened.append(url.toString())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    tools.window.commands.tools.add(web, {})
    tools.window.commands.tools.start("test")
    consent(tools, qtbot)
    qtbot.waitUntil(lambda: bool(tools.window.findChildren(SignInDialog)), timeout=PATIENCE_MS)
    [dialog] = tools.window.findChildren(SignInDialog)
    assert not opened
    assert dialog.place.text() == web.url.removesuffix("mcp") + "authorize"
    (dialog.yes if yes else dialog.no).click()
    assert len(opened) == yes
    if yes:
        httpx.get(opened[0], follow_redirects=True)
    wanted = "on" if yes else "off"
    qtbot.waitUntil(lambda: tools.window.store.tool_states["test"].state == wanted, timeout=PATIENCE_MS)


def test_a_call_that_is_denied_is_not_run(tools: Rig, qtbot: QtBot) -> None:
    switched_on(tools, qtbot)
    asks(tools, qtbot, text="Hello").buttons["deny"].click()
    assert n_asked(tools, qtbot, 2).messages[-1].text == DENIED
    assert shown(tools)[2].use is not None
    assert shown(tools)[2].use.failed


@pytest.mark.parametrize("decision", ["deny", "once"])
def test_a_call_whose_server_was_removed_meanwhile_ends(tools: Rig, qtbot: QtBot, decision: ToolDecision) -> None:
    switched_on(tools, qtbot)
    question = asks(tools, qtbot, text="Hello")
    tools.window.commands.tools.forget("test")
    question.buttons[decision].click()
    second = n_asked(tools, qtbot, 2)
    assert second.messages[-1].text == (DENIED if decision == "deny" else "There is no tool echo.")
    assert tools.window.store.tool_questions == {}


@pytest.mark.parametrize("decision", ["tool", "server"])
def test_what_is_allowed_for_good_is_not_asked_again_and_can_be_revoked(
    tools: Rig, qtbot: QtBot, decision: str
) -> None:
    switched_on(tools, qtbot)
    asks(tools, qtbot, text="1").buttons[decision].click()  # type: ignore[index]
    calls(tools, n_asked(tools, qtbot, 2), "echo", {"text": "2"})
    assert n_asked(tools, qtbot, 3).messages[-1].text == "2"
    calls(tools, tools.worker.asked[-1], "count", {"text": "three"})
    if decision == "tool":
        qtbot.waitUntil(lambda: bool(tools.window.store.tool_questions), timeout=PATIENCE_MS)
        tool_message(tools).buttons["once"].click()
    assert n_asked(tools, qtbot, 4).messages[-1].text == "5"
    [grant] = tools.window.store.settings.current.tool_grants
    tools.window.commands.tools.revoke(grant)
    calls(tools, tools.worker.asked[-1], "echo", {"text": "4"})
    qtbot.waitUntil(lambda: bool(tools.window.store.tool_questions), timeout=PATIENCE_MS)


def test_stop_ends_the_question_and_the_call(tools: Rig, qtbot: QtBot) -> None:
    switched_on(tools, qtbot)
    question = asks(tools, qtbot, "hang")
    tools.window.commands.conversations.stop(chat(tools))
    assert not tools.window.store.tool_questions
    assert not tools.window.store.is_answering
    assert (question._ask.isHidden(), question._facts.text()) == (True, "Stopped")
    question = asks(tools, qtbot, "hang")
    question.buttons["once"].click()
    assert tool_message(tools)._facts.text() == "Runs…"
    tools.window.commands.conversations.stop(chat(tools))
    assert tool_message(tools)._facts.text() == "Stopped"
    assert len(tools.worker.asked) == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [("nothing", "{}", "There is no tool nothing."), ("echo", "[1]", "The arguments are no JSON object.")],
)
def test_a_call_that_cannot_be_is_told_to_the_model(
    tools: Rig, qtbot: QtBot, tool: str, arguments: str, said: str
) -> None:
    switched_on(tools, qtbot)
    asked = say(tools, "Go")
    toolbox = tools.controller.tools
    calls(tools, asked, "echo", {"text": "1"})
    qtbot.waitUntil(lambda: bool(tools.window.store.tool_questions), timeout=PATIENCE_MS)
    [call] = toolbox._calls.values()
    toolbox.begin(type(call)(call.message, call.conversation, tool, arguments))
    assert n_asked(tools, qtbot, 2).messages[-1].text == said


def test_what_a_server_offered_is_known_before_it_runs_again(
    tools: Rig, qtbot: QtBot, make_rig: Callable[..., Rig]
) -> None:
    switched_on(tools, qtbot, for_good=True)
    text = say(tools, "Hi").tools
    settings, name = tools.window.store.settings.current, chat(tools)
    tools.controller.shut_down()
    rig = make_rig(settings=settings)
    rig.worker.give(ModelLoaded(MODEL))
    rig.window.commands.select(name)
    qtbot.waitUntil(lambda: rig.controller.conversations.is_read(name))
    qtbot.waitUntil(lambda: not rig.window.store.is_answering)
    asked = say(rig, "Again")
    assert asked.tools == text, "the prompt begins as before"
    assert not rig.window.store.tool_states, "and nothing was started for it"


def test_a_file_is_imported_and_nothing_started(tools: Rig, tmp_path: Path, qtbot: QtBot) -> None:
    file = tmp_path / "mcp.json"
    secret = {"command": sys.executable, "args": SERVER.args, "env": {"TOKEN": "abc"}}
    file.write_text(json.dumps({"mcpServers": {"mine": secret}}))
    tools.window.commands.tools.import_file(file)
    known = tools.window.store.settings.current.tool_servers
    assert known[-1] == ToolServer(name="mine", command=sys.executable, args=SERVER.args, env=("TOKEN",))
    assert not tools.window.store.tool_states
    assert not dialogs(tools)
    tools.window.commands.tools.start("mine")
    assert consent(tools, qtbot).place.text() == command_line(known[-1])
    qtbot.waitUntil(lambda: "mine" in tools.window.store.tool_lists, timeout=PATIENCE_MS)


def test_a_server_that_is_removed_is_forgotten_with_all_that_it_was_allowed(tools: Rig, qtbot: QtBot) -> None:
    switched_on(tools, qtbot, for_good=True)
    assert tools.window.store.settings.current.tool_grants
    tools.window.commands.tools.forget("test")
    now = tools.window.store.settings.current
    assert (now.tool_servers, now.tool_grants) == ((), ())
    assert say(tools, "Hi").tools == ""
    qtbot.waitUntil(lambda: tools.window.store.tool_states["test"].state == "off", timeout=PATIENCE_MS)


def test_tools_are_priced_before_they_are_switched_on(tools: Rig, qtbot: QtBot) -> None:
    tools.window.commands.tools.start("test")
    consent(tools, qtbot)
    qtbot.waitUntil(lambda: any(isinstance(c, PriceTools) for c in tools.worker.commands), timeout=PATIENCE_MS)
    asked = next(c for c in tools.worker.commands if isinstance(c, PriceTools))
    assert asked.without == (("test", ""),)
    assert json.loads(asked.turn.tools)
    price = ToolPrice("test", 500, 3, 503, 20, 2000.0, 100.0)
    tools.worker.give(ToolsPriced(asked.turn.conversation, asked.number, (price,), 4096))
    qtbot.waitUntil(lambda: tools.window.store.tool_prices == {"test": price})
    choice = tools.window.chat.header.tools_choice
    choice.show_servers()
    assert not choice.boxes["test"].isChecked()
    assert choice.boxes["test"].accessibleDescription() == "3 tools  ·  500 tokens  ·  2.0 s to read"


def test_a_change_of_the_tools_is_said_with_what_is_read_again_for_it(tools: Rig, qtbot: QtBot) -> None:
    tools.window.commands.tools.add(local(file="growing_server.py"), {})
    switched_on(tools, qtbot, for_good=True)
    asked = say(tools, "Grow")
    calls(tools, asked, "grow", {})
    qtbot.waitUntil(lambda: bool(tools.window.store.tool_questions), timeout=PATIENCE_MS)
    [message] = tools.window.store.tool_questions
    tools.window.commands.tools.decide(message, "once")

    def changes() -> list[PriceTools]:
        return [c for c in tools.worker.commands if isinstance(c, PriceTools) and c.number]

    qtbot.waitUntil(lambda: bool(changes()), timeout=PATIENCE_MS)
    [change] = changes()
    ((_, now),) = change.without
    assert change.turn.tools == asked.tools, "what the cache has"
    assert [tool["function"]["name"] for tool in json.loads(now)] == ["grow", "shout"]
    price = ToolPrice("", -60, 40, 100, 1234, 900.0, 2500.0)
    tools.worker.give(ToolsPriced(change.turn.conversation, change.number, (price,), 4096))
    said = "The server test changed its tools: added shout. 1,234 tokens of this chat are read again, 2.5 s."
    qtbot.waitUntil(lambda: said in tools.window.activity.text)


@pytest.fixture
def signed_in(tools: Rig, web: ToolServer, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> ToolServer:
    """The server `test` runs, at which the person has signed in."""
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: bool(httpx.get(url.toString(), follow_redirects=True)))
    commands, store = tools.window.commands.tools, tools.window.store
    commands.add(web, {})
    commands.start("test")
    consent(tools, qtbot)
    qtbot.waitUntil(lambda: bool(tools.window.findChildren(SignInDialog)), timeout=PATIENCE_MS)
    [dialog] = tools.window.findChildren(SignInDialog)
    dialog.yes.click()
    qtbot.waitUntil(lambda: store.tool_states["test"].state == "on", timeout=PATIENCE_MS)
    assert store.settings.current.tool_servers[-1].signed_in
    return web


@pytest.mark.usefixtures("signed_in")
def test_signing_out_ends_the_server_and_deletes_its_token(tools: Rig, qtbot: QtBot) -> None:
    commands, store = tools.window.commands.tools, tools.window.store
    commands.sign_out("test")
    qtbot.waitUntil(lambda: not store.settings.current.tool_servers[-1].signed_in, timeout=PATIENCE_MS)
    assert store.tool_states["test"].state == "off"
    assert "You are signed out of test" in tools.window.activity.text
    commands.start("test")
    consent(tools, qtbot)
    asks = tools.window.findChildren
    qtbot.waitUntil(lambda: any(one.isVisible() for one in asks(SignInDialog)), timeout=PATIENCE_MS)
    commands.stop("test")
    qtbot.waitUntil(lambda: store.tool_states["test"].state == "off", timeout=PATIENCE_MS)


@pytest.mark.parametrize("how", ["sign_out", "forget"])
def test_closing_meanwhile_deletes_the_token_too(tools: Rig, signed_in: ToolServer, how: str) -> None:
    name = tokens_of(signed_in.url)
    assert ServerKeys(paths.keys_file()).get(name)
    getattr(tools.window.commands.tools, how)("test")
    tools.controller.shut_down()
    assert not ServerKeys(paths.keys_file()).get(name)
    assert not any(server.signed_in for server in tools.window.store.settings.current.tool_servers)


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize("how", ["sign_out", "forget"])
def test_a_key_that_cannot_be_deleted_is_said(
    tools: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def keep(_keys: ServerKeys, _name: str, _key: str) -> str:
        raise RuntimeError("the keyring broke")

    with monkeypatch.context() as patched:
        patched.setattr(ServerKeys, "keep", keep)
        getattr(tools.window.commands.tools, how)("test")
        qtbot.waitUntil(lambda: "the keyring broke" in tools.window.activity.text, timeout=PATIENCE_MS)


def with_a_key(rig: Rig) -> None:
    server = SERVER.model_copy(update={"env": ("KVDESK_TEST_KEY",)})
    rig.window.commands.tools.add(server, {"KVDESK_TEST_KEY": "secret"})


def test_a_call_waits_for_the_keys_of_its_server(tools: Rig, qtbot: QtBot) -> None:
    with_a_key(tools)
    switched_on(tools, qtbot, for_good=True)
    tools.window.commands.tools.stop("test")
    qtbot.waitUntil(lambda: tools.window.store.tool_states["test"].state == "off", timeout=PATIENCE_MS)
    asks(tools, qtbot, text="Hello").buttons["once"].click()
    assert n_asked(tools, qtbot, 2).messages[-1].text == "Hello"


def test_a_server_that_is_stopped_before_its_keys_are_there_is_not_started(tools: Rig, qtbot: QtBot) -> None:
    with_a_key(tools)
    commands, store = tools.window.commands.tools, tools.window.store
    commands.start("test")
    consent(tools, qtbot)
    states: list[str] = [store.tool_states["test"].state]
    commands.stop("test")
    states.append(store.tool_states["test"].state)
    qtbot.wait(300)
    states.append(store.tool_states["test"].state)
    assert states == ["starting", "off", "off"]
