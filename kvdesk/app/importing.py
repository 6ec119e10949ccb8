"""Chats from a file, for the window: read in a child process, told in a dialog, stored in one transaction.

Owns the one import that is under way, its thread and its dialog.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from kvdesk.app.chats import Chats
from kvdesk.chat import Conversation
from kvdesk.conversations.porting.adding import chosen
from kvdesk.conversations.porting.reader_process import Progress, ReaderProcess, reader_command
from kvdesk.conversations.porting.summary import Summary, imported_sentence, summary_of
from kvdesk.conversations.porting.values import Found
from kvdesk.errors import KvdeskError, unexpected
from kvdesk.store.writer import StoreWriter
from kvdesk.ui.chat.import_dialog import ImportDialog
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.viewmodel.palette import N_COLOURS


class _Cancelled(Exception):
    """Ends the transaction: nothing of it stays."""


@dataclass(slots=True)
class _Run:
    """One import. `known`: the conversations there were when it began."""

    path: Path
    known: tuple[Conversation, ...]
    cancelled: threading.Event = field(default_factory=threading.Event)
    process: ReaderProcess | None = None
    found: list[Found] = field(default_factory=list)
    summary: Summary | None = None


class ChatImport(QObject):
    """`start` once for a file; while one is under way its dialog comes to the front instead."""

    _progressed = Signal(object, int, int)  # run; bytes that were read, of all
    _was_read = Signal(object, object)  # run; a KvdeskError or None
    _wrote = Signal(object, int)  # run; messages
    _was_added = Signal(object, object)  # run; the Future of the store

    def __init__(
        self,
        window: MainWindow,
        chats: Chats,
        store: StoreWriter,
        command: Callable[[Path], list[str]] = reader_command,
    ) -> None:
        super().__init__(window)
        self._window, self._chats, self._store, self._command = window, chats, store, command
        self._run: _Run | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.dialog: ImportDialog | None = None
        self._progressed.connect(self._on_progressed)
        self._was_read.connect(self._on_read)
        self._wrote.connect(self._on_wrote)
        self._was_added.connect(self._on_added)
        window.import_requested.connect(self._on_import_requested)

    def start(self, path: Path) -> None:
        """Read the file, and ask whether its chats are to be added."""
        if self._run is not None and self.dialog is not None:
            self.dialog.raise_()
            self.dialog.activateWindow()
            return
        self._join()
        self._run = run = _Run(path, self._chats.service.conversations)
        if self.dialog is not None:
            self.dialog.deleteLater()
        self.dialog = dialog = ImportDialog(self._window.theme, path.name, self._window)
        dialog.confirmed.connect(self._on_confirmed)
        dialog.cancelled.connect(self.cancel)
        dialog.show_reading(0, 0)
        dialog.show()
        self._thread = threading.Thread(target=self._read, args=(run,), name="kvdesk-import")
        self._thread.start()

    @Slot()
    def cancel(self) -> None:
        """Nothing is imported."""
        run, self._run = self._run, None
        if run is not None:
            with self._lock:
                run.cancelled.set()
                if run.process is not None:
                    run.process.cancel()

    def close(self) -> None:
        """End what is under way. Before the store is closed."""
        self.cancel()
        self._join()
        if self.dialog is not None:
            self.dialog.end()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _read(self, run: _Run) -> None:
        error: KvdeskError | None = None
        try:
            with ReaderProcess(self._command(run.path)) as process:
                with self._lock:
                    run.process = process
                    if run.cancelled.is_set():
                        return
                for told in process.found():
                    if isinstance(told, Progress):
                        self._progressed.emit(run, told.done >> 10, told.total >> 10)  # a Signal's int has 32 bits
                    else:
                        run.found.append(told)
            run.summary = summary_of(run.found, (conversation.id for conversation in run.known))
        except KvdeskError as refused:
            error = refused
        except Exception as other:  # noqa: BLE001 - the thread's edge: told in the dialog
            error = KvdeskError(unexpected(other), repr(other))
        finally:
            with self._lock:
                run.process = None
        self._was_read.emit(run, error)

    # --- on the window's thread ---------------------------------------------------------------------------------------

    @Slot(str)
    def _on_import_requested(self, path: str) -> None:
        self.start(Path(path))

    @Slot(object, int, int)
    def _on_progressed(self, run: _Run, done: int, total: int) -> None:
        if run is self._run and self.dialog is not None:
            self.dialog.show_reading(done << 10, total << 10)

    @Slot(object, object)
    def _on_read(self, run: _Run, error: KvdeskError | None) -> None:
        if run is not self._run or self.dialog is None:
            return
        if run.summary is not None:
            self.dialog.show_summary(run.summary)
        elif error is not None:
            self._fail(error)

    @Slot(bool)
    def _on_confirmed(self, copies: bool) -> None:
        run = self._run
        if run is None:
            return
        conversations = chosen((one.conversation for one in run.found), run.known, N_COLOURS, copies=copies)

        def written(n_messages: int) -> None:
            if run.cancelled.is_set():
                raise _Cancelled
            self._wrote.emit(run, n_messages)

        adding = self._store.ask(lambda store: store.add(conversations, written))
        adding.add_done_callback(lambda done: self._was_added.emit(run, done))

    @Slot(object, int)
    def _on_wrote(self, run: _Run, n_messages: int) -> None:
        if run is self._run and run.summary is not None and self.dialog is not None:
            self.dialog.show_writing(n_messages, run.summary.n_messages)

    @Slot(object, object)
    def _on_added(self, run: _Run, done: object) -> None:
        try:
            added: tuple[Conversation, ...] = done.result()  # type: ignore[attr-defined]
        except _Cancelled:
            return
        except KvdeskError as error:
            if run is self._run:
                self._fail(error)
            return
        self._run = None  # also where Cancel came too late: they are stored
        self._chats.service.add_stored(added)
        if added:
            self._chats.select(max(added, key=lambda conversation: conversation.updated_ms).id)
        self._window.show_result(imported_sentence(len(added)), "good")
        if self.dialog is not None:
            self.dialog.end()

    def _fail(self, error: KvdeskError) -> None:
        self._run = None
        if self.dialog is not None:
            self.dialog.show_failure(str(error), error.detail)
