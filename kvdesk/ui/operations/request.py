"""Operations by hand as they are asked for: from the form, a menu or an action to a command."""

from __future__ import annotations

from typing import assert_never

from kvdesk.chat import ConversationId, MessageId
from kvdesk.protocol.cache import VerifyConversation
from kvdesk.session.operation_specs import Chosen, OperationSpec, Request, refusal
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.ui.widgets.kit import Kit


def why_not_done(kit: Kit, spec: OperationSpec, conversation: ConversationId, p0: int = -1, p1: int = -1) -> str:
    """Why an operation cannot be done to a conversation's cells, empty where it can."""
    store = kit.store
    if store.view is None and not store.dead and store.context is not None:
        return tr("Open the inspector (Ctrl+I) to operate on the cache by hand.")
    return refusal(spec, Chosen(store.target_of(conversation), p0, p1), store)


def ask(kit: Kit, spec: OperationSpec, conversation: ConversationId, p0: int = -1, p1: int = -1) -> None:
    """Do an operation to a conversation's cells, or say why not."""
    if why := why_not_done(kit, spec, conversation, p0, p1):
        kit.store.notify(why)
    else:
        request(kit, spec, Chosen(kit.store.target_of(conversation), p0, p1))


def request(kit: Kit, spec: OperationSpec, chosen: Chosen) -> None:
    """Do an operation that is not refused."""
    match spec.request:
        case Request.OPERATION:
            if (operation := spec.build(chosen, kit.store)) is not None:
                kit.commands.operate(operation)
        case Request.FORK:
            kit.commands.fork(chosen.conversation, _last_message(kit, chosen), chosen.p0, chosen.p1)
        case Request.VERIFICATION:
            kit.commands.submit(VerifyConversation(chosen.conversation))
        case Request.COMPACTION:
            kit.actions.run("cache.compact")
        case Request.REBUILD:
            kit.actions.run("settings.context")
        case _:
            assert_never(spec.request)


def rebuild(kit: Kit, context: ContextSettings, keep: str = "nothing") -> None:
    """Rebuild the context, and show the chat meanwhile."""
    if not kit.store.dead:
        kit.store.begin_rebuild()
    kit.actions.run("chat.write")
    kit.commands.rebuild(context, keep)


def _last_message(kit: Kit, chosen: Chosen) -> MessageId | None:
    """A fork of the first positions has the messages that end there; without their places known, all of them."""
    spans = kit.store.spans.get(chosen.conversation)
    if chosen.p1 < 0 or spans is None:
        return None
    return next((span.message for span in reversed(spans.spans) if span.p1 <= chosen.p1), None)
