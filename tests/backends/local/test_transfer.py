"""Memory of states: used again when nothing refers to it, never before, and given back to the system."""

from __future__ import annotations

import sys
import threading

import numpy as np
import psutil
import pytest

from kvdesk.backends.local.llama import state, transfer
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.transfer import MOST_BLOCKS, MOST_KEPT, TransferBuffers
from kvdesk.cache.compaction import Layout
from kvdesk.errors import EngineError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.protocol.cache import MemoryLedger, RebuildContext
from kvdesk.protocol.operations import Compact, Operate, RemoveRange, SwapIn, SwapOut
from kvdesk.settings import Sampling
from tests.backends.local.conftest import SMALL

MB = 1 << 20
SHORT = Sampling(temperature=0.0, max_tokens=4)


def address(block: memoryview) -> int:
    return int(np.frombuffer(block, np.uint8).ctypes.data)


def test_memory_is_used_again_when_nobody_refers_to_it() -> None:
    buffers = TransferBuffers()
    block = buffers.block(5 * MB - 7)
    where, part = address(block), np.frombuffer(block[MB:], np.uint8)
    assert len(block) == 5 * MB - 7
    del block
    other = buffers.block(5 * MB)
    assert (buffers.n_bytes, address(other) == where) == (0, False), "a part of it is still referred to"
    del part
    assert buffers.n_bytes == 5 * MB
    assert address(buffers.block(5 * MB)) == where


@pytest.mark.parametrize("n_bytes", [MB, 12 * MB], ids=["much smaller", "larger"])
def test_a_state_of_another_size_gets_memory_of_its_own(n_bytes: int) -> None:
    buffers = TransferBuffers()
    del [buffers.block(10 * MB)][0]
    assert buffers.n_bytes == 10 * MB
    kept = buffers.block(n_bytes)
    assert buffers.n_bytes == 10 * MB
    del kept
    assert buffers.n_bytes == 10 * MB + n_bytes


def test_what_is_kept_is_bounded() -> None:
    buffers = TransferBuffers()
    blocks = [buffers.block(MOST_KEPT // 4) for _ in range(7)]
    del blocks
    assert MOST_KEPT // 2 < buffers.n_bytes <= MOST_KEPT


def test_states_of_many_sizes_do_not_pile_up() -> None:
    buffers = TransferBuffers()
    blocks = [buffers.block(n * MB) for n in range(1, MOST_BLOCKS + 3)]
    while blocks:
        del blocks[0]
    assert buffers.n_bytes == sum(range(3, MOST_BLOCKS + 3)) * MB


def test_memory_given_up_leaves_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """glibc takes large blocks from the heap once one was freed; there, what lies above would hold them."""
    process, size = psutil.Process(), 24 * MB
    del [bytearray(31 * MB)][0]
    buffers = TransferBuffers()
    block = buffers.block(size)
    above = bytearray(MB)
    block[:] = b"x" * size
    before = process.memory_info().rss
    monkeypatch.setattr(transfer, "KEPT_S", 0.0)
    del block
    assert buffers.expire()
    assert before - process.memory_info().rss > 0.8 * size
    del above


@pytest.mark.skipif(sys.platform != "linux", reason="the system is asked as Linux is")
def test_a_smaller_state_that_stays_holds_no_more_than_its_own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    process, buffers = psutil.Process(), TransferBuffers()
    block = buffers.block(40 * MB)
    block[:] = b"x" * len(block)
    where = address(block)
    del block
    block = buffers.block(33 * MB)
    block[-8:] = b"the last"
    before = process.memory_info().rss
    assert address(block) == where
    assert not buffers.expire(), "the next state may be as large as the first again"
    monkeypatch.setattr(transfer, "KEPT_S", 0.0)
    assert buffers.due
    assert buffers.expire()
    assert before - process.memory_info().rss > 6 * MB
    assert bytes(block[-8:]) == b"the last"
    assert not buffers.due


def test_a_block_that_has_a_larger_state_again_is_left_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    buffers = TransferBuffers()
    del [buffers.block(40 * MB)][0]
    del [buffers.block(33 * MB)][0]
    block = buffers.block(40 * MB)
    block[-8:] = b"the last"
    monkeypatch.setattr(transfer, "KEPT_S", 0.0)
    assert not buffers.expire()
    assert bytes(block[-8:]) == b"the last"


def test_memory_of_a_closed_context_leaves_the_process(loaded: HeadlessEngine) -> None:
    process, session = psutil.Process(), loaded.engine.session
    del [bytearray(31 * MB)][0]  # from now on glibc takes blocks of that size from the heap
    context = Context(session.loaded.model, SMALL)
    above = [bytearray(MB // 16) for _ in range(64)]
    before = process.memory_info().rss
    context.close()
    assert before - process.memory_info().rss > 0.8 * session.runtime.estimate.k
    del above


def test_no_memory_for_a_state_is_said() -> None:
    with pytest.raises(EngineError, match="no memory for a state of 4,611,686,018,427 MB"):
        TransferBuffers().block(1 << 62)


def test_without_memory_for_its_copy_an_operation_is_done_but_not_undone(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = HeadlessChat(headless)
    chat.answer("Hello.", SHORT)
    seq_id = headless.engine.session.runtime.cache_manager.pool.get(chat.id).seq_id
    context = headless.engine.session.runtime.context

    def none(_n_bytes: int) -> memoryview:
        raise EngineError("There is no memory for it.")

    with monkeypatch.context() as patch:
        patch.setattr(context.states.buffers, "block", none)
        headless.do(Operate(RemoveRange(seq_id, 4, 6), measured=False))
    done = next(event for event in headless.events if getattr(event, "name", "") == "seq_rm")
    assert (done.undoable, done.effect.audited, context.memory.verification.state) == (False, True, "verified")
    assert context.auditor.audit(whole=True).state == "verified"


def test_a_closed_context_keeps_nothing_for_states() -> None:
    """Also what is given back to it later: copies for undo outlive their context, and garbage is collected late."""
    buffers = TransferBuffers()
    late = buffers.block(MB)
    del [buffers.block(MB)][0]
    buffers.close()
    assert buffers.n_bytes == 0
    del late
    assert buffers.n_bytes == 0


def test_a_rebuild_gives_back_what_was_kept_for_the_old_context(headless: HeadlessEngine) -> None:
    HeadlessChat(headless).answer("Hello.", SHORT)
    old = headless.engine.session.runtime.context
    old.auditor.audit(whole=True)
    assert old.states.buffers.n_bytes > 0
    headless.do(RebuildContext(old.settings, "nothing"))
    assert old.states.buffers.n_bytes == 0


def test_what_is_not_used_goes_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    buffers = TransferBuffers()
    del [buffers.block(MB)][0]
    assert not buffers.expire()
    assert buffers.n_bytes == MB
    monkeypatch.setattr(transfer, "KEPT_S", 0.0)
    assert buffers.expire()
    assert buffers.n_bytes == 0


def test_a_state_may_end_on_another_thread_and_after_its_context() -> None:
    buffers = TransferBuffers()
    blocks = [buffers.block(MB), buffers.block(MB)]
    thread = threading.Thread(target=blocks.pop)
    thread.start()
    thread.join()
    assert buffers.n_bytes == MB
    del buffers
    blocks[0][:4] = b"kept"
    assert bytes(blocks.pop()[:4]) == b"kept"


def test_the_ledger_tells_what_is_kept_until_it_is_given_back(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    HeadlessChat(headless).answer("Hello.", SHORT)
    chat = HeadlessChat(headless)
    chat.answer("Hello again.", SHORT)
    del [headless.engine.session.runtime.context.states.buffers.block(30 * MB)][0]
    headless.do(Operate(SwapOut(chat.id), measured=False))

    def told() -> dict[str, int | None]:
        ledgers = [event for event in headless.events if isinstance(event, MemoryLedger)]
        rows = ledgers[-1].rows
        assert all(row.most is None or (row.measured or 0) <= row.most for row in rows)
        return {row.name: row.measured for row in rows}

    context = headless.engine.session.runtime.context
    assert told()["transfer buffers"] == context.states.buffers.n_bytes > 0
    assert told()["undo"]
    monkeypatch.setattr(transfer, "KEPT_S", 0.0)
    assert headless.engine.idle_work_due
    headless.engine.idle()
    assert "transfer buffers" not in told()
    headless.engine.idle()
    assert not headless.engine.idle_work_due
    headless.do(Operate(SwapIn(chat.id), measured=False))
    assert context.auditor.audit(whole=True).state == "verified"


def test_an_audit_uses_the_memory_of_the_one_before(headless: HeadlessEngine) -> None:
    chats = [HeadlessChat(headless) for _ in range(3)]
    for chat in chats:
        chat.answer(f"Hello {chat.id}.", SHORT)
    context = headless.engine.session.runtime.context
    headless.do(Operate(SwapOut(chats[0].id), measured=False))
    context.auditor.audit(whole=True)
    before = context.states.buffers.n_bytes
    assert before > 0
    context.auditor.audit(whole=True)
    assert context.states.buffers.n_bytes == before


def test_what_was_audited_is_not_audited_again_before_something_changes(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = [HeadlessChat(headless), HeadlessChat(headless)]
    for chat in chats:
        chat.answer("Hello.", SHORT)
    context = headless.engine.session.runtime.context
    read: list[str] = []
    get, beginning = context.auditor.read_state, state.get_beginning

    def counted() -> memoryview:
        read.append("all")
        return get()

    def cells(ctx: object, n_bytes: int) -> bytearray:
        read.append("cells")
        return beginning(ctx, n_bytes)

    monkeypatch.setattr(context.auditor, "read_state", counted)
    monkeypatch.setattr(state, "get_beginning", cells)
    context.states.set(context.states.get(), carry=True)
    assert read == ["all", "cells"], "got, and audited"
    assert context.auditor.audit().state == "verified"
    assert read == ["all", "cells"]
    context.auditor.audit(whole=True)
    assert read == ["all", "cells", "all"], "asked for, it is compared again"
    context.memory.seq_rm(headless.engine.session.runtime.cache_manager.pool.get(chats[0].id).seq_id, -1, -1)
    context.auditor.audit()
    assert read == ["all", "cells", "all", "cells"]


def test_a_compaction_that_changes_nothing_moves_nothing(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    HeadlessChat(headless).answer("Hello.", SHORT)
    session = headless.engine.session
    learned = session.runtime.speed_model.cost.blob_ms(1)
    monkeypatch.setattr(session.runtime.context.states, "set", lambda *_a, **_k: pytest.fail("it was set"))
    headless.do(Operate(Compact(Layout.KEEP_ORDER), measured=False))
    done = next(event for event in headless.events if getattr(event, "name", "") == "compact")
    assert done.effect.bytes_moved == 0
    assert session.runtime.speed_model.cost.blob_ms(1) == learned, "nothing is learned of it"
