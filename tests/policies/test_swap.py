"""Who leaves, where to, and what gives way; keys that differ whenever a state would."""

from hypothesis import given
from hypothesis import strategies as st

from kvdesk.policies import swap
from kvdesk.values import replace

KIND = swap.StateKind("ab", "0.3.36 0c1e570", "f16", "f16", True, (10000.0, 1.0))
ALICE = swap.Resident(0, 2000, 2000, 46_000_000, 60.0, 9000.0, 10.0)


def test_keys_tell_states_apart() -> None:
    kinds = [
        KIND,
        replace(KIND, model_sha256="cd"),
        replace(KIND, engine_version="0.3.37"),
        replace(KIND, type_k="q8_0"),
        replace(KIND, type_v="q8_0"),
        replace(KIND, flash_attn=False),
        replace(KIND, rope=(10000.0, 0.5)),
    ]
    keys = {swap.state_key(kind, tokens) for kind in kinds for tokens in ([], [1], [1, 2], [2, 1], [12])}
    assert len(keys) == len(kinds) * 5
    assert swap.state_key(KIND, [1, 2]) == swap.state_key(replace(KIND), (1, 2))


def test_the_longest_unused_is_swapped_out_first() -> None:
    residents = [replace(ALICE, seq_id=i, idle_s=float(s)) for i, s in enumerate((5, 500, 50))]
    assert [r.seq_id for r, _ in swap.eviction_order(residents, 3000)] == [1, 2]
    assert "500 s" in swap.eviction_order(residents, 1)[0][1]


def test_cost_decides_between_equals_and_busy_ones_stay() -> None:
    dear = replace(ALICE, seq_id=1, restore_ms=800.0)
    assert [r.seq_id for r, _ in swap.eviction_order([dear, ALICE], 1)] == [0]
    assert swap.eviction_order([replace(ALICE, busy=True), replace(ALICE, n_own=0)], 1) == []


def test_to_memory_and_the_older_ones_give_way() -> None:
    limits = swap.Limits(100_000_000, 100_000_000)
    held = [swap.StateInfo(f"m{i}", "memory", 46_000_000, 10 * (i + 1), 9000.0) for i in range(2)]
    placed = swap.place(ALICE, held, limits)
    assert (placed.to, placed.demote, placed.drop) == ("memory", ("m1",), ())
    full = [*held, *(swap.StateInfo(f"d{i}", "disk", 50_000_000, 1000 + i, 9000.0) for i in range(2))]
    placed = swap.place(ALICE, full, limits)
    assert (placed.to, placed.demote, placed.drop) == ("memory", ("m1",), ("d1",))
    assert "dropped" in placed.reason


def test_too_large_for_memory_goes_to_disk_and_too_large_for_both_nowhere() -> None:
    assert swap.place(ALICE, [], swap.Limits(1_000_000, 100_000_000)).to == "disk"
    assert swap.place(ALICE, [], swap.Limits(1_000_000, 1_000_000)).to == "nowhere"


def test_what_is_quick_to_prefill_or_saved_already_is_not_saved() -> None:
    assert swap.place(replace(ALICE, prefill_ms=15.0), [], swap.Limits(10**9, 10**9)).to == "nowhere"
    placed = swap.place(replace(ALICE, has_saved_state=True), [], swap.Limits(10**9, 10**9))
    assert placed.to == "nowhere"
    assert "up to date" in placed.reason


SNAPSHOTS = st.lists(
    st.tuples(st.sampled_from(["memory", "disk"]), st.integers(1, 60), st.integers(1, 10_000), st.floats(0, 1e4)),
    max_size=10,
)


@given(SNAPSHOTS, st.integers(0, 200), st.integers(0, 200), st.integers(1, 100))
def test_the_limits_hold_after_every_placement(
    rows: list[tuple[str, int, int, float]], memory: int, disk: int, size: int
) -> None:
    limits = swap.Limits(memory, disk)
    held = {f"{i}": swap.StateInfo(f"{i}", row[0], *row[1:]) for i, row in enumerate(rows)}  # type: ignore[arg-type]
    for key in swap.over_limit(list(held.values()), limits):
        del held[key]
    placed = swap.place(replace(ALICE, state_bytes=size), list(held.values()), limits)
    for key in placed.drop:
        del held[key]
    for key in placed.demote:
        held[key] = replace(held[key], tier="disk")
    if placed.to != "nowhere":
        held["new"] = swap.StateInfo("new", placed.to, size, 1, 1.0)
    assert sum(s.n_bytes for s in held.values() if s.tier == "memory") <= memory
    assert sum(s.n_bytes for s in held.values() if s.tier == "disk") <= disk


def test_at_the_end_the_least_valuable_give_way_wherever_they_are() -> None:
    used_now = swap.StateInfo("now", "memory", 46_000_000, 1, 9000.0)
    too_large = swap.StateInfo("large", "memory", 200_000_000, 1, 90000.0)
    long_ago = [swap.StateInfo(f"d{i}", "disk", 46_000_000, 1000 + i, 9000.0) for i in range(2)]
    assert swap.over_limit_at_the_end([used_now, too_large, *long_ago], swap.Limits(512_000_000, 100_000_000)) == (
        "large",
        "d1",
    )
    request = swap.StateInfo("request", "memory", 46_000_000, 1, 9000.0, stays_in_memory=True)
    assert swap.over_limit_at_the_end([request, *long_ago], swap.Limits(512_000_000, 100_000_000)) == ("request",)


@given(SNAPSHOTS, st.integers(0, 200))
def test_what_is_kept_at_the_end_fits_on_disk(rows: list[tuple[str, int, int, float]], disk: int) -> None:
    states = [swap.StateInfo(f"{i}", row[0], *row[1:]) for i, row in enumerate(rows)]  # type: ignore[arg-type]
    dropped = swap.over_limit_at_the_end(states, swap.Limits(0, disk))
    assert sum(s.n_bytes for s in states if s.key not in dropped) <= disk
