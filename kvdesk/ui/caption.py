"""A line of words over the bottom of the window: what the guided tour is doing."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QLabel, QWidget

MARGIN = 132  # px above the lower edge: composer and status line stay visible


class Caption(QLabel):
    """Floats over its parent, centred near the lower edge; an empty text hides it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("caption")
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        self._over = parent
        parent.installEventFilter(self)

    def show_text(self, text: str) -> None:
        self.setText(text)
        self.setVisible(bool(text))
        self._place()
        self.raise_()

    def _place(self) -> None:
        self.adjustSize()
        self.move((self._over.width() - self.width()) // 2, self._over.height() - self.height() - MARGIN)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)
