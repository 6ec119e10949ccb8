"""Connecting to a server, and safe mode, in the whole application: nothing is scripted but the server."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.conversations.markdown_file import as_markdown
from kvdesk.protocol.chat import EngineRestarted, ModelLoaded, TextDelta, TurnEnded
from kvdesk.protocol.messages import CommandFailed
from kvdesk.settings import KnownServer, Sampling, Settings
from kvdesk.store.server_keys import ServerKeys
from kvdesk.store.settings_file import load_settings, save_settings
from kvdesk.ui.server.connect_section import ConnectSection
from tests.app.conftest import Rig
from tests.app.whole import SETTINGS as SHORT
from tests.app.whole import App
from tests.backends.local.talking import trust
from tests.backends.openai.scripted_server import DONE, ScriptedServer, chunk

SETTINGS = SHORT.model_copy(update={"sampling": Sampling(temperature=0.0, max_tokens=200)})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    save_settings(SETTINGS, paths.settings_file())
    return tmp_path


@pytest.fixture(autouse=True)
def first_model(home: Path, monkeypatch: pytest.MonkeyPatch, talking_file: Path) -> None:
    assert paths.data_dir() == home
    monkeypatch.setattr(paths, "embedded_model", lambda: talking_file)
    trust(talking_file)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    server.says(chunk("On cliffs."), chunk("", "stop"), DONE)
    yield server
    server.close()


def section_of(app: App, qtbot: QtBot) -> ConnectSection:
    """By the menu of models."""
    menus = [menu for menu in app.window.findChildren(QMenu) if any(a.text() == CONNECT for a in menu.actions())]
    next(action for action in menus[0].actions() if action.text() == CONNECT).trigger()
    page = app.window.rooms.settings
    qtbot.waitUntil(page.connecting.isVisible)
    return page.connecting


CONNECT = "Connect to a server…"


def test_a_server_is_connected_answers_and_is_remembered(home: Path, server: ScriptedServer, qtbot: QtBot) -> None:
    app = App(qtbot, None, until=ModelLoaded)
    section = section_of(app, qtbot)
    qtbot.keyClicks(section.url, "ftp://nowhere")
    qtbot.mouseClick(section.test_button, Qt.MouseButton.LeftButton)
    assert section._sentence.text() == "The address of a server begins with http:// or https://."
    section.url.clear()
    qtbot.keyClicks(section.url, server.url.removeprefix("http://") + "/v1")
    qtbot.keyClicks(section.key, "sk-secret")
    qtbot.keyClicks(section.name, "bigbox")
    qtbot.mouseClick(section.test_button, Qt.MouseButton.LeftButton)
    app.wait(lambda: "It answers chats" in section._sentence.text())
    assert section.model.currentText() == "tiny"
    qtbot.keyClick(section.name, Qt.Key.Key_Return)
    assert app.window.rooms.shows_chats
    app.wait(lambda: len(app.of(ModelLoaded)) == 2)
    assert server.requests[-1][1]["Authorization"] == "Bearer sk-secret"
    app.say("Where do puffins live?")
    app.wait(lambda: app.of(TurnEnded))
    assert app.answer == "On cliffs."
    app.wait(lambda: "server-keys.json" in app.window.activity.text)
    conversation = app.controller.selected
    assert conversation is not None
    messages = app.controller.conversations.branch(conversation)
    assert messages[-1].model == "tiny on bigbox"
    known = app.controller.conversations.get(conversation)
    assert known is not None
    assert "tiny on bigbox" in as_markdown(known, messages)
    settings, _ = load_settings(paths.settings_file())
    assert (settings.server, settings.servers[0].name, settings.servers[0].model) == (server.url, "bigbox", "tiny")
    assert "sk-secret" not in paths.settings_file().read_text()
    app.window.close()

    again = App(qtbot, None, until=ModelLoaded)
    loaded = again.of(ModelLoaded)[0]
    assert loaded.model.name == "tiny on bigbox", "the next start connects again"
    assert server.requests[-1][1]["Authorization"] == "Bearer sk-secret"
    again.window.commands.open_embedded()
    again.wait(lambda: len(again.of(ModelLoaded)) == 2)
    again.wait(lambda: again.controller.settings.server == "")
    again.window.commands.reconnect()
    again.wait(lambda: again.controller.settings.server == server.url and len(again.of(ModelLoaded)) == 3)
    again.window.commands.open_embedded()
    again.wait(lambda: again.controller.settings.server == "" and len(again.of(ModelLoaded)) == 4)
    section = section_of(again, qtbot)
    assert section.url.text() == server.url
    again.wait(lambda: section.key.text() == "sk-secret")
    qtbot.mouseClick(section.forget_button, Qt.MouseButton.LeftButton)
    assert again.controller.settings.servers == ()
    again.wait(lambda: not (home / "server-keys.json").exists())
    section.close()
    again.window.close()


def test_keys_are_kept_before_kvdesk_ends(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    may = threading.Event()

    def keep(keys: ServerKeys, url: str, key: str) -> str:
        assert may.wait(10.0)
        keys.use(url, key)
        kept.append(key)
        return ""

    kept: list[str] = []
    monkeypatch.setattr(ServerKeys, "keep", keep)
    commands = rig.window.commands.servers
    commands.connect_to(KnownServer(url="http://127.0.0.1:9"), "one")
    commands.connect_to(KnownServer(url="http://127.0.0.1:9"), "two")
    threading.Timer(0.05, may.set).start()
    rig.controller.shut_down()
    assert kept == ["one", "two"]


def test_a_key_that_cannot_be_forgotten_is_said(rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(_keys: ServerKeys, _url: str, _key: str) -> str:
        raise RuntimeError("the keyring broke")

    monkeypatch.setattr(ServerKeys, "keep", keep)
    rig.window.show()
    rig.window.commands.servers.forget("http://127.0.0.1:9")
    qtbot.waitUntil(lambda: "the keyring broke" in rig.window.activity.text)


def test_a_server_that_breaks_keeps_the_text_and_continue_works(server: ScriptedServer, qtbot: QtBot) -> None:
    server.says(chunk("On "))
    app = App(qtbot, None, until=ModelLoaded)
    section = section_of(app, qtbot)
    qtbot.keyClicks(section.url, server.url)
    qtbot.mouseClick(section.connect_button, Qt.MouseButton.LeftButton)
    app.wait(lambda: len(app.of(ModelLoaded)) == 2)
    app.say("Where do puffins live?")
    app.wait(lambda: app.of(TurnEnded))
    ended = app.of(TurnEnded)[-1]
    assert (ended.state, ended.note) == ("interrupted", "The connection broke in the middle of the answer.")
    assert app.answer == "On "
    server.says(chunk("cliffs.", "stop"), DONE)
    assert app.controller.selected is not None
    app.window.commands.conversations.turns.continue_answer(app.controller.selected)
    app.wait(lambda: len(app.of(TurnEnded)) == 2)
    assert app.answer == "On cliffs."
    server.answers["/v1/models"] = lambda _: (401, {}, iter([b""]))
    section = section_of(app, qtbot)
    qtbot.mouseClick(section.connect_button, Qt.MouseButton.LeftButton)
    app.wait(lambda: app.of(CommandFailed))
    failed = app.of(CommandFailed)[0]
    assert failed.sentence.endswith("The server needs a key (401). Enter it where you connect.")
    app.say("Still there?")  # what was open still is
    app.wait(lambda: len(app.of(TurnEnded)) == 3)
    app.window.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_in_safe_mode_a_crash_costs_a_reload_and_not_the_window(qtbot: QtBot) -> None:
    others = set(psutil.Process().children(recursive=True))  # of engines that other tests keep running
    context = SETTINGS.context.model_copy(update={"n_ctx": 4096})
    long = Sampling(temperature=0.0, max_tokens=3000)  # a tiny model writes them in seconds: it is killed before
    save_settings(Settings(context=context, sampling=long, safe_mode=True), paths.settings_file())
    app = App(qtbot, None, until=ModelLoaded)
    app.say("Count to a thousand in words.")
    app.wait(lambda: app.of(TextDelta))
    engine = next(p for p in set(psutil.Process().children()) - others if "--engine" in p.cmdline())
    os.kill(engine.pid, signal.SIGKILL)
    app.wait(lambda: app.of(EngineRestarted))
    app.wait(lambda: len(app.of(ModelLoaded)) == 2)
    ended = app.of(TurnEnded)[0]
    assert ended.state == "interrupted"
    before = app.answer
    assert before
    app.window.store.settings.change(sampling=Sampling(temperature=0.0, max_tokens=20))
    assert app.controller.selected is not None
    app.window.commands.conversations.turns.continue_answer(app.controller.selected)
    app.wait(lambda: len(app.of(TurnEnded)) == 2)
    assert app.answer.startswith(before)
    assert len(app.answer) > len(before)
    app.window.close()
    left = set(psutil.Process().children(recursive=True)) - others
    assert not [p for p in left if p.is_running() and p.status() != "zombie"]
