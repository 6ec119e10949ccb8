"""The rules by which a batch is refused, and the splits."""

import pytest

from kvdesk.cache.batch import Batch, LogitsOf, check_batch, engine_order, split_equal, split_seq, split_simple


def make(*entries: tuple[int, tuple[int, ...]]) -> Batch:
    n = len(entries)
    return Batch(list(range(n)), [p for p, _ in entries], [s for _, s in entries], [False] * n)


def check(batch: Batch, last: dict[int, int] | None = None, **more: int) -> str:
    last = last or {}
    problem = check_batch(
        batch, n_seq_max=4, seq_pos_min=lambda s: 0 if s in last else -1, seq_pos_max=lambda s: last.get(s, -1), **more
    )
    return problem.kind if problem else ""


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("logits", ["none", "last", "all"])
def test_tokens_of_one_sequence(n: int, logits: LogitsOf) -> None:
    batch = Batch.of(3, 7, range(100, 100 + n), logits)
    assert list(batch.tokens) == [100 + i for i in range(n)]
    assert list(batch.pos) == [7 + i for i in range(n)]
    assert list(batch.seq_ids) == [(3,)] * n
    wanted = {"none": [], "last": [n - 1], "all": list(range(n))}[logits]
    assert [i for i, output in enumerate(batch.output) if output] == wanted
    assert len(batch.output) == n


@pytest.mark.parametrize(
    ("entries", "last", "kind"),
    [
        ([], {}, "empty"),
        ([(0, (0,))], {}, ""),
        ([(7, (0,))], {}, ""),  # an empty sequence may start anywhere
        ([(7, (0,))], {0: 5}, "consecutive"),
        ([(6, (0,))], {0: 5}, ""),
        ([(5, (0,))], {0: 5}, "consecutive"),
        ([(0, (0,)), (2, (0,))], {}, "gap"),
        ([(0, (0,)), (0, (0,))], {}, ""),  # duplicates are allowed
        ([(1, (0,)), (0, (0,))], {}, "decreasing"),
        ([(0, (4,))], {}, "seq_id"),
        ([(0, (-1,))], {}, "seq_id"),
        ([(0, ())], {}, "no_seq"),
        ([(-1, (0,))], {}, "pos"),
        ([(4, (0, 1))], {0: 3, 1: 3}, ""),
        ([(4, (0, 1))], {0: 3}, "coupled"),
        ([(0, (0, 1)), (1, (0,)), (1, (1,))], {}, ""),  # a shared prefix
    ],
)
def test_rules(entries: list[tuple[int, tuple[int, ...]]], last: dict[int, int], kind: str) -> None:
    assert check(make(*entries), last) == kind


def test_problem_has_the_numbers() -> None:
    problem = check_batch(make((9, (2,))), n_seq_max=4, seq_pos_min=lambda _: 0, seq_pos_max=lambda _: 5)
    assert (problem.seq_id, problem.x, problem.y) == (2, 5, 9)
    assert "X = 5" in problem.sentence
    assert "Y = 9" in problem.sentence


def test_mrope_may_jump_ahead_but_not_back() -> None:
    assert check(make((9, (0,)), (12, (0,))), {0: 5}, n_pos_per_embd=4) == ""
    assert check(make((5, (0,))), {0: 5}, n_pos_per_embd=4) == "consecutive"


def test_unknown_token() -> None:
    assert check(Batch([-1], [0], [(0,)], [False])) == "token"


@pytest.mark.parametrize(
    ("seq_ids", "order"),
    [  # measured on libstdc++
        ((0, 1), (1, 0)),
        ((2, 0, 1), (1, 0, 2)),
        ((3, 1, 2, 0), (0, 2, 1, 3)),
        ((1, 1), (1,)),
        ((0, 1, 13), (1, 13, 0)),
    ],
)
def test_engine_order(seq_ids: tuple[int, ...], order: tuple[int, ...]) -> None:
    assert engine_order(seq_ids) == order


def test_split_simple() -> None:
    batch = make(*((i, (0,)) for i in range(5)))
    assert [u.index.tolist() for u in split_simple(batch, 2)] == [[0, 1], [2, 3], [4]]


def test_split_equal_takes_equal_shares() -> None:
    batch = make((0, (0,)), (1, (0,)), (2, (0,)), (0, (1,)))
    ubatches = split_equal(batch, 4, sequential=True)
    assert ubatches is not None
    assert [u.index.tolist() for u in ubatches] == [[0, 3], [1, 2]]
    assert [u.n_seqs for u in ubatches] == [2, 1]


def test_split_equal_sequential_wants_increasing_ids() -> None:
    batch = make((0, (2,)), (0, (0,)), (0, (1,)))
    sequential, free = split_equal(batch, 8, sequential=True), split_equal(batch, 8, sequential=False)
    assert sequential is not None
    assert free is not None
    assert [u.index.tolist() for u in sequential] == [[0], [1, 2]]
    assert [u.index.tolist() for u in free] == [[0, 1, 2]]


def test_split_equal_sequential_refuses_shared_tokens() -> None:
    assert split_equal(make((0, (0, 1))), 8, sequential=True) is None
    assert split_equal(make((0, (0, 1))), 8, sequential=False) is not None


@pytest.mark.parametrize(
    ("counts", "n_ubatch", "parts"),
    [
        ((10,), 8, [[6], [4]]),  # cut earlier: four stay together
        ((12,), 8, [[8], [4]]),
        ((5, 7), 16, [[5], [7]]),  # the second would leave two tokens behind: it waits
        ((5, 9), 16, [[5, 5], [4]]),
        ((9, 5), 9, [[4], [5], [5]]),  # then both would leave one token: the first is taken to its end
    ],
)
def test_split_equal_keeps_the_last_tokens_of_a_set_together(
    counts: tuple[int, ...], n_ubatch: int, parts: list[list[int]]
) -> None:
    batch = make(*((pos, (s,)) for s, n in enumerate(counts) for pos in range(n)))
    ubatches = split_equal(batch, n_ubatch, sequential=True, n_rs_seq=3)
    assert ubatches is not None
    assert [[u.n_seq_tokens] * u.n_seqs for u in ubatches] == parts


def test_split_seq_takes_one_set_at_a_time() -> None:
    batch = make((0, (0,)), (0, (1,)), (1, (0,)))
    assert [u.index.tolist() for u in split_seq(batch, 8)] == [[0, 2], [1]]
