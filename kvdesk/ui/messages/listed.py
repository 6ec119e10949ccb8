"""What every widget of a message has in common: its view hears where the pointer is, and opens its menu."""

from typing import Protocol

from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QContextMenuEvent, QEnterEvent
from PySide6.QtWidgets import QWidget

from kvdesk.message import Message, MessageId
from kvdesk.ui.messages.message_list import Gradual


class Owner(Protocol):
    """The view that a message is shown in."""

    def start_edit(self, message: MessageId) -> None:
        """Edit a message in its place, if that is possible now."""

    def open_menu(self, message: MessageId, at: QPoint) -> None:
        """Open its menu there on the screen."""

    def hover(self, message: MessageId, *, over: bool) -> None:
        """Whether the pointer is over it from now on."""

    def select_text(self, message: MessageId, first: int, last: int) -> None:
        """These characters of it, as the model reads it, are selected; none if both are equal."""

    def editing_changed(self) -> None:
        """A message is edited from now on, or no longer."""

    def edit_changed(self) -> None:
        """What is typed into one has changed."""


class Listed(Gradual):
    """Shows `message`."""

    def __init__(self, owner: Owner, message: Message, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._owner, self.message = owner, message

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._owner.hover(self.message.id, over=True)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._owner.hover(self.message.id, over=False)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._owner.open_menu(self.message.id, event.globalPos())
