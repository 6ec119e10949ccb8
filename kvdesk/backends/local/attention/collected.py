"""Collects the weights of a plan decode by decode, and maps the second context's cells to columns."""

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.attention.plan import AttentionPlan, Run
from kvdesk.backends.local.llama.attention.reader import HeadWeights
from kvdesk.backends.local.llama.attention.second_context import SecondContext
from kvdesk.cache.attention_weights import LayerAttention
from kvdesk.library.hyper import Hyper


def columns_of(
    second: SecondContext, plan: AttentionPlan, copied: list[NDArray[np.int64]], p0: int
) -> list[NDArray[np.int64]]:
    """The column of each cell of the second context after a decode, by cache; -1: none. `copied`: columns of the cells
    in front of position `p0`, [] if they were read again.
    """
    found = []
    for cache, pos in enumerate(second.positions()):
        columns = plan.column_at(pos)
        if copied:
            n = len(copied[cache])
            columns[:n] = np.where((pos[:n] >= 0) & (pos[:n] < p0), copied[cache], columns[:n])
        columns[pos < 0] = -1
        found.append(columns)
    return found


class Collected:
    """The weights for a plan's rows and columns, filled decode by decode."""

    def __init__(self, plan: AttentionPlan, hyper: Hyper) -> None:
        self._plan = plan
        self._windows = [layer.has_window for layer in hyper.layers]
        self._layers: dict[int, LayerAttention] = {}
        self._n_done = 0

    def add(self, found: dict[int, HeadWeights], part: Run, columns: list[NDArray[np.int64]]) -> None:
        """Add the weights of the tokens `part`. `columns`: by cache, the column of each cell of the context."""
        each, n = self._plan.queries.each, len(part.tokens)
        rows = slice(self._n_done, self._n_done + n) if each else slice(0, 1)
        for layer, (weights, sink, chosen) in sorted(found.items()):
            known = self._of(layer, len(weights), indexed=chosen is not None)
            column = columns[known.cache][: weights.shape[-1]]
            weights = weights[..., : len(column)]  # the cells behind are empty
            shown = column >= 0
            known.weights[:, rows, column[shown]] += weights[..., shown]
            known.elsewhere[:, rows] += sink + weights[..., ~shown].sum(axis=-1)
            if known.chosen is not None and chosen is not None:
                known.chosen[rows, column[shown]] += chosen[:, : len(column)][:, shown]
        self._n_done += n

    def layers(self) -> tuple[LayerAttention, ...]:
        """Everything that was added, by layer."""
        return tuple(self._layers[layer] for layer in sorted(self._layers))

    def _of(self, layer: int, n_heads: int, *, indexed: bool) -> LayerAttention:
        """The first cache has the K of most layers, the last one that of layers with a window."""
        if layer not in self._layers:
            plan = self._plan
            window = layer < len(self._windows) and self._windows[layer]
            shape = n_heads, plan.n_rows, len(plan.columns.pos)
            self._layers[layer] = LayerAttention(
                layer,
                len(plan.columns.cells) - 1 if window else 0,
                np.zeros(shape, np.float32),
                np.zeros(shape[:2], np.float32),
                np.zeros(shape[1:], np.float32) if indexed else None,
            )
        return self._layers[layer]
