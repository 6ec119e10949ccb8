"""Lays a widget over the bottom of others: it takes no room from them, so nothing moves when it comes or goes."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtWidgets import QWidget

MARGIN_PX: Final = 12
WIDEST_PX: Final = 480
_MOVES: Final = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show, QEvent.Type.Hide, QEvent.Type.LayoutRequest)


class Floating(QObject):
    """Keeps `widget` at the bottom of what `over` returns, as high as its contents. Both are inside of `around`.

    watched  the widgets that `over` may return; where they go, it follows
    """

    def __init__(
        self, widget: QWidget, around: QWidget, watched: tuple[QWidget, ...], over: Callable[[], QWidget]
    ) -> None:
        super().__init__(widget)
        self._widget, self._around, self._over = widget, around, over
        hidden = widget.isHidden()
        widget.setParent(around)
        widget.setHidden(hidden)
        for one in {widget, around, *watched}:
            one.installEventFilter(self)
        self.place()

    def place(self) -> None:
        """Lay it where it belongs now."""
        if self._widget.isHidden():
            return
        over = self._over()
        if over is not self._around and not self._around.isAncestorOf(over):  # while parts are replaced
            return
        area = QRect(over.mapTo(self._around, QPoint()), over.size())
        width = max(min(area.width() - 2 * MARGIN_PX, WIDEST_PX), 0)
        height = self._widget.heightForWidth(width)
        height = min(height if height >= 0 else self._widget.sizeHint().height(), area.height())
        mirrored = self._around.layoutDirection() == Qt.LayoutDirection.RightToLeft
        left = area.left() + MARGIN_PX if mirrored else area.right() + 1 - MARGIN_PX - width
        self._widget.setGeometry(left, area.bottom() + 1 - MARGIN_PX - height, width, height)
        self._widget.raise_()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() in _MOVES:
            self.place()
        return False
