"""A chat that is deleted or forgotten stays so: nothing that takes long puts it back into the cache at its end."""

from collections.abc import Callable
from itertools import count

import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId, Message, new_message_id
from kvdesk.policies import prompt_piece
from kvdesk.protocol.cache import Forget, RebuildContext, Refilled, UsePolicy, Verified, VerifyConversation
from kvdesk.protocol.chat import CloseConversation, DropMessages, Generate, TurnStarted
from kvdesk.protocol.messages import Command, CommandFailed
from kvdesk.settings import CachePolicy, Sampling
from tests.backends.local.conftest import SMALL
from tests.backends.local.test_stop_waiting import asked, ends, step_until
from tests.backends.local.test_turns import GREEDY, LONG, of

Delete = Callable[[HeadlessChat], Command]

DELETE: dict[str, Delete] = {
    "closed": lambda chat: CloseConversation(chat.id),
    "forgotten": lambda chat: Forget(chat.id),
    "a message deleted": lambda chat: DropMessages(chat.id, (chat.messages[0].id, chat.messages[1].id)),
}
deleted_so = pytest.mark.parametrize("delete", DELETE.values(), ids=DELETE)


def n_held(headless: HeadlessEngine, conversation: ConversationId) -> int:
    sequence = headless.engine.session.runtime.cache_manager.pool.get(conversation)
    return 0 if sequence is None else len(sequence.tokens)


@deleted_so
@pytest.mark.parametrize("n_steps", [0, 1, 3])
def test_it_is_not_read_again_after_a_rebuild(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, delete: Delete, n_steps: int
) -> None:
    """Before it is begun, before its first token is read, and in the middle."""
    chat, other, engine = HeadlessChat(headless), HeadlessChat(headless), headless.engine
    other.answer("Name three towns.", GREEDY)
    chat.answer(LONG, GREEDY)
    monkeypatch.setattr(prompt_piece, "LONGEST_GAP_MS", 0.001)
    headless.events = []
    engine.handle(RebuildContext(SMALL, keep="tokens"))
    for _ in range(n_steps):
        engine.step()
    assert not of(headless.events, Refilled)
    engine.handle(delete(chat))
    n = n_held(headless, chat.id)
    step_until(headless, lambda: bool(of(headless.events, Refilled)))
    assert n_held(headless, chat.id) <= n
    (refilled,) = of(headless.events, Refilled)
    assert (refilled.n_conversations, refilled.n_left) == (1, 0)
    assert n_held(headless, other.id)
    assert engine.session.runtime.context.auditor.audit(whole=True).state == "verified"


@deleted_so
def test_it_is_not_read_ahead(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, delete: Delete) -> None:
    sampled = count(1)
    monkeypatch.setattr(headless.engine.session.loaded.model.vocab, "is_eog", lambda _: next(sampled) == 8)
    headless.do(UsePolicy(CachePolicy(prefill_ahead=True)))
    chat = HeadlessChat(headless)
    assert chat.answer("Who keeps the lighthouse?", Sampling(temperature=0.0, max_tokens=20)).finish == ""
    headless.do(delete(chat))
    n = n_held(headless, chat.id)
    headless.engine.idle()
    assert n_held(headless, chat.id) == n


def test_its_verification_ends(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, engine = HeadlessChat(headless), headless.engine
    chat.answer(LONG, GREEDY)
    monkeypatch.setattr(prompt_piece, "LONGEST_GAP_MS", 0.001)
    headless.events = []
    engine.handle(VerifyConversation(chat.id))
    engine.step()
    engine.handle(CloseConversation(chat.id))
    step_until(headless, lambda: not engine.busy)
    assert not of(headless.events, Verified)
    (failed,) = of(headless.events, CommandFailed)
    assert "was removed from the cache" in failed.sentence
    assert engine.session.runtime.context.memory.totals()[0] == 0


def test_its_request_that_waits_does_not_begin(headless: HeadlessEngine) -> None:
    chat, engine = HeadlessChat(headless), headless.engine
    chat.answer(LONG, GREEDY)
    said = (*chat.messages, Message(new_message_id(), chat.id, None, "user", "Go on."))
    waits, other = Generate(chat.id, new_message_id(), said, GREEDY), asked("Hello")
    headless.events = []
    engine.handle(waits)
    engine.handle(other)
    engine.handle(CloseConversation(chat.id))
    assert ends(headless)[waits.answer].state == "stopped"
    step_until(headless, lambda: not engine.busy)
    assert [started.answer for started in of(headless.events, TurnStarted)] == [other.answer]
    assert n_held(headless, chat.id) == 0
