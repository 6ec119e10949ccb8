"""The colour tables of the cell map: an ARGB value for every code that `raster` makes, one table for each mode."""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import HOLDER_WORDS, N_MESSAGE_COLOURS, N_PAGE_OWNERS, N_STEPS, ColourBy
from kvdesk.ui.widgets.style.colours import Colours
from kvdesk.viewmodel.palette import (
    N_BRANCH_SHADES,
    N_COLOURS,
    TOOLS,
    branch_colour,
    conversation_colour,
    mix,
    ramp_colour,
)

_OPAQUE: Final = 0xFF000000
_TOOL_SHADES: Final = (0.0, 0.45, 0.15, 0.3)
"""Of the panel in the colours of `N_TOOL_COLOURS` servers: the first two differ most."""


def group_colours(mode: ColourBy, colours: Colours) -> list[str]:
    """Colour of each group of `colours.groups_of`, #rrggbb."""
    dark = colours.dark
    match mode:
        case ColourBy.MESSAGE:
            messages = [conversation_colour(i, dark) for i in range(N_MESSAGE_COLOURS)]
            tools = TOOLS[0] if dark else TOOLS[1]
            return [colours.secondary, *messages, *(mix(tools, colours.panel, share) for share in _TOOL_SHADES)]
        case ColourBy.CONVERSATION:
            return _owners(colours)
        case ColourBy.POSITION | ColourBy.AGE:
            return [ramp_colour(i / (N_STEPS - 1), dark) for i in range(N_STEPS)]
        case ColourBy.SEQUENCES:
            n = len(HOLDER_WORDS)
            return [ramp_colour(i / (n - 1), dark) for i in range(n)]
        case ColourBy.PAGE:
            pairs = [(hue, mix(hue, colours.panel, 0.4)) for hue in _owners(colours)[: N_PAGE_OWNERS + 1]]
            return [mix(colours.secondary, colours.panel, 0.5), *(shade for pair in pairs for shade in pair)]
        case ColourBy.ATTENTION:
            unseen = mix(colours.secondary, colours.panel, 0.6)
            left_out = mix(colours.danger, colours.panel, 0.65)
            return [unseen, *(ramp_colour(i / (N_STEPS - 1), dark) for i in range(N_STEPS)), left_out]


def _owners(colours: Colours) -> list[str]:
    """Of cells without a conversation, then of every branch by `palette.branch_index`."""
    n, panel, ink = N_COLOURS * N_BRANCH_SHADES, colours.panel, colours.text
    return [colours.secondary, *(branch_colour(i, panel, ink, colours.dark) for i in range(n))]


def shades(colour: str, colours: Colours) -> tuple[str, str, str, str]:
    """Plain, fading, just written, hidden. Told apart by lightness: brighter in the dark, deeper in the light."""
    glow, fading, fresh = ("#ffffff", 0.3, 0.65) if colours.dark else ("#000000", 0.2, 0.45)
    return colour, mix(colour, glow, fading), mix(colour, glow, fresh), mix(colour, colours.panel, 0.55)


@lru_cache(maxsize=16)
def colour_table(mode: ColourBy, colours: Colours) -> NDArray[np.uint32]:
    """256 ARGB values."""
    table = [colours.panel] * 256
    table[raster.FREE], table[raster.FREE_IN_SPAN] = colours.cell_free, colours.cell_span
    table[raster.EDGE], table[raster.HOLE] = colours.text, mix(colours.secondary, colours.cell_span, 0.5)
    for i, colour in enumerate(group_colours(mode, colours)):
        first = raster.FIRST_GROUP + i * raster.N_SHADES
        table[first : first + raster.N_SHADES] = shades(colour, colours)
    return np.array([_OPAQUE | int(colour[1:], 16) for colour in table], np.uint32)
