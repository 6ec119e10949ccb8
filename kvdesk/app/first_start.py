"""What an empty chat offers: questions to begin with, and a better model than the embedded one."""

from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject

from kvdesk.app.chat.chats import Chats
from kvdesk.app.models.model_downloads import ModelDownloads
from kvdesk.app.models.model_library import ModelLibrary
from kvdesk.library.recommended import recommended
from kvdesk.message import ConversationId, TurnStats
from kvdesk.protocol.chat import ModelLoaded, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.protocol.model import LocalFile
from kvdesk.translation import installed
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.timers import once
from kvdesk.viewmodel.chat.starters import STARTERS, TWICE, compared
from kvdesk.viewmodel.downloads import best_offer, offer_facts, recommended_offers
from kvdesk.viewmodel.models import Machine

_SETTLED_MS: Final = 1500
"""After a model was opened, until the engine no longer warms up and memory can be measured."""


class FirstStart(QObject):
    """embedded: the model that comes with kvdesk; while it is open, another one is offered."""

    def __init__(
        self, window: MainWindow, chats: Chats, models: ModelLibrary, downloads: ModelDownloads, embedded: Path | None
    ) -> None:
        super().__init__(window)
        self._window, self._chats, self._models, self._embedded = window, chats, models, embedded
        self._is_toy = False
        self._known: tuple[Machine, dict[str, Path]] | None = None
        self._asked_twice: dict[ConversationId, list[TurnStats]] = {}  # what the answers so far cost
        self._asking = once(self, _SETTLED_MS, self._ask_machine)
        downloads.finished.connect(self._ask_machine)
        models.machine_known.connect(self._on_machine_known)

    def apply(self, event: Event) -> None:
        """Another model is open, or an answer to a starter has ended."""
        match event:
            case ModelLoaded():
                source = event.model.source
                self._is_toy = isinstance(source, LocalFile) and source.path == self._embedded
                self._asking.start()
            case TurnEnded() if event.conversation in self._asked_twice:
                answers = self._asked_twice[event.conversation]
                answers.append(event.stats)
                if len(answers) > 1 or event.state in ("failed", "interrupted"):
                    del self._asked_twice[event.conversation]
                if len(answers) > 1 and (said := compared(*answers)):
                    self._window.store.notify(said, "good")

    def ask(self, name: str) -> None:
        """Ask its questions in the chat that is shown; the second one waits for the first answer in the queue.
        The draft stays.
        """
        starter = next(starter for starter in STARTERS if starter.name == name)
        if self._window.store.selected is None:
            self._chats.new()
        conversation = self._window.store.selected
        assert conversation is not None
        if name == TWICE:
            self._asked_twice[conversation] = []
        for text in starter.messages(in_english=self._is_toy):
            self._chats.service.send(conversation, text, is_draft=False)

    def _ask_machine(self) -> None:
        """Only where something is offered: memory is measured for a tenth of a second."""
        if self._is_toy:
            self._models.ask_machine()

    def _on_machine_known(self, machine: Machine, here: dict[str, Path]) -> None:
        self._known = machine, here
        self._show_offer()

    def _show_offer(self) -> None:
        if self._known is None:
            return
        machine, here = self._known
        offer = best_offer(recommended_offers(recommended()), machine, chinese=installed().startswith("zh"))
        facts = offer_facts(offer, machine) if offer is not None else ""
        path = here.get(offer.file) if offer is not None else None
        self._window.chat.empty.offer.show_offer(offer, facts, path)
