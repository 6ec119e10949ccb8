"""One line in the table of metrics is a number, a curve of a graph and a series of the export."""

import pytest

from kvdesk.values import replace
from kvdesk.viewmodel.graphs import measurements
from kvdesk.viewmodel.graphs.cell_metrics import CELL_METRICS, DRAWN, GAPS, USED
from kvdesk.viewmodel.graphs.measurements import Measurements
from kvdesk.viewmodel.graphs.metric_groups import metric_groups
from tests.ui.samples import cache_view


def test_every_metric_is_a_number_with_its_definition() -> None:
    cells = metric_groups(Measurements(), cache_view(), {})[0]
    assert [(row.name, row.definition) for row in cells.rows] == [(one.name, one.definition) for one in CELL_METRICS]


def test_a_metric_over_time_is_drawn_and_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    holes = replace(next(one for one in CELL_METRICS if one.name == GAPS), over_time=max)
    monkeypatch.setattr(measurements, "DRAWN", (*DRAWN, holes))
    measured = Measurements()
    measured.add_view(cache_view(), at_s=1.0)
    drawn = {curve.name: (spec.unit, curve.series.last) for spec in measured.graphs for curve in spec.curves}
    assert drawn[USED] == ("cells", 220)
    unit, share = drawn[GAPS]
    assert unit == "%"
    assert share == pytest.approx(100 * 20 / 240)
    assert {"used", "high water", "hole ratio"} <= {series.name for series in measured.all_series()}
