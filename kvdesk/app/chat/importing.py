"""Chats from files, for the window: read in a child process, told in a dialog, stored all or none.

Owns the one import that is under way and its dialog.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from kvdesk.app.background import Background
from kvdesk.app.chat.chats import Chats
from kvdesk.chat import Conversation
from kvdesk.conversations.porting.adding import chosen
from kvdesk.errors import KvdeskError
from kvdesk.store.addition import Addition
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import dataclass, field
from kvdesk.viewmodel.palette import N_COLOURS

if TYPE_CHECKING:
    from kvdesk.conversations.porting.reader_process import Progress, ReaderProcess
    from kvdesk.conversations.porting.summary import Summary
    from kvdesk.conversations.porting.values import Found
    from kvdesk.ui.chat_list.import_dialog import ImportDialog

TOLD_EVERY: Final = 1_000
"""Messages."""
AT_ONCE: Final = 4
"""What is cancelled may still end, and what an earlier import left may still go, while the next file is read."""


@dataclass(slots=True)
class _Run:
    """One import. `known`: the conversations there were when it began."""

    paths: tuple[Path, ...]
    known: tuple[Conversation, ...]
    confirmed: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    process: ReaderProcess | None = None
    found: list[Found] = field(default_factory=list)
    summary: Summary | None = None


class ChatImport(QObject):
    """`start` once for files; while one is under way its dialog comes to the front instead."""

    def __init__(self, window: MainWindow, chats: Chats, store: StoreWriter) -> None:
        super().__init__(window)
        self._window, self._chats, self._store = window, chats, store
        self._run: _Run | None = None
        self._background = Background("import", self, AT_ONCE)
        self._lock = threading.Lock()
        self.dialog: ImportDialog | None = None

    def start(self, *paths: Path) -> None:
        """Read the files, and ask whether to add their chats."""
        if self._run is not None and self.dialog is not None:
            self.dialog.bring_up()
            return
        self._run = run = _Run(paths, self._chats.service.conversations)
        if self.dialog is not None:
            self.dialog.deleteLater()
        self._show_dialog(paths[0].name if len(paths) == 1 else tr("{n} files").format(n=len(paths)))
        self._background.run(
            partial(self._read, run), lambda _read: self._on_read(run), lambda error: self._fail(error, run)
        )

    def _show_dialog(self, name: str) -> ImportDialog:
        from kvdesk.ui.chat_list.import_dialog import ImportDialog  # not at start-up, with all formats

        self.dialog = dialog = ImportDialog(self._window.theme, name, self._window)
        dialog.confirmed.connect(self._on_confirmed)
        dialog.cancelled.connect(self.cancel)
        dialog.show_reading(0, 0)
        dialog.bring_up()
        return dialog

    def cancel(self) -> None:
        """Nothing is imported."""
        run, self._run = self._run, None
        if run is not None:
            with self._lock:
                run.cancelled.set()
                if run.process is not None:
                    run.process.kill()

    def remove_leftover(self) -> None:
        """Remove what an import left that was ended by a crash. It is hidden already."""
        self._background.run(self._remove)

    def close(self) -> None:
        """End what is under way. Before the store is closed; what is left then goes after the next start."""
        self.cancel()
        self._background.close()
        if self.dialog is not None:
            self.dialog.end()

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _read(self, run: _Run) -> None:
        from kvdesk.conversations.porting.reader_process import Progress, ReaderProcess, reader_command
        from kvdesk.conversations.porting.summary import summary_of

        try:
            with ReaderProcess(reader_command(*run.paths)) as process:
                with self._lock:
                    run.process = process
                    if run.cancelled.is_set():
                        return
                for told in process.found():
                    if isinstance(told, Progress):
                        self._background.tell(self._on_progressed, run, told)
                    else:
                        run.found.append(told)
            run.summary = summary_of(run.found, (conversation.id for conversation in run.known))
        finally:
            with self._lock:
                run.process = None

    def _write(self, run: _Run, conversations: Iterator[Conversation]) -> Addition:
        addition = self._store.ask(lambda store: store.begin_addition(conversations)).result()
        try:
            told = 0
            while self._step(addition):
                if addition.n_messages >= told + TOLD_EVERY:
                    told = addition.n_messages
                    self._background.tell(self._on_wrote, run, told)
                if run.cancelled.is_set():
                    addition.cancel()
        except Exception:
            addition.cancel()
            with suppress(Exception):  # what stays is hidden, and goes after the next start
                while self._step(addition):
                    pass
            raise
        return addition

    def _remove(self) -> None:
        with suppress(KvdeskError):
            rest = self._store.ask(Store.leftover).result()
            while rest is not None and self._step(rest):
                pass

    def _step(self, addition: Addition) -> bool:
        """One step on the store's thread, between whatever else it has to do."""
        return not self._background.is_closing and self._store.ask(lambda _store: addition.step()).result()

    # --- on the window's thread ---------------------------------------------------------------------------------------

    def _on_progressed(self, run: _Run, read: Progress) -> None:
        if run is self._run and self.dialog is not None:
            self.dialog.show_reading(read.done, read.total)

    def _on_read(self, run: _Run) -> None:
        if run is self._run and run.summary is not None and self.dialog is not None:
            self.dialog.show_summary(run.summary)

    def _on_confirmed(self, copies: bool) -> None:
        run = self._run
        if run is None:
            return
        run.confirmed = True
        conversations = chosen((one.conversation for one in run.found), run.known, N_COLOURS, copies=copies)
        write = partial(self._write, run, conversations)
        self._background.run(write, partial(self._on_added, run), lambda error: self._fail(error, run))

    def _on_wrote(self, run: _Run, n_messages: int) -> None:
        if run is self._run and run.summary is not None and self.dialog is not None:
            self.dialog.show_writing(n_messages, run.summary.n_messages)

    def _on_added(self, run: _Run, addition: Addition) -> None:
        """Also where Cancel came too late, and another file is being read: they are stored."""
        from kvdesk.conversations.porting.summary import imported_sentence

        if not addition.is_done:
            return
        self._chats.service.add_stored(addition.added)
        if addition.added:
            self._chats.select(max(addition.added, key=lambda conversation: conversation.updated_ms).id)
        self._window.store.notify(imported_sentence(len(addition.added)), "good")
        if run is self._run:
            self._run = None
            if self.dialog is not None:
                self.dialog.end()

    def _fail(self, error: KvdeskError, run: _Run) -> None:
        if run is not self._run:
            return
        self._run = None
        if self.dialog is not None:
            self.dialog.show_failure(str(error), error.detail)
