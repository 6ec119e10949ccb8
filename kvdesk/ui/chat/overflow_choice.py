"""The overflow policy of a conversation: the button with its name, and the choice with the reasons for and against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QRadioButton, QVBoxLayout, QWidget

from kvdesk.policies.overflow import POLICIES, policy_of
from kvdesk.protocol.operations import Capability
from kvdesk.settings import Overflow
from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import ElidedButton, label

_WIDTH: Final = 400


class OverflowChoice(QFrame):
    """A popup with one line and one explanation for each policy. What the model cannot do is disabled, and says why."""

    chosen = Signal(object)  # Overflow

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("card", "ask")
        self.setAccessibleName(tr("When the context is full"))
        self.setFixedWidth(_WIDTH)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(4)
        column.addWidget(label(tr("When the context of this conversation is full"), weight="strong"))
        self._buttons: dict[Overflow, QRadioButton] = {}
        self._reasons = {}
        for policy in POLICIES:
            button = self._buttons[policy.name] = QRadioButton(tr(policy.label))
            button.clicked.connect(lambda _checked=False, chosen=policy.name: self._choose(chosen))
            reason = self._reasons[policy.name] = label("", tone="secondary", scale="small")
            reason.setWordWrap(True)
            reason.setContentsMargins(24, 0, 0, 4)
            column.addWidget(button)
            column.addWidget(reason)
        self.show_possible({})

    def button(self, overflow: Overflow) -> QRadioButton:
        return self._buttons[overflow]

    def reason(self, overflow: Overflow) -> str:
        """The text under a policy."""
        return self._reasons[overflow].text()

    def show_chosen(self, overflow: Overflow) -> None:
        self._buttons[overflow].setChecked(True)

    def show_possible(self, possible: Mapping[str, Capability]) -> None:
        """What can be done to the cache of this model: rows of the capability matrix by operation."""
        for policy in POLICIES:
            rows = (possible.get(operation) for operation in policy.requires)
            cannot = next((row.why for row in rows if row is not None and not row.allowed), "")
            button = self._buttons[policy.name]
            button.setEnabled(not cannot)
            why = tr("Not with this model and context.") + f" {cannot}" if cannot else tr(policy.description)
            self._reasons[policy.name].setText(why)
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
        policy = policy_of(overflow)
        name = tr(policy.label)
        said = tr("When the context is full: {policy}").format(policy=name)
        self.setText(tr("When full: {policy}").format(policy=name.lower().split()[-1]))
        self.setAccessibleName(said)
        self.setToolTip(f"{said}. {tr(policy.description)}")
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
