"""Where a logarithmic axis has its numbers. No Qt: the window and the report draw the same."""

import math
from typing import Final

LEAST: Final = 3
"""Numbers on an axis, at least."""
MOST: Final = 8
_STEPS: Final = ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0))


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two that are above 0: powers of ten, and parts of them where these are few. Where the
    range is narrow, steps of equal width.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in _STEPS:
        found = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
        if len(found) >= LEAST:
            break
    if len(found) < LEAST and high > low:
        raw = (high - low) / LEAST
        power = 10.0 ** math.floor(math.log10(raw))
        width = power * max(m for m in (1, 2, 5) if m * power <= raw)
        found = [i * width for i in range(math.ceil(low / width - 1e-9), math.floor(high / width + 1e-9) + 1)]
    every = math.ceil(len(found) / MOST)
    return found[::every] if every else found
