"""What a person wants of single messages: from their buttons and menus to the window's signals."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from kvdesk.chat import ConversationId, MessageId
from kvdesk.errors import NO_TOKENIZER
from kvdesk.translation import tr
from kvdesk.ui.shell.window_parts import WindowParts


class MessageIntents(QObject):
    """Every method can be called at any time: what is not possible now does nothing."""

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts, self._window = parts, parts.window
        chat, menus = parts.chat, parts.menus
        chat.continue_clicked.connect(self.go_on)
        menus.continue_clicked.connect(self._on_continue_clicked)
        chat.view.edited.connect(self._on_edited)
        menus.pin_clicked.connect(self._on_pin_clicked)
        chat.unpin_clicked.connect(self._on_unpin_clicked)
        menus.delete_clicked.connect(self._on_delete_clicked)
        chat.undelete_clicked.connect(self.undelete)

    @property
    def why_not_continued(self) -> str:
        """Why the last answer cannot be continued now; "" where it can."""
        view = self._parts.chat.view
        widget = view.widget_of(view.last) if view.last is not None else None
        if widget is None:
            return self._parts.menus.no_answer
        return self._parts.menus.why_not_continued(widget.message)

    @Slot()
    def go_on(self) -> None:
        """Continue the last answer where it ended."""
        if self._idle is not None and not self.why_not_continued:
            self._parts.chat.banner.hide()
            self._window.continue_requested.emit(self._idle, "")

    @property
    def why_not_edited(self) -> str:
        """Why the last question cannot be edited now; "" where it can."""
        if self._last_question is None:
            return tr("This chat has no question to edit.")
        if self._idle is None:
            return tr("An answer is being written; stop it first.")
        return "" if self._parts.chat.can_chat else tr(NO_TOKENIZER)

    def edit(self) -> None:
        """Edit the last question in its place."""
        if self._last_question is not None:
            self._parts.menus.start_edit(self._last_question)

    @property
    def _last_question(self) -> MessageId | None:
        return next(iter(reversed(self._parts.chat.view.questions)), None)

    @Slot(str)
    def _on_continue_clicked(self, message: str) -> None:
        """Of any answer: one that others follow goes on in a version beside it."""
        if self._idle is not None:
            self._parts.chat.banner.hide()
            self._window.continue_requested.emit(self._idle, message)

    @Slot()
    def undelete(self) -> None:
        """Bring back the messages that were deleted last."""
        if self._idle is not None and self._parts.chat.can_undelete:
            self._parts.chat.show_undeleted()
            self._window.message_undeleted.emit(self._idle)

    @property
    def _idle(self) -> ConversationId | None:
        """The conversation that is shown; None while it is being answered."""
        selected = self._parts.events.selected
        return None if selected is None or self._parts.events.is_running(selected) else selected

    @Slot(str, str, bool)
    def _on_edited(self, message: str, text: str, go_on: bool) -> None:
        known = self._parts.chat.view.message(MessageId(message))
        if self._idle is None or known is None:
            return
        self._parts.chat.banner.hide()
        if known.role == "assistant":
            self._window.answer_edited.emit(self._idle, message, text, go_on)
        else:
            self._window.message_edited.emit(self._idle, message, text)

    @Slot(str)
    def _on_unpin_clicked(self, message: str) -> None:
        self._on_pin_clicked(MessageId(message), pinned=False)

    @Slot(str, bool)
    def _on_pin_clicked(self, message: str, pinned: bool) -> None:
        if (selected := self._parts.events.selected) is not None:
            self._window.message_pinned.emit(selected, message, pinned)

    @Slot(str, bool)
    def _on_delete_clicked(self, message: str, with_pair: bool) -> None:
        if self._idle is not None:
            self._window.message_deleted.emit(self._idle, message, with_pair)
