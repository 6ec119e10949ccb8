"""A card that opens beside a button and closes by Esc, or a click beside it."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QWidget

from kvdesk.ui.widgets.access.key_tips import tell_reached
from kvdesk.ui.widgets.access.typing import presses
from kvdesk.ui.widgets.style.theme import Theme


class Popup(QFrame):
    """Under the right end of `anchor` if it is not opened at another button; `width` px wide at 100 %."""

    def __init__(self, theme: Theme, anchor: QWidget, width: int) -> None:
        super().__init__(anchor, Qt.WindowType.Popup)
        self._theme, self._anchor, self._width = theme, anchor, width
        self.setProperty("card", "ask")

    def open_at(self, first: QWidget | None, button: QWidget | None = None) -> None:
        """Show it at `button`, above it where the screen ends below; `first` has the focus."""
        self.fit()
        anchor = button or self._anchor
        at = anchor.mapToGlobal(QPoint(0 if button else anchor.width() - self.width(), anchor.height()))
        screen = anchor.screen().availableGeometry()
        if at.y() + self.height() > screen.bottom():
            at.setY(max(screen.top(), at.y() - anchor.height() - self.height()))
        at.setX(max(screen.left(), min(at.x(), screen.right() - self.width())))
        self.move(at)
        self.show()
        if first is not None:
            first.setFocus(Qt.FocusReason.PopupFocusReason)

    def fit(self) -> None:
        """As wide as the size of the text asks for and the screen allows, and as high as its texts are then."""
        self.setFixedWidth(min(self._theme.px(self._width), self._anchor.screen().availableGeometry().width()))
        for part in self.findChildren(QWidget):
            part.ensurePolished()  # its font counts
        if (layout := self.layout()) is not None:
            layout.activate()
            self.resize(self.width(), layout.totalHeightForWidth(self.width()))

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's name
        return tell_reached(self, moved=super().focusNextPrevChild(next))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        elif not presses(self.focusWidget(), event):
            super().keyPressEvent(event)
