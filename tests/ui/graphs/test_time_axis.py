import pytest

from kvdesk.ui.graphs.time_axis import TimeAxis, clock_text


def test_it_follows_with_its_window() -> None:
    axis = TimeAxis(window_s=30.0)
    assert axis.range == (0.0, 10.0)
    axis.latest_s = 100.0
    assert axis.range == (70.0, 100.0)
    axis.follow(None)
    assert axis.range == (0.0, 100.0)


def test_zooming_keeps_what_is_under_the_pointer_and_stands() -> None:
    axis = TimeAxis(window_s=None, latest_s=100.0)
    axis.zoom(0.5, 25.0)
    assert not axis.following
    assert axis.range == pytest.approx((12.5, 62.5))
    axis.latest_s = 200.0
    assert axis.range == pytest.approx((12.5, 62.5))
    axis.resume()
    assert axis.range == (0.0, 200.0)


def test_it_does_not_leave_what_there_is() -> None:
    axis = TimeAxis(window_s=None, latest_s=100.0)
    axis.pan(-50.0)
    assert axis.range[0] >= -20.0
    axis.pan(500.0)
    assert axis.range[0] < 100.0
    for _ in range(50):
        axis.zoom(0.5)
    begin, end = axis.range
    assert end - begin == pytest.approx(1.0)


def test_ticks_fit_and_are_even() -> None:
    axis = TimeAxis(window_s=None, latest_s=100.0)
    assert [text for _, text in axis.ticks(6)] == ["0 s", "30 s", "60 s", "90 s"]
    axis.latest_s = 7000.0
    found = axis.ticks(5)
    assert 2 <= len(found) <= 5
    assert found[1] == (1800, "30:00")
    assert axis.ticks(0)  # no room: no error


@pytest.mark.parametrize(
    ("second", "step", "text"), [(12.34, 0.1, "12.3 s"), (90, 1, "90 s"), (150, 1, "2:30"), (3725, 1, "1:02:05")]
)
def test_times_in_words(second: float, step: float, text: str) -> None:
    assert clock_text(second, step) == text
