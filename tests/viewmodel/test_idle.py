"""Pauses are folded on the axes of graphs: where a time is shown, and which time a place means."""

import numpy as np
import pytest

from kvdesk.viewmodel.graphs.idle import GAP_S, IDLE_S, MOST_SPANS, ActiveTime, Fold


def noted(*spans: tuple[float, float]) -> ActiveTime:
    active = ActiveTime()
    for begin, end in spans:
        active.note(begin, end)
    return active


def test_short_pauses_stay_as_they_are() -> None:
    fold = noted((100, 104), (104 + IDLE_S, 130)).fold(100)
    assert not fold.gaps
    assert (fold.place(17.0), fold.time(17.0)) == (17.0, 17.0)


def test_a_long_pause_is_a_narrow_gap() -> None:
    fold = noted((100, 110), (410, 420), (1000, 1001)).fold(100)
    assert fold.gaps == ((10, 10 + GAP_S), (20 + GAP_S, 20 + 2 * GAP_S))
    places = fold.place(np.array([0.0, 10.0, 160.0, 310.0, 320.0, 901.0]))
    assert places.tolist() == pytest.approx([0, 10, 10 + GAP_S / 2, 10 + GAP_S, 20 + GAP_S, 21 + 2 * GAP_S])
    assert fold.time(places).tolist() == pytest.approx([0, 10, 160, 310, 320, 901])
    assert fold.place(905.0) == pytest.approx(25 + 2 * GAP_S), "what comes later is shown later"


def test_a_pause_before_the_first_answer_is_folded_too() -> None:
    assert noted((400, 410)).fold(100).gaps == ((0.0, GAP_S),)


def test_of_very_many_spans_the_oldest_are_joined() -> None:
    active = noted(*((1000.0 * i, 1000.0 * i + 1) for i in range(2 * MOST_SPANS)))
    fold = active.fold(0.0)
    assert len(fold.gaps) == MOST_SPANS - 1
    assert np.all(np.diff(fold.real) > 0)
    assert np.all(np.diff(fold.shown) > 0)


def test_without_a_fold_a_second_is_where_it_is() -> None:
    assert Fold().place(3.5) == Fold().time(3.5) == 3.5
