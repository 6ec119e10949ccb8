"""Memory of states, given back to the system; and how often a state is copied."""

import psutil
import pytest

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory import state
from kvdesk.cache.compaction import Layout
from kvdesk.errors import EngineError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.protocol.operations import Compact, Operate, RemoveRange
from kvdesk.settings import Sampling
from tests.backends.local.conftest import SMALL

MB = 1 << 20
SHORT = Sampling(temperature=0.0, max_tokens=4)


def test_memory_given_up_leaves_the_process() -> None:
    """glibc takes large blocks from the heap once one was freed; there, what lies above would hold them."""
    process, size = psutil.Process(), 24 * MB
    del [bytearray(31 * MB)][0]
    block = state.room(size)
    above = bytearray(MB)
    block[:] = b"x" * size
    before = process.memory_info().rss
    del block
    assert before - process.memory_info().rss > 0.8 * size
    del above


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
        state.room(1 << 62)


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
        patch.setattr(state, "room", none)
        headless.do(Operate(RemoveRange(seq_id, 4, 6), measured=False))
    done = next(event for event in headless.events if getattr(event, "name", "") == "seq_rm")
    assert (done.undoable, done.effect.audited, context.memory.verification.state) == (False, True, "verified")
    assert context.auditor.audit(whole=True).state == "verified"


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
    learned = session.runtime.speed_model.costs.state_ms(1)
    monkeypatch.setattr(session.runtime.context.states, "set", lambda *_a, **_k: pytest.fail("it was set"))
    headless.do(Operate(Compact(Layout.KEEP_ORDER), measured=False))
    done = next(event for event in headless.events if getattr(event, "name", "") == "compact")
    assert done.effect.bytes_moved == 0
    assert session.runtime.speed_model.costs.state_ms(1) == learned, "nothing is learned of it"
