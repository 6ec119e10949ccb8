"""Chats on the real engine, operations on them by hand, and what the cache then holds."""

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.protocol.cache import OperationDone
from kvdesk.protocol.operations import HandOperation, Operate
from kvdesk.settings import Sampling
from tests.backends.local.test_turns import of

GREEDY = Sampling(temperature=0.0, max_tokens=12)


def answered(headless: HeadlessEngine, prompt: str = "Name three rivers.") -> HeadlessChat:
    chat = HeadlessChat(headless)
    chat.answer(prompt, GREEDY)
    return chat


def operate(headless: HeadlessEngine, operation: HandOperation, *, measured: bool = True) -> OperationDone:
    """Do it, and see that the map agrees with the engine afterwards."""
    events = headless.do(Operate(operation, measured))
    context = headless.engine.session.runtime.context
    assert context.auditor.audit(whole=True).state == "verified", context.memory.verification.detail
    return next(e for e in of(events, OperationDone) if e.reason == "by hand")


def seq(headless: HeadlessEngine, chat: HeadlessChat) -> int:
    return headless.engine.session.runtime.cache_manager.pool.get(chat.id).seq_id


def used(headless: HeadlessEngine) -> int:
    return headless.engine.session.runtime.context.memory.totals()[0]
