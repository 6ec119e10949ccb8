"""The colours of data: one colour per conversation, everywhere. Chrome has its own colours in `theme`.

The hues are those of Okabe and Ito, with lightness chosen per theme so that neighbours differ in grey too and every one
stands out from the background of its theme. Knows no widgets.
"""

from functools import lru_cache
from math import log
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
LIGHT_CONVERSATIONS: Final = ("#2f8fca", "#d98b00", "#00795a", "#b09a00", "#b45f92", "#c24a0c", "#0a4f86", "#6b717c")
N_COLOURS: Final = len(DARK_CONVERSATIONS)
N_BRANCH_SHADES: Final = 6  # of a conversation's colour: its first branch has the colour itself
_STEP: Final = 1.37  # contrast of neighbouring shades
# Luminance + 0.05 of the darkest shade in each theme: more than that of free cells, and not black.
_LEAST: Final = 0.11
_LEAST_LIGHT: Final = 0.085

# Scales of one quantity, low to high: after viridis, lightness rising (falling in the light theme) all the way.
DARK_RAMP: Final = ("#46559b", "#2b8c97", "#4cb67e", "#a5d65a", "#fde74c")
LIGHT_RAMP: Final = ("#b3cf6a", "#4fae86", "#2b8592", "#3b568f", "#40175c")

TOOLS: Final = ("#9a6bff", "#5a22c0")
"""(dark, light): of the schemas of tools; a hue that no conversation has."""

# Curves of graphs, (dark, light): no conversation's, so that light ones can be darker than a cell would be.
ORANGE, BLUE, GREEN = ("#e69f00", "#b06f00"), ("#56b4e9", "#1f77b0"), ("#00b488", "#00795a")
SILVER = ("#b9bec8", "#6b717c")


def conversation_colour(index: int, dark: bool) -> str:
    """Colour `index` (any number: they repeat) as #rrggbb."""
    colours = DARK_CONVERSATIONS if dark else LIGHT_CONVERSATIONS
    return colours[index % N_COLOURS]


def branch_index(colour: int, branch: int) -> int:
    """The index for `branch_colour` of a branch (from 1 on) of a conversation of this colour; below N_COLOURS for the
    first, `N_COLOURS * N_BRANCH_SHADES` such numbers in all. A conversation takes the lowest free number for a new
    branch, so that six of them never look alike.
    """
    return colour % N_COLOURS + N_COLOURS * (max(branch - 1, 0) % N_BRANCH_SHADES)


def request_index(seq_id: int) -> int:
    """The index for `branch_colour` of a request of another program: it has no conversation, so that of its sequence,
    from the other end of the colours than those of chats. Never silver: grey are cells of nobody.
    """
    return N_COLOURS - 2 - seq_id % (N_COLOURS - 1)


@lru_cache(maxsize=256)
def branch_colour(index: int, ground: str, ink: str, dark: bool) -> str:
    """The colour of a branch as #rrggbb: the conversation's own, or that with `ground` or `ink` in it, so that branches
    differ by lightness alone and are distinguished in grey. Each next branch is as far from those before as can be.
    """
    colour = conversation_colour(index, dark)
    shade = index // N_COLOURS % N_BRANCH_SHADES
    if not shade:
        return colour
    darker, lighter = (ground, ink) if dark else (ink, ground)
    own = _luminance(colour) + 0.05
    least = _LEAST if dark else _LEAST_LIGHT
    below = min(int(log(own / least, _STEP)), N_BRANCH_SHADES - 1)
    steps = [0, *(step for step in range(-below, N_BRANCH_SHADES - below) if step)]
    for at in range(1, len(steps)):  # the farthest of the rest comes next
        farthest = max(range(at, len(steps)), key=lambda n: min(abs(steps[n] - known) for known in steps[:at]))
        steps[at], steps[farthest] = steps[farthest], steps[at]
    step = steps[shade]
    return _with_luminance(colour, lighter if step > 0 else darker, own * _STEP**step)


def _with_luminance(colour: str, other: str, wanted: float) -> str:
    """As much of the other colour in the first as gives it this luminance + 0.05."""
    low, high = 0.0, 1.0
    rises = _luminance(other) > _luminance(colour)
    for _ in range(10):
        share = (low + high) / 2
        is_above = _luminance(mix(colour, other, share)) + 0.05 > wanted
        low, high = (low, share) if is_above == rises else (share, high)
    return mix(colour, other, high)


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
