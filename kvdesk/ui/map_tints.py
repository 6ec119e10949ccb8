"""The colour table of the cell map: one entry for every index `raster` makes."""

from __future__ import annotations

from typing import Final

from kvdesk.ui import raster
from kvdesk.ui.palette import N_COLOURS, conversation_colour, mix
from kvdesk.ui.theme import Colours

_OPAQUE: Final = 0xFF000000


def tint_table(colours: Colours) -> list[int]:
    """256 ARGB values. Just-written cells stand out by lightness: brighter in the dark, deeper in the light."""
    table = [colours.panel] * 256
    table[raster.FREE], table[raster.FREE_IN_SPAN] = colours.cell_free, colours.cell_span
    glow = "#ffffff" if colours.dark else "#000000"
    tints = [colours.secondary, *(conversation_colour(i, colours.dark) for i in range(N_COLOURS))]
    for i, tint in enumerate(tints):
        base = (raster.UNKNOWN_SLOT + i) * raster.N_STATES
        table[base + raster.PLAIN] = tint
        table[base + raster.SHARED] = tint
        table[base + raster.FADING] = mix(tint, glow, 0.3)
        table[base + raster.FRESH] = mix(tint, glow, 0.65)
    return [_OPAQUE | int(colour[1:], 16) for colour in table]
