"""Messages that wait to be sent, over the composer: each can be moved, taken back into it, or cancelled."""

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QScrollArea, QToolButton, QWidget

from kvdesk.chat import QueuedMessage
from kvdesk.conversations.changes import SENT_BY_THEMSELVES, QueueState
from kvdesk.message import ConversationId
from kvdesk.translation import marked, tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, link_button
from kvdesk.ui.widgets.kit import Kit

_MOST_ROWS: Final = 3  # more are scrolled
_ROW_PX: Final = 28
_WORDS: Final[Mapping[QueueState, str]] = {
    "answer": marked("Sent when the answer has ended"),
    "model": marked("Sent when the model is ready"),
    "stopped": marked("Waiting: the answer was stopped"),
    "failed": marked("Waiting: the answer failed"),
    "interrupted": marked("Waiting: the answer was interrupted"),
    "kvdesk closed": marked("Waiting since kvdesk was closed"),
    "load failed": marked("Waiting: the model could not be opened"),
    "load stopped": marked("Waiting: loading the model was stopped"),
    "engine ended": marked("Waiting: the engine has stopped"),
}


class QueueView(QFrame):
    """The queue of the conversation that is shown; hidden if nothing waits."""

    edit_clicked = Signal(int, str)  # which one, its text: back into the composer

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit, theme = kit, kit.theme
        self.setProperty("card", "queue")
        self.setAccessibleName(tr("Messages that wait to be sent"))
        self._theme = theme
        self._messages: tuple[QueuedMessage, ...] = ()
        self._moved: tuple[int, int] | None = None  # new place of the message moved last, and which button did it
        self._widgets: list[QWidget] = []
        self._state = ElidedLabel(tone="secondary", scale="small")
        self.send_button = link_button(
            tr("Send now"), clicked=lambda: kit.commands.conversations.release_queue(self._conversation)
        )
        head = boxes.row((self._state, 1), self.send_button, spacing=8)
        holder = QWidget()
        holder.setObjectName("column")
        self._rows = boxes.column(on=holder, margins=0, spacing=0)
        self._scroll = QScrollArea(widgetResizable=True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(holder)
        boxes.column(head, self._scroll, on=self, margins=(12, 4, 8, 4), spacing=0)
        theme.changed.connect(self._rebuild)
        self.hide()

    def movers(self, index: int) -> tuple[QToolButton, QToolButton]:
        """Up and down of one message."""
        up, down, _, _ = self._widgets[index].findChildren(QToolButton)
        return up, down

    @property
    def _conversation(self) -> ConversationId:
        return self._kit.store.selected or ConversationId("")

    def show_queue(self) -> None:
        """The messages that wait in the shown conversation, or why they do, may be others."""
        shown = self._kit.store.shown
        messages = shown.queued if shown is not None else ()
        if messages != self._messages:
            self._messages = messages
            self._rebuild()
        state = self._kit.store.queues.get(self._conversation)
        self._state.setText(tr(_WORDS[state]) if state else "")
        self.send_button.setVisible(state is not None and state not in SENT_BY_THEMSELVES)
        self.setVisible(bool(self._messages))

    def _rebuild(self) -> None:
        boxes.drop(self._rows, *self._widgets)
        self._widgets = [self._row(i, message) for i, message in enumerate(self._messages)]
        for row in self._widgets:
            self._rows.addWidget(row)
        self._scroll.setFixedHeight(self._theme.px(_ROW_PX) * min(len(self._messages), _MOST_ROWS))
        moved, self._moved = self._moved, None
        if moved is not None and moved[0] < len(self._widgets):  # the focus stays on what was moved
            up, down = self.movers(moved[0])
            wanted, other = (up, down) if moved[1] < 0 else (down, up)
            (wanted if wanted.isEnabled() else other).setFocus()

    def _row(self, index: int, message: QueuedMessage) -> QWidget:
        text = message.text
        row = QWidget()
        row.setFixedHeight(self._theme.px(_ROW_PX))
        names = "  ·  ".join(attachment.name for attachment in message.attachments)
        line = ElidedLabel("  ·  ".join(part for part in (" ".join(text.split()), names) if part))

        def button(icon: str, name: str, clicked: Callable[[], object], tip: str = "") -> IconButton:
            return IconButton(self._theme, icon, name, tip, clicked=clicked)

        earlier, later = tr("Send this queued message earlier"), tr("Send this queued message later")
        up = button("chevron-up", earlier, lambda: self._on_moved(index, text, -1))
        down = button("chevron-down", later, lambda: self._on_moved(index, text, 1))
        up.setEnabled(index > 0)
        down.setEnabled(index + 1 < len(self._messages))
        back, never = tr("Puts it back into the message box"), tr("Cancel it: it is not sent")
        edit = button("edit", tr("Edit this queued message"), lambda: self.edit_clicked.emit(index, text), back)
        cancel = button("close", tr("Cancel this queued message"), lambda: self._on_cancelled(index, text), never)
        boxes.row((line, 1), up, down, edit, cancel, on=row, margins=0, spacing=0)
        return row

    def _on_moved(self, index: int, text: str, by: int) -> None:
        self._moved = index + by, by
        self._kit.commands.conversations.queued.move(self._conversation, index, text, index + by)

    def _on_cancelled(self, index: int, text: str) -> None:
        self._kit.commands.conversations.queued.cancel(self._conversation, index, text)
