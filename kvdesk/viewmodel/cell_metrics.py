"""The numbers of the cells of a stream: one line each, read by the numbers, the graphs and the export. No Qt.

A number is a function of `kvdesk.cache.metrics` with a name, a unit and a definition; one with `over_time` is a curve
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kvdesk.cache import metrics
from kvdesk.cache.snapshot import StreamMap
from kvdesk.viewmodel import palette


@dataclass(frozen=True, slots=True)
class CellMetric:
    """One number of a stream.

    unit        of what `read` returns
    definition  shown on hover
    of          computes it: an int where it counts something, a share of 1 where the unit is "%"
    over_time   joins the values of all streams into the one that is drawn; None: it is not drawn. Curves of one unit
                share a graph
    ink         of the curve, (dark, light)
    """

    name: str
    unit: str
    definition: str
    of: Callable[[StreamMap], int | float]
    over_time: Callable[[Iterable[float]], float] | None = None
    ink: tuple[str, str] = palette.SILVER

    def read(self, cells: StreamMap) -> int | float:
        """The number of a stream, in the metric's unit."""
        value = self.of(cells)
        return 100 * value if self.unit == "%" else value


def _highest(values: Iterable[float]) -> float:
    return max(values, default=0)


CELL_METRICS: Final = (
    CellMetric("capacity", "cells", "N: the cells of the stream", lambda cells: cells.size),
    CellMetric(
        "used", "cells", "U: non-empty cells (the engine's `used`)", lambda cells: cells.used, sum, palette.GREEN
    ),
    CellMetric(
        "high water",
        "cells",
        "H: index of the last non-empty cell + 1 (`used_max_p1`)",
        lambda cells: cells.high_water,
        _highest,
    ),
    CellMetric("n_kv", "cells", "min(N, max(256, H rounded up to 256)): the cells that attention reads", metrics.n_kv),
    CellMetric(
        "hole ratio", "%", "(H - U) / H, 0 when H is 0: free cells that attention still reads", metrics.hole_ratio
    ),
    CellMetric("free runs", "runs", "Maximal intervals of empty cells", lambda cells: len(metrics.free_runs(cells))),
    CellMetric("largest free run", "cells", "The longest interval of empty cells", metrics.largest_free_run),
    CellMetric(
        "external fragmentation",
        "%",
        "1 - largest free run / (N - U). For information: cells are placed one by one, so it makes nothing fail",
        metrics.external_fragmentation,
    ),
    CellMetric("shared cells", "cells", "Cells that more than one sequence holds: stored once", metrics.shared_cells),
    CellMetric(
        "sharing factor", "×", "Sum of sequences per used cell / U: 1 when nothing is shared", metrics.sharing_factor
    ),
)
DRAWN: Final = tuple(metric for metric in CELL_METRICS if metric.over_time is not None)
