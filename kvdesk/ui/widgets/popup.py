"""A card that opens under a button and closes by Esc, or a click beside it."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QWidget

from kvdesk.ui.widgets.access.key_tips import tell_reached


class Popup(QFrame):
    """Under the right end of `anchor`, `width` px wide."""

    def __init__(self, anchor: QWidget, width: int) -> None:
        super().__init__(anchor, Qt.WindowType.Popup)
        self._anchor = anchor
        self.setProperty("card", "ask")
        self.setFixedWidth(width)

    def open_at(self, first: QWidget | None) -> None:
        """Show it; `first` has the focus."""
        self.adjustSize()
        self.move(self._anchor.mapToGlobal(QPoint(self._anchor.width() - self.width(), self._anchor.height())))
        self.show()
        if first is not None:
            first.setFocus(Qt.FocusReason.PopupFocusReason)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's name
        return tell_reached(self, moved=super().focusNextPrevChild(next))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)
