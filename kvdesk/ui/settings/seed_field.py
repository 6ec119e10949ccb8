"""The seed: a box for a new one at every answer, or a number."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QVBoxLayout, QWidget

from kvdesk.settings import RANDOM_SEED
from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import roomy, wheel_scrolls


class SeedField(QWidget):
    """`value` is `RANDOM_SEED` while "Random" is ticked, else the number below it."""

    edited = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.random = QCheckBox(tr("Random"))
        self.number = QDoubleSpinBox()  # a spin box of integers ends at 2^31 - 1
        self.number.setDecimals(0)
        self.number.setRange(0, RANDOM_SEED - 1)
        self.number.setAccessibleName(tr("Seed"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.random, alignment=Qt.AlignmentFlag.AlignRight)
        column.addWidget(wheel_scrolls(roomy(self.number)))
        self.random.toggled.connect(self._on_random_toggled)
        self.number.valueChanged.connect(self.edited)
        self.setFocusProxy(self.random)
        self.set_value(RANDOM_SEED)

    def value(self) -> int:
        return RANDOM_SEED if self.random.isChecked() else int(self.number.value())

    def set_value(self, seed: int) -> None:
        """Show `seed`. The number stays as it was where the seed is random."""
        self.random.setChecked(seed == RANDOM_SEED)
        if seed != RANDOM_SEED:
            self.number.setValue(seed)

    @Slot(bool)
    def _on_random_toggled(self, random: bool) -> None:
        self.number.setVisible(not random)
        self.edited.emit()
