"""The thread count follows the machine: how fast, how steadily, and how close to the best fixed count."""

import pytest

from kvdesk.policies.threads import LARGE_BATCH, ThreadPolicy
from tests.policies.machine import Busy, run


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("busy", [0, 1, 2])
def test_within_a_tenth_of_the_best_fixed_count(busy: int, seed: int) -> None:
    fixed = {n: run(lambda _: busy, 20, fixed=n, seed=seed).tok_s(0, 20) for n in (1, 2)}
    adaptive = run(lambda _: busy, 20, seed=seed).tok_s(0, 20)
    assert adaptive >= 0.9 * max(fixed.values())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("before", "then", "n"), [(0, 1, 1), (0, 2, 1), (1, 0, 2), (2, 0, 2)])
def test_a_change_of_the_load_is_followed_within_a_second(before: int, then: int, n: int, seed: int) -> None:
    result = run(lambda t: then if t > 5 else before, 10, seed=seed)
    assert result.settled(5.0, n) <= 1.0


@pytest.mark.parametrize("busy", [0, 1, 2])
def test_no_flapping_under_a_steady_load(busy: int) -> None:
    assert run(lambda _: busy, 60).changes <= 1


@pytest.mark.parametrize("busy", [lambda t: int(t // 2) % 2, lambda t: int(t / 0.3) % 2])
def test_a_load_that_comes_and_goes(busy: Busy) -> None:
    fixed = max(run(busy, 20, fixed=n).tok_s(0, 20) for n in (1, 2))
    assert run(busy, 20).tok_s(0, 20) >= 0.85 * fixed


def test_an_idle_policy_starts_from_the_load() -> None:
    policy = ThreadPolicy(8)
    assert policy.load(0.0, 0.1).decode == 8
    choice = policy.load(2.0, 2.9)
    assert choice.decode == 5
    assert "2.9 of 8 cores" in choice.reason
    assert policy.load(4.0, 0.0).decode == 8


def test_a_hiccup_of_another_process_changes_nothing() -> None:
    policy = ThreadPolicy(2)
    for i in range(50):
        assert policy.load(0.2 * i, 1.0 if i % 7 == 3 else 0.0).decode == 2


def test_half_a_core_changes_nothing() -> None:
    policy = ThreadPolicy(4)
    for i in range(50):
        assert policy.load(0.2 * i, 0.55).decode == 4


def test_the_person_s_limit_and_one_thread_are_kept() -> None:
    policy = ThreadPolicy(8, n_most=3)
    assert policy.choice.decode == 3
    for i in range(3):
        policy.load(2.0 * i, 7.9)
    assert (policy.choice.decode, policy.choice.prefill) == (1, 3)


def test_threads_of_a_batch() -> None:
    policy = ThreadPolicy(2)
    policy.load(0.0, 1.0)
    assert policy.choice.of_batch(1) == policy.choice.of_batch(4) == 1
    assert policy.choice.of_batch(LARGE_BATCH) == 2
