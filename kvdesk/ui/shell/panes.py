"""Conversations, chat and cache side by side: how narrow each can be, and which of them are folded away."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSplitter

from kvdesk.settings import Settings
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.chat.conversation_list import ConversationList
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.widgets.controls import FRAME

SIDEBAR_PX: Final = 160  # the narrowest it can be; the inspector says so itself
CHAT_PX: Final = 408  # a model's name, how full the context is and what happens then, in one line


class Panes(QSplitter):
    """Three panes. Where the window has no room for three, the inspector is shown instead of the conversations."""

    def __init__(self, sidebar: ConversationList, chat: ChatPane, inspector: Inspector) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._sidebar, self._chat, self._inspector = sidebar, chat, inspector
        self._settings = Settings()
        self._was_narrow = False
        self.setHandleWidth(1)
        self.setChildrenCollapsible(False)
        for place, (pane, stretch) in enumerate(((sidebar, 0), (chat, 2), (inspector, 1))):
            self.addWidget(pane)
            self.setStretchFactor(place, stretch)
        sidebar.setMinimumWidth(SIDEBAR_PX)
        chat.setMinimumWidth(CHAT_PX)

    @property
    def is_narrow(self) -> bool:
        """There is no room for three: in the window, or on its screen while the window is hidden."""
        needed = sum(pane.minimumWidth() for pane in (self._sidebar, self._chat, self._inspector))
        screen = self.screen().availableGeometry().marginsRemoved(FRAME)
        room = self.width() if self.isVisible() else screen.width()
        return room < needed + 2 * self.handleWidth()

    def minimumSizeHint(self) -> QSize:
        """A window that is made narrower loses the conversations."""
        size = super().minimumSizeHint()
        if self._sidebar.isHidden() or self._inspector.isHidden():
            return size
        return size - QSize(self._sidebar.minimumWidth() + self.handleWidth(), 0)

    def fold(self, settings: Settings) -> None:
        """Show what the settings want to be shown, as far as there is room."""
        self._settings = settings
        self._inspector.show_all(settings.all_instruments)
        self._was_narrow = self.is_narrow
        self._sidebar.setVisible(settings.sidebar_visible and not (settings.inspector_visible and self._was_narrow))
        self._inspector.setVisible(settings.inspector_visible)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._refold()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refold()

    def _refold(self) -> None:
        if self.is_narrow != self._was_narrow:
            self.fold(self._settings)
