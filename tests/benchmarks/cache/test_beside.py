"""What a prompt beside an answer is held to: a machine's hiccups are not the engine's fault."""

import pytest

from kvdesk.experiments.benchmarks.cache.beside import Beside, Both, most_over_neighbours, wanted


def both(read_s: float, gap_ms: float = 300.0) -> Both:
    """A reading beside an answer that takes 10 s alone."""
    return Both(Beside(read_s, 7.0, 10.0, [200.0, gap_ms], 100), (9.0, 11.0))


def test_a_chunk_that_took_longer_than_its_neighbours_is_a_hiccup() -> None:
    growing = [100.0 + 5 * i for i in range(30)]
    assert most_over_neighbours(growing) < 1.05, "cells become more, which is no hiccup"
    assert most_over_neighbours([ms * 3 for ms in growing]) == pytest.approx(most_over_neighbours(growing))
    growing[12] *= 1.5
    assert most_over_neighbours(growing) == pytest.approx(1.45, abs=0.02)
    assert most_over_neighbours([250.0]) == 1.0


def test_readings_that_agree_are_as_many_as_were_asked_for() -> None:
    taken = [both(14.0), both(14.1), both(13.9)]
    assert wanted(3, taken[:2])
    assert not wanted(3, taken)


@pytest.mark.parametrize("other", [both(18.0), both(14.0, 560.0)], ids=["times", "gaps"])
def test_readings_that_differ_are_made_up_to_twice_as_often(other: Both) -> None:
    taken = [both(14.0), both(14.1), other]
    assert wanted(3, taken)
    assert not wanted(3, taken * 2)
    assert not wanted(1, taken[:2]), "twice of one"
