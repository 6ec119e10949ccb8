"""A table that is read: as high as its rows, scrolled sideways where it is wider than its room, copied by Ctrl+C."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QWheelEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QTableView, QTableWidget, QTableWidgetItem

from kvdesk.ui.widgets.access.key_tips import show_tips_in
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.theme import Theme


def make_plain(view: QTableView) -> None:
    """A table of lines without a grid and without heads of rows, which is not edited. Tab leaves it, and selected cells
    are copied with tabs between them.
    """
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    view.setShowGrid(False)
    view.setWordWrap(False)
    view.setTabKeyNavigation(False)
    view.verticalHeader().hide()
    view.horizontalHeader().setHighlightSections(False)
    copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), view, context=Qt.ShortcutContext.WidgetShortcut)
    copy.activated.connect(lambda: _copy(view))


class Grid(QTableWidget):
    """As high as its rows. `row_px`: height of a row before zoom."""

    def __init__(self, theme: Theme, row_px: int) -> None:
        super().__init__()
        self._theme, self._row_px = theme, row_px
        self.setObjectName("grid")
        theme.give_font(self, "small")
        make_plain(self)
        show_tips_in(self)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        theme.changed.connect(self.fit_height)

    def text(self, row: int, column: int) -> str:
        """Of a cell; "" without one."""
        item = self.item(row, column)
        return item.text() if item is not None else ""

    def put(self, row: int, column: int, text: str, tip: str) -> QTableWidgetItem:
        """Write a cell. `tip`: shown on hover, and read to those who hear the table."""
        item = self.item(row, column)
        if item is None:
            self.setItem(row, column, item := QTableWidgetItem())
        item.setText(text)
        item.setToolTip(plain_tip(tip))
        item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, tip)
        return item

    def fit_height(self) -> None:
        """Rows and heads, and the bar where one is needed."""
        head, row = self.horizontalHeader(), self._theme.px(self._row_px)
        self.verticalHeader().setMinimumSectionSize(row)
        self.verticalHeader().setDefaultSectionSize(row)
        self._fit_rows(row)
        bar = self.horizontalScrollBar().sizeHint().height() if head.length() > self.width() else 0
        top = 0 if head.isHidden() else head.sizeHint().height()
        self.setFixedHeight(top + self.verticalHeader().length() + bar + 2)

    def _fit_rows(self, px: int) -> None:
        """Give rows their heights, if they need others than `px`."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_height()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The plain wheel scrolls the page."""
        if event.angleDelta().x() or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            super().wheelEvent(event)
        else:
            event.ignore()


def _copy(view: QTableView) -> None:
    rows: dict[int, list[str]] = {}
    for index in sorted(view.selectionModel().selectedIndexes(), key=lambda i: (i.row(), i.column())):
        if not view.isColumnHidden(index.column()):
            rows.setdefault(index.row(), []).append(str(index.data() or ""))
    if rows:
        QApplication.clipboard().setText("\n".join("\t".join(row) for row in rows.values()))
