"""Operations by hand on a conversation, as a menu or an action asks for them."""

from kvdesk.message import ConversationId
from kvdesk.session.operation_specs import Chosen, OperationSpec, carry_out, refusal
from kvdesk.translation import tr
from kvdesk.ui.widgets.kit import Kit


def why_not_done(kit: Kit, spec: OperationSpec, conversation: ConversationId, p0: int = -1, p1: int = -1) -> str:
    """Why an operation cannot be done to a conversation's cells, empty if it can."""
    store = kit.store
    if store.view is None and not store.dead and store.context is not None:
        return tr("The cells are not shown: open page Cache of the inspector (Ctrl+I) to operate on them.")
    return refusal(spec, Chosen(store.target_of(conversation), p0, p1), store)


def ask(kit: Kit, spec: OperationSpec, conversation: ConversationId, p0: int = -1, p1: int = -1) -> None:
    """Do an operation to a conversation's cells, or say why not."""
    if why := why_not_done(kit, spec, conversation, p0, p1):
        kit.store.notify(why)
    else:
        carry_out(spec, Chosen(kit.store.target_of(conversation), p0, p1), kit.store, kit.commands)
