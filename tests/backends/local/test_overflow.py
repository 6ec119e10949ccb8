"""A context of 256 tokens that is full: each policy, before and in the middle of an answer."""

from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT
from kvdesk.backends.local.context_runtime import abilities
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.samplers.sampler import Sampler, SamplingPlan
from kvdesk.cache.batch import Batch
from kvdesk.chat import EvictedMessages
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import Message, MessageId, new_conversation_id, new_message_id
from kvdesk.policies.overflow import Situation, Span, plan_overflow
from kvdesk.protocol.cache import MessageSpans, OperationDone, UsePolicy
from kvdesk.protocol.chat import (
    CloseConversation,
    Generate,
    LoadModel,
    MessageRetention,
    Overflowed,
    PreviewTurn,
    TurnEnded,
    TurnPreview,
    TurnStarted,
)
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import Operate, SwapIn, SwapOut
from kvdesk.settings import CachePolicy, CacheType, Overflow, Sampling
from tests.backends.local import test_cache_manager
from tests.backends.local.conftest import NARROW, opened_with
from tests.backends.local.test_turns import fresh_answer, held, of
from tests.backends.local.tiny_models import written

SHORT = Sampling(temperature=0.0, max_tokens=16)
LONG = Sampling(temperature=0.0, max_tokens=150, repeat_penalty=1.1)
SYSTEM = "You tell long stories."
QUESTION = "Tell me a story about a lighthouse and its keeper."
TOLD = "I walked down to the harbour, where the boats lay in the fog, and counted masts until noon came. " * 2


def filled(headless: HeadlessEngine, overflow: Overflow, system: str = SYSTEM) -> HeadlessChat:
    """A conversation of two exchanges, whose next long answer does not fit."""
    chat = HeadlessChat(headless, system, overflow)
    chat.answer(TOLD, SHORT)
    chat.answer("And then?", SHORT)
    return chat


def long_answer(chat: HeadlessChat) -> TurnEnded:
    ended = chat.answer(QUESTION, LONG)
    assert ended.stats.generated_tokens > 100, "the answer ended by itself: choose another question"
    return ended


def audited(headless: HeadlessEngine, chat: HeadlessChat) -> list[int]:
    """What the conversation holds: positions from 0 without a hole, and every cell as the engine has it."""
    test_cache_manager.audited(headless)
    return list(held(headless, chat))


def next_prompt(headless: HeadlessEngine, chat: HeadlessChat, evicted: tuple[MessageId, ...]) -> list[int]:
    return headless.engine.session.loaded.prompts.tokens([m for m in chat.messages if m.id not in evicted])


def overflowed(headless: HeadlessEngine) -> list[Overflowed]:
    return of(headless.events, Overflowed)


def test_stop_says_so(narrow: HeadlessEngine) -> None:
    chat = filled(narrow, Overflow.STOP)
    ended = long_answer(chat)
    assert (ended.state, ended.note) == ("stopped", "The context of 256 tokens is full. The answer ends here.")
    assert [(e.policy, e.evicted) for e in overflowed(narrow)] == [(Overflow.STOP, ())]
    assert len(audited(narrow, chat)) == 256
    with pytest.raises(UserError, match=r"but the context holds 256\. Shorten"):
        chat.answer("Go on.", SHORT)


@pytest.mark.parametrize("system", [SYSTEM, ""])
def test_slide_goes_on_and_finds_its_cache_again(narrow: HeadlessEngine, system: str) -> None:
    chat = filled(narrow, Overflow.SLIDE, system)
    oldest = tuple(m.id for m in chat.messages if m.role != "system")[:2]
    ended = long_answer(chat)
    assert (ended.state, ended.stats.generated_tokens) == ("complete", 150)
    (event,) = overflowed(narrow)
    assert event.evicted == oldest, "a question leaves with its answer, and no more than is needed"
    assert event.sentence in ended.note
    assert "not exact" in event.sentence
    (operation,) = [e for e in of(narrow.events, OperationDone) if e.name == "slide"]
    assert operation.reason == event.sentence
    recording = narrow.engine.session.runtime.operation_journal.journal.recording()
    done = [e.operation for e in recording.operations(recording.first, recording.last)]
    assert [(e.name, e.call) for e in done if e.reason == event.sentence] == [("slide", operation.call)]
    holds = audited(narrow, chat)
    assert holds == next_prompt(narrow, chat, oldest)[: len(holds)]
    stats = chat.answer("And?", Sampling(temperature=0.0, max_tokens=2)).stats
    assert not overflowed(narrow)
    assert stats.reused_tokens == len(holds), "nothing is read again"
    audited(narrow, chat)


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.SINKS])
def test_what_will_be_reused_is_foretold(narrow: HeadlessEngine, overflow: Overflow) -> None:
    """While it is typed, a message that makes older ones leave: their successors move, and are not read again."""
    chat = filled(narrow, overflow)
    while not (found := foretold(narrow, chat, TOLD)).n_evicted_messages:
        chat.answer("And then?", SHORT)
    stats = chat.answer(TOLD, SHORT).stats
    assert len(overflowed(narrow)) == 1
    assert (found.n_reused, found.n_prefill) == (stats.reused_tokens, stats.prefilled_tokens)
    assert stats.reused_tokens > 60
    audited(narrow, chat)


def foretold(headless: HeadlessEngine, chat: HeadlessChat, text: str) -> TurnPreview:
    message = Message(new_message_id(), chat.id, None, "user", text.rstrip())
    return of(headless.do(PreviewTurn(chat.id, (*chat.messages, message), chat.overflow)), TurnPreview)[0]


def test_recompute_is_exactly_the_shortened_conversation(narrow: HeadlessEngine) -> None:
    chat = filled(narrow, Overflow.RECOMPUTE)
    greedy = Sampling(temperature=0.0, max_tokens=150)
    ended = chat.answer(QUESTION, greedy)
    (event,) = overflowed(narrow)
    assert "exact" in event.sentence
    assert event.sentence in ended.note
    session = narrow.engine.session
    tokens = list(chat.messages[-1].tokens)
    holds = audited(narrow, chat)
    assert session.runtime.cache_manager.pool.get(chat.id).exact > len(holds)
    prompt = session.loaded.prompts.tokens([m for m in chat.messages[:-1] if m.id not in event.evicted])
    assert holds[: len(prompt)] == prompt
    n_asked = len(session.loaded.prompts.tokens(chat.messages[:-1]))
    n_before = 256 + 1 - n_asked  # the last one was sampled, and had no room
    assert 20 < n_before < len(tokens) - 20
    assert continued(narrow, prompt + tokens[:n_before], len(tokens) - n_before) == tokens[n_before:]


def continued(headless: HeadlessEngine, prompt: list[int], n: int) -> list[int]:
    """`n` greedy tokens after a prefill of `prompt` in a sequence of its own."""
    context = headless.engine.session.runtime.context
    headless.engine.session.runtime.context.memory.clear()
    sampler = Sampler(SamplingPlan(Sampling(temperature=0.0)), headless.engine.session.loaded.model.vocab)
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
    headless.engine.session.runtime.cache_manager.follow_map()
    return tokens


def test_sinks_go_on_for_ever(narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = filled(narrow, Overflow.SINKS)
    start = next_prompt(narrow, chat, ())[:4]
    endless = Sampling(temperature=0.9, seed=7, max_tokens=320, repeat_penalty=1.2)
    monkeypatch.setattr(narrow.engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    ended = chat.answer("Tell me a story that never ends.", endless)
    assert (ended.state, ended.stats.generated_tokens) == ("complete", 320)
    events = overflowed(narrow)
    assert len(events) > 4
    assert "beginning of this answer" in events[-1].sentence
    assert f"happened {len(events)} times" in ended.note
    holds = audited(narrow, chat)
    assert holds[:4] == start
    assert holds[-40:] == list(chat.messages[-1].tokens[-41:-1])
    (spans,) = [e.spans[-1] for e in of(narrow.events, MessageSpans)[-1:]]
    assert spans.message == chat.messages[-1].id
    assert spans.char_ends[-1] <= len(chat.messages[-1].text)
    stats = chat.answer("Go on.", Sampling(temperature=0.0, max_tokens=2)).stats
    assert stats.reused_tokens > 150, "the answer's end is still there"
    audited(narrow, chat)


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.RECOMPUTE, Overflow.SINKS])
def test_a_prompt_that_does_not_fit_leaves_out_the_oldest(narrow: HeadlessEngine, overflow: Overflow) -> None:
    chat = filled(narrow, overflow)
    oldest = tuple(m.id for m in chat.messages[1:3])
    n_held = len(held(narrow, chat))
    ended = chat.answer(TOLD * 3, SHORT)
    (event,) = overflowed(narrow)
    assert set(oldest) <= set(event.evicted)
    assert chat.messages[-2].id not in event.evicted
    assert event.sentence in ended.note
    assert (narrow.engine.session.runtime.cache_manager.pool.get(chat.id).exact < 256) == (
        overflow is not Overflow.RECOMPUTE
    )
    if overflow is not Overflow.RECOMPUTE:
        assert ended.stats.reused_tokens > 4, "what was held was moved"
    assert ended.stats.reused_tokens < n_held
    audited(narrow, chat)
    if overflow is Overflow.RECOMPUTE:
        shown = [m for m in chat.messages[:-1] if m.id not in event.evicted]
        assert fresh_answer(narrow, shown)[:16] == chat.messages[-1].tokens


def test_a_question_longer_than_the_context_is_refused(narrow: HeadlessEngine) -> None:
    chat = filled(narrow, Overflow.SLIDE)
    with pytest.raises(UserError, match="cannot be removed"):
        chat.answer(TOLD * 8, SHORT)
    audited(narrow, chat)


def test_room_is_made_before_the_cache_is_full(narrow: HeadlessEngine) -> None:
    """Three conversations of about 120 tokens do not fit into 256 cells: the oldest leaves."""
    chats = [HeadlessChat(narrow, SYSTEM) for _ in range(3)]
    for number, chat in enumerate(chats):
        chat.answer(f"{number} {TOLD * 2}", Sampling(temperature=0.0, max_tokens=2))
    assert narrow.engine.session.runtime.cache_manager.pool.get(chats[0].id) is None
    for chat in chats[1:]:
        assert len(audited(narrow, chat)) > 90


def test_retention_tells_what_is_next(narrow: HeadlessEngine) -> None:
    chat = filled(narrow, Overflow.SLIDE)
    names = [m.id for m in chat.messages]
    assert {how for _, how in of(narrow.events, MessageRetention)[-1].retention} == {"in the cache"}
    chat.answer(QUESTION, LONG.model_copy(update={"max_tokens": 100}))
    assert not overflowed(narrow)
    found = dict(of(narrow.events, MessageRetention)[-1].retention)
    assert [found[name] for name in names] == ["in the cache", *["next"] * 2, *["in the cache"] * 2]
    chat.answer(QUESTION, SHORT)
    assert overflowed(narrow)
    found = dict(of(narrow.events, MessageRetention)[-1].retention)
    assert [found[name] for name in names][:3] == ["in the cache", "evicted", "evicted"]


def test_whoever_shares_the_cells_that_move_is_evicted_first(narrow: HeadlessEngine) -> None:
    """An answer given again leaves the first one as an inactive branch on the same cells."""
    chat = filled(narrow, Overflow.SLIDE)
    asked = tuple(chat.messages[:-1])
    narrow.do(Generate(chat.id, new_message_id(), asked, Sampling(temperature=1.5, seed=3, max_tokens=16)))
    other = HeadlessChat(narrow, SYSTEM)
    other.messages = [*chat.messages[:3]]
    other.answer("Who are you?", SHORT)
    long_answer(chat)
    assert [e.policy for e in overflowed(narrow)] == [Overflow.SLIDE]
    audited(narrow, chat)
    assert other.answer("And now?", SHORT).state == "complete"
    audited(narrow, other)


def test_two_answers_at_once_never_move_shared_cells(narrow: HeadlessEngine) -> None:
    """Two answers to one question share their prompt, so the first to be full reads again instead of moving."""
    chat = filled(narrow, Overflow.SLIDE)
    question = HeadlessChat(narrow)
    question.add_question(QUESTION)
    messages = (*chat.messages, *question.messages)
    answers = [new_message_id(), new_message_id()]
    narrow.events = []
    for answer in answers:
        narrow.engine.handle(Generate(chat.id, answer, messages, LONG, Overflow.SLIDE))
    narrow.host.run_until_idle()
    assert len(of(narrow.events, TurnEnded)) == 2
    assert narrow.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"


def test_another_policy_brings_everything_back(narrow: HeadlessEngine) -> None:
    chat = filled(narrow, Overflow.SLIDE)
    long_answer(chat)
    chat.overflow = Overflow.STOP
    with pytest.raises(UserError, match="but the context holds"):
        chat.answer("Go on.", SHORT)
    chat.overflow = Overflow.RECOMPUTE
    ended = chat.answer("Go on.", SHORT)
    assert narrow.engine.session.runtime.cache_manager.pool.get(chat.id).exact > 256, (
        "moved tokens do not stay where answers are to be exact"
    )
    assert ended.stats.reused_tokens < 40


@pytest.mark.parametrize(("first", "second"), [(Overflow.SLIDE, Overflow.SINKS), (Overflow.SINKS, Overflow.SLIDE)])
def test_another_policy_that_keeps_another_beginning_plans_anew_and_says_so(
    narrow: HeadlessEngine, first: Overflow, second: Overflow
) -> None:
    """What one of them evicts must not decide what the other one keeps: the system prompt, or the first tokens."""
    chat = filled(narrow, first)
    system = narrow.engine.session.loaded.prompts.tokens(chat.messages[:1])
    long_answer(chat)
    chat.overflow = second
    chat.answer("And?", SHORT)
    (event,) = overflowed(narrow)
    assert event.policy is second
    holds = audited(narrow, chat)
    n = len(system) - 5  # without what opens the answer
    kept = {
        Overflow.SLIDE: holds[:n] == system[:n],
        Overflow.SINKS: holds[:4] == system[:4] and holds[:n] != system[:n],
    }
    assert kept[second]
    chat.answer("And?", SHORT)
    assert all(e.policy is second for e in overflowed(narrow))
    audited(narrow, chat)


def test_a_recurrent_model_says_why_it_cannot(tiny_folder: Path) -> None:
    full = Situation((Span(0, 100), Span(100, 200), Span(200, 256)), 256, 1, 256)
    with closing(Model(written(tiny_folder, "mamba2"))) as model, closing(Context(model, NARROW)) as context:
        can = abilities(context)
    for policy in set(Overflow) - {Overflow.RECOMPUTE, Overflow.STOP}:
        plan = plan_overflow(policy, full, can)
        assert plan.stops
        assert "No part of a state can be removed" in plan.sentence, policy
    assert not plan_overflow(Overflow.RECOMPUTE, full, can).stops


@pytest.mark.parametrize(
    "overflow",
    [Overflow.SLIDE, *(pytest.param(one, marks=pytest.mark.matrix) for one in (Overflow.SINKS, Overflow.RECOMPUTE))],
)
def test_what_was_evicted_is_evicted_after_a_restart(talking_file: Path, tmp_path: Path, overflow: Overflow) -> None:
    """The next prompt begins as before, so the saved state fits: nothing of it is read again, and nothing leaves."""
    with closing(restarted(talking_file, tmp_path)) as first:
        chat = filled(first, overflow)
        long_answer(chat)
        assert chat.evicted.messages
        tokens, exact = audited(first, chat), first.engine.session.runtime.cache_manager.pool.get(chat.id).exact
    with closing(restarted(talking_file, tmp_path)) as second:
        chat.headless = second
        stats = chat.answer("And?", Sampling(temperature=0.0, max_tokens=2)).stats
        assert not overflowed(second)
        assert stats.reused_tokens == len(tokens)
        assert audited(second, chat)[: len(tokens)] == tokens
        assert second.engine.session.runtime.cache_manager.pool.get(chat.id).exact == exact
        evicted = [name for name, how in of(second.events, MessageRetention)[-1].retention if how == "evicted"]
        assert set(evicted) == chat.evicted.messages


def restarted(talking_file: Path, folder: Path) -> HeadlessEngine:
    headless = HeadlessEngine()
    headless.do(UsePolicy(CachePolicy(), folder))
    headless.do(LoadModel(LocalFile(talking_file), NARROW))
    return headless


def test_moved_tokens_go_to_their_own_conversation_and_never_to_exact_answers(narrow: HeadlessEngine) -> None:
    chat = filled(narrow, Overflow.SLIDE)
    long_answer(chat)
    session = narrow.engine.session
    sequence = session.runtime.cache_manager.lease(chat.id)
    tokens = list(held(narrow, chat))
    assert sequence.exact < len(tokens)
    session.runtime.cache_manager.swap_out(sequence)
    saved = session.runtime.cache_manager.swapper.saved_states
    prompt = [*tokens, 1]
    assert saved.longest_prefix(prompt, chat.id)[1] == len(tokens)
    assert saved.longest_whole(prompt, chat.id) is not None
    assert saved.longest_prefix(prompt) == (None, 0)
    assert saved.longest_prefix(prompt, new_conversation_id()) == (None, 0)
    assert saved.longest_whole(prompt) is None
    chat.overflow = Overflow.RECOMPUTE
    assert chat.answer("And?", SHORT).stats.reused_tokens == 0
    session.runtime.cache_manager.swapper.saved_states.drop_of(chat.id)


def test_a_conversation_with_moved_tokens_comes_back_as_it_was(narrow: HeadlessEngine) -> None:
    chat = filled(narrow, Overflow.SLIDE)
    long_answer(chat)
    before = list(held(narrow, chat))
    narrow.do(Operate(SwapOut(chat.id), measured=False))
    narrow.do(Operate(SwapIn(chat.id), measured=False))
    assert audited(narrow, chat) == before
    assert narrow.engine.session.runtime.cache_manager.pool.get(chat.id).exact < len(before)


@pytest.mark.parametrize("damage", ["all", "questions", "others", "behind"])
def test_a_damaged_memory_of_what_was_evicted_does_no_harm(narrow: HeadlessEngine, damage: str) -> None:
    chat = filled(narrow, Overflow.SINKS if damage == "behind" else Overflow.SLIDE)
    names = [m.id for m in chat.messages]
    narrow.do(CloseConversation(chat.id))
    evicted = {
        "all": EvictedMessages(frozenset(names)),
        "questions": EvictedMessages(frozenset(names[1::2])),
        "others": EvictedMessages(frozenset({MessageId("nobody")}), (MessageId("nothing"), 1 << 40)),
        "behind": EvictedMessages(frozenset(names[:2]), (names[2], 1 << 40)),
    }[damage]
    chat.evicted = evicted
    ended = chat.answer(TOLD * 2, SHORT)
    assert ended.state == "complete"
    audited(narrow, chat)


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.RECOMPUTE])
def test_a_conversation_that_repeats_itself_reads_no_token_twice(
    narrow: HeadlessEngine, overflow: Overflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same question and the same answer again: what stays begins like what leaves."""
    monkeypatch.setattr(narrow.engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    chat = HeadlessChat(narrow, "You tell stories.", overflow)
    n_middle = 0
    for _ in range(12):
        chat.answer("And then?", Sampling(temperature=0.0, max_tokens=24))
        names = [type(event) for event in narrow.events]
        if Overflowed in names and names.index(Overflowed) > names.index(TurnStarted):
            n_middle += 1
            wanted = next_prompt(
                narrow, chat, tuple(narrow.engine.session.runtime.overflow_manager._evicted[chat.id].messages)
            )
            tokens = held(narrow, chat)
            assert list(tokens) == wanted[: len(tokens)]
    assert n_middle, "no answer met the end of the context: choose another length"


def test_a_shift_of_quantized_k_leaves_nothing_exact(talking_file: Path) -> None:
    """All of K is rounded again, also that of conversations that did not move."""
    for headless in opened_with(talking_file, NARROW.model_copy(update={"type_k": CacheType.Q8_0})):
        moved, other = HeadlessChat(headless), HeadlessChat(headless)
        moved.answer("Name a colour.", SHORT)
        other.answer("Name a town.", SHORT)
        cache_manager = headless.engine.session.runtime.cache_manager
        pool = cache_manager.pool
        sequence = pool.get(moved.id)
        assert sequence is not None
        assert pool.get(other.id).exact == ALL_EXACT
        for branch in cache_manager.shared_cells.sharing(sequence, 4):
            cache_manager.evict(branch, "the test moves its cells")
        other.answer("Name a town.", SHORT)
        assert cache_manager.slide(sequence, len(sequence.tokens), [(4, 8)], "the test moves its cells")
        assert (sequence.exact, pool.get(other.id).exact) == (0, 0)
