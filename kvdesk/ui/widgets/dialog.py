"""The base of every dialog: a column that scrolls over Qt's row of buttons, with one margin and one width."""

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QLabel, QPushButton, QWidget

from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.key_tips import tell_reached
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.style.sizes import DIALOG_MARGIN_PX, fit_to_screen
from kvdesk.ui.widgets.style.theme import Theme

_WIDTH_PX: Final = 560
_HIGHEST_PX: Final = 640


class Dialog(QDialog):
    """Not modal. What it shows goes into `column`; `buttons` are in the order of the platform."""

    def __init__(self, theme: Theme, parent: QWidget | None, title: str) -> None:
        super().__init__(parent)
        self._size = theme.px(_WIDTH_PX), theme.px(_HIGHEST_PX)
        self.setWindowTitle(title)
        inside = QWidget()
        self.column = boxes.column(
            on=inside, margins=(DIALOG_MARGIN_PX, DIALOG_MARGIN_PX, DIALOG_MARGIN_PX, 8), spacing=8
        )
        scroll = ScrollColumn(inside, title)
        self.buttons = QDialogButtonBox()
        self.buttons.setContentsMargins(DIALOG_MARGIN_PX, 8, DIALOG_MARGIN_PX, DIALOG_MARGIN_PX)
        self.buttons.rejected.connect(self.reject)
        boxes.column((scroll, 1), self.buttons, on=self, margins=0, spacing=0)

    def add_primary(self, text: str) -> QPushButton:
        """The button for what the dialog is there for."""
        button = push_button(text, primary=True)
        self.buttons.addButton(button, QDialogButtonBox.ButtonRole.AcceptRole)
        return button

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's name
        return tell_reached(self, moved=super().focusNextPrevChild(next))

    def bring_up(self) -> None:
        """Show it, or bring it in front of what covers it."""
        if not self.isVisible():
            self.fit()
        self.show()
        self.raise_()
        self.activateWindow()

    def fit(self) -> None:
        """As high as its texts are in its width; what does not fit then scrolls."""
        width, highest = self._size
        self.column.activate()
        needed = self.column.totalHeightForWidth(width) + self.buttons.sizeHint().height()
        self.resize(width, min(needed, highest))
        fit_to_screen(self)


def sentence(text: str, *, scale: str = "") -> QLabel:
    """Quiet words that can be selected."""
    return label(text, tone="secondary", scale=scale, wrap=True, selectable=True)


def facts(rows: Iterable[tuple[str, str]], *, proper: bool = False) -> QGridLayout:
    """Names in the quiet tone, values beside them. `proper`: names and values are in no language."""
    grid = boxes.grid(16, 4, 0, 1)
    for row, (name, text) in enumerate(rows):
        key, value = label(name, tone="secondary"), label(text)
        value.setAccessibleName(f"{name}: {text}")
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        for column, part in enumerate((key, value)):
            part.setWordWrap(proper or part is value)
            part.setProperty("proper", proper)
            grid.addWidget(part, row, column, Qt.AlignmentFlag.AlignTop)
        if proper:
            key.setMinimumWidth(key.fontMetrics().averageCharWidth() * 22)
    return grid
