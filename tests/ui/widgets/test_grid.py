"""Tables that are read: what is selected in them is copied."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QTableView
from pytestqt.qtbot import QtBot

from kvdesk.ui.widgets.grid import make_plain


def test_all_rows_that_are_selected_are_copied(qtbot: QtBot) -> None:
    view, model = QTableView(), QStandardItemModel()
    qtbot.addWidget(view)
    for row in (("1", "unseen", "a"), ("2", "unseen", "b"), ("3", "unseen", "c")):
        model.appendRow([QStandardItem(text) for text in row])
    view.setModel(model)
    make_plain(view)
    view.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
    view.setColumnHidden(1, True)
    with qtbot.waitActive(view):
        view.show()
    view.setFocus()
    QGuiApplication.clipboard().setText("before")
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.keyClick(view, Qt.Key.Key_C, control)
    assert QGuiApplication.clipboard().text() == "before", "nothing is selected"
    view.selectRow(0)
    qtbot.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(view, Qt.Key.Key_C, control)
    assert QGuiApplication.clipboard().text() == "1\ta\n2\tb"
