"""A generated day, played with llama.cpp and recorded, is read from its recording as it was generated."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.journal.file import JournalHeader, load_journal, save_journal
from kvdesk.errors import UserError
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.scenarios import history as days
from kvdesk.experiments.scenarios.chat_day import Day, chat_day
from kvdesk.experiments.scenarios.from_recording import history_of
from kvdesk.experiments.scenarios.player import Player, States
from kvdesk.experiments.simulators.compactions import Way, simulate
from kvdesk.experiments.simulators.hole_filling import max_moves
from kvdesk.experiments.simulators.live_cells import live_cells

DAY = Day(turns=24, n_seq=3, n_cells=200, system=12, prompt=6, answer=4)
YESTERDAY = ([7] * 40, [8] * 30)


def draw_from(seed: int):  # type: ignore[no-untyped-def]
    random = np.random.default_rng(seed)
    return lambda n: random.integers(3, 256, n).tolist()


def day(seed: int = 1) -> days.History:
    return chat_day(DAY, draw_from(seed), seed, YESTERDAY)


def without_pauses(history: days.History) -> days.History:
    return tuple(days.joined(event for event in history if not isinstance(event, days.Paused)))


def test_the_same_seed_is_the_same_day() -> None:
    assert day() == day() != day(2)


@pytest.mark.parametrize("seed", range(8))
def test_a_day_fits_into_its_cells_and_has_everything(seed: int) -> None:
    sequences, cells, n_written = days.Sequences(), dict[int, set[int]](), 0
    kinds = set()
    for event in day(seed):
        kinds.add(type(event))
        sequences.follow(event)
        match event:
            case days.Read(seq_id, tokens) | days.Wrote(seq_id, tokens) | days.Loaded(seq_id, tokens):
                assert len(tokens) > 1
                cells[seq_id] = cells.get(seq_id, set()) | set(range(n_written, n_written + len(tokens)))
                n_written += len(tokens)
            case days.Copied(source, target, n):
                assert target not in cells
                cells[target] = set(sorted(cells[source])[:n])
            case days.Kept(seq_id):
                del cells[seq_id]
            case _:
                pass
        assert len(set().union(*cells.values())) <= DAY.n_cells
        assert all(0 <= seq_id < DAY.n_seq for seq_id in cells)
    assert kinds >= {days.Read, days.Wrote, days.Loaded, days.Kept, days.Paused}
    assert days.Copied in kinds or seed == 1


@pytest.fixture
def context(open_context: Callable[..., RawContext]) -> RawContext:
    return open_context(record=True)


def play(context: RawContext, model: Model, history: days.History, states: States | None = None) -> list[float]:
    player = Player(context, model.vocab.n_tokens, {} if states is None else states)
    return [s for event in history for s in player.do(event)]


def test_a_recorded_day_is_read_as_it_was(context: RawContext, model: Model, tmp_path: Path) -> None:
    states: States = {}
    history = day(2)
    assert any(isinstance(event, days.Copied) for event in history)
    for tokens in YESTERDAY:
        context.append(tokens, 0)
        states[tuple(tokens)] = context.saved(0)
        context.clear()
    seconds = play(context, model, history, states)
    n_tokens = sum(len(event.tokens) for event in history if isinstance(event, days.Wrote))
    assert len(seconds) == n_tokens + sum(isinstance(event, days.Read) for event in history)
    recording = context.recording()
    events = history_of(recording)
    played = events[next(i for i, event in enumerate(events) if isinstance(event, days.Loaded)) :]
    assert played == without_pauses(history)
    save_journal(tmp_path / "day.jsonl", recording, JournalHeader("m"))
    assert history_of(load_journal(tmp_path / "day.jsonl")[1]) == events
    live = live_cells(recording)
    assert 0 < live.most_high_water <= 256
    assert live.runs >= 1


def test_cuts_and_slides_are_read(context: RawContext, model: Model) -> None:
    history: days.History = (
        days.Read(0, tuple(range(20, 50))),
        days.Kept(0, 25),
        days.Slid(0, 4, 6),
        days.Wrote(0, (3,)),
        days.Copied(0, 1, 20),
        days.Read(1, (5, 6)),
        days.Kept(0, 0),
    )
    play(context, model, history)
    events = history_of(context.recording())
    slid = days.Sequences()
    for event in events:
        slid.follow(event)
    assert slid.tokens == {1: [*range(20, 24), *range(30, 45), 3, 5, 6]}
    assert events == history


def test_a_compaction_changes_no_history(context: RawContext, model: Model) -> None:
    history: days.History = (days.Read(0, (1, 2, 3)), days.Read(1, (4, 5)), days.Kept(0, 0))
    play(context, model, history)
    seconds, n_bytes = context.compact()
    assert seconds > 0
    assert n_bytes > 0
    assert context.mirror.caches[0].streams[0].high_water == 2
    assert history_of(context.recording()) == history


def test_tokens_that_are_not_known_equal_nothing(context: RawContext) -> None:
    context.append([1, 2, 3], 0)
    state = context.saved(0)
    context.restore(1, state)
    (read, loaded) = history_of(context.recording())
    assert read == days.Read(0, (1, 2, 3))
    assert isinstance(loaded, days.Loaded)
    assert min(loaded.tokens) > 1 << 32
    assert len(set(loaded.tokens)) == 3


def test_pauses_are_the_time_between_operations() -> None:
    assert list(days.each_token([days.Wrote(0, (1, 2)), days.Paused(1)])) == [
        days.Wrote(0, (1,)),
        days.Wrote(0, (2,)),
        days.Paused(1),
    ]
    assert list(
        days.joined([days.Paused(1), days.Paused(2), days.Read(0, (1,)), days.Read(1, (2,)), days.Read(1, (3,))])
    ) == [days.Paused(3), days.Read(0, (1,)), days.Read(1, (2, 3))]


def test_a_journal_without_cells_is_refused() -> None:
    from kvdesk.cache.journal import Journal
    from kvdesk.cache.mirror import Mirror

    mirror = Mirror(plan(ModelFacts("states", "recurrent"), ContextParams(n_ctx=256)))
    with pytest.raises(UserError, match="recurrent"):
        history_of(Journal(mirror).recording())


def test_ways_of_defragmenting_end_with_the_same_cells_in_use() -> None:
    geometry = plan(ModelFacts("plain", "attention"), ContextParams(n_ctx=1024, n_seq_max=4, kv_unified=True))
    holes: tuple[days.Event, ...] = (
        days.Read(0, tuple(range(300))),
        days.Read(1, tuple(range(300))),
        days.Kept(0, 0),
        days.Wrote(1, (1,)),
        days.Paused(3.0),
        days.Wrote(1, (2, 3)),
    )

    def when(_cells: object, event: days.Event) -> bool:
        return isinstance(event, days.Paused)

    moved = {way: simulate(holes, geometry, way, when, max_moves(12)) for way in Way}
    assert {way: m.n_cells for way, m in moved.items()} == {
        Way.FILL: 299,
        Way.IN_ORDER: 301,  # all that are used: the first is where it was
        Way.CLOSE_UP: 300,
        Way.GROUPED: 300,
    }
    assert {m.n_kv for m in moved.values()} == {(768 + 512 + 512) / 3}
    assert simulate(holes, geometry, Way.FILL, lambda _cells, _event: False, 9).n == 0
