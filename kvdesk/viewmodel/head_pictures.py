"""A small picture of every head of every layer: how much attention its tokens gave to each cell. numpy, no Qt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kvdesk.values import dataclass
from kvdesk.viewmodel.attention import Heads, steps_of


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
