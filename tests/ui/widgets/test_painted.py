"""What waits until the window is seen."""

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from kvdesk.ui.widgets.painted import when_painted


def test_it_is_done_once_and_only_after_the_first_painting(qtbot: QtBot) -> None:
    widget, done = QWidget(), []
    qtbot.addWidget(widget)
    when_painted(widget, lambda: done.append(widget.isVisible()))
    qtbot.wait(0)
    assert done == []
    widget.show()
    qtbot.waitUntil(lambda: done == [True])
    widget.repaint()
    qtbot.wait(0)
    assert done == [True]
