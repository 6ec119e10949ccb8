"""The main path with nothing scripted: window, thread, engine, database, model; and again after a restart."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.protocol.cache import AuditCache, ContextReady, Forget, OperationDone
from kvdesk.protocol.chat import BackendReady, EngineRestarted, ModelLoaded, TurnEnded
from kvdesk.protocol.features import MISSING, Feature
from kvdesk.protocol.messages import CommandFailed
from kvdesk.store.settings_file import save_settings
from tests.app.whole import SETTINGS, App
from tests.backends.scripted import ScriptedBackend
from tests.ui.seen import seen


@pytest.mark.parametrize("model", ["talking_file", pytest.param("model_file", marks=pytest.mark.matrix)])
def test_chat_watch_forget_rebuild_restart(
    model: str,
    request: pytest.FixtureRequest,
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    first_model: Path = request.getfixturevalue(model)
    monkeypatch.setattr(paths, "embedded_model", lambda: first_model)
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    save_settings(SETTINGS, paths.settings_file())
    app = App(qtbot)
    window, controller = app.window, app.controller

    first = app.ask("What is the sea?").stats
    assert first.reused_tokens == 0
    app.wait(lambda: app.used() == first.cells_used)
    second = app.ask("And a lake?").stats
    assert second.reused_tokens == first.cells_used
    conversation = controller.selected
    assert conversation is not None

    window.commands.new_chat()
    other = app.ask("Hello").stats
    assert other.seq_id != first.seq_id
    app.wait(lambda: app.used() == other.cells_used)

    window.commands.submit(AuditCache())
    app.wait(lambda: any(isinstance(e, OperationDone) and e.name == "audit" for e in app.events))

    before = app.used()
    window.commands.submit(Forget(conversation))
    shared = other.reused_tokens  # the beginning of the template: those cells stay for the other one
    app.wait(lambda: app.used() == before - second.cells_used + shared)

    n_ready = sum(isinstance(e, ContextReady) for e in app.events)
    window.commands.rebuild(controller.settings.context, "nothing")
    app.wait(lambda: sum(isinstance(e, ContextReady) for e in app.events) > n_ready and app.used() == 0)
    window.commands.select(conversation)
    third = app.ask("Thanks").stats
    assert third.reused_tokens == 0
    said = app.texts(conversation)
    window.close()

    again = App(qtbot)
    again.window.commands.select(conversation)
    again.wait(lambda: again.controller.conversations.branch(conversation) != [])
    assert again.texts(conversation) == said
    after = again.ask("Still there?").stats
    assert after.prompt_tokens > third.prompt_tokens
    again.window.close()
    assert capfd.readouterr().out == ""


def test_the_same_over_a_back_end_that_only_chats(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Everything a person does with chats, on a thread of its own; of the cache it is said that it is not shown."""
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    save_settings(
        SETTINGS.model_copy(update={"all_instruments": True, "inspector_visible": True}), paths.settings_file()
    )
    app = App(qtbot, ScriptedBackend, until=ModelLoaded)
    window, controller = app.window, app.controller
    assert app.last(BackendReady) == BackendReady(frozenset({Feature.CHAT}))
    app.ask("What is the sea?")
    app.ask("And a lake?")
    conversation = controller.selected
    assert conversation is not None
    assert app.texts(conversation)[1::2] == ["You said: What is the sea?", "You said: And a lake?"]
    window.verbs.regenerate(2)
    app.wait(lambda: sum(isinstance(e, TurnEnded) for e in app.events) == 4)
    assert window.chat.view.widgets[-1].message.text == "You said: And a lake?"

    assert window.inspector.missing == MISSING[Feature.CACHE_VIEW] in seen(window.status)
    for tab in ("Graphs", "Timeline", "Cache"):
        window.inspector.show_tab(tab)
        assert window.inspector._stack.currentWidget() is window.inspector._missing
    window.inspector.show_tab("Log")
    assert window.inspector._stack.currentWidget() is window.inspector.log
    assert not window.inspector.cache.forget.isEnabled()
    assert not window.inspector.cache.rebuild.isEnabled()
    assert window.status._audit.toolTip() == MISSING[Feature.AUDIT]
    menu = window.chat.view.menu(window.chat.view.widgets[-1].message.id)
    (cache,) = [action.menu() for action in menu.actions() if action.text() == "Cache"]
    (cells,) = cache.actions()
    assert (cells.isEnabled(), cells.toolTip()) == (False, MISSING[Feature.CACHE_OPERATIONS])
    page = window.rooms.show_settings()
    assert page.field("sampling", "temperature").isEnabled()
    assert not page.field("context", "n_ctx").isEnabled()
    assert not page.field("cache", "overflow").isEnabled()
    (context,) = page.sections.findItems("Context", Qt.MatchFlag.MatchExactly)
    page.sections.setCurrentItem(context)
    assert page._missing["context"].isVisible()
    window.rooms.show_chats()

    window.commands.new_chat()
    app.ask("Hello")
    said = app.texts(conversation)
    window.close()
    assert not any(isinstance(e, CommandFailed | EngineRestarted) for e in app.events)

    again = App(qtbot, ScriptedBackend, until=ModelLoaded)
    again.window.commands.select(conversation)
    again.wait(lambda: again.controller.conversations.branch(conversation) != [])
    assert again.texts(conversation) == said
    again.ask("Still there?")
    again.window.close()
    assert capfd.readouterr().out == ""
