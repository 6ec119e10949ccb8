"""A column of widgets that scrolls up and down."""

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QScrollArea, QWidget


class ScrollColumn(QScrollArea):
    """Never narrower than what is in it needs, with its scroll bar: nothing could be scrolled to sideways.

    `name`: what a screen reader says, since the keys scroll it.
    """

    def __init__(self, inside: QWidget, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._inside = inside
        inside.setObjectName("column")
        self.setWidget(inside)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What is in it may need more room than before: Qt does not ask again."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self._inside:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def minimumSizeHint(self) -> QSize:
        size = super().minimumSizeHint()
        width = self._inside.minimumSizeHint().width() + self.verticalScrollBar().sizeHint().width()
        return QSize(max(size.width(), width), size.height())
