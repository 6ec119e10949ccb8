"""The headline metrics of the cache, each with its definition on hover."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from kvdesk.ui.controls import label
from kvdesk.ui.readout import Totals
from kvdesk.ui.theme import Look

_METRICS: Final = (
    ("used", "Cells that at least one sequence holds (the engine's `used`)"),
    ("high water", "H: index of the last non-empty cell + 1 (`used_max_p1`)"),
    ("n_kv", "The span attention works over: min(N, max(256, H rounded up to 256))"),
    ("holes", "Hole ratio (H - U) / H: free cells below the high-water mark, which attention still walks over"),
    ("shared", "Cells that more than one sequence holds: they are paid for once"),
)


class NumbersPanel(QWidget):
    """One row of captions and one of numbers, at fixed places."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._values: dict[str, QLabel] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(0)
        for column, (name, definition) in enumerate(_METRICS):
            caption = label(name, tone="secondary", scale="small")
            value = label("–")
            value.setFont(look.mono)
            for widget in (caption, value):
                widget.setToolTip(definition)
            self._values[name] = value
            grid.addWidget(caption, 0, column)
            grid.addWidget(value, 1, column)
            grid.setColumnStretch(column, 1)

    def show_totals(self, totals: Totals) -> None:
        texts = {
            "used": f"{totals.used:,}",
            "high water": f"{totals.high_water:,}",
            "n_kv": f"{totals.n_kv:,}",
            "holes": f"{totals.hole_ratio:.1%}",
            "shared": f"{totals.shared:,}",
        }
        for name, text in texts.items():
            value = self._values[name]
            if value.text() != text:
                value.setText(text)
                value.setAccessibleName(f"{name} {text}")

    def text_of(self, name: str) -> str:
        return self._values[name].text()
