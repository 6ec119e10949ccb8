"""Idle chats and requests leave the cache for memory before another prompt is read, where that pays."""

from dataclasses import dataclass, field
from typing import Literal

import pytest

from kvdesk.backends.local.scheduler import idle_requests
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import Message, TurnStats, new_conversation_id, new_message_id
from kvdesk.policies.compaction_gain import judge_leaving
from kvdesk.policies.costs import Costs, Reads
from kvdesk.policies.swap import Limits
from kvdesk.protocol.cache import OperationDone, RebuildContext, UsePolicy
from kvdesk.protocol.chat import Client, Generate, TextDelta, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.settings import CachePolicy, Sampling
from tests.backends.local.by_hand import used
from tests.backends.local.test_cache_manager import audited
from tests.backends.local.test_turns import fresh_answer

GREEDY = Sampling(temperature=0.0, max_tokens=24)  # as `fresh_answer` has it
SEA = "You are the keeper of a lighthouse, and you write down what the sea brings: " + "a rope, a shoe, " * 40
TOWN = "You answer letters for the mayor of a small town, who likes to be asked about: " + "the bridge, the mill, " * 40


@dataclass
class Program:
    """A client of the server: it sends all that was said with each request."""

    headless: HeadlessEngine
    client: Client
    system: str
    messages: list[Message] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def ask(self, text: str) -> TurnStats:
        """Its next question. The stats are of the answer."""
        conversation, answer = new_conversation_id(), new_message_id()
        if not self.messages:
            self.messages.append(Message(new_message_id(), conversation, None, "system", self.system))
        self.messages.append(Message(new_message_id(), conversation, None, "user", text))
        self.events = self.headless.do(Generate(conversation, answer, tuple(self.messages), GREEDY, client=self.client))
        deltas = [event for event in self.events if isinstance(event, TextDelta)]
        tokens = tuple(token for delta in deltas for token in delta.tokens)
        said = "".join(delta.text for delta in deltas)
        (ended,) = (event for event in self.events if isinstance(event, TurnEnded))
        assert ended.state == "complete", ended.note
        self.messages.append(Message(answer, conversation, None, "assistant", said, tokens=tokens, stats=ended.stats))
        return ended.stats


@pytest.fixture
def dear(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> HeadlessEngine:
    """An engine to whom each cell below n_kv costs 0.1 ms a token."""
    monkeypatch.setattr(idle_requests, "judge_leaving", judge_leaving)
    monkeypatch.setattr(headless.engine.session.runtime.cache_manager, "costs", each_cell_costs(0.1))
    return headless


def each_cell_costs(ms: float) -> Costs:
    """Of a token that takes 10 ms besides."""
    cost = Costs(Reads(weights=10**7, cell=max(1, int(ms * 10**6)), skips=False))
    for n_kv in (256, 512, 768, 1024):
        for n_visible in (100, n_kv):
            cost.learn(1, n_kv, n_visible, 10.0 + n_kv * ms)
    return cost


def limit_memory(headless: HeadlessEngine, n_bytes: int) -> None:
    """Until the next policy."""
    headless.engine.session.runtime.cache_manager.swapper.saved_states.set_limits(Limits(n_bytes, 0))


def in_cache(headless: HeadlessEngine) -> list[str]:
    return [lease.client for lease in headless.engine.session.runtime.cache_manager.pool.leases()]


def saved(headless: HeadlessEngine) -> list[str]:
    saved_states = headless.engine.session.runtime.cache_manager.swapper.saved_states
    return [s.client for program in ("editor", "agent") for s in saved_states.of_client(Client(program))]


def test_each_comes_back_whole(dear: HeadlessEngine) -> None:
    editor, agent = Program(dear, Client("editor"), SEA), Program(dear, Client("agent"), TOWN)
    first = editor.ask("What came today?")
    agent.ask("What is broken?")
    assert (in_cache(dear), saved(dear)) == (["agent"], ["editor"])
    (operation,) = (e for e in agent.events if isinstance(e, OperationDone) and "not used" in e.reason)
    assert "ms a token" in operation.reason
    second = editor.ask("And yesterday?")
    assert second.reused_tokens >= first.prompt_tokens + first.generated_tokens - 1
    assert "a saved state" in second.why
    assert (in_cache(dear), saved(dear)) == (["editor"], ["agent"]), "what went on is not kept twice"
    assert used(dear) == len(dear.engine.session.runtime.cache_manager.pool.by_seq(second.seq_id).tokens)
    assert fresh_answer(dear, editor.messages[:-1]) == editor.messages[-1].tokens
    audited(dear)


def test_who_shares_a_beginning_leaves_the_rest(dear: HeadlessEngine) -> None:
    first = Program(dear, Client("agent"), SEA)
    first.ask("What came today? " + "Tell me about the weather, and about the ships. " * 20)
    stats = Program(dear, Client("agent"), SEA).ask("Who are you?")
    assert stats.reused_tokens > 200
    assert "The cache held “What” at position" in stats.why
    assert "the prompt has “Who”" in stats.why
    assert (in_cache(dear), saved(dear)) == (["agent"], ["agent"])
    assert used(dear) == len(dear.engine.session.runtime.cache_manager.pool.by_seq(stats.seq_id).tokens)
    audited(dear)


def test_a_chat_leaves_and_comes_back_whole(dear: HeadlessEngine) -> None:
    sea, town = HeadlessChat(dear, SEA), HeadlessChat(dear, TOWN)
    first = sea.answer("What came today?", GREEDY)
    town.answer("What is broken?", GREEDY)
    runtime = dear.engine.session.runtime
    assert [lease.conversation for lease in runtime.cache_manager.pool.leases()] == [town.id]
    assert [conversation for conversation, _ in runtime.view().swapped] == [sea.id]
    asked = list(sea.messages)
    second = sea.answer("And yesterday?", GREEDY)
    assert second.stats.reused_tokens >= first.stats.prompt_tokens + first.stats.generated_tokens - 1
    assert "its saved state" in second.stats.why
    audited(dear)
    saved_states = runtime.cache_manager.swapper.saved_states
    saved_states.drop([state.key for state in saved_states.values()])
    assert fresh_answer(dear, [*asked, sea.messages[-2]]) == sea.messages[-1].tokens


def test_a_chat_with_moved_tokens_leaves_too(dear: HeadlessEngine) -> None:
    """Its state is for itself alone."""
    chat = HeadlessChat(dear, SEA)
    chat.answer("What came today?", GREEDY)
    cache_manager = dear.engine.session.runtime.cache_manager
    (sequence,) = cache_manager.pool
    cache_manager.adopt(sequence, sequence.tokens, 0)
    HeadlessChat(dear, TOWN).answer("What is broken?", GREEDY)
    assert cache_manager.pool.get(chat.id) is None


def test_cells_that_cost_little_stay(dear: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dear.engine.session.runtime.cache_manager, "costs", each_cell_costs(1e-7))
    HeadlessChat(dear, SEA).answer("What came today?", GREEDY)
    Program(dear, Client("agent"), TOWN).ask("What is broken?")
    Program(dear, Client("editor"), "You are brief.").ask("Name a river.")
    assert sorted(in_cache(dear)) == ["", "agent", "editor"]
    assert saved(dear) == []


def test_it_can_be_turned_off(dear: HeadlessEngine) -> None:
    dear.do(UsePolicy(CachePolicy(save_idle_requests=False), None))
    Program(dear, Client("editor"), SEA).ask("What came today?")
    Program(dear, Client("agent"), TOWN).ask("What is broken?")
    assert sorted(in_cache(dear)) == ["agent", "editor"]


def test_no_place_in_memory_keeps_them_in_the_cache(dear: HeadlessEngine) -> None:
    limit_memory(dear, 10_000)
    Program(dear, Client("editor"), SEA).ask("What came today?")
    Program(dear, Client("agent"), TOWN).ask("What is broken?")
    assert sorted(in_cache(dear)) == ["agent", "editor"]


def test_memory_that_is_full_drops_nobody_whose_turn_comes(dear: HeadlessEngine) -> None:
    editor, agent, shell = (
        Program(dear, Client(name), system)
        for name, system in (("editor", SEA), ("agent", TOWN), ("shell", "You are brief, and a shell. " + TOWN))
    )
    editor.ask("What came today?")
    (sequence,) = dear.engine.session.runtime.cache_manager.pool
    n_bytes = dear.engine.session.runtime.context.states.seq_size(sequence.seq_id)
    limit_memory(dear, 3 * n_bytes // 2)  # room for one of them
    for program in (agent, shell):
        program.ask("What came today?")
    assert (sorted(in_cache(dear)), saved(dear)) == (["agent", "shell"], ["editor"])
    for program in (editor, agent, shell):
        assert program.ask("And yesterday?").reused_tokens > 250
    audited(dear)


def test_moved_tokens_are_of_no_use_to_the_next_request(dear: HeadlessEngine) -> None:
    Program(dear, Client("editor"), SEA).ask("What came today?")
    cache_manager = dear.engine.session.runtime.cache_manager
    (editor,) = cache_manager.pool
    cache_manager.adopt(editor, editor.tokens, 0)
    Program(dear, Client("agent"), TOWN).ask("What is broken?")
    assert sorted(in_cache(dear)) == ["agent", "editor"]


def test_saved_requests_are_no_chats(dear: HeadlessEngine) -> None:
    Program(dear, Client("editor"), SEA).ask("What came today?")
    Program(dear, Client("agent"), TOWN).ask("What is broken?")
    runtime = dear.engine.session.runtime
    (state,) = runtime.cache_manager.swapper.saved_states.of_client(Client("editor"))
    assert runtime.view().swapped == ()
    with pytest.raises(UserError, match="not swapped out"):
        runtime.cache_manager.swap_in(state.conversation)


@pytest.mark.parametrize("keep", ["tokens", "state"])
def test_a_rebuild_leaves_requests_to_their_programs(dear: HeadlessEngine, keep: Literal["tokens", "state"]) -> None:
    one = Program(dear, Client("editor", "key one"), SEA)
    first = one.ask("What came today?")
    dear.do(RebuildContext(dear.engine.session.runtime.context.settings, keep))
    assert in_cache(dear) == ["editor"]
    assert HeadlessChat(dear, SEA).answer("What came today?", GREEDY).stats.reused_tokens == 0
    assert one.ask("And yesterday?").reused_tokens >= first.prompt_tokens


def test_who_shares_with_nobody_is_saved_for_nobody_else(dear: HeadlessEngine) -> None:
    one, two = Program(dear, Client("editor", "key one"), SEA), Program(dear, Client("editor", "key two"), SEA)
    first = one.ask("What came today?")
    assert two.ask("What came today?").reused_tokens == 0
    again = one.ask("And yesterday?")
    assert again.reused_tokens >= first.prompt_tokens + first.generated_tokens - 1
    assert Program(dear, Client("editor"), SEA).ask("What came today?").reused_tokens == 0


def test_why_tells_the_difference_to_what_is_saved(dear: HeadlessEngine) -> None:
    Program(dear, Client("editor"), "The time is 14:03. " + SEA).ask("What came today?")
    Program(dear, Client("agent"), TOWN).ask("What is broken?")
    stats = Program(dear, Client("editor"), "The time is 14:04. " + SEA).ask("What came today?")
    assert "The cache held “3” at position" in stats.why
    assert "the date or the time" in stats.why


def test_who_asks_what_another_asked_first_cuts_none_of_its_later_turns(headless: HeadlessEngine) -> None:
    for number in range(3):
        Program(headless, Client("editor"), f"You count to {number}, and say so in few words.").ask("What now?")
    agent = Program(headless, Client("agent"), SEA)
    for text in ("What came today?", "And what was it yesterday?"):
        held = agent.ask(text)
    assert not headless.engine.session.runtime.cache_manager.pool.free
    Program(headless, Client("agent"), SEA).ask("What came today?")
    assert agent.ask("And tomorrow?").reused_tokens >= held.prompt_tokens
