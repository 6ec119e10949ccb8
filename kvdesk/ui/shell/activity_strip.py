"""A strip over the status line: what takes long and how far it is, with Cancel; and afterwards what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from kvdesk.protocol.chat import Working
from kvdesk.translation import tr
from kvdesk.ui.widgets.announce import announce
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, ThinProgress, set_tone
from kvdesk.ui.widgets.theme import Theme

READ_MS: Final = 4_000
READ_MS_PER_CHARACTER: Final = 60  # about 200 words a minute


class ActivityStrip(QWidget):
    """Hidden while there is nothing to say."""

    cancel_clicked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._bar = ThinProgress(theme, tr("Work under way"))
        self._text = ElidedLabel()
        self._text.setProperty("scale", "small")
        self._cancel = QPushButton(tr("Cancel"))
        self._cancel.setProperty("scale", "small")
        self._cancel.clicked.connect(self._on_cancel_clicked)
        self._cancel.hide()
        self._file = ""
        self._show_file = QPushButton(tr("Show"))
        self._show_file.setProperty("scale", "small")
        self._show_file.setToolTip(tr("Open the folder of the file"))
        self._show_file.clicked.connect(self._on_show_clicked)
        self._show_file.hide()
        self._close = IconButton(theme, "close", tr("Dismiss this message"))
        self._close.clicked.connect(self.hide)
        self._leaving = QTimer(self, singleShot=True)
        self._leaving.timeout.connect(self._on_leaving)
        row = QHBoxLayout()
        row.setContentsMargins(12, 4, 8, 4)
        row.setSpacing(8)
        row.addWidget(self._text, 1)
        row.addWidget(self._show_file)
        row.addWidget(self._cancel)
        row.addWidget(self._close)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._bar)
        column.addLayout(row)
        self.hide()

    @property
    def text(self) -> str:
        """The sentence shown, empty while the strip is hidden."""
        return "" if self.isHidden() else self._text.full_text

    @property
    def cancel_button(self) -> QPushButton:
        return self._cancel

    @property
    def show_button(self) -> QPushButton:
        """Opens the folder of what was saved; hidden where nothing was."""
        return self._show_file

    def show_working(self, event: Working) -> None:
        """How far it is; `total` 0 ends the display."""
        if event.total <= 0:
            if self._bar.share is not None:
                self._bar.set_share(None)
                self._cancel.hide()
                self.hide()
            return
        self._leaving.stop()
        self._bar.set_share(event.done / event.total)
        said = tr("{what}: {done} of {total} tokens")
        self._text.setText(said.format(what=event.what, done=f"{event.done:,}", total=f"{event.total:,}"))
        set_tone(self._text, "secondary")
        if self._cancel.isHidden():
            self._cancel.setEnabled(True)
        self._cancel.show()
        self._show_file.hide()
        self._close.hide()
        self.show()

    def show_result(self, sentence: str, tone: str = "", file: str = "") -> None:
        """The result of a command. A success hides after some seconds; a warning or an
        error stays until it is dismissed. `file`: what was saved.
        """
        self._file = file
        self._show_file.setVisible(bool(file))
        self._bar.set_share(None)
        self._cancel.hide()
        self._close.show()
        self._text.setText(sentence)
        set_tone(self._text, tone)
        announce(self, sentence, urgent=tone in ("warning", "danger"))
        self.show()
        self._leaving.stop()
        if tone in ("", "good"):
            self._leaving.start(READ_MS + READ_MS_PER_CHARACTER * len(sentence))

    @Slot()
    def _on_leaving(self) -> None:
        """Not under the pointer or with the keyboard: there it is being read, or about to be dismissed."""
        if self.underMouse() or self._show_file.hasFocus():
            self._leaving.start(READ_MS)
        else:
            self.hide()

    @Slot()
    def _on_show_clicked(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(self._file).absolute().parent)))

    @Slot()
    def _on_cancel_clicked(self) -> None:
        self._cancel.setEnabled(False)
        self.cancel_clicked.emit()
