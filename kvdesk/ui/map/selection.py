"""The cell under the cursor and the selected cells. No Qt: the map draws them and calls this for mouse and keys."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.ui.map.layout import Strip
from kvdesk.ui.map.pixels import edges_of
from kvdesk.viewmodel.cells.links import CellRun

Place = tuple[int, int]  # cache and stream


class MapSelection:
    """A cursor (strip and cell) and the selection: one range by mouse or keys, any cells when set from outside."""

    def __init__(self) -> None:
        self.at: tuple[int, int] | None = None
        self.runs: tuple[CellRun, ...] = ()
        self._anchor: tuple[int, int] | None = None

    @property
    def n_cells(self) -> int:
        return sum(len(run.cells) for run in self.runs)

    @property
    def by_hand(self) -> tuple[Place, int, int] | None:
        """The range that was clicked, dragged or shifted over: cache and stream, first cell, last cell + 1."""
        if self._anchor is None or len(self.runs) != 1:
            return None
        run = self.runs[0]
        return (run.cache, run.stream), int(run.cells[0]), int(run.cells[-1]) + 1

    def clear(self) -> None:
        self.runs, self._anchor = (), None

    def begin(self, strip_number: int, strip: Strip, cell: int) -> None:
        """A new range of one cell; the only selected cell is deselected."""
        if self.n_cells == 1 and self._anchor == (strip_number, cell):
            self.clear()
            return
        self._anchor = strip_number, cell
        self._select(strip, cell, cell)

    def extend(self, strip_number: int, strip: Strip, cell: int) -> None:
        """The range goes from where it began to `cell`; it does not leave its strip."""
        if self._anchor is None or self._anchor[0] != strip_number:
            self.begin(strip_number, strip, cell)
        else:
            self._select(strip, self._anchor[1], cell)

    def set_runs(self, runs: Sequence[CellRun]) -> None:
        """Cells selected from outside."""
        self.runs = tuple(run for run in runs if len(run.cells))
        self._anchor = None

    def _select(self, strip: Strip, one: int, other: int) -> None:
        cells = np.arange(min(one, other), max(one, other) + 1, dtype=np.int64)
        self.runs = (CellRun(strip.map_index, strip.stream_index, cells),)


def mask_of(runs: Sequence[CellRun], strip: Strip) -> NDArray[np.bool_] | None:
    """The cells of a strip that are in the runs; None if no cell is."""
    mask = None
    for run in runs:
        if (run.cache, run.stream) == (strip.map_index, strip.stream_index):
            mask = np.zeros(strip.n_cells, np.bool_) if mask is None else mask
            mask[run.cells[run.cells < strip.n_cells]] = True
    return mask


def outlines(
    strips: Sequence[Strip], lit_runs: Sequence[CellRun], selected: Sequence[CellRun]
) -> tuple[dict[int, NDArray[np.uint8]], dict[int, NDArray[np.bool_]]]:
    """By strip: where the outlines of lit and selected cells run (`pixels.edges_of`), and the lit cells."""
    edges: dict[int, NDArray[np.uint8]] = {}
    lit: dict[int, NDArray[np.bool_]] = {}
    for i, strip in enumerate(strips):
        if (mask := mask_of(lit_runs, strip)) is not None:
            lit[i], edges[i] = mask, edges_of(mask, strip.columns)
        if (mask := mask_of(selected, strip)) is not None:
            own = edges_of(mask, strip.columns)
            edges[i] = edges[i] | own if i in edges else own
    return edges, lit


def stepped(strips: Sequence[Strip], at: tuple[int, int], columns: int, rows: int) -> tuple[int, int]:
    """The cursor moved; at the end of a strip it goes on in the next."""
    number, cell = at
    cell += columns + rows * strips[number].columns
    if cell >= strips[number].n_cells and number + 1 < len(strips):
        return number + 1, 0
    if cell < 0 and number > 0:
        return number - 1, strips[number - 1].n_cells - 1
    return number, min(max(cell, 0), strips[number].n_cells - 1)
