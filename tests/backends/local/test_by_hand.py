"""Operations by hand on the real engine: each does what it says, is audited, compared, and can be undone."""

from pathlib import Path

import numpy as np
import pytest

from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import Layout
from kvdesk.cache.compare import Verdict
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import new_conversation_id
from kvdesk.protocol.cache import (
    CacheView,
    MessageSpans,
    OperationDone,
    RebuildContext,
    RecordingTaken,
    TakeRecording,
    Verified,
    VerifyConversation,
    Watch,
)
from kvdesk.protocol.chat import Working
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import (
    BatchRefused,
    ClearCache,
    Compact,
    CompactionPreview,
    CopySequence,
    KeepOnly,
    Operate,
    PreviewCompaction,
    RemoveRange,
    ShiftPositions,
    SwapIn,
    SwapOut,
    TryDecode,
    Undo,
)
from kvdesk.settings import Sampling
from tests.backends.local.by_hand import GREEDY, answered, operate, seq, used
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_turns import of
from tests.backends.local.tiny_models import written


def test_a_range_is_removed_and_comes_back(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    before, session = used(headless), headless.engine.session
    held = list(session.runtime.cache_manager.pool.get(chat.id).tokens)
    done = operate(headless, RemoveRange(seq(headless, chat), 10, 15))
    assert used(headless) == before - 5
    assert session.runtime.cache_manager.pool.get(chat.id).tokens == held[:10]
    change = done.effect.comparison.sequences[0]
    assert (change.freed, change.stayed) == (5, before - 5)
    assert done.effect.comparison.logits[seq(headless, chat)].verdict is not Verdict.EXACT
    assert done.undoable
    operate(headless, Undo(done.operation))
    assert used(headless) == before
    assert session.runtime.cache_manager.pool.get(chat.id).tokens == held
    stats = chat.answer("And three lakes.", GREEDY).stats
    assert stats.reused_tokens == len(held)


def test_after_a_hole_the_next_turn_is_that_of_a_fresh_start(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    operate(headless, RemoveRange(seq(headless, chat), 10, 15))
    ended = chat.answer("And three lakes.", GREEDY)
    assert ended.stats.reused_tokens == 10
    other = HeadlessChat(headless)
    other.messages = chat.messages[:-2]
    other.answer("And three lakes.", GREEDY)
    assert other.messages[-1].tokens == chat.messages[-1].tokens


@pytest.mark.parametrize("kind", ["hybrid_idx", pytest.param("dsv4", marks=pytest.mark.matrix), "mamba2"])
def test_cells_that_cannot_be_moved_are_not_compacted(kind: str, tiny_folder: Path) -> None:
    """Other bytes of the state belong to them, or there are none."""
    for headless in opened_with(written(tiny_folder, kind, text=True), SMALL):
        first, second = answered(headless, "One"), answered(headless, "Two")
        first.answer("Three", GREEDY)
        assert second.messages
        with pytest.raises(UserError, match=r"compact|kvdesk does not move them"):
            operate(headless, Compact(Layout.HOT_FIRST))
        assert session_of(headless).runtime.context.auditor.audit(whole=True).state == "verified"


def test_keep_only_one(headless: HeadlessEngine) -> None:
    first, second = answered(headless), answered(headless, "Name three towns.")
    operate(headless, KeepOnly(seq(headless, second)))
    assert used(headless) == len(headless.engine.session.runtime.cache_manager.pool.get(second.id).tokens)
    assert headless.engine.session.runtime.cache_manager.pool.get(first.id).tokens == []


def test_a_copy_shares_every_cell(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    before, copy = used(headless), new_conversation_id()
    done = operate(headless, CopySequence(seq(headless, chat), copy))
    assert used(headless) == before
    pool = headless.engine.session.runtime.cache_manager.pool
    assert pool.get(copy).tokens == pool.get(chat.id).tokens
    assert max(change.shared for change in done.effect.comparison.sequences) == before
    with pytest.raises(UserError):
        headless.do(Operate(CopySequence(seq(headless, chat), chat.id)))


def test_what_was_moved_is_no_more_exact_in_a_copy(headless: HeadlessEngine) -> None:
    """A hole is closed: the tokens at 10 and later were computed elsewhere, so no other conversation reuses them."""
    chat, copy = answered(headless), new_conversation_id()
    operate(headless, RemoveRange(seq(headless, chat), 10, 15))
    operate(headless, ShiftPositions(seq(headless, chat), 15, -1, -5))
    pool = headless.engine.session.runtime.cache_manager.pool
    assert len(pool.get(chat.id).tokens) > 15
    assert pool.get(chat.id).exact == 10
    operate(headless, CopySequence(seq(headless, chat), copy))
    assert (pool.get(copy).tokens, pool.get(copy).exact) == (pool.get(chat.id).tokens, 10)


def test_positions_are_shifted(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    s = seq(headless, chat)
    last = headless.engine.session.runtime.context.memory.seq_pos_max(s)
    done = operate(headless, ShiftPositions(s, 10, -1, 3))
    assert headless.engine.session.runtime.context.memory.seq_pos_max(s) == last + 3
    assert done.effect.comparison.sequences[0].shifted == last - 9
    assert len(headless.engine.session.runtime.cache_manager.pool.get(chat.id).tokens) == 10
    operate(headless, Undo(done.operation))
    assert headless.engine.session.runtime.context.memory.seq_pos_max(s) == last


def test_a_shift_waits_until_it_is_needed(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    headless.do(Watch(snapshots=True))
    events = headless.do(Operate(ShiftPositions(seq(headless, chat), 10, -1, 3), measured=False))
    assert of(events, CacheView)[-1].pending
    headless.do(Watch(snapshots=False))


@pytest.mark.parametrize("layout", list(Layout))
def test_compaction_changes_no_answer(headless: HeadlessEngine, layout: Layout) -> None:
    first, second = answered(headless), answered(headless, "Name three towns.")
    third = answered(headless, "Name three seas.")
    headless.do(Operate(RemoveRange(seq(headless, second)), measured=False))
    first.answer("More of them.", GREEDY)
    preview = of(headless.do(PreviewCompaction(layout, (seq(headless, third),))), CompactionPreview)[0]
    done = operate(headless, Compact(layout, (seq(headless, third),)))
    comparison = done.effect.comparison
    assert done.effect.audited
    assert done.effect.bytes_moved == preview.plan.bytes_to_move
    assert comparison.streams[0].after.hole_ratio == 0.0
    assert comparison.streams[0].after.high_water == preview.plan.streams[0].high_water_after == used(headless)
    assert all(found.verdict.same for found in comparison.logits.values())
    third.answer("More.", GREEDY)


def test_swap_out_and_in_computes_nothing(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    n = used(headless)
    headless.do(Watch(snapshots=True))
    operate(headless, SwapOut(chat.id))
    assert used(headless) == 0
    view = of(headless.do(Watch(snapshots=True)), CacheView)[-1]
    assert [c for c, _ in view.swapped] == [chat.id]
    headless.do(Watch(snapshots=False))
    operate(headless, SwapIn(chat.id))
    assert used(headless) == n
    assert chat.answer("Go on.", GREEDY).stats.reused_tokens == n
    with pytest.raises(UserError, match="not swapped out"):
        headless.do(Operate(SwapIn(chat.id)))


def test_a_preview_tells_of_rounding_without_flash_attention(headless: HeadlessEngine) -> None:
    settings = headless.engine.session.runtime.context.settings
    try:
        for flash_attn in (False, True):
            headless.do(RebuildContext(settings.model_copy(update={"flash_attn": flash_attn})))
            first, _ = answered(headless), answered(headless, "Name three towns.")
            headless.do(Operate(RemoveRange(seq(headless, first)), measured=False))
            preview = of(headless.do(PreviewCompaction(Layout.KEEP_ORDER)), CompactionPreview)[0]
            assert not preview.plan.changes_nothing
            assert ("differ by rounding" in preview.remark) is not flash_attn
    finally:
        headless.do(RebuildContext(settings))


def test_a_state_that_finds_no_room_stays_saved(headless: HeadlessEngine) -> None:
    chat = answered(headless, "Tell me of the sea. " * 60)
    n, settings = used(headless), headless.engine.session.runtime.context.settings
    assert n > 256
    headless.do(Operate(SwapOut(chat.id), measured=False))
    headless.do(RebuildContext(settings.model_copy(update={"n_ctx": 256})))
    try:
        with pytest.raises(UserError, match="no room"):
            headless.do(Operate(SwapIn(chat.id), measured=False))
    finally:
        headless.do(RebuildContext(settings))
    headless.do(Operate(SwapIn(chat.id), measured=False))
    assert used(headless) == n


def test_a_call_is_told_as_it_is_shown_before(headless: HeadlessEngine) -> None:
    """On a button, and in the event and the journal afterwards: the same text."""
    chat, copy = answered(headless), new_conversation_id()
    s, other = seq(headless, chat), 1
    for operation in (
        CopySequence(s, copy),
        SwapOut(copy),
        SwapIn(copy),
        RemoveRange(s, 10, 15),
        ShiftPositions(s, 20, -1, 3),
        Compact(Layout.KEEP_ORDER),
        TryDecode(other, headless.engine.session.runtime.context.memory.seq_pos_max(s) + 1),
        KeepOnly(s),
        ClearCache(),
    ):
        done = operate(headless, operation, measured=False)
        assert done.call.partition(" -> ")[0] == operation.call(other)
        assert done.call.startswith("llama_")
        recording = of(headless.do(TakeRecording()), RecordingTaken)[0].recording
        (entry,) = recording.operations(done.operation, done.operation)
        if isinstance(operation, (RemoveRange, ShiftPositions, KeepOnly, ClearCache, CopySequence)):
            assert entry.operation.call.partition(" -> ")[0] == done.call
    done = operate(headless, Undo(done.operation), measured=False)
    assert done.call.endswith("llama_state_set_data(ctx, src, size)")


def test_a_refused_batch_is_explained(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    s = seq(headless, chat)
    last = headless.engine.session.runtime.context.memory.seq_pos_max(s)
    events = headless.do(Operate(TryDecode(s, last + 5)))
    refused = of(events, BatchRefused)[0]
    assert (refused.seq_id, refused.x, refused.y) == (s, last, last + 5)
    assert f"X = {last}" in refused.sentence
    assert not of(events, OperationDone)[-1].undoable
    events = headless.do(Operate(TryDecode(s, last + 1)))
    assert not of(events, BatchRefused)
    assert headless.engine.session.runtime.context.memory.seq_pos_max(s) == last + 1
    chat.answer("Go on.", GREEDY)


def test_verify_finds_the_cache_exact(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    headless.do(Watch(snapshots=True))
    events = headless.do(VerifyConversation(chat.id))
    headless.do(Watch(snapshots=False))
    verified = of(events, Verified)[0]
    assert verified.logits.verdict is Verdict.EXACT, verified.logits
    assert of(events, CacheView)[-1].snapshot.maps[0].streams[0].used == used(headless), "what it computed in is gone"
    last = of(headless.do(TakeRecording()), RecordingTaken)[0].recording
    assert last.operations(last.last, last.last)[0].operation.reason == "to verify the conversation"
    assert of(events, Working)[-1].total == 0
    assert len(of(events, Working)) > 1
    headless.do(Operate(RemoveRange(seq(headless, chat), 5, 9), measured=False))
    headless.do(Operate(ShiftPositions(seq(headless, chat), 9, -1, -4), measured=False))


def test_the_next_token_behind_a_hole_follows_the_last_one(headless: HeadlessEngine) -> None:
    """Not the token before the hole; and what is verified is what the next turn reuses."""
    chat, runtime = answered(headless), session_of(headless).runtime
    sequence, context, memory = runtime.cache_manager.pool.get(chat.id), runtime.context, runtime.context.memory
    assert sequence is not None
    s, last, token = sequence.seq_id, len(sequence.tokens) - 1, sequence.tokens[-1]
    done = operate(headless, RemoveRange(s, 10, 15))
    assert len(sequence.tokens) == 10 < last
    with runtime.cache_manager.spare(chat.id) as spare:
        memory.seq_cp(s, spare.seq_id)
        memory.seq_rm(spare.seq_id, last, -1)
        context.decode(Batch.of(spare.seq_id, last, (token,), "last"), "check")
        wanted = context.logits()
    assert np.allclose(runtime.cache_manager.probe.next_logits(sequence), wanted, rtol=1e-3, atol=1e-3)
    compared = done.effect.comparison.logits[s]
    assert compared.first_row < 0 or compared.token_after == int(wanted.argmax())
    (verified,) = of(headless.do(VerifyConversation(chat.id)), Verified)
    assert (verified.n_tokens, verified.logits.verdict.same) == (10, True)


def test_a_copy_leaves_what_it_is_of(headless: HeadlessEngine) -> None:
    """All seq_ids are taken: another sequence gives its own, though the source would be the first to leave."""
    chat = HeadlessChat(headless)
    for prompt in ("Name three rivers, and nothing else.", "Name three mountains, and nothing else."):
        chat.messages = []
        chat.answer(prompt, GREEDY)
    for prompt in ("Name three towns.", "Name three lakes."):
        answered(headless, prompt)
    pool = session_of(headless).runtime.cache_manager.pool
    (branch,) = pool.inactive_branches(chat.id)
    assert not pool.free
    copy, tokens = new_conversation_id(), list(branch.tokens)
    operate(headless, CopySequence(branch.seq_id, copy))
    assert (pool.get(copy).tokens, branch.tokens) == (tokens, tokens)
    assert len(list(pool)) == 4


def test_where_no_other_seq_id_is_left_nothing_is_copied_and_nothing_lost(talking_file: Path) -> None:
    for headless in opened_with(talking_file, SMALL.model_copy(update={"n_seq_max": 1})):
        chat = answered(headless)
        sequence = session_of(headless).runtime.cache_manager.pool.get(chat.id)
        tokens = list(sequence.tokens)
        with pytest.raises(UserError, match="No seq_id is free"):
            headless.do(Operate(CopySequence(sequence.seq_id, new_conversation_id()), measured=False))
        assert sequence.tokens == tokens
        assert used(headless) == len(tokens)


def test_verify_tells_a_cache_that_is_not_what_it_should_be(headless: HeadlessEngine) -> None:
    """Tokens slid over a hole have seen what is no longer there: not what a fresh computation gives."""
    chat = answered(headless)
    s = seq(headless, chat)
    headless.do(Operate(RemoveRange(s, 1, 24), measured=False))
    headless.do(Operate(ShiftPositions(s, 24, -1, -23), measured=False))
    held = headless.engine.session.runtime.cache_manager.pool.get(chat.id).tokens
    assert len(held) > 8, "the map knows the tokens at their new places"
    verified = of(headless.do(VerifyConversation(chat.id)), Verified)[0]
    assert not verified.logits.verdict.same


def test_what_stays_of_a_removed_part_is_measured_and_said(embedded: HeadlessEngine) -> None:
    chat = HeadlessChat(embedded)
    asked = "My dog is called Rex. What is the name of my dog? Answer with one word."
    chat.answer(asked, Sampling(temperature=0.0, max_tokens=2))
    vocab, held = session_of(embedded).loaded.model.vocab, session_of(embedded).runtime.cache_manager.pool.get(chat.id)
    s, n = held.seq_id, len(held.tokens)
    first = [vocab.label(token) for token in held.tokens].index("My")
    removed = RemoveRange(s, first, first + 6)
    (done,) = [e for e in of(embedded.do(Operate(removed)), OperationDone) if e.effect is not None]
    assert done.note.startswith(f"{n - first - 6} tokens behind the hole are read again with the next turn")
    (hole,) = of(embedded.do(VerifyConversation(chat.id)), Verified)
    assert (hole.n_tokens, hole.ghost) == (first, None), "what is behind the hole is not asked"
    assert not hole.without_effect
    embedded.do(Operate(ShiftPositions(s, first + 6, -1, -6), measured=False))
    (moved,) = of(embedded.do(VerifyConversation(chat.id)), Verified)
    assert moved.n_tokens == n - 6
    assert moved.ghost is not None
    assert moved.ghost > 0.5, "the cells behind it still hold the name"
    last = RemoveRange(s, moved.n_tokens - 3, -1)
    (end,) = [e for e in of(embedded.do(Operate(last)), OperationDone) if e.effect is not None]
    assert end.note == "", "nothing is behind it"


def test_the_journal_has_every_operation(headless: HeadlessEngine) -> None:
    session = headless.engine.session
    first = session.runtime.operation_journal.journal.recording().last
    chat = answered(headless)
    done = operate(headless, RemoveRange(seq(headless, chat), 10, 15))
    recording = of(headless.do(TakeRecording()), RecordingTaken)[0].recording
    entries = recording.operations(first + 1, recording.last)
    names = [entry.operation.name for entry in entries]
    assert names.count("prefill") == 1
    assert names.count("decode") == 11
    assert "seq_rm" in names
    numbers = [e.operation.number for e in entries]
    assert numbers == list(range(numbers[0], recording.last + 1))
    removed = next(e for e in entries if e.operation.number == done.operation)
    assert removed.n_cells == 5
    assert {e.operation.conversation for e in entries if e.operation.name == "decode"} == {chat.id}
    session.runtime.context.memory.settle()
    for cache, mine in zip(
        recording.state_at(recording.last), session.runtime.context.memory.snapshot().maps, strict=True
    ):
        assert (cache.streams[0].pos == mine.streams[0].pos).all()


def test_spans_say_where_messages_lie(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless, "You are brief.")
    seen: list[MessageSpans] = []
    headless._on_event = lambda event: seen.append(event) if isinstance(event, MessageSpans) else None
    chat.answer("Name three rivers, für mich.", GREEDY)
    vocab = headless.engine.session.loaded.model.vocab
    tokens = headless.engine.session.runtime.cache_manager.pool.get(chat.id).tokens
    spans = {span.message: span for span in seen[-1].spans}
    assert [m.id for m in chat.messages] == [span.message for span in seen[-1].spans]
    for message in chat.messages:
        span = spans[message.id]
        own = tokens[span.text_p0 : span.text_p0 + len(span.char_ends)]
        text = b"".join(vocab.piece(t) for t in own).decode("utf-8", "replace")
        assert text.strip() == message.text[: span.char_ends[-1]].strip()
        assert span.p0 <= span.text_p0 < span.p1
    ends = [(span.p0, span.p1) for span in seen[-1].spans]
    assert [a for a, _ in ends] == [0, *[b for _, b in ends[:-1]]]


def test_what_is_impossible_says_why(headless: HeadlessEngine) -> None:
    chat = answered(headless)
    failed: list[CommandFailed] = []
    headless._on_event = lambda event: failed.append(event) if isinstance(event, CommandFailed) else None
    with pytest.raises(UserError, match="does not exist"):
        headless.do(Operate(RemoveRange(99, 0, 5)))
    with pytest.raises(UserError, match="nothing in the cache"):
        headless.do(VerifyConversation(new_conversation_id()))
    assert len(failed) == 2
    chat.answer("Go on.", GREEDY)
