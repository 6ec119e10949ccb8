"""What is shared, forked, swapped and brought back: the text is token for token that of a fresh prefill.

On the embedded model with whole turns, and on a tiny model of every kind of memory with token ids.
"""

from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.cache_manager.sequences import SequencePool
from kvdesk.backends.local.llama.model import Model
from kvdesk.errors import RefusedCall, UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import ConversationId, new_conversation_id
from kvdesk.protocol.cache import OperationDone, RebuildContext, UsePolicy, VerifyConversation
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import CopySequence, Operate, SwapIn, SwapOut
from kvdesk.settings import CachePolicy, CacheType, Sampling
from tests.backends.local.by_hand import used
from tests.backends.local.conftest import NARROW, SMALL, opened_with
from tests.backends.local.ids import Ids, prompt_of, prompt_tokens
from tests.backends.local.test_turns import fresh_answer, held

N = 12
GREEDY = Sampling(temperature=0.0, max_tokens=24)  # as `fresh_answer` has it
SYSTEM = "You are the keeper of a lighthouse, and you write down what the sea brings: " + "a rope, a shoe, " * 9


# --- whole turns on the embedded model --------------------------------------------------------------------------------


def audited(headless: HeadlessEngine) -> None:
    verification = headless.engine.session.runtime.context.auditor.audit(whole=True)
    assert verification.state == "verified", verification.detail


def branches(headless: HeadlessEngine) -> dict[ConversationId, dict[bool, int]]:
    """Numbers of the branch that goes on, and of the inactive one, by whether it is inactive."""
    found: dict[ConversationId, dict[bool, int]] = {}
    for lease in headless.engine.session.runtime.cache_manager.pool.leases():
        found.setdefault(lease.conversation, {})[lease.inactive] = lease.branch
    return found


def test_a_shared_system_prompt_is_computed_once(headless: HeadlessEngine) -> None:
    first, second = HeadlessChat(headless, SYSTEM), HeadlessChat(headless, SYSTEM)
    one = first.answer("What came today?", GREEDY).stats
    before = used(headless)
    two = second.answer("Who are you?", GREEDY).stats
    own = len(held(headless, second)) - two.reused_tokens
    assert one.reused_tokens == 0
    assert two.reused_tokens > 50
    assert two.prefilled_tokens == two.prompt_tokens - two.reused_tokens < 20
    assert used(headless) - before == own
    assert fresh_answer(headless, second.messages[:-1]) == second.messages[-1].tokens
    audited(headless)


def test_a_fork_shares_and_its_branches_come_back(headless: HeadlessEngine) -> None:
    """A question is asked otherwise, then the first branch is gone on with: none of it is computed again."""
    chat = HeadlessChat(headless, "You are brief.")
    for prompt in ("Name a river.", "Name a town at a river, and tell me something about it."):
        chat.answer(prompt, GREEDY)
    first = list(chat.messages)
    chat.messages = chat.messages[:-2]
    before = used(headless)
    stats = chat.answer("Name a mountain.", GREEDY).stats
    assert used(headless) - before == len(held(headless, chat)) - stats.reused_tokens, "0 cells copied"
    assert len(headless.engine.session.runtime.cache_manager.pool.inactive_branches(chat.id)) == 1
    assert branches(headless)[chat.id] == {False: 2, True: 1}, "the new one has a number of its own"
    leases = headless.engine.session.runtime.cache_manager.pool.leases()
    ends = {lease.inactive: lease.last for lease in leases if lease.conversation == chat.id}
    assert ends == {True: first[-1].id, False: chat.messages[-1].id}, "each branch says with which message it ends"
    assert fresh_answer(headless, chat.messages[:-1]) == chat.messages[-1].tokens
    chat.messages = list(first)
    back = chat.answer("And another one?", GREEDY).stats
    assert branches(headless)[chat.id] == {False: 1, True: 2}, "each keeps its number"
    assert back.reused_tokens >= first[-1].stats.prompt_tokens + first[-1].stats.generated_tokens - 1
    assert fresh_answer(headless, chat.messages[:-1]) == chat.messages[-1].tokens
    audited(headless)


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_out_and_back(headless: HeadlessEngine, tmp_path: Path, where: str) -> None:
    policy = CachePolicy(memory_mb=512 if where == "memory" else 0)
    headless.do(UsePolicy(policy, tmp_path))
    chat = HeadlessChat(headless, SYSTEM)
    chat.answer("What came today?", GREEDY)
    tokens = list(held(headless, chat))
    headless.do(Operate(SwapOut(chat.id), measured=False))
    headless.engine.session.runtime.cache_manager.swapper.saved_states.close()
    assert used(headless) == 0
    assert len(list(tmp_path.glob("*.kvstate"))) == 1
    headless.do(Operate(SwapIn(chat.id), measured=False))
    assert held(headless, chat) == tokens
    headless.do(Operate(SwapOut(chat.id), measured=False))
    stats = chat.answer("And yesterday?", GREEDY).stats
    assert stats.reused_tokens == len(tokens)
    audited(headless)
    headless.do(UsePolicy(CachePolicy(), None))  # nothing is saved there
    assert fresh_answer(headless, chat.messages[:-1]) == chat.messages[-1].tokens


def test_back_after_a_restart(talking_file: Path, tmp_path: Path) -> None:
    chat, texts = None, []
    for prompt in ("What came today?", "And yesterday?"):
        with closing(HeadlessEngine()) as headless:
            headless.do(UsePolicy(CachePolicy(), tmp_path))
            headless.do(LoadModel(LocalFile(talking_file), SMALL))
            chat = chat or HeadlessChat(headless, SYSTEM)
            chat.headless = headless
            texts.append(chat.answer(prompt, GREEDY).stats)
            audited(headless)
            if len(texts) == 2:
                headless.do(UsePolicy(CachePolicy(), None))  # nothing is saved there
                assert fresh_answer(headless, chat.messages[:-1]) == chat.messages[-1].tokens
    assert texts[1].reused_tokens >= texts[0].prompt_tokens + texts[0].generated_tokens - 1


# --- token ids on every kind of memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("type_kv", [CacheType.F16, CacheType.F32])
def test_every_memory_is_exact(tiny: Model, tmp_path: Path, type_kv: CacheType) -> None:
    """Sharing, going on, editing, regenerating, leaving and a restart: always the answer of a fresh start."""
    n = prompt_tokens(tiny)
    begin = prompt_of(0, n)
    a, b = begin + prompt_of(50, 6), begin + prompt_of(71, 9)

    def fresh(prompt: list[int]) -> list[int]:
        with closing(Ids(tiny, tmp_path / "none", type_kv)) as ids:
            reused, answer, _ = ids.answer("alone", prompt, N)
            assert reused == 0
            ids.cache_manager.forget(ConversationId("alone"), "")
            return answer

    with closing(Ids(tiny, tmp_path / "states", type_kv)) as ids:
        can = ids.context.can
        _, first, _ = ids.answer("one", a, N)
        assert first == fresh(a)
        shared, second, _ = ids.answer("two", b, N)  # the beginning is another conversation's
        assert second == fresh(b)
        edited, third, _ = ids.answer("one", [*b[:-3], 9, 8, 7], N)
        assert third == fresh([*b[:-3], 9, 8, 7])
        if can("partial seq_cp") and can("partial seq_rm"):
            assert shared == n
            assert edited >= n
        _, again, _ = ids.answer("one", a, N)  # the inactive branch, or anew
        assert again == first
        longer = a + first[:-1] + prompt_of(90, 4)
        wanted = fresh(longer)
        if can("swap"):
            ids.cache_manager.swap_out(ids.lease("one"))
            kept, fourth, _ = ids.answer("one", longer, N)
            assert kept == len(a) + len(first) - 1
        else:
            _, fourth, _ = ids.answer("one", longer, N)
        assert fourth == wanted
    with closing(Ids(tiny, tmp_path / "states", type_kv)) as ids:
        more = longer + fourth[:-1] + prompt_of(33, 3)
        kept, fifth, _ = ids.answer("one", more, N)
        assert kept == (len(longer) + len(fourth) - 1 if can("swap") else 0)
    assert fifth == fresh(more)


def test_branches_are_kept_while_a_seq_id_is_free_and_then_the_reason_is_said(headless: HeadlessEngine) -> None:
    """With n_seq_max 4 a fifth answer finds no seq_id for the one before, however many cells are free."""
    chat = HeadlessChat(headless, SYSTEM)
    session = headless.engine.session
    for n_kept in (0, 1, 2, 3):
        chat.messages = chat.messages[:1]
        chat.answer(f"Tell me about bottle number {n_kept}, and nothing else.", GREEDY)
        assert len(session.runtime.cache_manager.pool.inactive_branches(chat.id)) == n_kept
        assert [e.note for e in headless.events if isinstance(e, OperationDone) and e.note] == []
    chat.messages = chat.messages[:1]
    chat.answer("Tell me about a rope.", GREEDY)
    assert len(session.runtime.cache_manager.pool.inactive_branches(chat.id)) == 3
    assert session.runtime.context.memory.free_cells(0) > 500
    (cut,) = [e for e in headless.events if isinstance(e, OperationDone) and e.note]
    assert "no seq_id is free to keep it: all 4 (n_seq_max) are taken" in cut.reason
    assert "although cells are free: all 4 sequences (n_seq_max) are in use" in cut.note
    other = HeadlessChat(headless)
    other.answer("Hello", GREEDY)
    (left,) = [e for e in headless.events if isinstance(e, OperationDone) and e.note]
    assert (left.conversation, left.emptied) == (chat.id, False)
    assert "its seq_id is needed: all 4 (n_seq_max) are taken" in left.reason
    headless.do(VerifyConversation(other.id))
    reasons = [e.reason for e in headless.events if isinstance(e, OperationDone)]
    assert "its seq_id is needed to compute in" in reasons
    audited(headless)


def test_copies_of_each_other_leave_where_their_cells_are_needed(narrow: HeadlessEngine) -> None:
    """None of them has a cell of its own, so that each alone would free nothing."""
    chat, other = HeadlessChat(narrow), HeadlessChat(narrow)
    chat.answer("Tell me about the sea, " + "its ships and shores, " * 16, GREEDY)
    cache = session_of(narrow).runtime.cache_manager
    for _ in range(2):
        narrow.do(Operate(CopySequence(cache.pool.get(chat.id).seq_id, new_conversation_id()), measured=False))
    assert cache.totals()[0] == len(cache.pool.get(chat.id).tokens) > 100
    ended = other.answer("Tell me about bread, " + "its crust and crumbs, " * 24, GREEDY)
    assert ended.state == "complete"
    assert ended.stats.prompt_tokens + cache.totals()[0] > 256
    audited(narrow)


def test_a_state_larger_than_the_context_costs_nobody_anything(
    talking_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was saved in a larger one, and begins as a prompt does."""
    sea = "Tell me about the sea, " + "its ships and shores, " * 8
    for headless in opened_with(talking_file, SMALL):
        chat, idle = HeadlessChat(headless), HeadlessChat(headless)
        chat.answer(sea * 8, GREEDY)
        headless.do(Operate(SwapOut(chat.id), measured=False))
        headless.do(RebuildContext(NARROW))
        cache = session_of(headless).runtime.cache_manager
        monkeypatch.setattr(cache.swapper, "_costs", lambda n_tokens, _: (1e3 * n_tokens, 1.0))
        assert cache.swapper.saved_states.of(chat.id) is not None
        idle.answer("Hi", GREEDY)
        with pytest.raises(UserError, match="no room"):
            headless.do(Operate(SwapIn(chat.id), measured=False))
        chat.messages = []
        assert chat.answer(sea, GREEDY).stats.reused_tokens < 30, "the template's beginning, which the other has"
        assert cache.pool.get(idle.id).tokens, "nothing left for it"


def test_a_reserved_seq_id_goes_to_no_conversation() -> None:
    pool, (one, other) = SequencePool(2), (ConversationId("one"), ConversationId("other"))
    with pool.reserved() as spare:
        leased = pool.lease(one)
        assert (pool.free, leased.seq_id, pool.lease(other)) == ((), 1, None)
        with pytest.raises(RefusedCall), pool.reserved():
            pass
    assert pool.lease(other).seq_id == spare == 0
