"""All dialogs have the same room around what is in them."""

import importlib
import pkgutil
from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QLineEdit, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

import kvdesk.ui
from kvdesk.ui.widgets.dialog import Dialog
from kvdesk.ui.widgets.style.sizes import DIALOG_MARGIN_PX
from tests.ui.test_nothing_cut import filled, places


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


def test_every_dialog_has_one_margin(qapp: QApplication, qtbot: QtBot) -> None:
    window = filled(qapp)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)
    seen, wrong = set(), []
    for place, root in places(window):
        if not isinstance(root, QDialog):
            continue
        seen.add(type(root).__name__)
        for _ in range(4):  # what scrolls tells its least width when events are handled, once it is styled
            QApplication.processEvents()
            root.adjustSize()
        QApplication.processEvents()
        found = list(drawn(root))
        boxes, fixed = [box for box, _ in found], [box for box, scrolls in found if not scrolls]
        margins = {
            "left": min(box.left() for box in boxes),
            "top": min(box.top() for box in boxes),
            "right": root.width() - 1 - max(box.right() for box in boxes),
            "bottom": root.height() - 1 - max(box.bottom() for box in fixed),
        }
        wrong += [f"{place}: {side} {px}" for side, px in margins.items() if abs(px - DIALOG_MARGIN_PX) > 1]
    assert not wrong, "\n".join(wrong)
    assert seen == kinds(), "a dialog that no place of the tests opens"
