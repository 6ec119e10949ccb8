"""A column of widgets that scrolls up and down."""

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QScrollArea, QWidget


class ScrollColumn(QScrollArea):
    """Never narrower than its content and its scroll bar need: nothing scrolls sideways. The scroll bar takes the
    place of the content's right margin, so that the content keeps its width.

    `name`: what a screen reader says, since the keys scroll it.
    """

    def __init__(self, inside: QWidget, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._inside = inside
        self._margin: int | None = None  # of the content on the right, without a scroll bar
        self.verticalScrollBar().rangeChanged.connect(self._keep_width)
        inside.setObjectName("column")
        self.setWidget(inside)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What is in it may need more room than before: Qt does not ask again."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self._inside:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def minimumSizeHint(self) -> QSize:
        size = super().minimumSizeHint()
        now, margin = self._margins
        width = self._inside.minimumSizeHint().width() - now + max(margin, self.verticalScrollBar().sizeHint().width())
        return QSize(max(size.width(), width), size.height())

    @property
    def _margins(self) -> tuple[int, int]:
        """The content's right margin now, and without a scroll bar."""
        layout = self._inside.layout()
        now = layout.contentsMargins().right() if layout is not None else 0
        if self._margin is None and layout is not None:
            self._margin = now
        return now, self._margin or 0

    def _keep_width(self, _first: int, last: int) -> None:
        now, margin = self._margins
        right = max(margin - self.verticalScrollBar().sizeHint().width(), 0) if last else margin
        if (layout := self._inside.layout()) is not None and right != now:
            margins = layout.contentsMargins()
            margins.setRight(right)
            layout.setContentsMargins(margins)
