"""The button in the header of a chat that shows whether its parameters are changed, and opens them."""

from PySide6.QtGui import QKeySequence

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import IconButton, plain_tip
from kvdesk.ui.widgets.style.theme import Theme

KEYS = "Ctrl+J"


class ParametersButton(IconButton):
    """An icon, in the accent's colour while parameters of the chat are changed; checked while they are open. A click
    asks: who opens them sets the check.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "parameters", tr("Parameters"))
        self.setObjectName("parametersButton")
        self.setCheckable(True)
        self.show_changes(tr("Parameters"), "")

    def nextCheckState(self) -> None:
        """A click alone changes nothing."""

    def show_changes(self, text: str, changes: str, *, is_changed: bool = False) -> None:
        """`text`: what is changed, in short; `changes`: all, a line for each."""
        self.set_ink("accent" if is_changed else "secondary")
        keys = QKeySequence(KEYS).toString(QKeySequence.SequenceFormat.NativeText)
        open_them = tr("Change system prompt, sampling and template of this chat ({keys})").format(keys=keys)
        self.setAccessibleName(text)
        self.setAccessibleDescription(changes)
        self.setToolTip(plain_tip(f"{changes}\n\n{open_them}".strip()))
