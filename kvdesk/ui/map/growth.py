"""The commonest change of a cache: tokens were appended, and nothing else has happened. Its codes are then those of the
frame before, but for the end. numpy only.

On two cores every millisecond of drawing is one that decoding loses, and between two tokens a call of numpy costs as
much as 1,000 cells do: this needs a third of the calls.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.ui.map.raster import FADING, FIRST_GROUP, FRESH, N_SHADES, Layer

_PASSING: Final = FADING | FRESH  # marks that cells lose by themselves
_MARKS: Final = np.array([0, FADING, FADING | FRESH], np.uint8)  # of cells that are plain, fading, just written

Limits = tuple[int, int]
"""Operations after which a written cell is fading, and just written."""


def grown(
    before: StreamMap, layer: Layer, after: StreamMap, cache: CacheMap, limits: Limits
) -> tuple[Layer, Layer, int] | None:
    """The layer of `after`, that of `before`, and the first cell whose code may differ between them.

    Of a map that is coloured by conversation. None where anything but appending happened, or was shown before: all
    cells that were there must hold the same, and all new ones what the last of them holds. It is compared, not trusted.
    `limits`: those of `after`, never lower than before.
    """
    old, new, end = before.high_water, after.high_water, layer.code.size
    if not 0 < old <= new <= end or after.size != end + layer.n_free or cache.name == "window":
        return None
    if before.shifted is not None or after.shifted is not None:
        return None
    code, marks = int(layer.code[old - 1]), int(layer.marks[old - 1])
    if code < FIRST_GROUP or marks & ~_PASSING:
        return None
    held, written_at_op = after.seq_bits, after.written_at_op
    first = min(layer.first_passing, old - 1)
    if not (
        before.seq_bits.shape[1] == held.shape[1]
        and (before.seq_bits[:old] == held[:old]).all()
        and (before.written_at_op[:old] == written_at_op[:old]).all()
        and (held[first:new] == held[new - 1]).all()
    ):
        return None
    written = written_at_op[first:new]
    shades = (written > limits[0]).view(np.uint8)  # PLAIN, FADING_SHADE, FRESH_SHADE
    shades += written > limits[1]
    codes = shades + np.uint8(code - (code - FIRST_GROUP) % N_SHADES)
    every, all_marks = layer.code.copy(), layer.marks.copy()
    every[first:new], all_marks[first:new] = codes, _MARKS[shades]
    second = None
    if layer.second is not None:
        second = layer.second.copy()
        second[first:new] = codes
    passing = first + int((shades > 0).argmax())  # or earlier, where none is any more
    return Layer(every, second, all_marks, layer.n_free, passing), layer, first
