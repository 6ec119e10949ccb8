"""Writes journals on a thread of its own: a million operations take seconds."""

from __future__ import annotations

import threading
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from kvdesk.cache.journal_file import JournalHeader, save_journal
from kvdesk.cache.recording import Recording
from kvdesk.errors import KvdeskError
from kvdesk.translation import tr


class JournalSaver(QObject):
    """One file at a time. `wait` before it goes away."""

    said = Signal(str, str, str)  # how it ended: a sentence, its tone, and the file

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread: threading.Thread | None = None

    def save(self, path: Path, recording: Recording, header: JournalHeader) -> None:
        self.wait()
        self._thread = threading.Thread(target=self._save, args=(path, recording, header), name="kvdesk-journal")
        self._thread.start()

    def wait(self) -> None:
        """Until what is being written is there."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _save(self, path: Path, recording: Recording, header: JournalHeader) -> None:
        try:
            save_journal(path, recording, header)
        except KvdeskError as error:
            self.said.emit(str(error), "danger", "")
            return
        sentence = tr("{n:,} operations were saved to {name}.").format(n=len(recording), name=path)
        self.said.emit(sentence, "good", str(path))
