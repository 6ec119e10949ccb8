"""The main path with nothing scripted: window, thread, engine, database, embedded model; and again after a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.app.application import Parts, build
from kvdesk.app.worker import local_engine
from kvdesk.backends.base import Backend, Emit
from kvdesk.chat import ConversationId
from kvdesk.protocol.cache import AuditCache, CacheView, ContextReady, Forget, OperationDone
from kvdesk.protocol.chat import BackendReady, EngineRestarted, ModelLoaded, TurnEnded
from kvdesk.protocol.features import MISSING, Feature
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.settings import ContextSettings, Sampling, Settings
from kvdesk.store.settings_file import save_settings
from tests.backends.scripted import ScriptedBackend

SETTINGS = Settings(
    context=ContextSettings(n_ctx=512, n_threads=1, n_threads_batch=1),
    sampling=Sampling(temperature=0.0, max_tokens=12),
)


class App:
    """The application and every event it has shown."""

    def __init__(self, qtbot: QtBot, make_backend: Callable[[Emit], Backend] = local_engine) -> None:
        self.parts: Parts = build(None, make_backend)
        self.events: list[Event] = []
        self._qtbot = qtbot
        qtbot.addWidget(self.parts.window)
        self.parts.controller.event_applied.connect(self.events.append)
        self.parts.window.show()
        self.wait(lambda: self.last(ContextReady if make_backend is local_engine else ModelLoaded) is not None)

    def last(self, kind: type[Event]) -> Event | None:
        return next((e for e in reversed(self.events) if isinstance(e, kind)), None)

    def wait(self, so: Callable[[], bool]) -> None:
        self._qtbot.waitUntil(so, timeout=60_000)

    def ask(self, text: str) -> TurnEnded:
        """Type and press Enter, as a person does; wait for the answer."""
        edit = self.parts.window.chat.composer.edit
        n = sum(isinstance(e, TurnEnded) for e in self.events)
        self._qtbot.keyClicks(edit, text)
        self._qtbot.keyClick(edit, Qt.Key.Key_Return)
        self.wait(lambda: sum(isinstance(e, TurnEnded) for e in self.events) > n)
        ended = self.last(TurnEnded)
        assert isinstance(ended, TurnEnded)
        assert ended.state == "complete", ended.note
        return ended

    def used(self) -> int:
        view = self.last(CacheView)
        assert isinstance(view, CacheView)
        assert view.snapshot.verification.state == "verified", view.snapshot.verification.detail
        return view.snapshot.maps[0].streams[0].used

    def texts(self, conversation: ConversationId) -> list[str]:
        return [m.text for m in self.parts.controller.conversations.branch(conversation)]


def test_chat_watch_forget_rebuild_restart(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    save_settings(SETTINGS, paths.settings_file())
    app = App(qtbot)
    window, controller = app.parts.window, app.parts.controller

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
    again.parts.window.commands.select(conversation)
    again.wait(lambda: again.parts.controller.conversations.branch(conversation) != [])
    assert again.texts(conversation) == said
    after = again.ask("Still there?").stats
    assert after.prompt_tokens > third.prompt_tokens
    again.parts.window.close()
    assert capfd.readouterr().out == ""


def test_the_same_over_a_back_end_that_only_chats(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Everything a person does with chats, on a thread of its own; of the cache it is said that it is not shown."""
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    save_settings(
        SETTINGS.model_copy(update={"all_instruments": True, "inspector_visible": True}), paths.settings_file()
    )
    app = App(qtbot, ScriptedBackend)
    window, controller = app.parts.window, app.parts.controller
    assert app.last(BackendReady) == BackendReady(frozenset({Feature.CHAT}))
    app.ask("What is the sea?")
    app.ask("And a lake?")
    conversation = controller.selected
    assert conversation is not None
    assert app.texts(conversation)[1::2] == ["You said: What is the sea?", "You said: And a lake?"]
    window.verbs.regenerate(2)
    app.wait(lambda: sum(isinstance(e, TurnEnded) for e in app.events) == 4)
    assert window.chat.view.widgets[-1].message.text == "You said: And a lake?"

    assert window.inspector.missing == MISSING[Feature.CACHE_VIEW] in window.status.text
    for tab in ("Graphs", "Timeline", "Cache"):
        window.inspector.show_tab(tab)
        assert window.inspector._stack.currentWidget() is window.inspector._missing
    window.inspector.show_tab("Log")
    assert window.inspector._stack.currentWidget() is window.inspector.log
    assert not window.inspector.cache.forget.isEnabled()
    assert not window.inspector.cache.rebuild.isEnabled()
    assert window.status._audit.toolTip() == MISSING[Feature.AUDIT]
    menu = window.chat.view.menu(window.chat.view.widgets[-1].message.id)
    assert menu is not None
    (cache,) = [action.menu() for action in menu.actions() if action.text() == "Cache"]
    (cells,) = cache.actions()  # type: ignore[attr-defined]
    assert (cells.isEnabled(), cells.toolTip()) == (False, MISSING[Feature.CACHE_OPERATIONS])
    window.rooms.show_settings()
    page = window.rooms.settings
    assert page is not None
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

    again = App(qtbot, ScriptedBackend)
    again.parts.window.commands.select(conversation)
    again.wait(lambda: again.parts.controller.conversations.branch(conversation) != [])
    assert again.texts(conversation) == said
    again.ask("Still there?")
    again.parts.window.close()
    assert capfd.readouterr().out == ""
