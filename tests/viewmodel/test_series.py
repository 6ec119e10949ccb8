import numpy as np
import pytest

from kvdesk.viewmodel.graphs.series import Rate, Series, round_up, visible


def test_a_series_is_bounded_keeps_the_session_and_all_that_is_new() -> None:
    series = Series(limit=100)
    for i in range(1000):
        series.append(float(i), float(i))
    assert 50 <= len(series) <= 100
    assert series.last == 999.0
    assert series.times[0] < 100, "the session's beginning is still there, thinned"
    assert (np.diff(series.times[-50:]) == 1).all(), "the newest are complete"
    assert (series.times == series.values).all(), "every point is one that was measured"


def test_time_does_not_run_backwards() -> None:
    series = Series()
    series.append(5.0, 1.0)
    series.append(4.0, 2.0)
    assert series.times.tolist() == [5.0, 5.0]


def test_the_value_at_a_time_is_the_last_one_before() -> None:
    series = Series()
    series.append(1.0, 10.0)
    series.append(2.0, 20.0)
    assert series.at(0.5) is None
    assert series.at(1.5) == 10.0
    assert series.at(9.0) == 20.0


def test_no_line_is_drawn_to_what_belongs_to_something_else() -> None:
    series = Series()
    series.append(0.0, 1.0)
    series.lift()
    series.lift()
    series.append(9.0, 3.0)
    assert series.times.tolist() == [0.0, 9.0, 9.0]
    assert np.isnan(series.values[1])
    assert (series.last, series.at(9.0), series.at(8.0)) == (3.0, 3.0, 1.0)


def test_what_holds_is_a_step() -> None:
    series = Series()
    for at_s, value in ((1.0, 10.0), (2.0, 10.0), (3.0, 20.0), (4.0, 20.0)):
        series.hold(at_s, value)
    times, values = visible(series, 0.0, 10.0, 100)
    assert times.tolist() == [1.0, 3.0, 3.0, 4.0], "drawn until it was known last, not further"
    assert values.tolist() == [10.0, 10.0, 20.0, 20.0]


def test_many_points_are_drawn_as_lows_and_highs_with_their_gaps() -> None:
    series = Series()
    for i in range(10_000):
        if i == 5_000:
            series.lift()
        series.append(i / 100, 1000.0 if i == 1234 else float(i % 7))
    times, values = visible(series, 0.0, 100.0, 50)
    assert times.size == 150
    assert np.nanmax(values) == 1000.0, "a peak of one point is seen"
    assert np.isnan(values).sum() == 1
    assert (np.diff(times) >= 0).all()


def test_only_what_is_in_sight_is_drawn_and_one_point_beside_it() -> None:
    series = Series()
    for i in range(100):
        series.append(float(i), float(i))
    assert visible(series, 10.5, 12.5, 100)[0].tolist() == [10.0, 11.0, 12.0, 13.0]
    assert visible(Series(), 0.0, 1.0, 100)[0].size == 0


def test_a_rate_is_tokens_over_time_not_a_mean_of_rates() -> None:
    rate = Rate(span_s=0.25)
    rate.add(0.0, 1, 10.0)  # the first is shown at once
    rate.add(0.1, 10, 100.0)
    rate.add(0.3, 1, 200.0)
    assert rate.series.values.tolist() == [pytest.approx(100.0), pytest.approx(11 / 300 * 1000)]


def test_a_new_turn_does_not_mix_with_the_one_before() -> None:
    rate = Rate(span_s=0.25)
    rate.add(0.0, 1, 10.0)
    rate.add(0.1, 5, 50.0)
    rate.add(60.0, 1, 250.0)
    assert rate.series.values.tolist() == [pytest.approx(100.0), pytest.approx(100.0), pytest.approx(4.0)]


@pytest.mark.parametrize(("value", "end"), [(0.5, 2), (9, 10), (11, 12), (13, 20), (118, 120), (651, 800), (897, 1000)])
def test_axes_end_at_even_numbers(value: float, end: float) -> None:
    assert round_up(value) == end
