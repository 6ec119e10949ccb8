import math

import numpy as np
import pytest

from kvdesk.viewmodel.graphs.percentiles import ROLLING, Gaps, of_values, rank


@pytest.mark.parametrize(
    ("n", "p", "expected"), [(1, 50, 1), (2, 50, 1), (3, 50, 2), (100, 99, 99), (101, 99, 100), (20, 95, 19)]
)
def test_nearest_rank(n: int, p: int, expected: int) -> None:
    assert rank(n, p) == expected


def test_percentiles_are_values_that_occurred() -> None:
    assert of_values([5.0, 1.0, 9.0]) == (5.0, 9.0, 9.0)


def test_the_session_is_counted_in_bins_and_the_window_exactly() -> None:
    values = np.random.default_rng(7).lognormal(3.0, 0.7, 5_000)
    gaps = Gaps()
    assert gaps.session() is None
    assert gaps.rolling() is None
    for value in values:
        gaps.add(float(value))
    session, rolling = gaps.session(), gaps.rolling()
    assert session is not None
    assert rolling is not None
    assert list(session) == pytest.approx(np.percentile(values, (50, 95, 99), method="inverted_cdf"), rel=1e-3)
    assert list(rolling) == np.percentile(values[-ROLLING:], (50, 95, 99), method="inverted_cdf").tolist()


def test_gaps_out_of_every_range_are_counted() -> None:
    gaps = Gaps()
    for ms in (0.0, -1.0, 1e12):
        gaps.add(ms)
    assert math.isfinite(gaps.session().p99)
