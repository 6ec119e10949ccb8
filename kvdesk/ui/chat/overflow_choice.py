"""The choice of the overflow policy of a conversation, with the reasons for and against each."""

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QRadioButton, QWidget

from kvdesk.policies.overflow import POLICIES, policy_of
from kvdesk.protocol.operations import Capability
from kvdesk.settings import Overflow
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.popup import Popup
from kvdesk.ui.widgets.style.theme import Theme

_WIDTH: Final = 400


class OverflowChoice(Popup):
    """A popup under `anchor` with one line and one explanation for each policy. What the model cannot do is disabled,
    and says why.
    """

    chosen = Signal(Overflow)

    def __init__(self, theme: Theme, anchor: QWidget) -> None:
        super().__init__(theme, anchor, _WIDTH)
        column = boxes.column(
            label(tr("When the context of this conversation is full"), weight="strong"), on=self, margins=12, spacing=4
        )
        self.buttons: dict[Overflow, QRadioButton] = {}
        self._reasons = {}
        for policy in POLICIES:
            button = self.buttons[policy.name] = QRadioButton(tr(policy.label))
            button.clicked.connect(lambda _checked=False, chosen=policy.name: self._choose(chosen))
            reason = self._reasons[policy.name] = label("", tone="secondary", scale="small", wrap=True)
            reason.setContentsMargins(24, 0, 0, 4)
            column.addWidget(button)
            column.addWidget(reason)
        self.show_possible({})
        self.show_chosen(Overflow.STOP)

    def show_chosen(self, overflow: Overflow) -> None:
        self.buttons[overflow].setChecked(True)
        policy = tr(policy_of(overflow).label)
        self.setAccessibleName(tr("When the context is full: {policy}").format(policy=policy))

    def show_possible(self, possible: Mapping[str, Capability]) -> None:
        """What can be done to the cache of this model: rows of the capability matrix by operation."""
        for policy in POLICIES:
            rows = (possible.get(operation) for operation in policy.requires)
            cannot = next((row.why for row in rows if row is not None and not row.allowed), "")
            button = self.buttons[policy.name]
            button.setEnabled(not cannot)
            why = tr("Not with this model and context.") + f" {cannot}" if cannot else tr(policy.description)
            self._reasons[policy.name].setText(why)
            button.setAccessibleDescription(why)

    def choose(self, button: QWidget | None = None) -> None:
        """Show the choice, at the button that asks for it; the policy that counts has the focus."""
        self.open_at(next((one for one in self.buttons.values() if one.isChecked()), None), button)

    def _choose(self, overflow: Overflow) -> None:
        self.close()
        self.chosen.emit(overflow)
