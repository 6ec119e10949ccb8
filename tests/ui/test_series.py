from __future__ import annotations

import numpy as np
import pytest

from kvdesk.ui.series import Rate, Series, round_up, with_gaps


def test_a_series_is_bounded_and_keeps_the_newest() -> None:
    series = Series(limit=100)
    for i in range(1000):
        series.append(float(i), float(i))
    assert len(series) <= 100
    assert series.last == 999.0
    assert series.times[-1] == 999.0
    assert (np.diff(series.times) == 1).all()


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


def test_no_line_is_drawn_where_nothing_was_measured() -> None:
    times, values = with_gaps(np.array([0.0, 1.0, 9.0]), np.array([1.0, 2.0, 3.0]), 2.0)
    assert times.tolist() == [0.0, 1.0, 9.0, 9.0]
    assert np.isnan(values[2])


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
