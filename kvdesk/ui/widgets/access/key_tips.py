"""Tooltips of what a key reaches: of widgets after Tab, of the lines of a menu. Qt shows those of the pointer alone."""

from typing import Final

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer
from PySide6.QtGui import QAction, QCursor, QFocusEvent, QHelpEvent, QTextDocumentFragment
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QToolTip, QWidget

from kvdesk.ui.widgets.access.announce import announce

TIP_MS: Final = 700
"""As long as Qt waits over what is hovered."""
_BELOW_PX: Final = 16
"""About as far as Qt shows a tooltip below the place that it is given, for the pointer's sake."""


def is_by_tab(event: QFocusEvent) -> bool:
    """Whether Tab has brought the focus."""
    return event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


def show_tip(widget: QWidget) -> None:
    """Show the tooltip of what Tab has reached, if it still has the focus then: as over what is hovered, with the whole
    of a text that is cut.
    """

    def show() -> None:
        if widget.hasFocus() and widget.toolTip():
            below = QPoint(0, widget.height())
            QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, below, widget.mapToGlobal(below)))

    QTimer.singleShot(TIP_MS, widget, show)


def tell_reached(window: QWidget, *, moved: bool) -> bool:
    """For `focusNextPrevChild` of a window: what Tab has reached shows its tooltip. Returns `moved`."""
    if moved and (reached := window.focusWidget()) is not None:
        show_tip(reached)
    return moved


def show_tips_in(view: QAbstractItemView) -> None:
    """Of its cells, when a key reaches one with more to say than is seen of it."""

    def show() -> None:
        index = view.currentIndex()
        tip, text = (index.data(role) or "" for role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.DisplayRole))
        place = view.visualRect(index)
        is_whole = tip == text and view.sizeHintForIndex(index).width() <= place.width()
        if view.hasFocus() and tip and not is_whole:
            QToolTip.showText(view.viewport().mapToGlobal(place.bottomLeft()), tip, view)

    view.selectionModel().currentChanged.connect(lambda: QTimer.singleShot(TIP_MS, view, show))


def tip_text(tip: str) -> str:
    """What a tooltip shows, without the tags of a rich one."""
    return QTextDocumentFragment.fromHtml(tip).toPlainText() if tip.startswith("<qt>") else tip


def show_tips_of(menu: QMenu) -> None:
    """Of its lines, by key too. A screen reader hears them: Qt gives it the text of a line only."""
    menu.setToolTipsVisible(True)
    menu.hovered.connect(lambda action: _tell_tip(menu, action))


def _tell_tip(menu: QMenu, action: QAction) -> None:
    tip, caption = action.toolTip(), action.text().partition("\t")[0]
    if action not in menu.actions() or tip in ("", caption, action.text()):
        return  # a line of a submenu, or without more to say
    announce(menu, tip_text(tip))

    def show() -> None:
        place = menu.actionGeometry(action)
        is_hovered = place.contains(menu.mapFromGlobal(QCursor.pos()))
        if menu.isVisible() and menu.activeAction() is action and not is_hovered:
            beside = QPoint(menu.width(), place.top() - _BELOW_PX)  # not over the lines that come next
            QToolTip.showText(menu.mapToGlobal(beside), tip, menu)

    QTimer.singleShot(TIP_MS, menu, show)
