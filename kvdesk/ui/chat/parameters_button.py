"""The button in the header of a chat that says which of its parameters are changed, and opens them."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import ElidedButton, plain_tip

KEYS = "Ctrl+J"


class ParametersButton(ElidedButton):
    """Quiet; beside the overflow policy."""

    def __init__(self) -> None:
        super().__init__(tr("Parameters"))
        self.setProperty("quiet", True)
        self.setProperty("scale", "small")
        self.show_changes(tr("Parameters"), "")

    def show_changes(self, text: str, changes: str, *, is_changed: bool = False) -> None:
        """`text`: what is changed, in short; `changes`: all, a line for each. It stands out where `is_changed`."""
        if self.property("changed") != is_changed:
            self.setProperty("changed", is_changed)
            self.style().unpolish(self)
            self.style().polish(self)
        keys = QKeySequence(KEYS).toString(QKeySequence.SequenceFormat.NativeText)
        open_them = tr("Change system prompt, sampling and template of this chat ({keys})").format(keys=keys)
        self.setText(text)
        self.setAccessibleName(text)
        self.setAccessibleDescription(changes)
        self.setToolTip(plain_tip(f"{changes}\n\n{open_them}".strip()))
