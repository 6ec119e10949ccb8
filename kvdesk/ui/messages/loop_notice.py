"""Under an answer that repeats itself: what is seen, and the way to stop it. Nothing stops without a person."""

from PySide6.QtWidgets import QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.kit import Kit


class LoopNotice(QWidget):
    """Hidden while the answer goes on well."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        text = label(tr("This answer repeats itself."), tone="warning", scale="small", wrap=True)
        tip = tr("Stop the answer (Esc); its text stays")
        self.stop = push_button(tr("Stop"), tip=tip, scale="small", clicked=kit.act("chat.stop"))
        boxes.row(text, self.stop, boxes.Stretch(1), on=self, margins=(0, 4, 0, 4), spacing=8)
        self.hide()

    def set_shown(self, shown: bool) -> None:
        """Whether the answer repeats itself now."""
        if shown and self.isHidden():
            announce(self, tr("This answer repeats itself. Esc stops it."))
        self.setVisible(shown)
