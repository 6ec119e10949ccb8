"""Intents of the window that concern the cache: commands to the engine, forks of conversations, journals as files."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Slot

from kvdesk import __version__
from kvdesk.app.chats import Chats
from kvdesk.app.journal_saver import JournalSaver
from kvdesk.app.worker import Worker
from kvdesk.cache.journal_file import JournalHeader
from kvdesk.cache.recording import Recording
from kvdesk.chat import ConversationId, MessageId
from kvdesk.protocol.cache import CacheView, ContextReady
from kvdesk.protocol.chat import LocalFile, ModelLoaded, TurnStarted
from kvdesk.protocol.messages import Command, Event
from kvdesk.protocol.operations import CopySequence, Operate
from kvdesk.ui.shell.main_window import MainWindow


class CacheIntents(QObject):
    """Knows which conversation has which sequence, and nothing else of the cache."""

    def __init__(self, window: MainWindow, worker: Worker, chats: Chats) -> None:
        super().__init__(window)
        self._window, self._worker, self._chats = window, worker, chats
        self._sequences: dict[ConversationId, int] = {}
        self._model = ""
        self._saver = JournalSaver(self)
        self._saver.said.connect(window.show_result)
        window.command_requested.connect(self._on_command_requested)
        window.cancel_requested.connect(self._on_cancel_requested)
        window.fork_requested.connect(self._on_fork_requested)
        window.journal_save_requested.connect(self._on_journal_save_requested)

    def apply(self, event: Event) -> None:
        """Remember the leases."""
        match event:
            case CacheView():
                self._sequences = {
                    lease.conversation: int(lease.seq_id) for lease in event.leases if not lease.inactive
                }
            case TurnStarted():
                if event.seq_id >= 0:
                    self._sequences[event.conversation] = event.seq_id
            case ContextReady():
                self._sequences.clear()
            case ModelLoaded():
                source = event.model.source
                self._model = source.path.name if isinstance(source, LocalFile) else source.name
            case _:
                pass

    def close(self) -> None:
        """Wait for a journal that is being written."""
        self._saver.wait()

    @Slot(object)
    def _on_command_requested(self, command: Command) -> None:
        self._worker.send(command)

    @Slot()
    def _on_cancel_requested(self) -> None:
        self._worker.cancel()

    @Slot(str, str, int, int)
    def _on_fork_requested(self, conversation: str, message: str, p0: int, p1: int) -> None:
        source = self._sequences.get(ConversationId(conversation))
        new = self._chats.fork(ConversationId(conversation), MessageId(message) if message else None)
        if new is not None and source is not None:
            self._worker.send(Operate(CopySequence(source, new, p0, p1)))

    @Slot(str, object)
    def _on_journal_save_requested(self, path: str, recording: Recording) -> None:
        self._saver.save(Path(path), recording, JournalHeader(self._model, _versions()))


def _versions() -> dict[str, str]:
    """The versions and the model that a journal is of."""
    from importlib.metadata import PackageNotFoundError, version  # late: they import the package email

    found = {"kvdesk": __version__}
    for name in ("llama-cpp-python", "PySide6-Essentials"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # a packaged application may come without metadata
    return found
