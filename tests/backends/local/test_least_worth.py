"""Overflow policies that evict single tokens, in a context of 256: what leaves, what stays, and what is read again."""

import re
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvdesk.backends.local.attention import job
from kvdesk.backends.local.attention.worth import TokenWorth
from kvdesk.backends.local.cache_manager.operation_journal import MOST_CALLS
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.attention.second_context import SecondContext
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId, MessageId
from kvdesk.policies.overflow import N_RECENT
from kvdesk.policies.tuned import RESERVE
from kvdesk.protocol.attention import Attend, Attended, AttentionPreview, PreviewAttention, Queries
from kvdesk.protocol.cache import OperationDone, RebuildContext
from kvdesk.protocol.chat import Client, MessageRetention
from kvdesk.protocol.operations import Operate, ShiftPositions, SwapOut
from kvdesk.settings import CacheType, Overflow, Sampling
from tests.backends.local import test_overflow as overflows
from tests.backends.local.conftest import NARROW, SMALL, opened_with
from tests.backends.local.test_turns import held, of

POLICIES = (Overflow.LEAST_ATTENDED, Overflow.LOW_NORM_KEYS)
one_in_every_run = pytest.mark.parametrize("policy", [POLICIES[0], pytest.param(POLICIES[1], marks=pytest.mark.matrix)])


def worth_of(headless: HeadlessEngine) -> TokenWorth:
    session = headless.engine.session
    return TokenWorth(session.runtime.context, session.runtime.cache_manager, session.loaded.header)


@pytest.mark.parametrize("policy", POLICIES)
def test_it_goes_on_and_finds_its_cache_again(narrow: HeadlessEngine, policy: Overflow) -> None:
    chat = overflows.filled(narrow, policy)
    ended = overflows.long_answer(chat)
    assert (ended.state, ended.stats.generated_tokens) == ("complete", 150)
    (event,) = overflows.overflowed(narrow)
    assert event.evicted == (), "no message leaves"
    assert f"the {256 // RESERVE} tokens" in event.sentence
    assert event.sentence in ended.note
    (operation,) = [e for e in of(narrow.events, OperationDone) if e.name == "slide"]
    assert operation.reason == event.sentence
    assert operation.call.count("llama_memory_seq_") == MOST_CALLS
    assert re.search(r"; /\* \d+ more \*/$", operation.call)
    holds = overflows.audited(narrow, chat)
    system = narrow.engine.session.loaded.prompts.tokens(chat.messages[:1])
    assert holds[: len(system) - 5] == system[:-5], "the system prompt stays, without what opens the answer"
    cuts = dict(chat.evicted.cuts)
    assert sum(p1 - p0 for ranges in cuts.values() for p0, p1 in ranges) == 256 // RESERVE
    assert chat.messages[0].id not in cuts
    assert {how for _, how in of(narrow.events, MessageRetention)[-1].retention} == {"in the cache"}
    stats = chat.answer("And?", Sampling(temperature=0.0, max_tokens=2)).stats
    (event,) = overflows.overflowed(narrow)
    assert "were removed, and the later tokens moved" in event.sentence
    n_removed = sum(p1 - p0 for _, ranges in chat.evicted.cuts for p0, p1 in ranges) - 256 // RESERVE
    assert stats.reused_tokens == len(holds) - n_removed, "nothing is read again"
    overflows.audited(narrow, chat)


@one_in_every_run
def test_before_an_answer_begins_it_is_foretold(narrow: HeadlessEngine, policy: Overflow) -> None:
    """And the second time tokens leave of messages that have lost some."""
    chat = overflows.filled(narrow, policy)
    for _ in range(3):
        while not (found := overflows.foretold(narrow, chat, overflows.TOLD)).n_evicted_tokens:
            chat.answer("And then?", overflows.SHORT)
        assert found.n_evicted_messages == 0
        ended = chat.answer(overflows.TOLD, overflows.SHORT)
        assert overflows.overflowed(narrow)
        assert (found.n_reused, found.n_prefill) == (ended.stats.reused_tokens, ended.stats.prefilled_tokens)
        overflows.audited(narrow, chat)
    for _, ranges in chat.evicted.cuts:
        assert list(ranges) == sorted(ranges)
        assert all(a[1] < b[0] for a, b in pairwise(ranges))


def test_a_preview_measures_nothing(narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = overflows.filled(narrow, Overflow.LEAST_ATTENDED)
    monkeypatch.setattr(TokenWorth, "of", lambda *_: pytest.fail("it was measured"))
    overflows.foretold(narrow, chat, overflows.TOLD * 4)


def test_a_preview_counts_what_measuring_takes(narrow: HeadlessEngine) -> None:
    chat = overflows.filled(narrow, Overflow.LEAST_ATTENDED)
    while not (found := overflows.foretold(narrow, chat, overflows.TOLD)).n_evicted_tokens:
        chat.answer("And then?", overflows.SHORT)
    runtime = narrow.engine.session.runtime
    sequence = runtime.cache_manager.pool.get(chat.id)
    n = len(sequence.tokens)
    (price,) = of(narrow.do(PreviewAttention(Queries(sequence.seq_id, n - N_RECENT, n))), AttentionPreview)
    reading_ms = runtime.cache_manager.costs.reading_ms(found.n_prefill, found.n_reused, runtime.context.n_batch)
    assert price.seconds is not None
    assert reading_ms is not None
    assert found.first_token_ms == pytest.approx(1e3 * price.seconds + reading_ms, rel=0.01)
    assert "to find what matters least" in found.sentence
    chat.overflow = Overflow.SLIDE
    assert "to find" not in overflows.foretold(narrow, chat, overflows.TOLD).sentence


@one_in_every_run
def test_a_preview_of_a_saved_chat_counts_what_is_restored(narrow: HeadlessEngine, policy: Overflow) -> None:
    """Its state is restored to be measured, and what stays is not read again."""
    chat = overflows.filled(narrow, policy)
    while not (there := overflows.foretold(narrow, chat, overflows.TOLD)).n_evicted_tokens:
        chat.answer("And then?", overflows.SHORT)
    runtime = narrow.engine.session.runtime
    narrow.do(Operate(SwapOut(chat.id), measured=False))
    found = overflows.foretold(narrow, chat, overflows.TOLD)
    assert (found.n_reused, found.n_prefill) == (there.n_reused, there.n_prefill)
    assert found.sentence.startswith("restored in ")
    assert "to find what matters least" in found.sentence
    costs, (_, n_bytes) = runtime.cache_manager.costs, runtime.cache_manager.held_if_restored(chat.id)
    reading_ms = costs.reading_ms(found.n_prefill, found.n_reused, runtime.context.n_batch)
    assert n_bytes > 0
    assert found.first_token_ms is not None
    assert reading_ms is not None
    restored_and_copied_ms = 2 * costs.state_ms(n_bytes)
    if policy is Overflow.LOW_NORM_KEYS:
        assert found.first_token_ms == pytest.approx(restored_and_copied_ms + reading_ms)
    assert found.first_token_ms >= 0.999 * (restored_and_copied_ms + reading_ms)
    stats = chat.answer(overflows.TOLD, overflows.SHORT).stats
    assert (stats.reused_tokens, stats.prefilled_tokens) == (found.n_reused, found.n_prefill)
    overflows.audited(narrow, chat)


@pytest.fixture
def stopped_at_once(narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> list[SecondContext]:
    """A person stops whatever answer there is as soon as its second context decodes. Returns these contexts."""
    made: list[SecondContext] = []

    class Stopping(SecondContext):
        def attend(self, *args: Any, **kwargs: Any) -> Any:
            made.append(self)
            for answer in tuple(narrow.engine._scheduler.stops._expected):
                narrow.engine.request_stop(answer)
            return super().attend(*args, **kwargs)

    monkeypatch.setattr(job, "SecondContext", Stopping)
    return made


def test_a_stop_ends_measuring_before_an_answer_begins(
    narrow: HeadlessEngine, stopped_at_once: list[SecondContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = overflows.filled(narrow, Overflow.LEAST_ATTENDED)
    while not overflows.foretold(narrow, chat, overflows.TOLD).n_evicted_tokens:
        chat.answer("And then?", overflows.SHORT)
    before = held(narrow, chat)
    ended = chat.answer(overflows.TOLD, overflows.SHORT)
    assert (ended.state, ended.note) == ("stopped", "Stopped before it began.")
    (context,) = stopped_at_once
    assert not context._context.is_open
    assert not overflows.overflowed(narrow)
    assert held(narrow, chat) == before, "nothing has changed"
    assert not chat.evicted.cuts
    monkeypatch.undo()
    assert chat.answer(overflows.TOLD, overflows.SHORT).state == "complete"
    assert "looked at least" in overflows.overflowed(narrow)[0].sentence, "the next one is measured"
    overflows.audited(narrow, chat)


def test_a_stop_ends_measuring_while_an_answer_is_written(
    narrow: HeadlessEngine, stopped_at_once: list[SecondContext]
) -> None:
    chat = overflows.filled(narrow, Overflow.LEAST_ATTENDED)
    ended = overflows.long_answer(chat)
    assert ended.state == "stopped"
    assert 0 < ended.stats.generated_tokens < 150
    assert len(stopped_at_once) == 1
    assert not overflows.overflowed(narrow)
    assert not narrow.engine.session.runtime.context.stop.raised
    overflows.audited(narrow, chat)


@one_in_every_run
def test_what_left_is_gone_after_a_restart_too(talking_file: Path, tmp_path: Path, policy: Overflow) -> None:
    with closing(overflows.restarted(talking_file, tmp_path)) as first:
        chat = overflows.filled(first, policy)
        overflows.long_answer(chat)
        tokens = overflows.audited(first, chat)
    with closing(overflows.restarted(talking_file, tmp_path)) as second:
        chat.headless = second
        cut = sum(p1 - p0 for _, ranges in chat.evicted.cuts for p0, p1 in ranges)
        stats = chat.answer("And?", Sampling(temperature=0.0, max_tokens=2)).stats
        more = sum(p1 - p0 for _, ranges in chat.evicted.cuts for p0, p1 in ranges) - cut
        assert more > 0, "it is full again"
        assert stats.reused_tokens == len(tokens) - more
        overflows.audited(second, chat)


def test_what_the_cache_has_lost_is_read_whole(narrow: HeadlessEngine) -> None:
    """Tokens between which others are missing mean nothing by themselves: then the oldest messages leave."""
    chat = overflows.filled(narrow, Overflow.LEAST_ATTENDED)
    overflows.long_answer(chat)
    assert chat.evicted.cuts
    narrow.engine.session.runtime.cache_manager.forget(chat.id, "the test takes its cells")
    chat.answer("And?", overflows.SHORT)
    (event,) = overflows.overflowed(narrow)
    assert event.sentence.startswith("Which tokens matter least is not known: the conversation is not in the cache.")
    assert event.evicted
    assert chat.evicted.policy == Overflow.SLIDE
    read_whole(narrow, chat)


def test_exact_answers_read_whole_messages(narrow: HeadlessEngine) -> None:
    chat = overflows.filled(narrow, Overflow.LOW_NORM_KEYS)
    overflows.long_answer(chat)
    chat.overflow = Overflow.RECOMPUTE
    chat.answer("And?", overflows.SHORT)
    read_whole(narrow, chat)


def test_cells_that_a_running_answer_shares_do_not_move(narrow: HeadlessEngine) -> None:
    chat = overflows.filled(narrow, Overflow.LOW_NORM_KEYS)
    tokens = held(narrow, chat)
    cache_manager = narrow.engine.session.runtime.cache_manager
    sequence = cache_manager.pool.get(chat.id)
    assert sequence is not None
    cache_manager.mark_busy(sequence)
    found = worth_of(narrow).of("norms of K", chat.id, tokens, None)
    assert found.why == "another answer that is being written shares its cells."
    assert not worth_of(narrow).of("norms of K", chat.id, tokens, sequence).why
    cache_manager.mark_idle(sequence)


def test_attention_is_that_of_the_last_tokens(narrow: HeadlessEngine) -> None:
    chat = overflows.filled(narrow, Overflow.STOP)
    tokens = held(narrow, chat)
    found = worth_of(narrow).of("attention", chat.id, tokens, None)
    assert len(found.values) == len(tokens)
    assert sum(found.values) == pytest.approx(1, abs=1e-4)
    assert found.ms > 0
    seq_id = narrow.engine.session.runtime.cache_manager.pool.get(chat.id).seq_id
    rows = Queries(seq_id, len(tokens) - N_RECENT, len(tokens), each=True)
    (told,) = of(narrow.do(Attend(rows)), Attended)
    heads = np.concatenate([layer.weights for layer in told.layers])
    assert np.allclose(found.values, heads.mean(axis=(0, 1)), rtol=1e-3, atol=1e-5)


def test_norms_are_those_of_k_wherever_a_cell_is_moved_to(narrow: HeadlessEngine) -> None:
    chat = overflows.filled(narrow, Overflow.STOP)
    tokens = held(narrow, chat)
    found = np.array(worth_of(narrow).of("norms of K", chat.id, tokens, None).values)
    assert (found < 0).all()
    assert found.mean() == pytest.approx(-1, abs=1e-4)
    seq_id = narrow.engine.session.runtime.cache_manager.pool.get(chat.id).seq_id
    narrow.do(Operate(ShiftPositions(seq_id, len(tokens) - 1, -1, 7), measured=False))
    sequence = narrow.engine.session.runtime.cache_manager.pool.get(chat.id)
    assert sequence is not None
    moved = worth_of(narrow)._norms(sequence)
    assert np.allclose(moved[: len(tokens) - 1], found[:-1], atol=1e-3)
    assert moved[len(tokens) + 6] == pytest.approx(found[-1], abs=1e-3)


@pytest.mark.parametrize("kind", [CacheType.Q8_0, pytest.param(CacheType.Q4_0, marks=pytest.mark.matrix)])
def test_quantized_k_has_the_norms_of_f16(talking_file: Path, kind: CacheType) -> None:
    norms = {}
    for name in (CacheType.F16, kind):
        for headless in opened_with(talking_file, NARROW.model_copy(update={"type_k": name, "type_v": name})):
            chat = overflows.filled(headless, Overflow.STOP)
            tokens = held(headless, chat)
            norms[name] = tokens, worth_of(headless).of("norms of K", chat.id, tokens, None).values
    n = len(overflows.TOLD.split())  # the answers may differ by rounding, the first question does not
    assert norms[kind][0][:n] == norms[CacheType.F16][0][:n]
    assert np.allclose(norms[kind][1][:n], norms[CacheType.F16][1][:n], atol=0.1)


def test_another_message_keeps_what_it_has(narrow: HeadlessEngine) -> None:
    """Of a branch that goes on from an earlier message, only what it shares has lost tokens."""
    chat = overflows.filled(narrow, Overflow.LOW_NORM_KEYS)
    overflows.long_answer(chat)
    chat.evicted = type(chat.evicted)(policy=chat.evicted.policy, cuts=((MessageId("nobody"), ((0, 1 << 40),)),))
    chat.answer(overflows.QUESTION, overflows.LONG)
    overflows.audited(narrow, chat)


def test_a_memory_without_room_for_a_second_context_slides(
    narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvdesk.library.estimate.available_bytes", lambda: 0)
    chat = overflows.filled(narrow, Overflow.LEAST_ATTENDED, overflows.SYSTEM)
    overflows.long_answer(chat)
    (event,) = overflows.overflowed(narrow)
    assert event.sentence.startswith("Which tokens matter least is not known: ")
    assert "oldest message" in event.sentence
    assert event.evicted
    overflows.audited(narrow, chat)


def read_whole(headless: HeadlessEngine, chat: HeadlessChat) -> None:
    """What the chat's last answer was written behind lacks whole messages at most."""
    holds = overflows.audited(headless, chat)
    left = [m for m in chat.messages if m.id not in chat.evicted.messages]
    assert chat.evicted.cuts == ()
    assert holds == headless.engine.session.loaded.prompts.tokens(left)[: len(holds)]


def test_an_answer_beside_another_of_its_chat_reads_whole_messages(talking_file: Path) -> None:
    """What was moved is not shared, so another sequence of the chat has none of it."""
    for headless in opened_with(talking_file, SMALL.model_copy(update={"kv_unified": False})):
        chat = overflows.filled(headless, Overflow.LOW_NORM_KEYS)
        overflows.long_answer(chat)
        assert chat.evicted.cuts
        cache_manager = headless.engine.session.runtime.cache_manager
        sequence = cache_manager.pool.get(chat.id)
        assert sequence is not None
        cache_manager.mark_busy(sequence)
        chat.answer("And?", overflows.SHORT)
        cache_manager.mark_idle(sequence)
        (beside,) = [s for s in cache_manager.pool if s.tokens and s is not sequence]
        left = [m for m in chat.messages if m.id not in chat.evicted.messages]
        assert chat.evicted.cuts == ()
        expected = headless.engine.session.loaded.prompts.tokens(left)
        assert list(beside.tokens) == expected[: len(beside.tokens)]


def test_a_rebuild_reads_no_message_without_some_of_its_tokens(narrow: HeadlessEngine) -> None:
    chat = overflows.filled(narrow, Overflow.LOW_NORM_KEYS)
    overflows.long_answer(chat)
    assert chat.evicted.cuts
    narrow.do(RebuildContext(NARROW, keep="tokens"))
    chat.answer("And?", overflows.SHORT)
    read_whole(narrow, chat)


def test_exact_blocks_reuse_nothing_that_moved(talking_file: Path) -> None:
    for headless in opened_with(talking_file, NARROW.model_copy(update={"exact": True})):
        context = headless.engine.session.runtime.context
        if context.block == 1:
            pytest.skip("rows are alike in batches of all sizes here")
        chat = overflows.filled(headless, Overflow.LOW_NORM_KEYS)
        assert worth_of(headless).price_ms("norms of K", chat.id, held(headless, chat)) == 0, "nothing is measured"
        while not overflows.overflowed(headless):
            chat.answer(overflows.TOLD, Sampling(temperature=0.0, max_tokens=1))
        assert overflows.overflowed(headless)[0].evicted, "the oldest messages leave"
        read_whole(headless, chat)


def test_what_is_lost_between_planning_and_beginning_is_read_whole(
    narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease may evict another sequence, whose state takes the room of this chat's."""
    chat = overflows.filled(narrow, Overflow.LOW_NORM_KEYS)
    overflows.long_answer(chat)
    cache_manager = narrow.engine.session.runtime.cache_manager
    lease, lost = cache_manager.lease, list[ConversationId]()

    def losing(conversation: ConversationId, *, inactive: bool = False, client: Client | None = None) -> CacheSequence:
        if not lost:
            lost.append(conversation)
            cache_manager.close(conversation, "the test takes its cells")
        return lease(conversation, inactive=inactive, client=client)

    monkeypatch.setattr(cache_manager, "lease", losing)
    chat.answer("And?", overflows.SHORT)
    assert lost
    read_whole(narrow, chat)
