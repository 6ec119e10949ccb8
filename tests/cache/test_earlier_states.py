"""Earlier states of a sequence (`n_rs_seq`): which are kept, and what the engine does without asking."""

import pytest

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, model_facts, plan
from kvdesk.cache.mirror import Mirror

N_RS = 4


def make(architecture: str = "lfm2", **asked: object) -> Mirror:
    facts = model_facts(architecture, 128 if architecture == "deepseek4" else 0, False, True, 0)
    defaults = {"n_ctx": 256, "n_seq_max": 3, "n_batch": 64, "n_ubatch": 16, "kv_unified": True, "n_rs_seq": N_RS}
    return Mirror(plan(facts, ContextParams(**{**defaults, **asked})))  # type: ignore[arg-type]


def decode(mirror: Mirror, seq_id: int, n: int) -> None:
    batch = Batch.of(seq_id, mirror.seq_pos_max(seq_id) + 1, [1] * n)
    assert not mirror.decode(batch, mirror.predict(batch)).mismatch


@pytest.mark.parametrize(("n", "kept"), [(1, 0), (3, 2), (5, 4), (12, 4), (18, 4)])
def test_what_the_last_ubatch_computed_can_be_removed(n: int, kept: int) -> None:
    mirror = make()
    decode(mirror, 0, n)
    assert mirror.removable(0) == kept


@pytest.mark.parametrize(("n", "kept"), [(1, 1), (3, 3), (12, 4)])
def test_compressed_states_also_keep_the_one_before_the_batch(n: int, kept: int) -> None:
    mirror = make("deepseek4")
    decode(mirror, 0, 20)
    decode(mirror, 0, n)
    assert mirror.removable(0) == kept


@pytest.mark.parametrize("architecture", ["lfm2", "deepseek4"])
def test_once_until_the_next_decode(architecture: str) -> None:
    mirror = make(architecture)
    decode(mirror, 0, 12)
    assert mirror.seq_rm(0, 9, -1)
    assert (mirror.seq_pos_max(0), mirror.removable(0), mirror.gone_back(0)) == (8, 0, True)
    assert not mirror.seq_rm(0, 8, -1)
    decode(mirror, 0, 2)
    assert (mirror.seq_pos_max(0), mirror.gone_back(0)) == (10, False)
    assert not mirror.seq_rm(0, 3, -1), "more than there are"
    assert mirror.seq_rm(0, -1, -1)
    assert mirror.removable(0) == 0


def test_a_shared_state_gives_nothing_back() -> None:
    mirror = make()
    decode(mirror, 0, 6)
    mirror.seq_cp(0, 1, -1, -1)
    assert (mirror.removable(0), mirror.removable(1)) == (0, 0)
    decode(mirror, 1, 3)
    assert mirror.removable(1) == 2


def test_earlier_states_do_not_move_with_their_cell() -> None:
    mirror = make()
    decode(mirror, 1, 6)
    decode(mirror, 0, 6)
    decode(mirror, 2, 6)
    both = Batch.joined([Batch.of(1, 6, [1, 1]), Batch.of(2, 6, [1, 1])])
    assert not mirror.decode(both, 0).mismatch
    assert [mirror.removable(s) for s in range(3)] == [0, 1, 1], "sequence 0 made room"


def test_the_state_of_a_stopped_decode_is_unknown_though_its_position_is_as_before() -> None:
    mirror = make()
    decode(mirror, 0, 12)
    batch = Batch.of(0, 12, [1] * 3)
    record = mirror.decode(batch, 2, lambda s: 11 if s == 0 else -1, {0: 12})
    assert not record.mismatch
    assert (mirror.seq_pos_max(0), mirror.unknown, mirror.removable(0)) == (11, {0}, 0)
    mirror.seq_cp(0, 1, -1, -1)
    assert mirror.unknown == {0, 1}
    mirror.seq_rm(0, -1, -1)
    assert mirror.unknown == {1}
