"""The seed: a box for a new one at every answer, or a number."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from kvdesk.settings import RANDOM_SEED
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.number_fields import RealField


class SeedField(QWidget):
    """`value` is `RANDOM_SEED` while "Random" is ticked, else the number below it."""

    edited = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.random = QCheckBox(tr("Random"))
        self.number = RealField(0, RANDOM_SEED - 1, decimals=0)
        self.number.setAccessibleName(tr("Seed"))
        column = boxes.column(on=self, margins=0, spacing=4)
        column.addWidget(self.random, alignment=Qt.AlignmentFlag.AlignRight)
        column.addWidget(self.number)
        self.random.toggled.connect(self._on_random_toggled)
        self.number.valueChanged.connect(self.edited)
        self.number.problem_changed.connect(self.edited)
        self.setFocusProxy(self.random)
        self.set_value(RANDOM_SEED)

    @property
    def problem(self) -> str:
        """What is wrong with the number; "" if it is one, or is not asked for."""
        return "" if self.random.isChecked() else self.number.problem

    def value(self) -> int:
        return RANDOM_SEED if self.random.isChecked() else int(self.number.value())

    def set_value(self, seed: int) -> None:
        """Show `seed`. The number stays as it was where the seed is random."""
        self.random.setChecked(seed == RANDOM_SEED)
        if seed != RANDOM_SEED:
            self.number.setValue(seed)

    def _on_random_toggled(self, random: bool) -> None:
        self.number.setVisible(not random)
        self.edited.emit()
