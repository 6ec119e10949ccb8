"""What happens when this conversation's context is full: the button that says it, and the choice with its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QRadioButton, QVBoxLayout, QWidget

from kvdesk.policies.overflow import WHY
from kvdesk.protocol.operations import Capability
from kvdesk.settings import Overflow
from kvdesk.ui.widgets.controls import ElidedButton, label

NAMES: Final = {
    Overflow.STOP: "Stop",
    Overflow.SLIDE: "Slide",
    Overflow.RECOMPUTE: "Recompute",
    Overflow.SINKS: "Attention sinks",
}
_NEEDS: Final = ("partial seq_rm", "seq_add")  # of the capability matrix, for policies that move what is there
_WIDTH: Final = 400


class OverflowChoice(QFrame):
    """A popup with one line and one explanation for each policy. What the model cannot do is disabled, and says why."""

    chosen = Signal(object)  # Overflow

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("card", "ask")
        self.setAccessibleName("When the context is full")
        self.setFixedWidth(_WIDTH)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(4)
        column.addWidget(label("When the context of this conversation is full", weight="strong"))
        self._buttons: dict[Overflow, QRadioButton] = {}
        self._reasons = {}
        for overflow, name in NAMES.items():
            button = self._buttons[overflow] = QRadioButton(name)
            button.clicked.connect(lambda _checked=False, chosen=overflow: self._choose(chosen))
            reason = self._reasons[overflow] = label("", tone="secondary", scale="small")
            reason.setWordWrap(True)
            reason.setContentsMargins(24, 0, 0, 4)
            column.addWidget(button)
            column.addWidget(reason)
        self.show_possible({})

    def button(self, overflow: Overflow) -> QRadioButton:
        return self._buttons[overflow]

    def reason(self, overflow: Overflow) -> str:
        """What is said under a policy."""
        return self._reasons[overflow].text()

    def show_chosen(self, overflow: Overflow) -> None:
        self._buttons[overflow].setChecked(True)

    def show_possible(self, possible: Mapping[str, Capability]) -> None:
        """What can be done to the cache of this model: rows of the capability matrix by operation."""
        refused = [row.why for name in _NEEDS if (row := possible.get(name)) is not None and not row.allowed]
        for overflow, button in self._buttons.items():
            cannot = refused[0] if refused and overflow in (Overflow.SLIDE, Overflow.SINKS) else ""
            button.setEnabled(not cannot)
            why = f"Not with this model and context. {cannot}" if cannot else WHY[overflow.value]
            self._reasons[overflow].setText(why)
            button.setAccessibleDescription(why)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def _choose(self, overflow: Overflow) -> None:
        self.close()
        self.chosen.emit(overflow)


class OverflowButton(ElidedButton):
    """Quiet; beside the meter of the context, which it goes on: "45% of 4,096", "When full: stop"."""

    chosen = Signal(object)  # Overflow

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("quiet", True)
        self.setProperty("scale", "small")
        self._choice = OverflowChoice(self)
        self._choice.chosen.connect(self.chosen)
        self.clicked.connect(self.choose)
        self.show_chosen(Overflow.STOP)

    @property
    def choice(self) -> OverflowChoice:
        return self._choice

    def show_chosen(self, overflow: Overflow) -> None:
        name = NAMES[overflow]
        self.setText(f"When full: {name.lower().split()[-1]}")
        self.setAccessibleName(f"When the context is full: {name}")
        self.setToolTip(f"When the context is full: {name}. {WHY[overflow.value]}")
        self._choice.show_chosen(overflow)

    def minimumSizeHint(self) -> QSize:
        return self._hint(self.full_text)

    @Slot()
    def choose(self) -> None:
        """Unfold the choice."""
        self._choice.adjustSize()
        corner = self.mapToGlobal(QPoint(self.width() - self._choice.width(), self.height()))
        self._choice.move(corner)
        self._choice.show()
        self._choice.setFocus()
