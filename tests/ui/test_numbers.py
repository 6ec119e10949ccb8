from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, SeqId, SequenceSpan, Verification
from kvdesk.protocol.cache import CacheView, LedgerRow, MemoryLedger, SpeedSample
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import ClearCache, Operate
from kvdesk.ui.cache.metric_table import MetricTable
from kvdesk.ui.cache.numbers_panel import NumbersPanel
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.graphs.cell_metrics import USED
from kvdesk.viewmodel.graphs.measurements import Measurements
from kvdesk.viewmodel.graphs.metric_groups import Group, Row, metric_groups, number
from tests.ui.samples import CONTEXT, STATS, cache_view, stream


def found(groups: tuple[Group, ...]) -> dict[str, list[str]]:
    return {f"{g.title}/{r.name}": [f"{v.text} {v.unit}".strip() for v in r.values] for g in groups for r in g.rows}


def measured() -> Measurements:
    m = Measurements()
    m.start_turn()
    m.add_speed(SpeedSample(1.0, "prefill", 600, 500.0, 768, n_ubatches=2, n_tested=612))
    m.add_speed(SpeedSample(1.01, "decode", 1, 8.0, 768, n_tested=1))
    m.add_turn(STATS, 1.02)
    m.add_view(cache_view(), CONTEXT, 1.02)
    return m


def test_all_metrics_of_a_view() -> None:
    texts = found(metric_groups(measured(), cache_view(), {0: "Village"}))
    expected = {
        "Cells/capacity": ["1,024 cells"],
        "Cells/Cells in use": ["220 cells"],
        "Cells/High water (H)": ["240 cells"],
        "Cells/Read per new token": ["256 cells"],
        "Cells/Gaps in between": ["8.3 %"],
        "Cells/free runs": ["2 runs"],
        "Cells/largest free run": ["784 cells"],
        "Cells/external fragmentation": ["2.5 %"],
        "Cells/Shared cells": ["32 cells"],
        "Cells/sharing factor": ["1.15 ×"],
        "Sequences/Village": ["180", "0", "76", "0", "0"],
        "Sequences/no conversation": ["72", "1", "184", "0", "0"],
        "Bytes/allocated": ["6.00 MB", "6.00 MB"],
        "Bytes/occupied": ["1.29 MB", "1.29 MB"],
        "Bytes/up to n_kv": ["1.50 MB", "1.50 MB"],
        "Speed/prefill, last request": ["640 tok/s"],
        "Speed/decode, last request": ["118 tok/s"],
        "Speed/time to first token": ["90.0 ms"],
        "Inter-token latency/whole session": ["10.0 ms"] * 3,
        "Reuse/prefix hits, last request": ["91.4 %"],
        "Placing and K-shift/slot search, last batch": ["1 cells"],
        "Placing and K-shift/batches that were split": ["1 batches"],
        "Return codes/done (0)": ["2 times"],
        "Return codes/refused (-1)": ["0 times"],
    }
    assert {name: texts.get(name) for name in expected} == expected


def test_everything_has_a_definition_and_nothing_is_known_at_first() -> None:
    groups = metric_groups(Measurements(), None, {})
    assert all(row.definition for group in groups for row in group.rows)
    assert found(groups)["Cells/Cells in use"] == ["–"]
    assert found(groups)["Bytes/allocated"] == ["–", "–"]


def test_memory_that_fills_with_use_tells_how_far() -> None:
    m = Measurements()
    m.set_ledger(MemoryLedger((LedgerRow("K and V", 6_000_000, 6_000_000), LedgerRow("undo", 0, 4, 256_000_000))))
    (memory,) = (group for group in metric_groups(m, None, {}) if group.title == "Memory")
    assert [row.definition.endswith("; 256 MB at most") for row in memory.rows] == [False, True]


def test_window_and_base_cache_apart_and_the_fullest_of_many_streams() -> None:
    one, two = stream(64, [(0, 20, (0,), 0, 1)]), stream(32, [(0, 8, (0,), 12, 1)])
    span = (SequenceSpan(SeqId(0), 0, 19, 20, 0),)
    maps = (CacheMap("base", (one,), 0), CacheMap("window", (two,), 8))
    view = CacheView(CacheSnapshot(1, maps, (), span, 64, 64, Verification("verified", 1)), ())
    groups = metric_groups(Measurements(), view, {0: "Village"})
    assert [column.name for column in groups[0].columns] == ["base", "window"]
    assert found(groups)["Cells/Cells in use"] == ["20 cells", "8 cells"]
    assert [row.name for row in groups[1].rows] == ["Village · base", "Village · window"]
    assert found(groups)["Sequences/Village · window"][2] == "25", "of 8 cells one is out of the window"
    many = tuple(stream(16, [(0, n, (i,), 0, 1)]) for i, n in enumerate((1, 9, 3, 4, 7)))
    view = CacheView(CacheSnapshot(1, (CacheMap("kv", many, 0),), (), (), 16, 80, Verification("verified", 1)), ())
    group = metric_groups(Measurements(), view, {})[0]
    assert [column.name for column in group.columns] == ["stream 1", "stream 4", "stream 3"]
    assert group.title == "Cells: the 3 fullest of 5 streams"


def test_numbers_have_three_digits() -> None:
    assert [number(v).text for v in (0.5, 12.345, 1234.5, 7, None)] == ["0.50", "12.3", "1,234", "7", "–"]


def test_groups_fold_and_cost_nothing_folded(theme: Theme, qtbot: QtBot) -> None:
    panel = NumbersPanel(theme, measured())
    qtbot.addWidget(panel)
    panel.show()
    panel.show_view(cache_view(), {0: "Village"})
    assert panel._figures[USED]._value.text() == "220"
    assert not panel._tables[0].isVisible()
    assert panel._tables[0].group.rows == ()
    qtbot.keyClick(panel.all_section.button, Qt.Key.Key_Space)
    assert panel._tables[0].isVisible()
    assert found((panel._tables[0].group,))["Cells/Cells in use"] == ["220 cells"]
    assert panel._tables[2].group.rows == (), "still folded"
    panel._sections[2].button.click()
    assert panel._tables[2].group.rows
    assert [section.button.accessibleName() for section in panel._sections[:2]] == ["Cells", "Sequences"]


def test_definitions_are_reached_with_the_keyboard(theme: Theme, qtbot: QtBot) -> None:
    table = MetricTable(theme)
    qtbot.addWidget(table)
    table.show_group(metric_groups(measured(), cache_view(), {})[0])
    with qtbot.waitActive(table):
        table.show()
    assert table.accessibleDescription().startswith("capacity: 1,024 cells; Cells in use: 220 cells")
    table.setCurrentCell(0, 0)
    qtbot.keyClick(table, Qt.Key.Key_Down)
    heard = table.currentItem().data(Qt.ItemDataRole.AccessibleDescriptionRole)
    assert heard == "Cells in use: 220 cells\nU: non-empty cells (the engine's `used`)"
    table.selectRow(1)
    table.setFocus()
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "Cells in use\t220\tcells"


def test_columns_have_definitions_too(theme: Theme, qtbot: QtBot) -> None:
    table = MetricTable(theme)
    qtbot.addWidget(table)
    table.show_group(metric_groups(measured(), cache_view(), {})[1])
    heads = [table.horizontalHeaderItem(i) for i in range(table.columnCount())]
    assert any("Wasted attention span" in head.toolTip() for head in heads)
    table.show_group(Group("Empty", (), (), "Nothing yet."))
    assert (table.rowCount(), table.columnCount(), table.text(0, 0)) == (1, 1, "Nothing yet.")
    table.show_group(Group("One", (), (Row("a", "b", (number(1.0),)),)))
    assert table.item(0, 0).data(Qt.ItemDataRole.AccessibleDescriptionRole) == "a: 1.00\nb"


def test_operations_that_failed_are_counted(window: MainWindow) -> None:
    window.store.apply(CommandFailed(Operate(ClearCache()), "Not now."))
    assert window.store.measured.n_refused == 1
