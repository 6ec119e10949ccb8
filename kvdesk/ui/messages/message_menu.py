"""The menu of a message: what can be done with its text, and with its cells."""

from functools import partial
from typing import Final

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from kvdesk.errors import NO_TOKENIZER
from kvdesk.message import Message, ended_early
from kvdesk.session import Store
from kvdesk.translation import tr
from kvdesk.ui.markdown.plain_text import plain_text
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.messages.tool_message import ToolMessage
from kvdesk.ui.operations.menus import fill_message_menu
from kvdesk.ui.widgets.access.key_tips import show_tips_of
from kvdesk.ui.widgets.allow import allow
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.attention import Scope, Spot

_ATTENTION: Final = "view.attention"


def message_menu(
    parent: QWidget, kit: Kit, widget: MessageWidget | ToolMessage | None, *, is_last: bool
) -> QMenu | None:
    """The menu of a message as it is now; None if it is not shown."""
    if widget is None:
        return None
    menu, turns = QMenu(parent), kit.commands.conversations.turns
    show_tips_of(menu)
    _add_copies(menu, widget)
    if isinstance(widget, MessageWidget):
        _add_changes(menu, kit, widget, is_last=is_last)
    _add_pin(menu, kit, widget.message)
    if widget.message.role == "assistant":
        of = widget.message.conversation, widget.message.id
        for n, name in ((1, tr("Answer again")), (3, tr("Three more answers at once"))):
            again = menu.addAction(name, partial(turns.regenerate, of[0], n, of[1]))
            tip = tr("Each answer becomes a branch; the question is prefilled only once")
            allow(again, kit.store.why_not_answered, tip)
    _add_fork(menu, kit, widget.message)
    menu.addSeparator()
    fill_message_menu(menu, kit, widget.message.conversation, widget.message.id)
    _add_deletions(menu, kit, widget.message)
    return menu


def why_not_continued(store: Store, message: Message | None) -> str:
    """Why this answer cannot be continued now; "" if it can. None: there is none."""
    if message is None or message.role != "assistant":
        return tr("This chat has no answer to continue.")
    complete = "" if ended_early(message) else tr("This answer is already complete.")
    return store.why_busy or complete or store.why_not_continued


def why_not_edited(store: Store, message: Message) -> str:
    """Why this message cannot be edited now; "" if it can."""
    return store.why_busy or ("" if store.can_chat or message.role == "assistant" else tr(NO_TOKENIZER))


def _add_copies(menu: QMenu, widget: MessageWidget | ToolMessage) -> None:
    clipboard, message = QGuiApplication.clipboard(), widget.message
    if selected := widget.selected_text:
        menu.addAction(tr("Copy the selection"), lambda: clipboard.setText(selected))
    if message.role != "assistant":
        menu.addAction(tr("Copy the message"), lambda: clipboard.setText(message.text))
        return
    menu.addAction(tr("Copy as Markdown"), lambda: clipboard.setText(message.text))
    menu.addAction(tr("Copy as plain text"), lambda: clipboard.setText(plain_text(message.text)))


def _add_changes(menu: QMenu, kit: Kit, widget: MessageWidget, *, is_last: bool) -> None:
    """Edit, continue, look at tokens."""
    message, store, turns = widget.message, kit.store, kit.commands.conversations.turns
    if message.role == "user":
        tip = tr("Edit it here, and have that answered in a new branch; this one stays")
        allow(menu.addAction(tr("Edit…"), widget.ask_for_edit), why_not_edited(store, message), tip)
    elif message.role == "assistant" and message.text:
        tip = tr("Your text becomes a version beside this one; the model can continue it")
        allow(menu.addAction(tr("Edit the answer…"), widget.ask_for_edit), why_not_edited(store, message), tip)
        go_on = menu.addAction(
            tr("Continue the answer"), lambda: turns.continue_answer(message.conversation, message.id)
        )
        tip = tr("Continue where it ended: only new tokens are computed")
        if not is_last:
            tip = tr("Continues in a new branch; this branch is unchanged")
        allow(go_on, why_not_continued(store, message), tip)
    if widget.can_show_tokens:
        tokens = menu.addAction(tr("Look at its tokens"), partial(widget.show_token, 0))
        tokens.setToolTip(tr("How likely each was, what else was likely, and going on with another one"))
    _add_attention(menu, kit, message)


def _add_pin(menu: QMenu, kit: Kit, message: Message) -> None:
    pin, turns = menu.addAction(tr("Pin") if not message.pinned else tr("Unpin")), kit.commands.conversations.turns
    pin.triggered.connect(lambda: turns.pin(message.conversation, message.id, pinned=not message.pinned))
    tip = tr("Pinned messages are listed over the chat. A pin does not keep a message in the context.")
    allow(pin, kit.store.why_busy if message.state == "streaming" else "", tip)


def _add_fork(menu: QMenu, kit: Kit, message: Message) -> None:
    """Of the texts, in any case; the cells are shared where they are known and can be."""
    span = kit.store.span_of(message.conversation, message.id)
    p1 = span.p1 if span is not None else -1
    fork = menu.addAction(
        tr("Fork the chat after it"), lambda: kit.commands.fork(message.conversation, message.id, -1, p1)
    )
    tip = tr("A new chat with the messages up to this one. Cells in the cache are shared: they are not stored twice")
    allow(fork, kit.store.why_busy, tip)


def _add_attention(menu: QMenu, kit: Kit, message: Message) -> None:
    """Where it is known in which cells it is, and the window can show what they looked at."""
    spans, span = kit.store.spans.get(message.conversation), kit.store.span_of(message.conversation, message.id)
    if _ATTENTION not in kit.actions or spans is None or span is None:
        return

    def look() -> None:
        kit.actions.run(_ATTENTION)
        spot = Spot(spans.seq_id, span.p1 - 1)
        kit.store.look(kit.store.attention.looked_from(spot).of_scope(Scope.ANSWER))

    menu.addAction(tr("What it looked at"), look).setToolTip(
        tr("The cells and words that got the attention of its tokens")
    )


def _add_deletions(menu: QMenu, kit: Kit, message: Message) -> None:
    menu.addSeparator()
    for with_pair, name, tip in (
        (False, tr("Delete this message"), tr("Only this one: what follows stays. It can be undone")),
        (True, tr("Delete question and answer"), tr("The question with all versions of its answer")),
    ):
        delete = menu.addAction(
            name,
            partial(kit.commands.conversations.removals.delete, message.conversation, message.id, with_pair=with_pair),
        )
        allow(delete, kit.store.why_busy, tip)
