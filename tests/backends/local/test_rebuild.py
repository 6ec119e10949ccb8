"""A context made again with other settings: its preview, what it keeps, and Cancel."""

from typing import Literal

import pytest

from kvdesk.headless import HeadlessEngine
from kvdesk.protocol.cache import ContextPreview, ContextReady, PreviewContext, RebuildContext, RecordingTaken
from kvdesk.protocol.chat import Working
from kvdesk.protocol.messages import Event
from kvdesk.settings import CacheType
from tests.backends.local.by_hand import GREEDY, answered, used
from tests.backends.local.test_turns import of


def test_previews_of_contexts(headless: HeadlessEngine) -> None:
    answered(headless)
    now = headless.engine.session.runtime.context.settings
    same = of(headless.do(PreviewContext(now)), ContextPreview)[0]
    assert same.tok_s is not None
    assert same.tok_s > 0
    assert same.carries_state
    assert same.n_tokens == same.n_cells == used(headless)
    assert same.seconds is not None
    info = headless.engine.session.runtime.info
    assert (same.k_bytes, same.v_bytes) == (info.k_bytes, info.v_bytes)
    other = of(headless.do(PreviewContext(now.model_copy(update={"type_k": CacheType.Q8_0}))), ContextPreview)[0]
    assert other.k_bytes < same.k_bytes
    assert other.carries_state, "by conversion"
    assert other.convert_seconds is not None
    assert same.convert_seconds is None
    assert other.tok_s is None
    huge = of(headless.do(PreviewContext(now.model_copy(update={"n_ctx": 1 << 20}))), ContextPreview)[0]
    assert bool(huge.refused) == (huge.k_bytes + huge.v_bytes + huge.compute_bytes > huge.available_bytes)


@pytest.mark.parametrize("keep", ["tokens", "state"])
def test_a_rebuild_keeps_the_conversations(headless: HeadlessEngine, keep: Literal["tokens", "state"]) -> None:
    first, second = answered(headless), answered(headless, "Name three towns.")
    before, small = used(headless), headless.engine.session.runtime.context.settings
    larger = small.model_copy(update={"n_ctx": 2048})
    try:
        events = headless.do(RebuildContext(larger, keep))
        held = [len(headless.engine.session.runtime.cache_manager.pool.get(chat.id).tokens) for chat in (first, second)]
        assert used(headless) == (before if keep == "tokens" else sum(held)), "saved states share nothing"
        assert of(events, Working)[-1].total == 0
        possible = {p.operation: p.answer for e in of(events, ContextReady) for p in e.possible}
        assert possible["compaction"] == "yes"
        over = of(events, RecordingTaken)[0]
        assert over.is_over
        assert sum(stream.used for stream in over.recording.state_at(over.recording.last)[0].streams) == before
        for chat in (first, second):
            stats = chat.answer("More of them.", GREEDY).stats
            assert stats.prefilled_tokens < stats.prompt_tokens / 2
    finally:
        headless.do(RebuildContext(small))


def test_a_rebuild_can_be_cancelled(headless: HeadlessEngine) -> None:
    chat = answered(headless, "Tell me of the sea. " * 15)
    small = headless.engine.session.runtime.context.settings
    done: list[int] = []

    def cancel(event: Event) -> None:
        if isinstance(event, Working):
            done.append(event.done)
            if event.done:
                headless.engine.request_cancel()

    headless._on_event = cancel
    headless.do(RebuildContext(small, "tokens"))
    headless._on_event = None
    assert done == [0, used(headless), 0], "one piece was read"
    assert 0 < used(headless) <= 64
    chat.answer("Go on.", GREEDY)
