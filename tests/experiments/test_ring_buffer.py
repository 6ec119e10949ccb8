"""A window instead of a tidy cache: the verdict follows what was measured, and each policy removes what it says."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from kvdesk.experiments.long_text import Policy, Told, Window, surprise
from kvdesk.experiments.questions import ring_buffer
from kvdesk.experiments.questions.ring_buffer import N_TOLD
from kvdesk.experiments.raw_context import Answer
from kvdesk.protocol.experiment import Result, Sample, chosen

N_MESSAGES, FIRST = 20, 8


def concluded(
    *,
    surprise: dict[Policy, float] | None = None,
    seconds: dict[Policy, float] | None = None,
    answers: dict[Policy, float] | None = None,
    compacted: float = 1.0,
    unsteady: float = 0.0,
) -> Result:
    """Of each policy: nats a token, s a message, nats of the codes that its window no longer holds. unsteady: share by
    which a token before the compaction takes longer with each round.
    """
    surprises = {Policy.RING: 4.0, **(surprise or {})}
    times = {Policy.RECOMPUTE: 3.0, **(seconds or {})}
    known = {Policy.ALL: -0.1, **(answers or {})}
    samples = [Sample(ring_buffer.TOLD_AT, n, 3 * n) for n in range(N_TOLD)]
    samples += [Sample(ring_buffer.TOKENS, at, 32) for at in range(N_MESSAGES)]
    samples += [Sample(f"{ring_buffer.CHANCE}: {policy}", 0, -2.5) for policy in Policy]
    for policy in Policy:
        n_read = FIRST if policy is Policy.STOP else N_MESSAGES
        samples += [
            Sample(f"{ring_buffer.READ}: {policy}", 0, n_read),
            Sample(f"{ring_buffer.MOVED}: {policy}", 0, 100),
            Sample(f"{ring_buffer.AGAIN}: {policy}", 0, 200),
        ]
        if policy is not Policy.ALL:
            samples.append(Sample(f"{ring_buffer.FIRST}: {policy}", 0, FIRST))
        for n in range(N_TOLD):
            kept = n == N_TOLD - 1
            nats = -0.1 if kept and known[Policy.ALL] > -1 else known.get(policy, -3.0)
            samples.append(Sample(f"{ring_buffer.ANSWER}: {policy}", n, nats))
        for at in range(n_read):
            samples.append(Sample(f"{ring_buffer.SURPRISE}: {policy}", at, surprises.get(policy, 3.0)))
            samples += [Sample(f"{ring_buffer.SECONDS}: {policy}", at, times.get(policy, 1.0), n) for n in range(3)]
    for n in range(3):
        before = compacted * (1 + unsteady * n)
        samples += [Sample(ring_buffer.BEFORE, n, before, n), Sample(ring_buffer.AFTER, n, 1.0, n)]
    return ring_buffer.EXPERIMENT.conclude(chosen(ring_buffer.PARAMETERS, {}, short=True), samples)


def test_the_verdict_follows_what_was_measured() -> None:
    assert concluded().verdict.key == (
        "a window forgets; a bare ring spoils the text; moving is as good as reading again;"
        " reading again is slower; compaction gains nothing in a full window"
    )
    other = concluded(
        surprise={Policy.RING: 3.0, Policy.SLIDE: 3.1, Policy.RECOMPUTE: 3.0},
        seconds={Policy.RECOMPUTE: 1.0},
        answers={Policy.SLIDE: -0.2},
        compacted=1.5,
    )
    assert other.verdict.key == (
        "a window forgets nothing; a bare ring reads on as well; moving is worse than reading again;"
        " reading again is as fast; compaction gains something in a full window"
    )


def test_what_lies_about_its_limit_is_not_certain() -> None:
    assert not [remark for remark in concluded().remarks if remark.startswith("Not certain")]
    (said,) = [remark for remark in concluded(unsteady=0.1).remarks if remark.startswith("Not certain")]
    assert said.startswith("Not certain: a token in the ring, before over after a compaction, 1.1 ")


def test_a_code_is_known_by_the_mean_of_its_tokens() -> None:
    """`Window.answers` gives the mean, and so it is said."""
    assert concluded().remarks[0] == (
        "A code is known when its tokens are on average 1 nats likelier than those of codes nobody told."
    )


def test_codes_that_a_model_does_not_find_anyhow_tell_nothing() -> None:
    result = concluded(answers=dict.fromkeys(Policy, -2.9))
    assert result.verdict.key.startswith("the codes tell nothing; ")
    assert "0 of 6 codes" in result.verdict.sentence


def test_what_is_known_is_counted_by_policy() -> None:
    rows = {row[0]: row for row in concluded(answers={Policy.SLIDE: -1.4}).tables[0].rows}
    assert [rows[p][2] for p in (Policy.ALL, Policy.SLIDE, Policy.RING)] == ["6 / 6", "6 / 6", "1 / 6"]
    assert rows[Policy.STOP][1] == f"{FIRST} / {N_MESSAGES}"
    assert rows[Policy.STOP][3:6] == ("–", "–", "–")


def test_surprise_is_the_logarithm_of_the_share() -> None:
    rows = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], np.float32)) + 100
    assert surprise(rows, [1, 2]) == pytest.approx([math.log(4), -math.log(0.8)], rel=1e-4)


class Cells:
    """A context that keeps which token is at which position, and what was called."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self.n_decoded = 0

    def clear(self) -> None:
        self.held.clear()

    def read(self, tokens: Sequence[int], start: int, _seq_id: int = 0) -> Answer:
        assert not set(range(start, start + len(tokens))) & set(self.held)
        self.held |= {start + i: token for i, token in enumerate(tokens)}
        self.n_decoded += len(tokens)
        return Answer(0, 0.001, (), None)

    def seq_rm(self, _seq_id: int, p0: int = -1, p1: int = -1) -> bool:
        self.held = {p: t for p, t in self.held.items() if not (p >= p0 and (p1 < 0 or p < p1))}
        return True

    def seq_add(self, _seq_id: int, p0: int, p1: int, shift: int) -> None:
        assert p1 == -1
        self.held = {p + shift if p >= p0 else p: t for p, t in self.held.items()}


def read(policy: Policy, limit: int | None = 40) -> tuple[Cells, Window]:
    """Ten messages of 8 tokens; token 100 m + i is number i of message m."""
    cells = Cells()
    window = Window(cells, policy, limit)  # type: ignore[arg-type]
    for at in range(10):
        if not window.read([100 * at + i for i in range(8)], at, is_system=at == 0, judged=False):
            break
    return cells, window


def messages(cells: Cells) -> list[int]:
    return list(dict.fromkeys(cells.held[p] // 100 for p in sorted(cells.held)))


def test_sliding_keeps_the_system_prompt_and_moves_the_rest() -> None:
    cells, window = read(Policy.SLIDE)
    assert sorted(cells.held) == list(range(len(cells.held))), "positions have no gap"
    assert messages(cells)[0] == 0
    assert messages(cells)[-1] == 9
    assert len(cells.held) <= 40
    assert window.reading.first == 5
    assert window.reading.moved > 0
    assert cells.n_decoded == 80
    assert len(window.reading.seconds) == 10


def test_reading_again_ends_with_the_same_tokens_as_sliding() -> None:
    cells, window = read(Policy.RECOMPUTE)
    assert cells.held == read(Policy.SLIDE)[0].held
    assert cells.n_decoded == 80 + window.reading.read_again > 80
    assert window.reading.moved == 0


def test_sinks_keep_the_first_four_tokens() -> None:
    cells, _ = read(Policy.SINKS)
    assert [cells.held[p] for p in range(5)] == [0, 1, 2, 3, cells.held[4]]
    assert cells.held[4] >= 100
    assert sorted(cells.held) == list(range(len(cells.held)))


def test_a_ring_keeps_nothing_of_the_beginning_and_moves_nothing() -> None:
    cells, window = read(Policy.RING)
    assert sorted(cells.held) == list(range(80 - len(cells.held), 80)), "positions go on"
    assert messages(cells) == list(range(messages(cells)[0], 10))
    assert (window.reading.moved, window.reading.read_again, cells.n_decoded) == (0, 0, 80)


def test_stop_reads_as_far_as_there_is_room() -> None:
    cells, window = read(Policy.STOP)
    assert len(window.reading.seconds) == 5
    assert messages(cells) == [0, 1, 2, 3, 4]
    assert read(Policy.ALL, None)[1].reading.first is None


def test_an_answer_is_asked_for_behind_the_text_and_removed() -> None:
    cells, window = read(Policy.RING)
    held = dict(cells.held)

    def logits(tokens: Sequence[int], _first: int, start: int) -> np.ndarray:
        assert start == 80
        cells.read(tokens, start)
        rows = np.full((len(tokens), 50), -100.0, np.float32)
        rows[2, 7], rows[3, 7], rows[3, 8] = 0.0, math.log(0.5), math.log(0.5)
        return rows

    cells.all_logits = logits  # type: ignore[attr-defined]
    assert window.answers(Told(0, (1, 2, 3), (7, 8))) == pytest.approx(math.log(0.5) / 2)
    assert cells.held == held
