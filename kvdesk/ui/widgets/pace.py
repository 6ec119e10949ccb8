"""The interval between two runs of work that takes time from the threads that decode. No widgets and no clock."""


class Pace:
    """Work of c ms is followed by c / `share` ms without it, so that it takes at most `share` of one core.

    Never more often than every `fastest_ms`, and always every `slowest_ms`. Where the machine is busy it takes longer,
    and the rate falls automatically: on two cores every millisecond of drawing is one that two decoding threads lose.
    """

    def __init__(self, share: float, fastest_ms: int, slowest_ms: int) -> None:
        self._share = share
        self._fastest_ms, self._slowest_ms = fastest_ms, slowest_ms
        self._cost = 0.0
        self.rest_ms = fastest_ms
        """Time until the next, in milliseconds."""

    def spent(self, ms: float) -> None:
        """It has taken `ms` this time; the last few count."""
        self._cost = ms if not self._cost else 0.7 * self._cost + 0.3 * ms
        self.rest_ms = round(min(max(self._cost / self._share, self._fastest_ms), self._slowest_ms))
