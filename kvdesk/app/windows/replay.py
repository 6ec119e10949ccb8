"""A journal without a model: the time line alone in a window. Needs no engine, no database, no settings."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox

from kvdesk.app.display import has_display
from kvdesk.app.report.journal_saver import JournalSaver
from kvdesk.app.windows.qt_application import SideWindow, chosen_theme, qt_application, run_until_closed
from kvdesk.cache.journal.file import JournalHeader, load_journal
from kvdesk.cache.journal.recording import Recording
from kvdesk.errors import UserError
from kvdesk.protocol.cache import TakeRecording
from kvdesk.protocol.messages import Command
from kvdesk.quantities import operations_text
from kvdesk.session import Commands, Store
from kvdesk.translation import tr
from kvdesk.ui.timeline.page import TimelinePage
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel


class JournalCommands(Commands):
    """Of a window that shows a journal: to write it, and to ask for a newer one."""

    def __init__(self, export: Callable[[Path, Recording], None], ask: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._export = export

        def submit(command: Command) -> None:
            if isinstance(command, TakeRecording):
                ask()

        self.submit = submit

    def save_recording(self, path: Path, recording: Recording) -> None:
        self._export(path, recording)


class ReplayWindow(SideWindow):
    """Shows one journal from its beginning on."""

    def __init__(self, app: QApplication, name: str, header: JournalHeader, recording: Recording) -> None:
        super().__init__(name)
        self._header = header
        theme, store, commands = chosen_theme(app, self), Store(), JournalCommands(self._export)
        self.timeline = TimelinePage(theme, store, commands, live=False)
        self._saver = JournalSaver(self, store.notify)
        self.about = ElidedLabel(about(name, header, recording), tone="secondary", scale="small")
        boxes.column(self.about, (self.timeline, 1), on=self, margins=(12, 8, 0, 12), spacing=8)
        self.show_notices(theme, store, commands, over=self.timeline)
        QShortcut(QKeySequence("Space"), self).activated.connect(self._on_space)
        self.resize(720, 800)
        self.timeline.set_room(900)
        self.timeline.show_recording(recording)
        self.timeline.show_operation(recording.last)

    def wait(self) -> None:
        """Until a file that is being written is there."""
        self._saver.wait()

    def _on_space(self) -> None:
        """It plays, but where the keyboard is at what Space presses or opens."""
        at = self.focusWidget()
        if isinstance(at, QAbstractButton):
            at.click()
        elif isinstance(at, QComboBox):
            at.showPopup()
        else:
            self.timeline.scrubber.toggle_play()

    def _export(self, path: Path, recording: Recording) -> None:
        self._saver.save(path, recording, self._header)


def about(name: str, header: JournalHeader, recording: Recording) -> str:
    """The origin of the journal, in one line."""
    made = ", ".join(f"{part} {number}" for part, number in header.versions.items())
    parts = (name, header.model, operations_text(len(recording)), made)
    return "  ·  ".join(part for part in parts if part)


def open_journal(file: Path) -> ReplayWindow:
    """A window with the journal. Raises UserError, before there is any window, where the file is no journal, and where
    there is no display.
    """
    header, recording = load_journal(file)
    if not has_display():
        raise UserError(tr("There is no display to show the journal on."))
    return ReplayWindow(qt_application(), file.name, header, recording)


def run(file: Path) -> int:
    """Show the journal until its window is closed. Returns the exit code."""
    window = open_journal(file)
    code = run_until_closed(window)
    window.wait()
    return code
