"""Another program's cache in a window, by its log: the time line of its cells, and its requests explained.

Read-only, and nothing in it is verified: the cells are those that the other engine printed last.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QSplitter

from kvdesk.app.display import has_display
from kvdesk.app.report.journal_saver import JournalSaver
from kvdesk.app.windows.qt_application import SideWindow, chosen_theme, qt_application, run_until_closed
from kvdesk.app.windows.replay import JournalCommands
from kvdesk.cache.journal.file import JournalHeader
from kvdesk.cache.journal.recording import Recording
from kvdesk.engine_log.lines import LogLine
from kvdesk.engine_log.reading import REST, LogReading
from kvdesk.errors import UserError
from kvdesk.session import Store
from kvdesk.translation import tr
from kvdesk.ui.timeline.page import TimelinePage
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel
from kvdesk.ui.widgets.timers import every
from kvdesk.values import dataclass

LOOK_MS: Final = 200
RARELY_MS: Final = 2000  # the longest wait before the next look
MOST_LINES: Final = 5000
N_LINES: Final = 6  # of the numbers, at first


@dataclass(frozen=True, slots=True)
class Log:
    """What a window shows.

    lines    begins to read; close ends it
    is_live  all that was there has been read
    is_over  the window is to close at the end of the log
    """

    name: str
    lines: Callable[[], Iterator[LogLine]]
    close: Callable[[], None]
    is_live: Callable[[], bool] = lambda: True
    is_over: Callable[[], bool] = lambda: False


class AttachWindow(SideWindow):
    """Shows a log until it is closed."""

    def __init__(self, app: QApplication, log: Log) -> None:
        super().__init__(log.name)
        self._log = log
        theme, store, commands = chosen_theme(app, self), Store(), JournalCommands(self._export, self._show_recording)
        self.about = ElidedLabel(tone="secondary", scale="small")
        self._say_about()
        self.timeline = TimelinePage(theme, store, commands)
        self.numbers = _text(tr("Numbers of each stream"), tr("Numbers appear here when the engine prints its cells."))
        self.requests = _text(tr("Requests, explained"), tr("Requests appear here as they end."))
        self.requests.setMaximumBlockCount(MOST_LINES)
        self._saver = JournalSaver(self, store.notify)
        parts = QSplitter(Qt.Orientation.Vertical)
        for part, height in ((self.numbers, 0), (self.timeline, 600), (self.requests, 240)):
            parts.addWidget(part)
            parts.setStretchFactor(parts.count() - 1, height)
        numbers = (N_LINES + 1) * self.numbers.fontMetrics().lineSpacing()
        parts.setSizes([numbers, 600 - numbers, 240])
        parts.setChildrenCollapsible(False)
        boxes.column(self.about, (parts, 1), on=self, margins=(12, 8, 0, 12), spacing=8)
        self.show_notices(theme, store, commands, over=self.timeline)
        self.resize(760, 900)
        self.timeline.set_room(700)
        self.reading = LogReading(log.lines(), log.is_live)
        self._spent_s = time.thread_time()
        self._timer = every(self, LOOK_MS, self._look)
        self._timer.start()

    def _look(self) -> None:
        has_ended = self.reading.ended.is_set()  # before its last news
        texts, has_cells = self.reading.news()
        if texts:
            self.requests.appendPlainText("\n".join(texts))
        if has_cells:
            text, _ = self.reading.state()
            at = self.numbers.verticalScrollBar().value()
            self.numbers.setPlainText(text)
            self.numbers.verticalScrollBar().setValue(at)
            self.timeline.note_change()
        if not has_ended:
            self._pace()
            return
        self._say_about(tr("it has ended"))
        self._timer.setInterval(RARELY_MS)  # only a signal may still come
        if self._log.is_over():
            self.close()

    def _say_about(self, *more: str) -> None:
        """Where all of this comes from."""
        said = tr("{name}  ·  as printed by its engine, not verified  ·  this log may contain prompts")
        self.about.setText("  ·  ".join((said.format(name=self._log.name), *more)))

    def _pace(self) -> None:
        """The next look, by what this thread has spent since the last one: on reading it out, and on painting."""
        spent_s = time.thread_time() - self._spent_s
        self._spent_s += spent_s
        rest_ms = round(1e3 * REST * spent_s) if self._log.is_live() else 0
        self._timer.setInterval(min(max(LOOK_MS, rest_ms), RARELY_MS))

    def _show_recording(self) -> None:
        _, recording = self.reading.state()
        if recording is not None:
            self.timeline.show_recording(recording)

    def _export(self, path: Path, recording: Recording) -> None:
        self._saver.save(path, recording, JournalHeader(self._log.name))

    def closeEvent(self, event: QCloseEvent) -> None:
        """Whoever made the window ends the log, too."""
        self._timer.stop()
        self._log.close()
        self._saver.wait()
        super().closeEvent(event)


def _text(name: str, placeholder: str) -> QPlainTextEdit:
    """Lines to read."""
    text = QPlainTextEdit()
    text.setReadOnly(True)
    text.setAccessibleName(name)
    text.setPlaceholderText(placeholder)
    return text


def open_window(log: Log) -> AttachWindow:
    """Raises UserError, before anything is read, if there is no display."""
    if not has_display():
        raise UserError(tr("There is no display to show the log on; --text shows it in the terminal."))
    return AttachWindow(qt_application(), log)


def run(log: Log) -> int:
    """Show a log until the window is closed. Returns the exit code."""
    return run_until_closed(open_window(log))
