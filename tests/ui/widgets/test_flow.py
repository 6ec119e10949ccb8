"""Widgets in lines: what is around them is laid out again only when they need another room."""

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget

from kvdesk.ui.widgets.flow import Flow

_IN_COLOUR = '<b style="color:{}">b</b>'


class _Page(QWidget):
    """Counts how often it was laid out."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        QVBoxLayout(self).addWidget(flow)
        self.n_laid_out = 0

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.n_laid_out += 1
        return super().event(event)


def _settle(qapp: QApplication) -> None:
    """Parts are laid out, then what is around them."""
    qapp.processEvents()
    qapp.processEvents()


def test_only_another_size_of_a_part_lays_out_what_is_around(qapp: QApplication) -> None:
    flow, one, other = Flow((8, 0)), QLabel("aa"), QLabel(_IN_COLOUR.format("red"))
    page = _Page(flow)
    flow.show_parts((one, other))
    page.show()
    _settle(qapp)
    before = page.n_laid_out

    other.setText(_IN_COLOUR.format("blue"))
    _settle(qapp)
    assert page.n_laid_out == before

    one.setText("a longer text")
    _settle(qapp)
    assert page.n_laid_out > before
    assert one.width() == one.sizeHint().width()
    assert other.x() > one.geometry().right()


def test_other_parts_of_the_same_size_are_placed(qapp: QApplication) -> None:
    flow, one, other, third = Flow((8, 0)), QLabel("aa"), QLabel("bb"), QLabel("bb")
    page = _Page(flow)
    flow.show_parts((one, other))
    page.show()
    _settle(qapp)
    flow.show_parts((one, third))
    assert third.geometry() == other.geometry()
