import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from kvdesk.protocol.experiment import Table
from kvdesk.ui.lab.tables import ResultTable, fitted, wrapped
from kvdesk.ui.widgets.access import key_tips
from kvdesk.ui.widgets.grid import Grid
from kvdesk.ui.widgets.style.theme import Theme

LONG = "when idle, if more than half of the cells are holes"
WIDE = Table(
    "A day",
    ("policy", "waited over never", "token P50, P95, longest (ms)", "first token P50, P95 (ms)", "compactions"),
    ((LONG, "0.981 (0.95 to 1.02)", "5.1, 12.4, 1,220.0", "1,120, 4,440", "12"),),
)


def test_a_wide_table_fits_and_a_key_tells_the_whole(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_tips, "TIP_MS", 0)
    shown = ResultTable(theme, WIDE)
    qtbot.addWidget(shown)
    with qtbot.waitExposed(shown):
        shown.resize(1200, 200)
        shown.show()
    (cells,) = shown.findChildren(Grid)
    head = cells.horizontalHeader()
    flat, whole = head.height(), cells.columnWidth(0)
    shown.resize(420, 200)
    qtbot.waitUntil(lambda: head.height() > flat and cells.columnWidth(0) < whole)
    assert head.length() <= cells.viewport().width(), "nothing is scrolled sideways"
    cells.setFocus()
    qtbot.waitUntil(cells.hasFocus)
    cells.setCurrentCell(0, 1)
    qtbot.keyClick(cells, Qt.Key.Key_Left)
    qtbot.waitUntil(lambda: QToolTip.text() == LONG)
    shown.resize(1200, 200)
    qtbot.waitUntil(lambda: (head.height(), cells.columnWidth(0)) == (flat, whole))


def test_the_widest_columns_give_way() -> None:
    assert fitted([300, 40, 100], [30, 30, 30], 500) == [300, 40, 100]
    assert fitted([300, 40, 100], [30, 30, 30], 200) == [80, 40, 80]
    assert fitted([300, 40, 100], [30, 30, 90], 200) == [70, 40, 90]
    assert fitted([300, 40], [30, 30], 50) == [30, 30], "then it is scrolled"


def test_a_title_is_broken_between_words() -> None:
    assert wrapped("waited over never", len, 11) == "waited over\nnever"
    assert wrapped("compactions", len, 5) == "compactions"
    assert wrapped("", len, 5) == ""


@pytest.mark.usefixtures("styled")
def test_texts_in_a_narrow_table_get_several_lines(theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("Figures", ("figure", "median"), (("cells when they were removed", "0"), ("made", "98.91 MB")))
    shown = ResultTable(theme, table)
    qtbot.addWidget(shown)
    shown.resize(500, 300)
    shown.show()
    (grid,) = shown.findChildren(Grid)
    before = grid.rowHeight(0), grid.height()
    shown.resize(180, 300)
    qtbot.waitUntil(lambda: grid.rowHeight(0) > 1.5 * before[0])
    QApplication.processEvents()
    calls: list[None] = []
    with monkeypatch.context() as patched:
        patched.setattr(grid, "fit_height", lambda: calls.append(None))
        QApplication.processEvents()
    assert not calls, "its height is settled"
    assert grid.rowHeight(1) == before[0]
    assert grid.height() - before[1] == grid.rowHeight(0) - before[0], "all of it is seen"
    shown.resize(500, 300)
    qtbot.waitUntil(lambda: (grid.rowHeight(0), grid.height()) == before)
