"""The numbers of the cells of a stream: one line each, read by the numbers, the graphs and the export. No Qt.

A number is a function of `kvdesk.cache.metrics` with a name, a unit and a definition; one with `over_time` is a curve
too.
"""

from collections.abc import Callable, Iterable
from typing import Final

from kvdesk.cache import metrics
from kvdesk.cache.snapshot import StreamMap
from kvdesk.translation import marked
from kvdesk.values import dataclass
from kvdesk.viewmodel import palette

USED: Final = marked("Cells in use")
HIGH_WATER: Final = marked("High water (H)")
READ: Final = marked("Read per new token")
GAPS: Final = marked("Gaps in between")
SHARED: Final = marked("Shared cells")
"""One name each, wherever the window shows the number; llama.cpp's own word is in the definition."""


@dataclass(frozen=True, slots=True)
class CellMetric:
    """One number of a stream.

    export      its name in exported tables, "" if it is the same
    unit        of what `read` returns
    definition  shown on hover
    of          computes it: an int if it counts something, a share of 1 if the unit is "%"
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
    export: str = ""

    def read(self, cells: StreamMap) -> int | float:
        """The number of a stream, in the metric's unit."""
        value = self.of(cells)
        return 100 * value if self.unit == "%" else value


def _highest(values: Iterable[float]) -> float:
    return max(values, default=0)


CELL_METRICS: Final = (
    CellMetric(marked("capacity"), marked("cells"), marked("N: the cells of the stream"), lambda cells: cells.size),
    CellMetric(
        USED,
        marked("cells"),
        marked("U: non-empty cells (the engine's `used`)"),
        lambda cells: cells.used,
        sum,
        palette.GREEN,
        "used",
    ),
    CellMetric(
        HIGH_WATER,
        marked("cells"),
        marked("H: index of the last non-empty cell + 1 (`used_max_p1`)"),
        lambda cells: cells.high_water,
        _highest,
        export="high water",
    ),
    CellMetric(
        READ,
        marked("cells"),
        marked("n_kv = min(N, max(256, H rounded up to 256)): the cells that attention reads"),
        metrics.n_kv,
    ),
    CellMetric(
        GAPS,
        "%",
        marked("Hole ratio (H - U) / H, 0 when H is 0: free cells that attention still reads"),
        metrics.hole_ratio,
        export="hole ratio",
    ),
    CellMetric(
        marked("free runs"),
        marked("runs"),
        marked("Maximal intervals of empty cells"),
        lambda cells: len(metrics.free_runs(cells)),
    ),
    CellMetric(
        marked("largest free run"),
        marked("cells"),
        marked("The longest interval of empty cells"),
        metrics.largest_free_run,
    ),
    CellMetric(
        marked("external fragmentation"),
        "%",
        marked(
            "1 - largest free run / (N - U). For information: cells are placed one by one, so it makes nothing fail"
        ),
        metrics.external_fragmentation,
    ),
    CellMetric(
        SHARED, marked("cells"), marked("Cells that more than one sequence holds: stored once"), metrics.shared_cells
    ),
    CellMetric(
        marked("sharing factor"),
        "×",
        marked("Sum of sequences per used cell / U: 1 when nothing is shared"),
        metrics.sharing_factor,
    ),
)
DRAWN: Final = tuple(metric for metric in CELL_METRICS if metric.over_time is not None)
