"""The operations on cells in the menus of a conversation and of a message."""

from PySide6.QtWidgets import QMenu

from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.features import Feature
from kvdesk.session.operation_specs import OPERATIONS, REMOVE, Chosen, OperationSpec, alternative, call_of
from kvdesk.translation import tr
from kvdesk.ui.operations.request import ask, why_not_done
from kvdesk.ui.widgets.access.key_tips import show_tips_of
from kvdesk.ui.widgets.allow import allow
from kvdesk.ui.widgets.kit import Kit


def fill_menu(menu: QMenu, kit: Kit, conversation: ConversationId) -> None:
    """Add the operations on the cells of a conversation."""
    target = kit.store.target_of(conversation)
    for spec in OPERATIONS:
        if spec.menu and alternative(spec, target) is spec:
            _add(menu, kit, tr(spec.menu), spec, conversation)


def fill_message_menu(menu: QMenu, kit: Kit, conversation: ConversationId, message: MessageId) -> None:
    """Add the operations on the cells of a message, as a submenu."""
    menu = menu.addMenu(tr("Cache"))
    show_tips_of(menu)
    span = kit.store.span_of(conversation, message)
    if span is None:
        nothing = menu.addAction(tr("Cells of this message"))
        nothing.setEnabled(False)
        unknown = tr("Its place in the cache is known after the next answer in this chat.")
        nothing.setToolTip(kit.store.missing(Feature.CACHE_OPERATIONS) or unknown)
        return
    _add(menu, kit, tr("Remove its cells"), REMOVE, conversation, span.p0, span.p1)
    _add(menu, kit, tr("Remove its cells and all after it"), REMOVE, conversation, span.p0, -1)
    choose = menu.addAction(tr("Choose its cells for an operation"))
    choose.triggered.connect(lambda: choose_range(kit, conversation, span.p0, span.p1))


def choose_range(kit: Kit, conversation: ConversationId, p0: int, p1: int) -> None:
    """Fill positions of a conversation in to the form and unfold it."""
    if (target := kit.store.target_of(conversation)) is not None:
        kit.actions.run("cache.form")
        kit.store.choose_range(target.seq_id, p0, p1)


def _add(
    menu: QMenu, kit: Kit, text: str, spec: OperationSpec, conversation: ConversationId, p0: int = -1, p1: int = -1
) -> None:
    why = why_not_done(kit, spec, conversation, p0, p1)
    chosen = Chosen(kit.store.target_of(conversation), p0, p1)
    action = menu.addAction(text)
    allow(action, why, f"{tr(spec.tip)}\n{call_of(spec, chosen, kit.store)}".rstrip())
    action.triggered.connect(lambda: ask(kit, spec, conversation, p0, p1))
