"""Answers of several conversations at once on the real engine, and what is done while nobody asks."""

from pathlib import Path

import pytest

from kvdesk.backends.local.scheduler import scheduler
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import ConversationId, Message, MessageId, new_conversation_id, new_message_id
from kvdesk.policies.batching import ChunkSize
from kvdesk.policies.costs import Costs, Reads
from kvdesk.protocol.cache import OperationDone, SpeedSample, UsePolicy
from kvdesk.protocol.chat import Client, Generate, PrefillProgress, RawPrompt, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.messages import Event
from kvdesk.protocol.operations import ClearCache, Operate, RemoveRange, ShiftPositions
from kvdesk.protocol.prompt import Tokenize, Tokenized
from kvdesk.settings import CachePolicy, Sampling
from kvdesk.values import replace
from tests.backends.heard import ask
from tests.backends.local.by_hand import GREEDY, answered, seq, used
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_turns import of

LONG = Sampling(temperature=0.0, max_tokens=60)


def test_turns_of_several_conversations_run_together(headless: HeadlessEngine) -> None:
    """One batch a step for all; each text is that of the conversation alone."""
    prompts = ["Name three rivers.", "Name three towns.", "Say something kind about bread."]
    alone = [answered(headless, prompt).messages[-1].tokens for prompt in prompts]
    chats = [HeadlessChat(headless) for _ in prompts]
    headless.do(Operate(ClearCache(), measured=False))
    ended: dict[str, TurnEnded] = {}
    tokens: dict[str, list[int]] = {}
    most = 0
    headless.events = []
    for chat, prompt in zip(chats, prompts, strict=True):
        chat.add_question(prompt)
        headless.engine.handle(Generate(chat.id, chat.messages[-1].id, tuple(chat.messages), GREEDY))
    while headless.engine.busy:
        headless.engine.step()
        most = max(most, len(headless.engine._scheduler.running or ()))
    for event in headless.events:
        if isinstance(event, TurnEnded):
            ended[event.conversation] = event
        elif isinstance(event, TextDelta):
            tokens.setdefault(event.conversation, []).extend(event.tokens)
    assert most == 3
    assert [tuple(tokens[chat.id]) for chat in chats] == alone
    assert {e.state for e in ended.values()} == {"complete"}
    assert headless.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"


@pytest.mark.parametrize(("token_ms", "along"), [(2.0, False), (12.0, True)])
def test_an_answer_goes_on_while_a_prompt_is_read(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, token_ms: float, *, along: bool
) -> None:
    """Chunks of 64 tokens and steps of the answer take turns; where 64 take too long, fewer go along with it."""
    chat = HeadlessChat(headless)
    chat.answer("Name three rivers.", LONG)
    alone = chat.messages[-1].tokens
    headless.do(Operate(ClearCache(), measured=False))
    session = headless.engine.session
    for name in ("prompt_took", "chunk_took"):
        took = getattr(ChunkSize, name)
        ms = lambda self, n, _, took=took, **along: took(self, n, 5 + token_ms * n, **along)  # noqa: E731
        monkeypatch.setattr(ChunkSize, name, ms)
    step_took = ChunkSize.step_took
    monkeypatch.setattr(ChunkSize, "step_took", lambda self, _: step_took(self, 5 + token_ms))
    writer, reader = HeadlessChat(headless), HeadlessChat(headless)
    writer.add_question("Name three rivers.")
    reader.add_question("the sea, its ships and shores, " * 40)
    headless.events = []
    headless.engine.handle(Generate(writer.id, writer.messages[-1].id, tuple(writer.messages), LONG))
    while not of(headless.events, TextDelta):
        headless.engine.step()
    headless.engine.handle(Generate(reader.id, reader.messages[-1].id, tuple(reader.messages), GREEDY))
    kinds = []
    while not any(delta.conversation == reader.id for delta in of(headless.events, TextDelta)):
        n = len(of(headless.events, SpeedSample))
        headless.engine.step()
        session.runtime.context.memory.settle()
        session.runtime.context.memory.publish()
        kinds += [(s.kind, s.n_tokens) for s in of(headless.events, SpeedSample)[n:]]
    headless.host.run_until_idle()
    chunks = [n for kind, n in kinds if kind == "prefill"]
    steps = kinds.count(("decode", 1))
    sizes = {24, 28} if along else {64}
    first = min(chunks.index(size) for size in sizes if size in chunks)
    whole = chunks[first:-1]  # those before follow what the tiny model took by itself
    assert len(whole) >= 2
    assert set(whole) <= sizes
    assert along or steps >= len(whole) - 1, "the answer had a token of its own between two chunks"
    tokens = [t for d in of(headless.events, TextDelta) if d.conversation == writer.id for t in d.tokens]
    assert tuple(tokens) == alone
    assert session.runtime.context.auditor.audit(whole=True).state == "verified"


def test_one_of_several_is_stopped(headless: HeadlessEngine) -> None:
    chats = [HeadlessChat(headless) for _ in range(2)]
    for chat in chats:
        chat.add_question("Count from one to a hundred.")
        answer = chat.messages[-1].id
        headless.engine.handle(Generate(chat.id, answer, tuple(chat.messages), Sampling(temperature=0, max_tokens=40)))
    headless.events = []
    while headless.engine.busy:
        headless.engine.step()
        if of(headless.events, TextDelta):  # the first comes with the end of the prompt, all others by time
            headless.engine.request_stop(chats[0].messages[-1].id)
    states = {e.conversation: e for e in headless.events if isinstance(e, TurnEnded)}
    assert states[chats[0].id].state == "stopped"
    assert states[chats[0].id].stats.generated_tokens < 40
    assert states[chats[1].id].stats.generated_tokens == 40
    assert headless.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"


def test_a_second_answer_at_once_waits_for_the_prompt_and_shares_it(headless: HeadlessEngine) -> None:
    """Two answers to one question: the prompt is read once, both are decoded in one batch."""
    chat = HeadlessChat(headless)
    chat.add_question("Tell me about the sea, " + "its ships and shores, " * 20)
    answers = [new_message_id() for _ in range(2)]
    headless.events = []
    for answer in answers:
        headless.engine.handle(Generate(chat.id, answer, tuple(chat.messages), GREEDY))
    headless.host.run_until_idle()
    ended = {e.answer: e.stats for e in headless.events if isinstance(e, TurnEnded)}
    first, second = (ended[answer] for answer in answers)
    assert second.prefilled_tokens == 1, "only for its logits"
    assert second.seq_id != first.seq_id
    deltas = [e for e in headless.events if isinstance(e, TextDelta)]
    one, other = ([t for e in deltas if e.answer == answer for t in e.tokens] for answer in answers)
    assert one == other
    assert used(headless) == first.prompt_tokens + 2 * 11 + 1, "the prompt's cells are shared"
    assert headless.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"


def test_three_more_answers_at_once_take_three_sequences(headless: HeadlessEngine) -> None:
    """With n_seq_max 4 the first answer stays in the cache beside them, and no seq_id is held for nothing."""
    chat = HeadlessChat(headless)
    chat.answer("Tell me about the sea, and do not stop soon.", Sampling(temperature=0.0, max_tokens=24))
    headless.events = []
    for seed in range(3):
        sampling = Sampling(temperature=1.0, seed=seed, max_tokens=24)
        headless.engine.handle(Generate(chat.id, new_message_id(), tuple(chat.messages[:1]), sampling))
    headless.host.run_until_idle()
    assert [e.state for e in headless.events if isinstance(e, TurnEnded)] == ["complete"] * 3
    sequences = list(headless.engine.session.runtime.cache_manager.pool)
    assert sorted(s.branch for s in sequences) == [1, 2, 3, 4]
    assert all(len(s.tokens) > 16 for s in sequences)
    assert [e.note for e in headless.events if isinstance(e, OperationDone) and e.note] == []
    assert headless.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"


def test_more_answers_at_once_than_sequences_wait_for_one_to_end(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    chat.add_question("Tell me about the sea.")
    headless.events = []
    for seed in range(6):
        sampling = Sampling(temperature=1.0, seed=seed, max_tokens=12)
        headless.engine.handle(Generate(chat.id, new_message_id(), tuple(chat.messages), sampling))
    headless.host.run_until_idle()
    assert [event.state for event in of(headless.events, TurnEnded)] == ["complete"] * 6


def test_an_answer_that_took_long_was_used_until_its_end(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two chats, that one leaves whose answer ended first, though it was asked last."""
    monkeypatch.setattr(headless.engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    long, short = HeadlessChat(headless, "You tell long stories."), HeadlessChat(headless, "Be brief.")
    headless.events = []
    for chat, n_tokens in ((long, 60), (short, 2)):
        chat.add_question("Name three rivers.")
        sampling = Sampling(temperature=0.0, max_tokens=n_tokens)
        headless.engine.handle(Generate(chat.id, chat.messages[-1].id, tuple(chat.messages), sampling))
        while not any(event.conversation == chat.id for event in of(headless.events, TextDelta)):
            headless.engine.step()
    headless.host.run_until_idle()
    assert [event.conversation for event in of(headless.events, TurnEnded)] == [short.id, long.id]
    for prompt in ("Name three towns.", "Name three lakes.", "Name three roads."):
        answered(headless, prompt)
    pool = headless.engine.session.runtime.cache_manager.pool
    assert (pool.get(short.id), pool.get(long.id) is None) == (None, False)


@pytest.mark.parametrize("client", [Client("one", reuse=False), Client("another", sharing="its own")])
def test_a_request_that_cannot_share_a_prompt_does_not_wait_for_it(headless: HeadlessEngine, client: Client) -> None:
    text, headless.events = "Tell me about the sea, " + "its ships and shores, " * 40, []
    first, second = ask(text, GREEDY), replace(ask(text, GREEDY), client=client)
    headless.engine.handle(first)
    headless.engine.handle(second)
    while not any(event.answer == second.answer for event in of(headless.events, TurnStarted)):
        headless.engine.step()
    assert not of(headless.events, TextDelta), "the first is still being read"
    headless.host.run_until_idle()
    assert [event.stats.reused_tokens for event in of(headless.events, TurnEnded)] == [0, 0]


def test_two_conversations_of_a_program_do_not_take_each_others_stream(talking_file: Path) -> None:
    """They have their system prompt in common, which streams cannot share: there are free ones."""
    agent, told = Client("agent"), []
    system = Message(MessageId("system"), ConversationId("any"), None, "system", "You are brief. " * 9)
    for headless in opened_with(talking_file, SMALL.model_copy(update={"kv_unified": False, "n_ctx": 4096})):
        for text in ("What do you know about the sea? " * 9, "Name three rivers, and three towns. " * 9):
            first = ask(text, GREEDY)
            first = replace(first, messages=(system, *first.messages), client=agent)
            events = headless.do(first)
            answer = "".join(delta.text for delta in of(events, TextDelta))
            told.append((first, answer, of(events, TurnEnded)[0].stats))
        for first, answer, stats in told:
            after = ask("And then?", GREEDY)
            said = Message(new_message_id(), after.conversation, None, "assistant", answer)
            after = replace(after, messages=(*first.messages, said, *after.messages), client=agent)
            (ended,) = of(headless.do(after), TurnEnded)
            assert ended.stats.reused_tokens > 0.9 * stats.prompt_tokens


def test_a_request_that_fails_evicts_nobody(headless: HeadlessEngine) -> None:
    for town in ("Rome", "Oslo", "Lima", "Cork"):
        headless.do(replace(ask(f"What do you know about {town}?", GREEDY), client=Client("agent")))
    pool = session_of(headless).runtime.cache_manager.pool
    before = pool.leases()
    assert not pool.free
    asked = ask("Is it late?", Sampling(grammar='root ::= "yes"'))
    begun = Message(new_message_id(), asked.conversation, asked.messages[-1].id, "assistant", "no")
    headless.engine.handle(replace(asked, client=Client("agent"), continued=begun))
    headless.events = []
    headless.host.run_until_idle()
    (ended,) = of(headless.events, TurnEnded)
    assert (ended.state, "does not follow the grammar" in ended.note) == ("failed", True)
    assert pool.leases() == before


def test_what_was_stopped_before_its_first_token_keeps_no_seq_id(headless: HeadlessEngine) -> None:
    """Another branch of a chat that is being answered, which begins otherwise; and a request of a program."""
    chat = HeadlessChat(headless, "You tell stories.")
    chat.add_question("Tell me about the sea.")
    pool, first = session_of(headless).runtime.cache_manager.pool, new_message_id()
    headless.engine.handle(Generate(chat.id, first, tuple(chat.messages), LONG))
    headless.events = []
    while not of(headless.events, TextDelta):
        headless.engine.step()
    for conversation, client in ((chat.id, None), (new_conversation_id(), Client("agent"))):
        other = replace(ask("Name three rivers.", GREEDY, conversation), client=client)
        headless.engine.handle(other)
        headless.engine.step()
        assert len(pool.free) == 2
        headless.engine.request_stop(other.answer)
        headless.engine.step()
        assert other.answer in [event.answer for event in of(headless.events, TurnEnded)]
        assert len(pool.free) == 3
    headless.host.run_until_idle()


def test_requests_that_fail_keep_no_answer_from_being_written(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come faster than they fail, and each takes as long as a reader may wait for the next token."""
    monkeypatch.setattr(scheduler, "LONGEST_GAP_MS", 0.0, raising=False)
    writer, too_long = ask(sampling=GREEDY), RawPrompt(tokens=(1,) * 2000)
    headless.events = []
    headless.engine.handle(writer)
    headless.engine.step()
    for _ in range(60):
        command = replace(ask(), messages=(), raw=too_long, client=Client("one"))
        headless.engine.handle(command)
    for _ in range(60):
        headless.engine.step()
    ended = of(headless.events, TurnEnded)
    assert [event.answer for event in ended if event.state == "complete"] == [writer.answer]
    assert ended[0].answer != writer.answer, "nor do those wait until it has ended"
    headless.host.run_until_idle()
    assert len(of(headless.events, TurnEnded)) == 61


def test_a_flood_of_questions_keeps_no_answer_from_being_written(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes while the one before it is answered."""

    def ask_again(event: Event) -> None:
        if isinstance(event, Tokenized) and event.number < 500:
            headless.host.submit(Tokenize("Hi", number=event.number + 1))

    monkeypatch.setattr(headless, "_on_event", ask_again)
    headless.host.submit(Tokenize("Hi"))
    events = headless.do(ask(sampling=GREEDY))
    first = next(i for i, event in enumerate(events) if isinstance(event, TextDelta))
    assert len(of(events[:first], Tokenized)) < 50
    assert len(of(events, Tokenized)) == 501


def test_idle_work_compacts_where_it_pays(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    session = headless.engine.session
    first, second = answered(headless, "Tell me about the sea, " * 50), answered(headless, "Name three towns.")
    headless.do(Operate(RemoveRange(seq(headless, first)), measured=False))
    assert session.runtime.context.memory.totals()[1] > 256
    dear = Costs(Reads(weights=10**8, cell=10**6, skips=False))
    for seen, n_kv in ((100, 512), (200, 1024), (300, 1024), (100, 256), (400, 1024)):
        dear.learn(1, n_kv, seen, 5.0 + n_kv * 0.05)
    monkeypatch.setattr(session.runtime.cache_manager, "costs", dear)
    assert headless.engine.idle_work_due
    headless.events = []
    headless.engine.idle()
    done = next(e for e in headless.events if isinstance(e, OperationDone))
    assert done.name == "compact"
    assert "pays" in done.reason
    assert session.runtime.context.memory.totals()[1] == used(headless)
    assert session.runtime.context.auditor.audit(whole=True).state == "verified"
    headless.events = []
    headless.engine.idle()
    assert not any(isinstance(event, OperationDone) for event in headless.events), "once is enough"
    assert second.answer("More.", GREEDY).stats.reused_tokens > 10


def test_the_end_of_an_answer_is_read_while_nobody_asks(embedded: HeadlessEngine) -> None:
    embedded.do(UsePolicy(CachePolicy(prefill_ahead=True)))
    chat = HeadlessChat(embedded)
    ended = chat.answer("What is the chemical symbol for water?", Sampling(temperature=0.0, max_tokens=120))
    assert ended.finish == "", "an answer that ran into its limit may be continued: nothing is read behind it"
    held = used(embedded)
    embedded.engine.idle()
    assert used(embedded) > held
    ahead = used(embedded)
    assert chat.answer("And three lakes.", GREEDY).stats.reused_tokens == ahead


def test_a_shift_ends_the_answers_that_share_the_cells(headless: HeadlessEngine) -> None:
    system = "You are the keeper of a lighthouse, and you write down what the sea brings: a rope, a shoe, a plank. "
    first = HeadlessChat(headless, system)
    first.answer("Who are you?", GREEDY)
    second = Message(new_message_id(), new_conversation_id(), None, "user", "What came today?")
    rules = Message(new_message_id(), second.conversation, None, "system", system)
    long = GREEDY.model_copy(update={"max_tokens": 60})
    headless.events.clear()
    headless.engine.handle(Generate(second.conversation, new_message_id(), (rules, second), long))
    while not of(headless.events, PrefillProgress):
        headless.engine.step()
    shared = headless.engine.session.runtime.cache_manager.pool.get(second.conversation)
    assert shared.busy
    events = headless.do(Operate(ShiftPositions(seq(headless, first), 10, -1, 5), measured=False))
    assert [ended.state for ended in of(events, TurnEnded)] == ["stopped"]
    assert not shared.busy
    assert headless.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"


def test_what_batches_take_is_learned_by_the_cells_that_their_tokens_see(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by those of other conversations, which flash attention skips (ggml-cpu/ops.cpp)."""
    answered(headless, "the sea, its ships and shores, " * 40)
    learned: list[tuple[int, int, float]] = []
    costs = headless.engine.session.runtime.speed_model.costs
    monkeypatch.setattr(costs, "learn", lambda n, n_kv, n_visible, _ms: learned.append((n, n_kv, n_visible)))
    chat = answered(headless, "Name three rivers.")
    headless.engine.session.runtime.context.memory.settle()
    (n_prompt, n_kv, n_visible), *steps = learned
    n_past = n_visible - (n_prompt + 1) / 2
    assert n_past < 64 < 256 < n_kv, "a beginning that is shared is seen"
    assert len(steps) == len(chat.messages[-1].tokens) - 1
    assert [seen for _, _, seen in steps] == [n_past + n_prompt + 1 + i for i in range(len(steps))]
