"""What tokens look at: the attention weights of each layer and head over cells, and what is read off them. Pure."""

from collections.abc import Collection, Iterable
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from kvdesk.values import dataclass

Weights = NDArray[np.float32]
"""Weights of one head, or of several combined: shape (rows, columns)."""
How = Literal["mean", "max"]

SINK: Final = 0.3
"""A column is a sink of a head that gives it more than this share of its weight on average: the threshold of Gu et al.,
"When Attention Sink Emerges in Language Models" (arXiv 2410.10781, section 3.2).
"""
SINK_HEADS: Final = 0.1
"""Share of the chosen heads for which a column must be a sink to be marked as one."""


@dataclass(frozen=True, slots=True, eq=False)
class AttentionColumns:
    """The cells that tokens could look at, in the order of their positions; arrays have one entry for each.

    pos       int32, position
    token     int32, the id of the token, -1 if unknown
    cells     for each attention cache, in the order of `CacheSnapshot.maps`: int32, the cell of the live cache that the
              column is, -1 if that cache no longer has it (a window)
    stream    the stream of all cells
    """

    pos: NDArray[np.int32]
    token: NDArray[np.int32]
    cells: tuple[NDArray[np.int32], ...]
    stream: int


@dataclass(frozen=True, slots=True, eq=False)
class LayerAttention:
    """One layer with attention.

    layer      its number in the model
    cache      which of `AttentionColumns.cells` its K lies in
    weights    float32, shape (heads, rows, columns)
    elsewhere  float32, shape (heads, rows): weight outside the columns: of a learned sink, of compressed keys, or of
               cells before the first column. With the weights it adds up to the number of tokens of a row, usually 1
    chosen     float32, shape (rows, columns): to how many tokens of a row an indexer left the column; None without one
    """

    layer: int
    cache: int
    weights: NDArray[np.float32]
    elsewhere: NDArray[np.float32]
    chosen: NDArray[np.float32] | None = None

    @property
    def n_heads(self) -> int:
        return len(self.weights)


def combined(
    layers: Iterable[LayerAttention], how: How = "mean", *, only: Collection[int] = (), heads: Collection[int] = ()
) -> Weights:
    """The mean or the maximum over layers and heads, shape (rows, columns). `only`: these layers, by number; `heads`:
    these heads of each; () for all. Raises ValueError if no layer has such a head.
    """
    chosen = list(_chosen(layers, only, heads))
    if not chosen:
        raise ValueError("no such layer or head")
    if how == "max":
        return np.asarray(np.maximum.reduce([part.max(axis=0) for part in chosen]), np.float32)
    total = np.add.reduce([part.sum(axis=0, dtype=np.float64) for part in chosen])
    return np.asarray(total / sum(map(len, chosen)), np.float32)


def received(weights: Weights) -> NDArray[np.float32]:
    """What each column gets from all rows together; the heavy hitters of a text get most. Shape (columns,)."""
    return np.asarray(weights.sum(axis=0, dtype=np.float64), np.float32)


def chosen(
    layers: Iterable[LayerAttention], n_tokens: int, *, only: Collection[int] = ()
) -> NDArray[np.float32] | None:
    """To what share of tokens and layers an indexer left each column, shape (columns,); None if these layers have none.
    `n_tokens` and `only` as in `sinks`.
    """
    found = [one.chosen for one in layers if one.chosen is not None and (not only or one.layer in only)]
    return np.asarray(sum(part.sum(axis=0) for part in found) / (n_tokens * len(found)), np.float32) if found else None


def sinks(
    layers: Iterable[LayerAttention], n_tokens: int, *, only: Collection[int] = (), heads: Collection[int] = ()
) -> NDArray[np.bool_]:
    """Columns that many heads look at whatever the text says (`SINK`, `SINK_HEADS`), shape (columns,). `n_tokens`:
    number of tokens that all rows represent; `only` and `heads` as in `combined`.
    """
    chosen = list(_chosen(layers, only, heads))
    if not chosen:
        raise ValueError("no such layer or head")
    n_heads = sum(map(len, chosen))
    n_sinks = np.add.reduce([(part.sum(axis=1) / n_tokens > SINK).sum(axis=0) for part in chosen])
    return np.asarray(n_sinks >= max(1.0, SINK_HEADS * n_heads), np.bool_)


def top(shares: NDArray[np.float32], n: int) -> list[int]:
    """The `n` columns with the most weight, in descending order, earlier ones first among equals; columns without
    weight are left out. `shares` has the shape (columns,).
    """
    order = np.argsort(-shares, kind="stable")[:n]
    return [int(i) for i in order if shares[i] > 0]


def _chosen(
    layers: Iterable[LayerAttention], only: Collection[int], heads: Collection[int]
) -> Iterable[NDArray[np.float32]]:
    for layer in layers:
        if only and layer.layer not in only:
            continue
        wanted = [head for head in sorted(heads) if 0 <= head < layer.n_heads] if heads else slice(None)
        part = layer.weights[wanted]
        if len(part):
            yield part
