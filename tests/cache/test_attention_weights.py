"""What is read off attention weights: means, maxima, sums, sinks, the most attended."""

import numpy as np
import pytest

from kvdesk.cache.attention_weights import LayerAttention, combined, received, sinks, top


def layer(number: int, *heads: list[list[float]]) -> LayerAttention:
    weights = np.array(heads, np.float32)
    return LayerAttention(number, 0, weights, (1 - weights.sum(axis=-1)).astype(np.float32))


FIRST = layer(3, [[1, 0, 0], [0.5, 0.5, 0]], [[1, 0, 0], [0.1, 0.1, 0.8]])
SECOND = layer(5, [[0, 0, 0], [0.2, 0.2, 0.2]])


def test_mean_and_maximum_are_over_heads_of_all_layers() -> None:
    mean = np.array([[2 / 3, 0, 0], [0.8 / 3, 0.8 / 3, 1 / 3]])
    np.testing.assert_allclose(combined([FIRST, SECOND]), mean, rtol=1e-6)
    np.testing.assert_allclose(combined([FIRST, SECOND], "max"), np.array([[1, 0, 0], [0.5, 0.5, 0.8]]), rtol=1e-6)


def test_layers_and_heads_can_be_chosen() -> None:
    np.testing.assert_array_equal(combined([FIRST, SECOND], only=(5,)), SECOND.weights[0])
    np.testing.assert_array_equal(combined([FIRST, SECOND], heads=(1,)), FIRST.weights[1])
    np.testing.assert_array_equal(combined([FIRST, SECOND], "max", only=(3,), heads=(0,)), FIRST.weights[0])


@pytest.mark.parametrize(("only", "heads"), [((4,), ()), ((), (7,)), ((5,), (1,))])
def test_what_there_is_none_of_is_an_error(only: tuple[int, ...], heads: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="no such layer or head"):
        combined([FIRST, SECOND], only=only, heads=heads)
    with pytest.raises(ValueError, match="no such layer or head"):
        sinks([FIRST, SECOND], 2, only=only, heads=heads)


def test_what_a_column_receives_is_the_sum_over_rows() -> None:
    np.testing.assert_allclose(received(FIRST.weights[1]), [1.1, 0.1, 0.8], rtol=1e-6)


def test_the_most_attended_come_first_and_what_gets_nothing_is_left_out() -> None:
    assert top(np.array([0.1, 0.7, 0.0, 0.7, 0.2], np.float32), 3) == [1, 3, 4]
    assert top(np.array([0.1, 0.0], np.float32), 5) == [0]


def test_a_sink_is_what_enough_heads_lean_on() -> None:
    """Column 0 gets 0.75 and 0.55 of two heads in the mean, column 2 gets 0.4 of one."""
    assert sinks([FIRST, SECOND], 2).tolist() == [True, False, True]
    many = [layer(i, *([[[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]] * 10)) for i in range(2)]
    assert sinks([FIRST, *many], 2).tolist() == [False, False, True], "2 of 22 heads are too few"
