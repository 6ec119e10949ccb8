"""A context of 256 tokens that is full: each policy on the embedded model, before and in the middle of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT
from kvdesk.backends.local.context_runtime import abilities
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.sampler import Sampler
from kvdesk.benchmarks.headless_chat import HeadlessChat, HeadlessEngine
from kvdesk.cache.batch import Batch
from kvdesk.chat import EvictedMessages, Message, MessageId, new_conversation_id, new_message_id
from kvdesk.errors import UserError
from kvdesk.policies.overflow import Situation, Span, plan_overflow
from kvdesk.protocol.cache import MessageSpans, OperationDone, UsePolicy
from kvdesk.protocol.chat import (
    CloseConversation,
    Generate,
    LoadModel,
    LocalFile,
    MessageRetention,
    Overflowed,
    PreviewTurn,
    TurnEnded,
    TurnPreview,
    TurnStarted,
)
from kvdesk.protocol.operations import Operate, SwapIn, SwapOut
from kvdesk.settings import CachePolicy, CacheType, Overflow, Sampling
from tests.backends.local.conftest import NARROW, opened_with
from tests.backends.local.test_turns import fresh_answer, held, of
from tests.backends.local.tiny_models import write

SHORT = Sampling(temperature=0.0, max_tokens=16)
LONG = Sampling(temperature=0.0, max_tokens=150, repeat_penalty=1.1)
SYSTEM = "You tell long stories."
QUESTION = "Tell me a story about a lighthouse and its keeper."
TOLD = "I walked down to the harbour, where the boats lay in the fog, and counted masts until noon came. " * 2


def filled(desk: HeadlessEngine, overflow: Overflow, system: str = SYSTEM) -> HeadlessChat:
    """A conversation of two exchanges, whose next long answer does not fit."""
    talk = HeadlessChat(desk, system, overflow)
    talk.answer(TOLD, SHORT)
    talk.answer("And then?", SHORT)
    return talk


def long_answer(talk: HeadlessChat) -> TurnEnded:
    ended = talk.answer(QUESTION, LONG)
    assert ended.stats.generated_tokens > 100, "the answer ended by itself: choose another question"
    return ended


def audited(desk: HeadlessEngine, talk: HeadlessChat) -> list[int]:
    """What the conversation holds: positions from 0 without a hole, and every cell as the engine has it."""
    verification = desk.engine.session.runtime.context.auditor.audit(whole=True)
    assert verification.state == "verified", verification.detail
    return list(held(desk, talk))


def next_prompt(desk: HeadlessEngine, talk: HeadlessChat, gone: tuple[MessageId, ...]) -> list[int]:
    return desk.engine.session.loaded.prompts.tokens([m for m in talk.messages if m.id not in gone])


def overflowed(desk: HeadlessEngine) -> list[Overflowed]:
    return of(desk.events, Overflowed)


def test_stop_says_so(desk: HeadlessEngine) -> None:
    talk = filled(desk, Overflow.STOP)
    ended = long_answer(talk)
    assert (ended.state, ended.note) == ("stopped", "The context of 256 tokens is full. The answer ends here.")
    assert [(e.policy, e.evicted) for e in overflowed(desk)] == [(Overflow.STOP, ())]
    assert len(audited(desk, talk)) == 256
    with pytest.raises(UserError, match=r"but the context holds 256\. Shorten"):
        talk.answer("Go on.", SHORT)


@pytest.mark.parametrize("system", [SYSTEM, ""])
def test_slide_goes_on_and_finds_its_cache_again(desk: HeadlessEngine, system: str) -> None:
    talk = filled(desk, Overflow.SLIDE, system)
    oldest = tuple(m.id for m in talk.messages if m.role != "system")[:2]
    ended = long_answer(talk)
    assert (ended.state, ended.stats.generated_tokens) == ("complete", 150)
    (event,) = overflowed(desk)
    assert event.evicted == oldest, "a question leaves with its answer, and no more than is needed"
    assert event.sentence in ended.note
    assert "not exact" in event.sentence
    (operation,) = [e for e in of(desk.events, OperationDone) if e.name == "slide"]
    assert operation.reason == event.sentence
    recording = desk.engine.session.runtime.operation_journal.journal.recording()
    done = [e.operation for e in recording.operations(recording.first, recording.last)]
    assert [(e.name, e.call) for e in done if e.reason == event.sentence] == [("slide", operation.call)]
    holds = audited(desk, talk)
    assert holds == next_prompt(desk, talk, oldest)[: len(holds)]
    stats = talk.answer("And?", Sampling(temperature=0.0, max_tokens=2)).stats
    assert not overflowed(desk)
    assert stats.reused_tokens == len(holds), "nothing is read again"
    audited(desk, talk)


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.SINKS])
def test_what_will_be_reused_is_foretold(desk: HeadlessEngine, overflow: Overflow) -> None:
    """While it is typed, a message that makes older ones leave: their successors move, and are not read again."""
    talk = filled(desk, overflow)
    while not (found := foretold(desk, talk, TOLD)).n_evicted_messages:
        talk.answer("And then?", SHORT)
    stats = talk.answer(TOLD, SHORT).stats
    assert len(overflowed(desk)) == 1
    assert (found.n_reused, found.n_prefill) == (stats.reused_tokens, stats.prefilled_tokens)
    assert stats.reused_tokens > 60
    audited(desk, talk)


def foretold(desk: HeadlessEngine, talk: HeadlessChat, text: str) -> TurnPreview:
    message = Message(new_message_id(), talk.id, None, "user", text)
    return of(desk.do(PreviewTurn(talk.id, (*talk.messages, message), talk.overflow)), TurnPreview)[0]


def test_recompute_is_exactly_the_shortened_conversation(desk: HeadlessEngine) -> None:
    talk = filled(desk, Overflow.RECOMPUTE)
    greedy = Sampling(temperature=0.0, max_tokens=150)
    ended = talk.answer(QUESTION, greedy)
    (event,) = overflowed(desk)
    assert "exact" in event.sentence
    assert event.sentence in ended.note
    session = desk.engine.session
    tokens = list(talk.messages[-1].tokens)
    holds = audited(desk, talk)
    assert session.runtime.cache_manager.pool.get(talk.id).exact > len(holds)
    prompt = session.loaded.prompts.tokens([m for m in talk.messages[:-1] if m.id not in event.evicted])
    assert holds[: len(prompt)] == prompt
    n_before = (
        256 + 1 - len(session.loaded.prompts.tokens(talk.messages[:-1]))
    )  # the last one was sampled, and had no room
    assert 20 < n_before < len(tokens) - 20
    assert continued(desk, prompt + tokens[:n_before], len(tokens) - n_before) == tokens[n_before:]


def continued(desk: HeadlessEngine, prompt: list[int], n: int) -> list[int]:
    """`n` greedy tokens after a prefill of `prompt` in a sequence of its own."""
    context = desk.engine.session.runtime.context
    desk.engine.session.runtime.context.memory.clear()
    sampler = Sampler(Sampling(temperature=0.0), desk.engine.session.loaded.model.vocab.n_tokens)
    tokens: list[int] = []
    for first in range(0, len(prompt), 64):
        part = prompt[first : first + 64]
        output = [False] * (len(part) - 1) + [True]
        context.decode(Batch(part, range(first, first + len(part)), [(0,)] * len(part), output), "prefill")
    while len(tokens) < n:
        tokens.append(context.sample(sampler))
        if len(tokens) < n:
            context.decode(Batch((tokens[-1],), (len(prompt) + len(tokens) - 1,), ((0,),), (True,)))
    sampler.close()
    desk.engine.session.runtime.cache_manager.adopt_map()
    return tokens


def test_sinks_go_on_for_ever(desk: HeadlessEngine) -> None:
    talk = filled(desk, Overflow.SINKS)
    start = next_prompt(desk, talk, ())[:4]
    endless = Sampling(temperature=0.9, seed=7, max_tokens=2 * 256, repeat_penalty=1.2)
    vocab = desk.engine.session.loaded.model.vocab
    is_eog, vocab.is_eog = vocab.is_eog, lambda _: False  # type: ignore[method-assign]
    try:
        ended = talk.answer("Tell me a story that never ends.", endless)
    finally:
        vocab.is_eog = is_eog  # type: ignore[method-assign]
    assert (ended.state, ended.stats.generated_tokens) == ("complete", 2 * 256)
    events = overflowed(desk)
    assert len(events) > 10
    assert "beginning of this answer" in events[-1].sentence
    assert f"happened {len(events)} times" in ended.note
    holds = audited(desk, talk)
    assert holds[:4] == start
    assert holds[-40:] == list(talk.messages[-1].tokens[-41:-1])
    (spans,) = [e.spans[-1] for e in of(desk.events, MessageSpans)[-1:]]
    assert spans.message == talk.messages[-1].id
    assert spans.char_ends[-1] <= len(talk.messages[-1].text)
    stats = talk.answer("Go on.", Sampling(temperature=0.0, max_tokens=2)).stats
    assert stats.reused_tokens > 150, "the answer's end is still there"
    audited(desk, talk)


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.RECOMPUTE, Overflow.SINKS])
def test_a_prompt_that_does_not_fit_leaves_out_the_oldest(desk: HeadlessEngine, overflow: Overflow) -> None:
    talk = filled(desk, overflow)
    oldest = tuple(m.id for m in talk.messages[1:3])
    n_held = len(held(desk, talk))
    ended = talk.answer(TOLD * 3, SHORT)
    (event,) = overflowed(desk)
    assert set(oldest) <= set(event.evicted)
    assert talk.messages[-2].id not in event.evicted
    assert event.sentence in ended.note
    assert (desk.engine.session.runtime.cache_manager.pool.get(talk.id).exact < 256) == (
        overflow is not Overflow.RECOMPUTE
    )
    if overflow is not Overflow.RECOMPUTE:
        assert ended.stats.reused_tokens > 4, "what was held was moved"
    assert ended.stats.reused_tokens < n_held
    audited(desk, talk)
    if overflow is Overflow.RECOMPUTE:
        shown = [m for m in talk.messages[:-1] if m.id not in event.evicted]
        assert fresh_answer(desk, shown)[:16] == talk.messages[-1].tokens


def test_a_question_longer_than_the_context_is_refused(desk: HeadlessEngine) -> None:
    talk = filled(desk, Overflow.SLIDE)
    with pytest.raises(UserError, match="cannot be removed"):
        talk.answer(TOLD * 8, SHORT)
    audited(desk, talk)


def test_room_is_made_before_the_cache_is_full(desk: HeadlessEngine) -> None:
    """Three conversations of about 120 tokens do not fit into 256 cells: the oldest leaves."""
    talks = [HeadlessChat(desk, SYSTEM) for _ in range(3)]
    for number, talk in enumerate(talks):
        talk.answer(f"{number} {TOLD * 2}", Sampling(temperature=0.0, max_tokens=2))
    assert desk.engine.session.runtime.cache_manager.pool.get(talks[0].id) is None
    for talk in talks[1:]:
        assert len(audited(desk, talk)) > 90


def test_shades_tell_what_is_next(desk: HeadlessEngine) -> None:
    talk = filled(desk, Overflow.SLIDE)
    names = [m.id for m in talk.messages]
    assert {shade for _, shade in of(desk.events, MessageRetention)[-1].retention} == {"in the cache"}
    talk.answer(QUESTION, LONG.model_copy(update={"max_tokens": 100}))
    assert not overflowed(desk)
    shades = dict(of(desk.events, MessageRetention)[-1].retention)
    assert [shades[name] for name in names] == ["in the cache", *["next"] * 2, *["in the cache"] * 2]
    talk.answer(QUESTION, SHORT)
    assert overflowed(desk)
    shades = dict(of(desk.events, MessageRetention)[-1].retention)
    assert [shades[name] for name in names][:3] == ["in the cache", "evicted", "evicted"]


def test_whoever_shares_the_cells_that_move_is_evicted_first(desk: HeadlessEngine) -> None:
    """An answer given again leaves the first one as an inactive branch on the same cells."""
    talk = filled(desk, Overflow.SLIDE)
    asked = tuple(talk.messages[:-1])
    desk.do(Generate(talk.id, new_message_id(), asked, Sampling(temperature=1.5, seed=3, max_tokens=16)))
    other = HeadlessChat(desk, SYSTEM)
    other.messages = [*talk.messages[:3]]
    other.answer("Who are you?", SHORT)
    long_answer(talk)
    assert [e.policy for e in overflowed(desk)] == [Overflow.SLIDE]
    audited(desk, talk)
    assert other.answer("And now?", SHORT).state == "complete"
    audited(desk, other)


def test_two_answers_at_once_never_move_shared_cells(desk: HeadlessEngine) -> None:
    """Two answers to one question share their prompt, so the first to be full reads again instead of moving."""
    talk = filled(desk, Overflow.SLIDE)
    question = HeadlessChat(desk)
    question.add_question(QUESTION)
    messages = (*talk.messages, *question.messages)
    answers = [new_message_id(), new_message_id()]
    desk.events = []
    for answer in answers:
        desk.engine.handle(Generate(talk.id, answer, messages, LONG, Overflow.SLIDE))
    while desk.engine.busy:
        desk.engine.step()
    assert len(of(desk.events, TurnEnded)) == 2
    assert desk.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"


def test_another_policy_brings_everything_back(desk: HeadlessEngine) -> None:
    talk = filled(desk, Overflow.SLIDE)
    long_answer(talk)
    talk.overflow = Overflow.STOP
    with pytest.raises(UserError, match="but the context holds"):
        talk.answer("Go on.", SHORT)
    talk.overflow = Overflow.RECOMPUTE
    ended = talk.answer("Go on.", SHORT)
    assert desk.engine.session.runtime.cache_manager.pool.get(talk.id).exact > 256, (
        "moved tokens do not stay where answers are to be exact"
    )
    assert ended.stats.reused_tokens < 40


@pytest.mark.parametrize(("first", "second"), [(Overflow.SLIDE, Overflow.SINKS), (Overflow.SINKS, Overflow.SLIDE)])
def test_another_policy_that_keeps_another_beginning_plans_anew_and_says_so(
    desk: HeadlessEngine, first: Overflow, second: Overflow
) -> None:
    """What left under one of them must not decide what the other one keeps: the system prompt, or the first tokens."""
    talk = filled(desk, first)
    system = desk.engine.session.loaded.prompts.tokens(talk.messages[:1])
    long_answer(talk)
    talk.overflow = second
    talk.answer("And?", SHORT)
    (event,) = overflowed(desk)
    assert event.policy is second
    holds = audited(desk, talk)
    n = len(system) - 5  # without what opens the answer
    kept = {
        Overflow.SLIDE: holds[:n] == system[:n],
        Overflow.SINKS: holds[:4] == system[:4] and holds[:n] != system[:n],
    }
    assert kept[second]
    talk.answer("And?", SHORT)
    assert all(e.policy is second for e in overflowed(desk))
    audited(desk, talk)


def test_a_recurrent_model_says_why_it_cannot(tmp_path: Path) -> None:
    model = Model(write(tmp_path / "mamba.gguf", "mamba2"), lambda _: True)
    context = Context(model, NARROW)
    full = Situation((Span(0, 100), Span(100, 200), Span(200, 256)), 256, 1, 256)
    can = abilities(context)
    for policy in (Overflow.SLIDE, Overflow.SINKS):
        plan = plan_overflow(policy, full, can)
        assert plan.stops
        assert "No part of a recurrent state can be removed" in plan.sentence
    assert not plan_overflow(Overflow.RECOMPUTE, full, can).stops
    context.close()
    model.close()


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.SINKS, Overflow.RECOMPUTE])
def test_what_was_evicted_is_evicted_after_a_restart(model_file: Path, tmp_path: Path, overflow: Overflow) -> None:
    """The next prompt begins as before, so the saved state fits: nothing of it is read again, and nothing leaves."""
    first = restarted(model_file, tmp_path)
    try:
        talk = filled(first, overflow)
        long_answer(talk)
        assert talk.evicted.messages
        tokens, exact = audited(first, talk), first.engine.session.runtime.cache_manager.pool.get(talk.id).exact
    finally:
        first.close()
    second = talk.headless = restarted(model_file, tmp_path)
    try:
        stats = talk.answer("And?", Sampling(temperature=0.0, max_tokens=2)).stats
        assert not overflowed(second)
        assert stats.reused_tokens == len(tokens)
        assert audited(second, talk)[: len(tokens)] == tokens
        assert second.engine.session.runtime.cache_manager.pool.get(talk.id).exact == exact
        gone = [name for name, shade in of(second.events, MessageRetention)[-1].retention if shade == "evicted"]
        assert set(gone) == talk.evicted.messages
    finally:
        second.close()


def restarted(model_file: Path, folder: Path) -> HeadlessEngine:
    headless = HeadlessEngine()
    headless.do(UsePolicy(CachePolicy(), folder))
    headless.do(LoadModel(LocalFile(model_file), NARROW))
    return headless


def test_moved_tokens_go_to_their_own_conversation_and_never_to_exact_answers(desk: HeadlessEngine) -> None:
    talk = filled(desk, Overflow.SLIDE)
    long_answer(talk)
    session = desk.engine.session
    sequence = session.runtime.cache_manager.lease(talk.id)
    tokens = list(held(desk, talk))
    assert sequence.exact < len(tokens)
    session.runtime.cache_manager.swap_out(sequence)
    saved = session.runtime.cache_manager.swapper.snapshots
    prompt = [*tokens, 1]
    assert saved.longest_prefix(prompt, talk.id)[1] == len(tokens)
    assert saved.longest_whole(prompt, talk.id) is not None
    assert saved.longest_prefix(prompt) == (None, 0)
    assert saved.longest_prefix(prompt, new_conversation_id()) == (None, 0)
    assert saved.longest_whole(prompt) is None
    talk.overflow = Overflow.RECOMPUTE
    assert talk.answer("And?", SHORT).stats.reused_tokens == 0
    session.runtime.cache_manager.swapper.snapshots.drop_of(talk.id)


def test_a_conversation_with_moved_tokens_comes_back_as_it_was(desk: HeadlessEngine) -> None:
    talk = filled(desk, Overflow.SLIDE)
    long_answer(talk)
    before = list(held(desk, talk))
    desk.do(Operate(SwapOut(talk.id), measured=False))
    desk.do(Operate(SwapIn(talk.id), measured=False))
    assert audited(desk, talk) == before
    assert desk.engine.session.runtime.cache_manager.pool.get(talk.id).exact < len(before)


@pytest.mark.parametrize("damage", ["all", "questions", "others", "behind"])
def test_a_damaged_memory_of_what_was_evicted_does_no_harm(desk: HeadlessEngine, damage: str) -> None:
    talk = filled(desk, Overflow.SINKS if damage == "behind" else Overflow.SLIDE)
    names = [m.id for m in talk.messages]
    desk.do(CloseConversation(talk.id))
    left = {
        "all": EvictedMessages(frozenset(names)),
        "questions": EvictedMessages(frozenset(names[1::2])),
        "others": EvictedMessages(frozenset({MessageId("nobody")}), (MessageId("nothing"), 1 << 40)),
        "behind": EvictedMessages(frozenset(names[:2]), (names[2], 1 << 40)),
    }[damage]
    talk.evicted = left
    ended = talk.answer(TOLD * 2, SHORT)
    assert ended.state == "complete"
    audited(desk, talk)


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.RECOMPUTE])
def test_a_conversation_that_repeats_itself_reads_no_token_twice(
    desk: HeadlessEngine, overflow: Overflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same question and the same answer again: what stays begins like what leaves."""
    monkeypatch.setattr(desk.engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    talk = HeadlessChat(desk, "You tell stories.", overflow)
    n_middle = 0
    for _ in range(12):
        talk.answer("And then?", Sampling(temperature=0.0, max_tokens=24))
        names = [type(event) for event in desk.events]
        if Overflowed in names and names.index(Overflowed) > names.index(TurnStarted):
            n_middle += 1
            wanted = next_prompt(
                desk, talk, tuple(desk.engine.session.runtime.overflow_manager._evicted[talk.id].messages)
            )
            tokens = held(desk, talk)
            assert list(tokens) == wanted[: len(tokens)]
    assert n_middle, "no answer met the end of the context: choose another length"


def test_a_shift_of_quantized_k_leaves_nothing_exact(model_file: Path) -> None:
    """All of K is rounded again, also that of conversations that did not move."""
    for desk in opened_with(model_file, NARROW.model_copy(update={"type_k": CacheType.Q8_0})):
        moved, other = HeadlessChat(desk), HeadlessChat(desk)
        moved.answer("Name a colour.", SHORT)
        other.answer("Name a town.", SHORT)
        pool, cache_manager = desk.engine.session.runtime.cache_manager.pool, desk.engine.session.runtime.cache_manager
        sequence = pool.get(moved.id)
        assert sequence is not None
        assert pool.get(other.id).exact == ALL_EXACT
        for branch in cache_manager.sharing(sequence, 4):
            cache_manager.evict(branch, "the test moves its cells")
        other.answer("Name a town.", SHORT)
        assert cache_manager.slide(sequence, len(sequence.tokens), 4, 8, "the test moves its cells")
        assert (sequence.exact, pool.get(other.id).exact) == (0, 0)


def test_a_message_that_can_never_fit_is_not_tokenized(desk: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk.engine.session.loaded.prompts, "prompt", lambda _: pytest.fail("it was tokenized"))
    with pytest.raises(UserError, match="far more than the 256 tokens"):
        HeadlessChat(desk, overflow=Overflow.SLIDE).answer("word " * 20_000, SHORT)
