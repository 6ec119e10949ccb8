"""Undoing operations by hand: what is restored, what is not, and what copies may take."""

from typing import Any

import pytest

from kvdesk.backends.local.operations import undo
from kvdesk.cache.compaction import Layout
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessEngine
from kvdesk.protocol.cache import RebuildContext
from kvdesk.protocol.chat import CloseConversation, DropMessages
from kvdesk.protocol.operations import ClearCache, Compact, HandOperation, Operate, RemoveRange, Undo
from tests.backends.local.by_hand import GREEDY, answered, operate, seq, used


def test_clear_and_undo(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    before = used(headless)
    done = operate(headless, ClearCache())
    assert used(headless) == 0
    assert done.emptied
    operate(headless, Undo(done.operation))
    assert used(headless) == before
    assert chat.answer("Go on.", GREEDY).stats.reused_tokens == before
    with pytest.raises(UserError, match="cannot be undone"):
        headless.do(Operate(Undo(done.operation)))


def layout(headless: HeadlessEngine) -> list[list[Any]]:
    """Everything about every cell, by its index."""
    maps = headless.engine.session.runtime.context.memory.snapshot().maps
    streams = [stream for cache in maps for stream in cache.streams]
    return [[s.pos.tolist(), s.seq_bits.tolist(), s.token.tolist(), s.written_at_op.tolist()] for s in streams]


@pytest.mark.parametrize("operation", [Compact(Layout.BY_CONVERSATION), ClearCache()], ids=["compact", "clear"])
def test_undo_brings_the_holes_back(headless: HeadlessEngine, operation: HandOperation) -> None:
    first, second = answered(headless), answered(headless, "Name three towns.")
    operate(headless, RemoveRange(seq(headless, first), 30, 35))  # both share the beginning
    operate(headless, RemoveRange(seq(headless, second), 40, 42))
    before = layout(headless)
    assert any(-1 in pos for pos, *_ in before), "there are holes"
    done = operate(headless, operation)
    assert layout(headless) != before
    undone = operate(headless, Undo(done.operation))
    assert layout(headless) == before
    assert undone.note == ""
    assert first.answer("And three lakes.", GREEDY).stats.reused_tokens == 30


def test_undo_says_when_the_holes_stay_away(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = answered(headless)
    operate(headless, RemoveRange(seq(headless, chat), 10, 15))
    blobs = headless.engine.session.runtime.by_hand.blobs
    done = operate(headless, Compact(Layout.KEEP_ORDER))
    state = headless.engine.session.runtime.context.states.size()
    monkeypatch.setattr(blobs, "most_bytes", state + state // 1000)
    undone = operate(headless, Undo(done.operation))
    assert "not the holes" in undone.note
    assert all(-1 not in pos for pos, *_ in layout(headless))


@pytest.mark.parametrize("whole", [True, False])
def test_undo_brings_nothing_back_that_was_deleted(headless: HeadlessEngine, whole: bool) -> None:
    """Neither a chat nor a message of one."""
    chat = answered(headless)
    done = operate(headless, ClearCache())
    headless.do(CloseConversation(chat.id) if whole else DropMessages(chat.id, (chat.messages[0].id,)))
    with pytest.raises(UserError, match="cannot be undone"):
        headless.do(Operate(Undo(done.operation)))
    assert used(headless) == 0


def test_copies_for_undo_take_a_part_of_the_machines_memory(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest go first; a cache that is larger than that part is not copied."""
    chat = answered(headless)
    state = headless.engine.session.runtime.context.states.size()
    monkeypatch.setattr(undo, "total_bytes", lambda: undo.SHARE * (2 * state + state // 2))
    headless.do(RebuildContext(headless.engine.session.runtime.context.settings, "tokens"))
    s = seq(headless, chat)
    first, second, third = (operate(headless, RemoveRange(s, p, p + 1), measured=False) for p in (12, 11, 10))
    assert first.undoable, "as it was done"
    with pytest.raises(UserError, match="cannot be undone any more"):
        headless.do(Operate(Undo(first.operation)))
    operate(headless, Undo(third.operation), measured=False)
    operate(headless, Undo(second.operation), measured=False)
    monkeypatch.setattr(undo, "total_bytes", lambda: undo.SHARE * (state // 16))
    headless.do(RebuildContext(headless.engine.session.runtime.context.settings, "tokens"))
    assert not operate(headless, RemoveRange(seq(headless, chat), 10, 11), measured=False).undoable
    assert chat.answer("And three lakes.", GREEDY).state == "complete"
