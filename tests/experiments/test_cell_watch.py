"""The cells of an experiment's own context: as the engine has them, and as they arrive on the page."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from kvdesk.codec import encode
from kvdesk.experiments import cell_watch
from kvdesk.experiments.raw_context import Answer, RawContext
from kvdesk.protocol.experiment import event_from_json
from kvdesk.protocol.experiment_cells import CellsSeen


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[CellsSeen]:
    monkeypatch.setattr(cell_watch, "INTERVAL_S", 0.0)
    return []


def slot_of(seen: CellsSeen) -> tuple[int, int]:
    """Used cells and the high-water mark."""
    stream = seen.maps[0].streams[0]
    return stream.used, stream.high_water


def told_by(answer: Answer) -> tuple[int, int]:
    """The same as the engine printed them before it placed a token."""
    return answer.slot.used, answer.slot.high_water


def test_the_cells_are_those_of_the_engine(open_context: Callable[..., RawContext], seen: list[CellsSeen]) -> None:
    context = open_context(inspect=True, tell_cells=seen.append)
    context.append(list(range(100, 140)), 0)
    context.seq_cp(0, 1)
    context.append([7, 8, 9], 0, 2)
    state = context.saved(2)
    context.seq_rm(0, 10, 20)
    context.seq_rm(1, 5)
    context.restore(3, state)
    context.append([11], 1000, 2)  # a gap, which the engine refuses: nothing changes
    context.append([11], 3, 3)
    answer = context.append([12], 4, 3)
    assert slot_of(seen[-2]) == told_by(answer)
    context.compact()
    assert seen[-1].maps[0].streams[0].used == seen[-1].maps[0].streams[0].high_water
    answer = context.append([13], 5, 3)
    assert slot_of(seen[-2]) == told_by(answer)
    context.clear()
    assert seen[-1].maps[0].streams[0].used == 0


def test_they_are_told_a_few_times_a_second(
    open_context: Callable[..., RawContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[CellsSeen] = []
    monkeypatch.setattr(cell_watch, "INTERVAL_S", 1000.0)
    context = open_context(tell_cells=seen.append)
    context.append([1, 2, 3], 0)
    context.append([4], 3)
    assert len(seen) <= 1


def test_what_the_rules_do_not_say_ends_the_watch(
    open_context: Callable[..., RawContext], seen: list[CellsSeen]
) -> None:
    context = open_context(tell_cells=seen.append)
    context.append([1, 2, 3], 0)
    context._watch.follow(lambda _mirror: False)
    n = len(seen)
    context.append([4], 3)
    assert len(seen) == n


def test_they_go_through_json(open_context: Callable[..., RawContext], seen: list[CellsSeen]) -> None:
    open_context(tell_cells=seen.append).append([5, 6, 7], 0)
    read = event_from_json(encode(seen[-1]))
    assert isinstance(read, CellsSeen)
    before, after = seen[-1].maps[0], read.maps[0]
    assert (after.name, after.n_swa, after.swa_type) == (before.name, before.n_swa, before.swa_type)
    assert after.streams[0].token.tolist() == [5, 6, 7]
    for name in ("pos", "seq_bits", "token", "written_at_op"):
        assert np.array_equal(getattr(after.streams[0], name), getattr(before.streams[0], name))
    broken = json.loads(encode(seen[-1]))
    broken["packed"][0]["streams"][0]["data"] = "AAAA"
    with pytest.raises(ValueError, match=r"."):
        _ = CellsSeen.maps.fget(event_from_json(json.dumps(broken).encode()))  # type: ignore[attr-defined]
