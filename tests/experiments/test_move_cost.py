"""What moving cells costs: the verdict follows the measured times, and the parts move what kvdesk moves."""

import numpy as np
import pytest

from kvdesk.experiments.moved_states import Texts, copied, new_memory, used_memory
from kvdesk.experiments.questions import move_cost
from kvdesk.experiments.questions.move_cost import (
    COPY,
    COPY_NEW,
    GET,
    GET_NEW,
    GET_TIDY,
    HOT,
    KEPT,
    KINDS,
    NEAR,
    PARTIAL,
    SWAP_IN,
    SWAP_OUT,
    WHOLE,
)
from kvdesk.protocol.experiment import Result, Sample, chosen

TIMES = {
    COPY: 1.0,
    "memcpy, 2 threads": 0.8,
    COPY_NEW: 4.0,
    move_cost.COPY_AGAIN: 0.7,
    GET: 1.5,
    GET_NEW: 4.0,
    GET_TIDY: 1.4,
}
ALONE = {KEPT: 4.0, HOT: 6.0, SWAP_OUT: 1.2, SWAP_IN: 1.2, PARTIAL: 0.5}
"""kvdesk's own, where each part takes a time of 1, or a fifth for the short conversation."""


def concluded(*, wrong: str = "", slow_v: float = 3.0, unsteady: float = 0.0, **others: float) -> Result:
    """others: times of `TIMES` and `ALONE` by the names of the constants; unsteady: share by which those of `ALONE`
    grow with each round.
    """
    named = {getattr(move_cost, name): value for name, value in others.items()}
    values = chosen(move_cost.PARAMETERS, {}, short=True)
    samples = []
    for kind in KINDS:
        for size in move_cost._sizes(values):
            samples.append(Sample(f"{kind.name}: {move_cost.BYTES}", size, 1e6))
            samples += [Sample(f"{kind.name}: {move_cost.HIGH_WATER}", size, n, i) for i, n in enumerate((99, 90, 50))]
            samples.append(Sample(f"{kind.name}: {move_cost.WRONG}", size, float(bool(wrong)), note=wrong))
            for number in range(3):
                times = {**TIMES, **ALONE, **named}
                times |= {what: times[what] * (1 + unsteady * number) for what in ALONE}
                if not kind.flash_attn:
                    times[GET] = slow_v
                for whole, parts in WHOLE.items():
                    times |= {f"{whole}: {part}": 0.2 if whole == PARTIAL else 1.0 for part in parts}
                samples += [Sample(f"{kind.name}: {what}", size, y, number) for what, y in times.items()]
    return move_cost.EXPERIMENT.conclude(values, samples)


def test_the_key_is_the_same_on_both_sides_of_the_limit_and_another_far_from_it() -> None:
    near = concluded(KEPT=2.5, HOT=4.0).verdict
    assert near.key.startswith("kvdesk moves within 3 times its parts; new memory is slower; transposed V is slower; ")
    assert near.key.endswith("one conversation alone is cheaper")
    below = concluded(KEPT=3.0, HOT=4.4, SWAP_IN=1.5).verdict
    assert below.key == near.key
    assert below.sentence != near.sentence
    assert concluded(SWAP_IN=3.5).verdict.key.startswith("kvdesk moves in more than 3 times its parts; ")


def test_what_is_below_the_limit_is_named_in_the_sentence_and_the_table() -> None:
    near = concluded(KEPT=2.5, HOT=4.0)
    assert f"kvdesk takes at most 1.3 times the least; {NEAR} counts as near it. Nothing is" in near.verdict.sentence
    below = concluded(KEPT=2.5, HOT=4.0, SWAP_IN=1.6)
    assert "kvdesk takes at most 1.6 times the least; " in below.verdict.sentence
    assert "Below that: swap in, flash attention; swap in, no flash attention." in below.verdict.sentence
    assert below.tables[0].columns[-1] == "0.7 or more"
    assert [row[-1] for row in below.tables[0].rows] == ["yes", "yes", "yes", "no", "–"] * 2


def test_what_lies_about_the_limit_is_not_certain() -> None:
    assert not [remark for remark in concluded(KEPT=2.5, HOT=4.0).remarks if remark.startswith("Not certain")]
    remarks = concluded(KEPT=2.5, HOT=3.5, unsteady=0.15).remarks
    assert any(remark.startswith("Not certain: swap in, flash attention: its parts over kvdesk") for remark in remarks)


def test_every_other_answer_can_come_out() -> None:
    said = concluded(COPY_NEW=1.1, slow_v=1.5, PARTIAL=2.4, KEPT=2.5).verdict.key
    assert "new memory is as fast; transposed V is as fast; one conversation alone is no cheaper" in said
    assert concluded(wrong="cell 3 differs").verdict.key.startswith("the map is wrong; ")


def test_the_numbers_are_in_the_sentence_and_the_tables() -> None:
    result = concluded(KEPT=2.5, HOT=4.0)
    assert "compaction, order kept 0.8 " in result.verdict.sentence
    assert "from 99 to 90 instead of 50" in result.verdict.sentence
    assert result.tables[0].rows[1][:5] == ("flash attention", HOT, "1000.00 + 1000.00 + 1000.00", "3000.00", "4000.00")
    assert [len(series.points) for series in result.plots[0].series] == [2] * 6


def test_holes_are_made_before_the_conversations_come() -> None:
    """Every other run of the fillers is free, as many cells as the conversations have."""
    texts = Texts(b"long", b"short", b"filler", tuple(range(32)), 28, 4, 2)
    restored: list[tuple[int, bytes]] = []
    freed: list[tuple[int, int, int]] = []
    texts.scatter(lambda *given: restored.append(given), lambda *given: freed.append(given))
    assert restored == [(2, b"filler"), (3, b"filler"), (0, b"long"), (1, b"short")]
    assert sum(p1 - p0 for _, p0, p1 in freed[:-2]) == texts.n_cells == 32
    assert freed[-2:] == [(2, -1, -1), (3, -1, -1)]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_copy_in_parts_copies_everything(n_threads: int) -> None:
    source, target = np.arange(1000, dtype=np.uint8), new_memory(1000)
    assert not target.any()
    assert copied(target, source, n_threads) > 0
    assert (target == source).all()
    assert used_memory(10).all()
