"""The whole application in a test: window, thread, engine, database; what it is told, as a person would do it."""

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.app.application import Parts, build
from kvdesk.app.worker import local_engine
from kvdesk.backends.base import Backend, Emit
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import CacheView, ContextReady
from kvdesk.protocol.chat import TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.settings import ContextSettings, Sampling, Settings
from kvdesk.ui.shell.main_window import MainWindow

E = TypeVar("E", bound=Event)
SETTINGS = Settings(
    context=ContextSettings(n_ctx=512, n_threads=1, n_threads_batch=1),
    sampling=Sampling(temperature=0.0, max_tokens=12),
)


def close_unasked(window: MainWindow) -> None:
    """For windows of tests: what a failed test left unsaved must not stop all that follow by a question."""
    window.asks_before_closing = False


class App:
    """The application with a model open, and every event it has shown. make_backend: None for what each model needs;
    until: what comes when the model is open.
    """

    def __init__(
        self,
        qtbot: QtBot,
        make_backend: Callable[[Emit], Backend] | None = local_engine,
        until: type[Event] = ContextReady,
    ) -> None:
        self.parts: Parts = build(None, make_backend)
        self.window, self.controller = self.parts.window, self.parts.controller
        self.events: list[Event] = []
        self._qtbot = qtbot
        qtbot.addWidget(self.window, before_close_func=close_unasked)
        self.controller.event_applied.connect(self.events.append)
        self.window.show()
        self.wait(lambda: self.of(until))

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def last(self, kind: type[E]) -> E | None:
        return next(reversed(self.of(kind)), None)

    def wait(self, so: Callable[[], object]) -> None:
        self._qtbot.waitUntil(lambda: bool(so()), timeout=60_000)

    def say(self, text: str) -> None:
        """Type and press Enter, as a person does."""
        edit = self.window.chat.composer.edit
        self._qtbot.keyClicks(edit, text)
        self._qtbot.keyClick(edit, Qt.Key.Key_Return)

    def ask(self, text: str) -> TurnEnded:
        """Say it, and wait for the whole answer."""
        n = len(self.of(TurnEnded))
        self.say(text)
        self.wait(lambda: len(self.of(TurnEnded)) > n)
        ended = self.of(TurnEnded)[-1]
        assert ended.state == "complete", ended.note
        return ended

    def used(self) -> int:
        view = self.last(CacheView)
        assert view.snapshot.verification.state == "verified", view.snapshot.verification.detail
        return view.snapshot.maps[0].streams[0].used

    def texts(self, conversation: ConversationId) -> list[str]:
        return [m.text for m in self.controller.conversations.branch(conversation)]

    @property
    def answer(self) -> str:
        """The last message of the chat that is shown."""
        selected = self.controller.selected
        assert selected is not None
        return self.texts(selected)[-1]
