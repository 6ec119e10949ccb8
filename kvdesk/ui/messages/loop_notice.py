"""Under an answer that repeats itself: what is seen, and the way to stop it. Nothing stops without a person."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets.announce import announce
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.kit import Kit


class LoopNotice(QWidget):
    """Hidden while the answer goes on well."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._text = label(tr("This answer repeats itself."), tone="warning", scale="small")
        self._text.setWordWrap(True)
        self.stop = QPushButton(tr("Stop"))
        self.stop.setProperty("scale", "small")
        self.stop.setToolTip(tr("Stop the answer (Esc); its text stays"))
        self.stop.clicked.connect(kit.act("chat.stop"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 4, 0, 4)
        row.setSpacing(8)
        row.addWidget(self._text)
        row.addWidget(self.stop)
        row.addStretch(1)
        self.hide()

    def set_shown(self, shown: bool) -> None:
        """Whether the answer repeats itself now."""
        if shown and self.isHidden():
            announce(self, tr("This answer repeats itself. Esc stops it."))
        self.setVisible(shown)
