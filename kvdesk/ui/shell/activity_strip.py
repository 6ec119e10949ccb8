"""Notices over the bottom of a window: what takes long and how far it is, with Cancel; and what came of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QWidget

from kvdesk.protocol.chat import Working
from kvdesk.session import Changed, Commands, Store
from kvdesk.session.changed import Notice, Update
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import IconButton, ThinProgress, has_focus, label, push_button, set_tone
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import once

READ_MS: Final = 4_000
READ_MS_PER_CHARACTER: Final = 60  # about 200 words a minute
SHOWN: Final = 3  # results at a time; those that stay wait behind
LONGEST: Final = 400  # characters of a sentence that are shown; a screen reader gets all of it


class ActivityStrip(QWidget):
    """A column of notices, the newest at the bottom. Hidden while there is nothing to say."""

    def __init__(self, theme: Theme, store: Store, commands: Commands) -> None:
        super().__init__()
        self._theme, self._commands = theme, commands
        self.destroyed.connect(store.listen(self._on_changed, often=()))
        self.setAccessibleName(tr("Notices"))
        self._work = _Work()
        self._work.cancel.clicked.connect(self._on_cancel_clicked)
        self._results: list[_Result] = []  # the newest last
        self._column = boxes.column(self._work, on=self, margins=0, spacing=8)
        self.hide()

    @property
    def text(self) -> str:
        """The newest sentence shown, empty while nothing is."""
        if self._results:
            return self._results[-1].sentence
        return "" if self._work.isHidden() else self._work.text

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything that is shown, from top to bottom."""
        work = () if self._work.isHidden() else (self._work.text,)
        return (*work, *(one.sentence for one in self._results if not one.isHidden()))

    @property
    def has_keyboard(self) -> bool:
        """Whether the focus is on a notice."""
        return has_focus(self)

    def _on_changed(self, _changed: Changed, update: Update | None) -> None:
        match update:
            case Notice():
                self.show_result(update.sentence, update.tone, update.file, update.ends)
            case Working():
                self.show_working(update)

    def show_working(self, event: Working) -> None:
        """How far it is; `total` 0 ends the display."""
        if event.total <= 0:
            self._work.end()
        else:
            self._work.show_share(event)
        self._arrange()

    def show_result(self, sentence: str, tone: str = "", file: str = "", ends: str = "") -> None:
        """The result of a command, which ends the display of work. A success hides after some seconds; a warning or an
        error stays until it is dismissed. `file`: what was saved, whose folder can be opened; `ends`: a sentence that
        is no longer true.
        """
        self._work.end()
        for known in [known for known in self._results if known.sentence in (sentence, ends)]:
            self._remove(known)
        result = _Result(self._theme, sentence, tone, file)
        result.dismissed.connect(lambda: self._dismiss(result))
        result.left.connect(lambda: self._on_leaving(result))
        self._results.append(result)
        self._column.addWidget(result)
        for old in self._results[:-SHOWN]:
            if old.is_leaving:
                self._remove(old)
        self._arrange()
        announce(self, sentence, urgent=tone in ("warning", "danger"))

    def dismiss(self) -> None:
        """Take the newest result away; one that waited behind is shown again."""
        if self._results:
            self._dismiss(self._results[-1])

    def _dismiss(self, result: _Result) -> None:
        if result in self._results:  # not a second click while it goes
            self._remove(result)
            self._arrange()

    def _remove(self, result: _Result) -> None:
        self._results.remove(result)
        boxes.drop(self._column, result)

    def _arrange(self) -> None:
        for i, result in enumerate(reversed(self._results)):
            result.setVisible(i < SHOWN)
        self.setVisible(bool(self.sentences))
        self.updateGeometry()

    def _on_leaving(self, result: _Result) -> None:
        """Not under the pointer: there it is being read, or about to be dismissed."""
        if self.underMouse() or result.close_button.hasFocus() or result.show_button.hasFocus():
            result.leave_in(READ_MS)
        else:
            self._dismiss(result)

    def _on_cancel_clicked(self) -> None:
        self._work.cancel.setEnabled(False)
        self._commands.cancel_work()


class _Work(QFrame):
    """What takes long."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("card", "notice")
        self._bar = ThinProgress(tr("Work under way"))
        self._words = label("", tone="secondary", scale="small", wrap=True)
        self.cancel = push_button(tr("Cancel"), scale="small")
        row = boxes.row((self._words, 1), self.cancel, spacing=8)
        boxes.column(row, self._bar, on=self, margins=(12, 8, 8, 8), spacing=6)
        self.hide()

    @property
    def text(self) -> str:
        return self._words.text()

    def show_share(self, event: Working) -> None:
        said = tr("{what}: {done} of {total} tokens")
        self._bar.set_share(event.done / event.total)
        self._words.setText(said.format(what=event.what, done=f"{event.done:,}", total=f"{event.total:,}"))
        if self.isHidden():
            self.cancel.setEnabled(True)
            self.show()

    def end(self) -> None:
        self._bar.set_share(None)
        self.hide()


class _Result(QFrame):
    """One sentence that can be dismissed."""

    dismissed = Signal()
    left = Signal()
    """It was there long enough to be read."""

    def __init__(self, theme: Theme, sentence: str, tone: str, file: str) -> None:
        super().__init__()
        self.setProperty("card", "notice")
        self.sentence = sentence
        short = sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST].rstrip()}…"
        self.setToolTip(sentence if short != sentence else "")
        self.setAccessibleName(sentence)
        words = label(short, scale="small", wrap=True)
        set_tone(words, tone)
        self.show_button = push_button(
            tr("Show"),
            scale="small",
            tip=tr("Open the folder of the file"),
            clicked=lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(file).absolute().parent))),
        )
        self.show_button.setVisible(bool(file))
        self.close_button = IconButton(theme, "close", tr("Dismiss this message"), clicked=self.dismissed)
        boxes.row(
            (words, 1),
            (self.show_button, 0, Qt.AlignmentFlag.AlignTop),
            (self.close_button, 0, Qt.AlignmentFlag.AlignTop),
            on=self,
            margins=(12, 8, 8, 8),
            spacing=8,
        )
        self._leaving = once(self, 0, self.left)
        if tone in ("", "good"):
            self.leave_in(READ_MS + READ_MS_PER_CHARACTER * len(sentence))

    @property
    def is_leaving(self) -> bool:
        """It goes without being dismissed."""
        return self._leaving.isActive()

    def leave_in(self, ms: int) -> None:
        self._leaving.start(ms)
