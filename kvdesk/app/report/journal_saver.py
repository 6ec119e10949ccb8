"""Writes journals beside the window's thread: a million operations take seconds."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject

from kvdesk.app.background import Background
from kvdesk.cache.journal.file import JournalHeader, save_journal
from kvdesk.cache.journal.recording import Recording
from kvdesk.errors import KvdeskError
from kvdesk.session.changed import Tone
from kvdesk.translation import plural


class JournalSaver(QObject):
    """One file at a time; `say` how it ended: a sentence, its tone, and the file. `wait` before it goes away."""

    def __init__(self, parent: QObject, say: Callable[[str, Tone, str], None]) -> None:
        super().__init__(parent)
        self._say = say
        self._background = Background("journal", self)
        self.wait = self._background.wait

    def save(self, path: Path, recording: Recording, header: JournalHeader) -> None:
        said = plural("1 operation was saved to {name}.", "%n operations were saved to {name}.", len(recording))
        sentence = said.format(name=path)
        save = partial(save_journal, path, recording, header)
        self._background.run(save, lambda _saved: self._say(sentence, "good", str(path)), self._on_failed)

    def _on_failed(self, error: KvdeskError) -> None:
        self._say(str(error), "danger", "")
