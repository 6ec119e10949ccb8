"""A column of widgets that scrolls up and down."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QScrollArea


class ScrollColumn(QScrollArea):
    """Never narrower than what is in it needs, with its scroll bar: nothing could be scrolled to sideways."""

    def __init__(self) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What is in it may need more room than before: Qt does not ask again by itself."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self.widget():
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def minimumSizeHint(self) -> QSize:
        size, inside = super().minimumSizeHint(), self.widget()
        if inside is None:
            return size
        width = inside.minimumSizeHint().width() + self.verticalScrollBar().sizeHint().width()
        return QSize(max(size.width(), width), size.height())
