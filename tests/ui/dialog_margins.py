"""The room around what is in a dialog: the same in all of them."""

import importlib
import pkgutil
from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QLineEdit, QScrollArea, QWidget

import kvdesk.ui
from kvdesk.ui.widgets.dialog import Dialog
from kvdesk.ui.widgets.style.sizes import DIALOG_MARGIN_PX


def kinds() -> set[str]:
    """The dialogs that kvdesk has."""
    for module in pkgutil.walk_packages(kvdesk.ui.__path__, "kvdesk.ui."):
        importlib.import_module(module.name)
    assert [kind for kind in QDialog.__subclasses__() if kind.__module__.startswith("kvdesk.")] == [Dialog]
    return {kind.__name__ for kind in leaves(Dialog)}


def leaves(kind: type[Dialog]) -> Iterator[type[Dialog]]:
    """The classes below `kind` from which no other is derived."""
    for below in kind.__subclasses__():
        if below.__subclasses__():
            yield from leaves(below)
        else:
            yield below


def drawn(dialog: QDialog) -> Iterator[tuple[QRect, bool]]:
    """What one sees in it: where labels, buttons and fields are in the dialog, and whether they scroll."""
    for widget in dialog.findChildren(QWidget):
        is_kind = isinstance(widget, QAbstractButton | QLineEdit) or (
            isinstance(widget, QLabel) and bool(widget.text())
        )
        is_part = isinstance(widget.parentWidget(), QLineEdit)
        if is_kind and not is_part and widget.isVisible() and widget.window() is dialog:
            yield QRect(widget.mapTo(dialog, QPoint()), widget.size()), _scrolls(widget)


def _scrolls(widget: QWidget) -> bool:
    around: QWidget | None = widget
    while around is not None and not isinstance(around, QScrollArea):
        around = around.parentWidget()
    return around is not None


def wrong_margins(dialog: QDialog) -> list[str]:
    """The sides on which there is more or less room between its edge and what is in it."""
    for _ in range(4):  # what scrolls tells its least width when events are handled, once it is styled
        QApplication.processEvents()
        dialog.adjustSize()
    QApplication.processEvents()
    found = list(drawn(dialog))
    boxes, fixed = [box for box, _ in found], [box for box, scrolls in found if not scrolls]
    margins = {
        "left": min(box.left() for box in boxes),
        "top": min(box.top() for box in boxes),
        "right": dialog.width() - 1 - max(box.right() for box in boxes),
        "bottom": dialog.height() - 1 - max(box.bottom() for box in fixed),
    }
    return [f"{side} {px}" for side, px in margins.items() if abs(px - DIALOG_MARGIN_PX) > 1]
