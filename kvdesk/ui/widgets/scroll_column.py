"""A column of widgets that scrolls up and down."""

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QScrollArea, QWidget


class ScrollColumn(QScrollArea):
    """Never narrower than what is in it needs, with its scroll bar: nothing could be scrolled to sideways. The scroll
    bar is in the right margin of what is in it, which so is as wide with it as without.

    `name`: what a screen reader says, since the keys scroll it.
    """

    def __init__(self, inside: QWidget, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._inside = inside
        self._margin: int | None = None  # on the right, without a scroll bar
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
        """The right margin of what is in it: now, and without a scroll bar."""
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
