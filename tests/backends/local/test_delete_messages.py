"""A deleted message takes its cells, and those computed from it, with it; the common prefix stays, on every memory."""

from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.cache_manager.message_cells import drop_messages
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import MessageSpan, UsePolicy
from kvdesk.protocol.chat import DropMessages
from kvdesk.settings import CachePolicy, Sampling
from tests.backends.local.conftest import emptied
from tests.backends.local.ids import CLASSES, NAMES, open_model, prompt_of, prompt_tokens
from tests.backends.local.test_checkpoints import open_ids
from tests.backends.local.test_turns import fresh_answer, held

SHORT = Sampling(temperature=0.0, max_tokens=12)
ONE = ConversationId("one")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_before_a_deleted_message_is_not_read_again(name: str, tmp_path: Path, tiny_folder: Path) -> None:
    """Where the memory can give back a part; else back to the longest saved state that holds nothing of it."""
    with closing(open_model(name, tiny_folder)) as model, closing(open_ids(model, tmp_path / "states")) as ids:
        prompt = prompt_of(3, prompt_tokens(model))
        n = len(prompt)
        answer = ids.answer("one", prompt, 12, [n // 2]).tokens
        sequence = ids.cache_manager.pool.get(ONE)
        assert sequence is not None
        spans = (
            MessageSpan(MessageId("q"), 0, n // 2, 2, ()),
            MessageSpan(MessageId("a"), n // 2, n, n // 2 + 2, ()),
            MessageSpan(MessageId("b"), n, n + 11, n, ()),
        )
        ids.cache_manager.set_spans(sequence, spans)
        drop_messages(ids.cache_manager, ONE, {MessageId("a")})
        assert len(sequence.tokens) in (0, n // 2 + 2)
        assert ids.context.memory.seq_pos_max(sequence.seq_id) == len(sequence.tokens) - 1
        saved = ids.cache_manager.swapper.saved_states.all_of(ONE)
        assert not any(s.tokens[: n // 2 + 3] == tuple(prompt[: n // 2 + 3]) for s in saved)
        without = [*prompt[: n // 2 + 2], *answer[:4], 9]
        found = ids.answer("one", without, 4)
        assert found.n_reused in (n // 2 + 2, n // 2, 0)
        if ids.context.can("partial seq_rm"):
            assert found.n_reused == n // 2 + 2
        elif any(len(s.tokens) == n // 2 for s in saved):
            assert found.n_reused == n // 2, "a checkpoint before it stays"


def test_where_nothing_says_which_messages_cells_are_of_all_go(tmp_path: Path, tiny_folder: Path) -> None:
    """As in a copy before its first turn. Of what lies behind the last token only the name goes."""
    with closing(open_model(CLASSES[0], tiny_folder)) as model, closing(open_ids(model, tmp_path / "states")) as ids:
        ids.answer("one", prompt_of(3, prompt_tokens(model)), 4)
        sequence = ids.cache_manager.pool.get(ONE)
        assert sequence is not None
        n = len(sequence.tokens)
        q = MessageSpan(MessageId("q"), 0, n, 2, ())
        removed_by_hand = MessageSpan(MessageId("b"), n + 1, n + 9, n + 3, ())
        ids.cache_manager.set_spans(sequence, (q, removed_by_hand))
        drop_messages(ids.cache_manager, ONE, {MessageId("b")})
        assert (len(sequence.tokens), sequence.spans) == (n, (q,))
        ids.cache_manager.set_spans(sequence, ())
        drop_messages(ids.cache_manager, ONE, {MessageId("a")})
        assert not sequence.tokens


def test_a_chat_goes_on_without_the_deleted_messages(engine: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    session = emptied(engine, monkeypatch).engine.session
    chat = HeadlessChat(engine, "You keep a lighthouse, and you write down what the sea brings.")
    for question in ("What came today, and from where?", "And what was it that came yesterday?", "Thanks."):
        chat.answer(question, SHORT)
    system, q1, a1, q2, a2, *rest = chat.messages
    before = session.loaded.prompts.prompt([system, q1, a1, q2])
    assert chat.service.removals.remove(chat.id, [q2.id, a2.id])
    command = chat._asked.pop()
    assert command == DropMessages(chat.id, (q2.id, a2.id, *(message.id for message in rest)))
    engine.do(command)
    sequence = session.runtime.cache_manager.pool.get(chat.id)
    can_cut = session.runtime.context.can("partial seq_rm")
    assert len(sequence.tokens) == (before.places[-1].first if can_cut else 0)
    assert session.runtime.context.auditor.audit(whole=True).state == "verified"
    assert [m.text for m in chat.messages] == [m.text for m in (system, q1, a1, *rest)]
    stats = chat.answer("Good night.", SHORT).stats
    if can_cut:
        assert stats.reused_tokens >= before.places[-1].first
    else:
        assert stats.reused_tokens > 0, "back to a checkpoint"
    assert stats.prefilled_tokens == stats.prompt_tokens - stats.reused_tokens
    if can_cut:
        held(engine, chat)
    engine.do(UsePolicy(CachePolicy(memory_mb=0, disk_mb=0), None))
    assert fresh_answer(engine, chat.messages[:-1])[:12] == chat.messages[-1].tokens[:12]
