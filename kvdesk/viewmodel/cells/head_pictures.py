"""A small picture of every head of every layer: how much attention its tokens gave to each cell. numpy, no Qt."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kvdesk.protocol.attention import Attended
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass
from kvdesk.viewmodel.cells.attention import percent, steps_of, token_words


class Heads:
    """The weights of every head, for the small pictures, and what is said of each."""

    def __init__(self, attended: Attended, texts: Mapping[int, str]) -> None:
        self._attended, self._texts = attended, texts
        self.parts = attended.layers
        self.layers = tuple(layer.layer for layer in attended.layers)
        self.n_heads = max((layer.n_heads for layer in attended.layers), default=0)
        self.n_tokens = 1 if attended.queries.each else len(attended.pos)
        """That a row of them stands for."""

    def words(self, row: int, head: int) -> str:
        """Of one head: what it looked at most."""
        part = self.parts[row]
        where = tr("Layer {layer}, head {head}").format(layer=part.layer, head=head)
        if head >= part.n_heads:
            said = plural("{where}: this layer has 1 head", "{where}: this layer has %n heads", part.n_heads)
            return said.format(where=where)
        got = part.weights[head].sum(axis=0)
        if not got.size or not got.any():
            return tr("{where}: none of the cells").format(where=where)
        column = int(got.argmax())
        columns = self._attended.columns
        return tr("{where}: most on {word}, position {pos} ({percent})").format(
            where=where,
            word=token_words(int(columns.token[column]), self._texts),
            pos=f"{int(columns.pos[column]):,}",
            percent=percent(float(got[column]) / len(self._attended.pos)),
        )


@dataclass(frozen=True, slots=True)
class Tiles:
    """Where the pictures are: `columns` by `rows` of them, each `width` by `height` pixels with `gap` behind it."""

    columns: int
    rows: int
    width: int
    height: int
    gap: int = 1

    @property
    def size(self) -> tuple[int, int]:
        """Pixels of all of it."""
        return self.columns * (self.width + self.gap), self.rows * (self.height + self.gap)

    def at(self, x: int, y: int) -> tuple[int, int] | None:
        """Row and column of the picture at a pixel; None outside."""
        column, row = x // (self.width + self.gap), y // (self.height + self.gap)
        return (row, column) if 0 <= column < self.columns and 0 <= row < self.rows else None

    def box(self, row: int, column: int) -> tuple[int, int, int, int]:
        """Left, top, width and height of a picture."""
        return column * (self.width + self.gap), row * (self.height + self.gap), self.width, self.height


def picture(heads: Heads, tiles: Tiles, n_steps: int) -> NDArray[np.uint8]:
    """Steps of every pixel, `n_steps` between the pictures and where a layer has fewer heads than others.

    In a picture tokens go down, cells from left to right. A pixel that several of them share shows the largest weight.
    """
    out = np.full((tiles.rows, tiles.height + tiles.gap, tiles.columns, tiles.width + tiles.gap), n_steps, np.uint8)
    for row, layer in enumerate(heads.parts):
        pooled = _pooled(_pooled(layer.weights, tiles.width, axis=2), tiles.height, axis=1)
        steps = steps_of(pooled / np.float32(heads.n_tokens), 1.0, n_steps)
        out[row, : tiles.height, : layer.n_heads, : tiles.width] = steps.transpose(1, 0, 2)
    return out.reshape(tiles.rows * (tiles.height + tiles.gap), tiles.columns * (tiles.width + tiles.gap))


def _pooled(weights: NDArray[np.float32], n: int, axis: int) -> NDArray[np.float32]:
    """`n` values along an axis: each the largest of its share, or of fewer, one of them again."""
    length = weights.shape[axis]
    at = np.arange(n) * length // n
    pooled: NDArray[np.float32]
    pooled = weights.take(at, axis) if length <= n else np.maximum.reduceat(weights, at, axis)
    return pooled
