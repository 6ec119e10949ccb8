import pytest

from kvdesk.ui.map.frame_clock import FASTEST_MS, SLOWEST_MS, FrameClock


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


@pytest.mark.parametrize(("frame_ms", "rest_ms"), [(0.5, FASTEST_MS), (2.6, 65), (8.0, 200), (100.0, SLOWEST_MS)])
def test_the_rate_gives_way_to_decoding(frame_ms: float, rest_ms: int) -> None:
    clock = FrameClock(Watch())
    for _ in range(30):
        clock.refreshed(frame_ms / 2)
        clock.painted(frame_ms / 2)
    assert clock.interval_ms == rest_ms


def test_drawings_without_new_codes_do_not_count_as_refreshes() -> None:
    clock = FrameClock(Watch())
    clock.refreshed(2.0)
    clock.painted(1.0)
    for _ in range(10):
        clock.painted(40.0)
    assert clock.interval_ms == 75
    assert clock.last_ms == 40.0


def test_refreshes_are_counted_over_two_seconds() -> None:
    watch = Watch()
    clock = FrameClock(watch)
    for _ in range(60):
        watch.s += 0.125
        clock.refreshed(1.0)
    assert clock.refreshes_per_s == 8.0


def test_p99_is_the_nearest_rank_of_the_last_frames() -> None:
    clock = FrameClock(Watch())
    assert clock.p99_ms == 0.0
    for ms in range(1, 201):
        clock.painted(float(ms))
    assert clock.p99_ms == 199.0
