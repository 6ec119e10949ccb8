"""A choice between what comes with an experiment and a file of the person's own."""

from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSizePolicy

from kvdesk.translation import marked, tr
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.choose_file import ask_for_file
from kvdesk.ui.widgets.controls import plain_tip

OTHER: Final = marked("Choose a file…")


class SourceChoice(Choice):
    """own: what is there without a file; ask, what: title and file types of the dialog. `changed` after a choice."""

    changed = Signal()

    def __init__(self, name: str, own: str, ask: str, what: str) -> None:
        super().__init__()
        self._own, self._ask, self._what = own, ask, what
        self._file: Path | None = None
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.activated.connect(self._on_activated)
        self._fill()

    @property
    def file(self) -> str:
        """The path of the chosen file, "" for what comes with the experiment."""
        return str(self._file) if self._file is not None else ""

    def _fill(self) -> None:
        self.clear()
        if self._file is not None:
            self.addItem(self._file.name)
            self.setItemData(0, plain_tip(str(self._file)), Qt.ItemDataRole.ToolTipRole)
        self.addItems([self._own, tr(OTHER)])
        self.setCurrentIndex(0)

    def _on_activated(self, index: int) -> None:
        if index == self.count() - 1:
            self._file = ask_for_file(self, self._ask, self._what) or self._file
            self._fill()
        elif index == self.count() - 2:
            self._file = None
            self._fill()
        self.changed.emit()
