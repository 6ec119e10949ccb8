"""Which saved state gives way: the one used longest ago, counted in uses, whatever the system's clock says."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.message import ConversationId
from kvdesk.policies.swap import Limits, Resident, StateKind, place, room_in_memory

KIND = StateKind("model", "engine", "f16", "f16", flash_attn=True, rope=(1.0, 1.0))
SIZE, YEAR_S, NOW_S = 1000, 365 * 86400.0, 1_790_000_000.0
IN_MEMORY, ON_DISK = Limits(3 * SIZE, 0), Limits(0, 3 * SIZE)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [NOW_S]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def save(store: SavedStateStore, name: str) -> None:
    resident = Resident(0, 100, 100, SIZE, 1.0, 1000.0, 1.0)
    placed = place(resident, store.values(), store.limits)
    store.put(placed, ConversationId(name), range(100), bytes(SIZE), 1000.0)


def with_times(folder: Path, times: Mapping[str, object]) -> Path:
    """States as earlier versions left them: each with a time in the place of its number. Returns their index."""
    store = SavedStateStore(folder, KIND, ON_DISK)
    for name in times:
        save(store, name)
    store.close()
    index = folder / "index.json"
    rows: list[dict[str, Any]] = json.loads(index.read_bytes())
    before = [{k: v for k, v in row.items() if k != "used"} | {"at_s": times[row["conversation"]]} for row in rows]
    index.write_text(json.dumps(before), "utf-8")
    return index


def names(store: SavedStateStore) -> list[str]:
    return sorted(str(conversation) for conversation, _ in store.conversations())


def test_what_was_saved_while_the_clock_was_ahead_gives_way_to_what_is_newer(clock: list[float]) -> None:
    store = SavedStateStore(None, KIND, IN_MEMORY)
    clock[0] += YEAR_S
    save(store, "ahead 1")
    save(store, "ahead 2")
    clock[0] = NOW_S
    for n in range(3):
        save(store, f"new {n}")
    assert names(store) == ["new 0", "new 1", "new 2"]


def test_of_use_again_counts_as_newer(clock: list[float]) -> None:
    store = SavedStateStore(None, KIND, IN_MEMORY)
    for name in ("a", "b", "c"):
        save(store, name)
    clock[0] -= YEAR_S
    (first,) = store.all_of(ConversationId("a"))
    store.touch(first)
    save(store, "d")
    save(store, "e")
    assert names(store) == ["a", "d", "e"]


def test_the_count_goes_on_after_a_restart(clock: list[float], tmp_path: Path) -> None:
    clock[0] += YEAR_S
    store = SavedStateStore(tmp_path, KIND, ON_DISK)
    save(store, "ahead 1")
    save(store, "ahead 2")
    store.close()
    clock[0] = NOW_S
    store = SavedStateStore(tmp_path, KIND, ON_DISK)
    assert names(store) == ["ahead 1", "ahead 2"]
    for n in range(3):
        save(store, f"new {n}")
    store.close()
    assert names(SavedStateStore(tmp_path, KIND, ON_DISK)) == ["new 0", "new 1", "new 2"]


def test_states_of_another_model_give_way_in_the_order_of_use(clock: list[float], tmp_path: Path) -> None:
    other = StateKind("other", "engine", "f16", "f16", flash_attn=True, rope=(1.0, 1.0))
    for name in ("ahead", "newer"):
        clock[0] = NOW_S + (YEAR_S if name == "ahead" else 0)
        store = SavedStateStore(tmp_path, other, ON_DISK)
        save(store, name)
        store.close()
    store = SavedStateStore(tmp_path, KIND, ON_DISK)
    for n in range(2):
        save(store, f"mine {n}")
    store.close()
    assert names(SavedStateStore(tmp_path, other, ON_DISK)) == ["newer"]


def test_an_index_with_times_becomes_one_with_numbers(tmp_path: Path) -> None:
    """Every state is there, and the one used first goes first."""
    index = with_times(tmp_path, {"a": 7.5, "b": 3, "c": 9.0})
    store = SavedStateStore(tmp_path, KIND, ON_DISK)
    assert names(store) == ["a", "b", "c"]
    save(store, "d")
    store.close()
    assert names(SavedStateStore(tmp_path, KIND, ON_DISK)) == ["a", "c", "d"]
    assert all("at_s" not in row and row["used"] for row in json.loads(index.read_bytes()))


@pytest.mark.parametrize("at_s", [float("nan"), float("inf"), -1.0, 10**400, "7", None, [7]], ids=repr)
def test_a_time_of_nonsense_costs_that_state_alone(tmp_path: Path, at_s: object) -> None:
    with_times(tmp_path, {"a": 7.5, "b": at_s})
    assert names(SavedStateStore(tmp_path, KIND, ON_DISK)) == ["a"]


def test_what_was_of_use_lately_keeps_its_room_whatever_the_clock_says(clock: list[float]) -> None:
    store = SavedStateStore(None, KIND, IN_MEMORY)
    save(store, "a")
    clock[0] += YEAR_S
    assert room_in_memory(store.values(), IN_MEMORY) == 2 * SIZE
