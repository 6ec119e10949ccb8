"""K and V of a loaded cache in other types: nothing is read, everything stays what it was, and it can be undone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.self_check import checked_context
from kvdesk.backends.local.operations import conversion, undo
from kvdesk.errors import EngineError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId
from kvdesk.protocol import cache
from kvdesk.protocol.chat import CloseConversation
from kvdesk.protocol.operations import Operate, SwapOut, Undo
from kvdesk.settings import CachePolicy, CacheType, ContextSettings
from tests.backends.local.conftest import SMALL
from tests.backends.local.test_turns import GREEDY, LONG, held, of

Q8 = SMALL.model_copy(update={"type_k": CacheType.Q8_0, "type_v": CacheType.Q8_0})
Q4 = SMALL.model_copy(update={"type_k": CacheType.Q4_0, "type_v": CacheType.Q4_0})


@pytest.fixture(autouse=True)
def as_before(headless: HeadlessEngine) -> Iterator[None]:
    yield
    headless.do(cache.RebuildContext(SMALL))


def converted(headless: HeadlessEngine, settings: ContextSettings = Q8) -> cache.OperationDone:
    events = headless.do(cache.RebuildContext(settings, keep="state"))
    assert not of(events, cache.Refilled), "nothing is read again"
    (done,) = (e for e in of(events, cache.OperationDone) if e.effect is not None)
    assert done.name == "requantize"
    assert done.effect.audited
    assert headless.engine.session.runtime.context.settings == settings
    return done


def tokens(headless: HeadlessEngine) -> dict[ConversationId, list[int]]:
    return {s.conversation: list(s.tokens) for s in headless.engine.session.runtime.cache_manager.pool}


def n_used(headless: HeadlessEngine) -> int:
    return headless.engine.session.runtime.cache_manager.totals()[0]


def saved(headless: HeadlessEngine) -> dict[ConversationId, int]:
    return dict(headless.engine.session.runtime.cache_manager.swapper.saved_states.conversations())


def test_nothing_is_read_and_the_price_is_told(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    chat.answer(LONG, GREEDY)
    before = held(headless, chat)
    (preview,) = of(headless.do(cache.PreviewContext(Q8)), cache.ContextPreview)
    assert preview.carries_state
    assert preview.convert_seconds is not None
    assert preview.convert_seconds > 0
    done = converted(headless)
    (logits,) = done.effect.comparison.logits.values()
    assert 0 <= logits.kl_max < 0.1
    assert held(headless, chat) == before
    stats = chat.answer("More of that.", GREEDY).stats
    assert stats.reused_tokens >= len(before) - 1
    (same,) = of(headless.do(cache.PreviewContext(Q8)), cache.ContextPreview)
    assert same.convert_seconds is None


def test_shared_cells_stay_shared(headless: HeadlessEngine) -> None:
    first, second = HeadlessChat(headless), HeadlessChat(headless)
    first.answer(LONG, GREEDY)
    second.answer(LONG + " And a chest.", GREEDY)
    before, cells = tokens(headless), n_used(headless)
    assert cells < sum(map(len, before.values()))
    converted(headless)
    assert tokens(headless) == before
    assert n_used(headless) == cells


def test_it_is_undone_with_its_settings(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    chat.answer(LONG, GREEDY)
    states = headless.engine.session.runtime.context.states
    before, blob = held(headless, chat), bytes(states.get())
    done = converted(headless, Q4)
    assert done.undoable
    chat.answer("More of that.", GREEDY)
    events = headless.do(Operate(Undo(done.operation)))
    (ready,) = of(events, cache.ContextReady)
    assert ready.back_to == SMALL
    assert headless.engine.session.runtime.context.settings == SMALL
    assert held(headless, chat) == before
    assert bytes(headless.engine.session.runtime.context.states.get()) == blob
    assert chat.answer("More of that.", GREEDY).stats.reused_tokens >= len(before) - 1


def test_a_deleted_chat_is_not_brought_back(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    chat.answer(LONG, GREEDY)
    done = converted(headless)
    headless.do(CloseConversation(chat.id))
    assert done.operation not in headless.engine.session.runtime.by_hand.blobs.numbers


def test_a_copy_that_is_too_large_is_said(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    HeadlessChat(headless).answer(LONG, GREEDY)
    monkeypatch.setattr(undo, "MOST_BYTES", 1000)
    done = converted(headless)
    assert not done.undoable
    assert "cannot be undone" in done.note


def test_without_memory_it_is_read_again_and_said(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = HeadlessChat(headless)
    chat.answer(LONG, GREEDY)
    before = held(headless, chat)

    def none(*_: object, **__: object) -> memoryview:
        raise EngineError("There is no memory for it.")

    monkeypatch.setattr(conversion, "requantize", none)
    (refilled,) = of(headless.do(cache.RebuildContext(Q8, keep="state")), cache.Refilled)
    assert refilled.not_carried == "There is no memory for it."
    assert refilled.n_read == len(before)
    assert held(headless, chat) == before


def test_what_cannot_be_converted_is_read_again_and_said(headless: HeadlessEngine) -> None:
    HeadlessChat(headless).answer(LONG, GREEDY)
    exact = Q8.model_copy(update={"exact": True})
    (preview,) = of(headless.do(cache.PreviewContext(exact)), cache.ContextPreview)
    assert not preview.carries_state
    (refilled,) = of(headless.do(cache.RebuildContext(exact, keep="state")), cache.Refilled)
    assert refilled.not_carried == preview.why_not_carried
    assert refilled.n_read > 0


def test_what_was_quantized_goes_to_no_other_chat(headless: HeadlessEngine) -> None:
    """Narrower than floats it is as good as read again; from a narrow type to a wide one it is not."""
    HeadlessChat(headless).answer(LONG, GREEDY)
    converted(headless, Q4)
    assert HeadlessChat(headless).answer(LONG, GREEDY).stats.reused_tokens > 0
    converted(headless, SMALL)
    assert HeadlessChat(headless).answer(LONG + " And then?", GREEDY).stats.reused_tokens == 0


@pytest.mark.parametrize("on_disk", [False, True])
def test_saved_chats_are_converted_too(headless: HeadlessEngine, tmp_path: Path, on_disk: bool) -> None:
    policy = CachePolicy(memory_mb=0 if on_disk else 100)
    headless.do(cache.UsePolicy(policy, tmp_path if on_disk else None))
    try:
        chat, other = HeadlessChat(headless), HeadlessChat(headless)
        chat.answer(LONG, GREEDY)
        before = held(headless, chat)
        headless.do(Operate(SwapOut(chat.id)))
        other.answer("What is a cache?", GREEDY)
        was = saved(headless)[chat.id]
        done = converted(headless)
        assert 0 < saved(headless)[chat.id] < was
        assert chat.answer("And then?", GREEDY).stats.reused_tokens >= len(before) - 1
        headless.do(Operate(Undo(done.operation)))
        assert saved(headless)[chat.id] == was
    finally:
        headless.do(cache.UsePolicy(CachePolicy(), None))


def test_a_context_that_cannot_be_made_costs_nothing(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = HeadlessChat(headless)
    chat.answer(LONG, GREEDY)
    before = held(headless, chat)

    def refused(model: Model, settings: ContextSettings) -> Context:
        if settings == Q8:
            raise EngineError("llama.cpp cannot make it.")
        return checked_context(model, settings)

    monkeypatch.setattr("kvdesk.backends.local.session.checked_context", refused)
    with pytest.raises(Exception, match="cannot make it"):
        headless.do(cache.RebuildContext(Q8, keep="state"))
    assert headless.engine.session.runtime.context.settings == SMALL
    assert held(headless, chat) == before
