"""The operations of the last moment: cells that they wrote are shown as new, then fading. No Qt."""

from collections import deque
from typing import Final

FRESH_S: Final = 0.35
FADING_S: Final = 0.8


class Recency:
    """The operations of the last moment, in the order in which they were seen."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque([(0.0, 0)], maxlen=256)

    def note(self, at_s: float, operation: int) -> None:
        """The cache was seen after this operation."""
        self._seen.append((at_s, operation))

    def limits(self, now_s: float) -> tuple[int, int]:
        """Numbers of operations: cells written after the first are fading, after the second new."""
        seen = self._seen
        while len(seen) > 1 and seen[1][0] <= now_s - FADING_S:
            seen.popleft()
        fading = fresh = seen[0][1] if seen[0][0] <= now_s - FADING_S else 0
        for at_s, operation in seen:
            if at_s > now_s - FRESH_S:
                break
            fresh = operation
        return fading, fresh
