"""The colours of data: one colour per conversation, everywhere. Chrome has its own colours in `theme`.

The hues are those of Okabe and Ito, with lightness chosen per theme so that neighbours differ in grey too and every one
stands out from the background of its theme. Knows no widgets.
"""

from __future__ import annotations

from typing import Final

DARK_CONVERSATIONS: Final = (
    "#56b4e9",  # sky blue
    "#e69f00",  # orange
    "#00b488",  # bluish green
    "#f0e442",  # yellow
    "#d98cbc",  # reddish purple
    "#e8693a",  # vermillion
    "#4a86d8",  # blue
    "#b9bec8",  # silver
)
LIGHT_CONVERSATIONS: Final = (
    "#2f8fca",
    "#d98b00",
    "#00795a",
    "#b09a00",
    "#b45f92",
    "#c24a0c",
    "#0a4f86",
    "#6b717c",
)
N_COLOURS: Final = len(DARK_CONVERSATIONS)
N_BRANCH_SHADES: Final = 3  # of a conversation's colour: its first branch has the colour itself

# Scales of one quantity, low to high: after viridis, lightness rising (falling in the light theme) all the way.
DARK_RAMP: Final = ("#46559b", "#2b8c97", "#4cb67e", "#a5d65a", "#fde74c")
LIGHT_RAMP: Final = ("#b3cf6a", "#4fae86", "#2b8592", "#3b568f", "#40175c")

# Curves of graphs, (dark, light): no conversation's, so that light ones can be darker than a cell would be.
ORANGE, BLUE, GREEN = ("#e69f00", "#b06f00"), ("#56b4e9", "#1f77b0"), ("#00b488", "#00795a")
SILVER = ("#b9bec8", "#6b717c")


def conversation_colour(index: int, dark: bool) -> str:
    """Colour `index` (any number: they repeat) as #rrggbb."""
    colours = DARK_CONVERSATIONS if dark else LIGHT_CONVERSATIONS
    return colours[index % N_COLOURS]


def branch_index(colour: int, branch: int) -> int:
    """The index for `branch_colour` of a branch (from 1 on) of a conversation of this colour; below N_COLOURS for the
    first, `N_COLOURS * N_BRANCH_SHADES` such numbers in all. The third and later ones take turns."""
    shade = 0 if branch <= 1 else 1 + branch % (N_BRANCH_SHADES - 1)
    return colour % N_COLOURS + N_COLOURS * shade


def request_index(seq_id: int) -> int:
    """The index for `branch_colour` of a request of another program: it has no conversation, so that of its sequence,
    from the other end of the colours than those of chats.
    """
    return N_COLOURS - 1 - seq_id % N_COLOURS


def branch_colour(index: int, ground: str, ink: str, dark: bool) -> str:
    """The colour of a branch as #rrggbb: the conversation's own, or that with `ground` or `ink` in it, so that branches
    differ by lightness alone and are told apart in grey."""
    colour = conversation_colour(index, dark)
    match index // N_COLOURS % N_BRANCH_SHADES:
        case 0:
            return colour
        case 1:
            return mix(colour, ground, 0.38)
        case _:
            return mix(colour, ground, 0.62) if dark else mix(colour, ink, 0.45)


def ramp_colour(share: float, dark: bool) -> str:
    """Colour at `share` (0.0 to 1.0) of a continuous scale as #rrggbb."""
    stops = DARK_RAMP if dark else LIGHT_RAMP
    at = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    i = min(int(at), len(stops) - 2)
    return mix(stops[i], stops[i + 1], at - i)


def mix(first: str, second: str, share: float) -> str:
    """`share` of the second colour in the first, both #rrggbb."""
    a, b = _channels(first), _channels(second)
    return "#" + "".join(f"{round(x + (y - x) * share):02x}" for x, y in zip(a, b, strict=True))


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours as WCAG defines it, 1.0 to 21.0."""
    one, two = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (one + 0.05) / (two + 0.05)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
