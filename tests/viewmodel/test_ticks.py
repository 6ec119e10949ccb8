"""Numbers on a logarithmic axis: round ones, and always some of them."""

import math

import pytest

from kvdesk.viewmodel.graphs.ticks import LEAST, MOST, log_ticks


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (1, 1000, [1, 10, 100, 1000]),
        (64, 512, [100, 200, 500]),
        (8, 90, [10, 20, 50]),
        (190, 230, [190, 200, 210, 220, 230]),
        (5, 5, [5]),
    ],
)
def test_they_are_round_and_several(low: float, high: float, found: list[float]) -> None:
    assert log_ticks(low, high) == pytest.approx(found)


@pytest.mark.parametrize("span", [1.01, 1.3, 2.0, 7.0, 90.0, 1e4, 1e9])
def test_there_are_neither_too_few_nor_too_many(span: float) -> None:
    for exponent in range(-6, 7):
        low = 1.37 * 10.0**exponent
        found = log_ticks(low, low * span)
        assert LEAST <= len(found) <= MOST, exponent
        assert all(math.isclose(v, low) or low <= v <= low * span * (1 + 1e-9) for v in found), exponent
