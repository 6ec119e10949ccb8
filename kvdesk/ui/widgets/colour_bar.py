"""Over the messages, while their words are coloured: what the colours mean."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, label


class ColourBar(QWidget):
    """A sentence, swatches, and what takes the colours away. A narrow pane stays as narrow: the words are in the
    tooltip too. Hidden at first.
    """

    def __init__(self, close: IconButton) -> None:
        super().__init__()
        self._lead = ElidedLabel(tone="secondary", scale="small")
        self._swatches: list[QLabel] = []
        self._row = boxes.row((self._lead, 1), close, on=self, margins=(12, 0, 12, 4), spacing=8)
        self.setMinimumWidth(1)
        self.hide()

    def set_lead(self, text: str) -> None:
        """The sentence before the swatches."""
        self._lead.setText(text)

    def show_swatches(self, swatches: Sequence[tuple[str, str]]) -> None:
        """Each is its words and the colour behind them, "" for none."""
        while len(self._swatches) < len(swatches):
            added = label("", scale="small")
            self._row.insertWidget(1 + len(self._swatches), added, 0, Qt.AlignmentFlag.AlignVCenter)
            self._swatches.append(added)
        for i, swatch in enumerate(self._swatches):
            words, colour = swatches[i] if i < len(swatches) else ("", "")
            swatch.setVisible(bool(words))
            swatch.setText(f" {words} ")
            swatch.setStyleSheet(f"background: {colour}; border-radius: 3px;" if colour else "")
