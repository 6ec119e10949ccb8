"""One number of the cache: a caption, and under it the number with its unit."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout

from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import NumberLabel, label
from kvdesk.ui.widgets.style.theme import Theme


class Figure:
    """`tip` says what is counted. Not a widget itself: figures side by side have their captions on one line."""

    def __init__(self, theme: Theme, caption: str, tip: str) -> None:
        self._caption = label(caption, tone="secondary", scale="small", wrap=True)
        self._value = NumberLabel("–")
        theme.give_font(self._value, "mono")
        self._unit = label("", tone="secondary", scale="small")
        for widget in (self._caption, self._value, self._unit):
            widget.setToolTip(tip)
            widget.setAccessibleDescription(tip)

    def add_to(self, grid: QGridLayout, row: int, column: int) -> None:
        """The caption in this row, the number in the next."""
        line = boxes.row(
            (self._value, 0, Qt.AlignmentFlag.AlignBaseline), (self._unit, 1, Qt.AlignmentFlag.AlignBaseline), spacing=6
        )
        grid.addWidget(self._caption, row, column, Qt.AlignmentFlag.AlignBottom)  # all of the width: it wraps
        grid.addLayout(line, row + 1, column)
        grid.setColumnStretch(column, 1)

    @property
    def text(self) -> str:
        """The number with its unit."""
        return f"{self._value.text()} {self._unit.text()}".strip()

    def show(self, number: str, unit: str) -> None:
        """Both as texts."""
        if (self._value.text(), self._unit.text()) != (number, unit):
            self._value.setText(number)
            self._unit.setText(unit)
            self._value.setAccessibleName(f"{self._caption.text()}: {self.text}")
