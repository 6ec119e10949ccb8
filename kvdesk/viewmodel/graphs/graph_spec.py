"""The declaration of a graph over time: curves of one unit. No Qt."""

from typing import Literal

from kvdesk.translation import tr
from kvdesk.values import dataclass
from kvdesk.viewmodel.graphs.series import Series


@dataclass(frozen=True, slots=True)
class Curve:
    """A series as it is drawn and exported.

    ink     (dark, light)
    style   "dots": line and points; "points": no line
    export  its name in exported tables, where `name` says too little without its graph
    unit    in exported tables, where it is not that of the graph
    """

    name: str
    series: Series
    ink: tuple[str, str]
    style: Literal["line", "dots", "points"] = "line"
    export: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """One graph.

    top         a fixed end of the axis, None for as high as the values are
    under_map   it is also drawn, smaller, under the cell map
    """

    unit: str
    curves: tuple[Curve, ...]
    top: float | None = None
    under_map: bool = False

    @property
    def title(self) -> str:
        return tr(" and ").join(tr(curve.name) for curve in self.curves)
