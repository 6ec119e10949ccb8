"""The messages of one conversation, newest at the bottom, following the answer while one reads its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from kvdesk.chat import Message, MessageId
from kvdesk.protocol.chat import Overflowed, PrefillProgress, TextDelta, TurnEnded, TurnStarted
from kvdesk.settings import Overflow
from kvdesk.ui.chat.message_widget import MessageWidget
from kvdesk.ui.widgets.theme import Theme
from kvdesk.ui.widgets.throttle import Throttle

RENDER_INTERVAL_MS: Final = 100  # at most 10 renderings a second
SIDE_PX: Final = 24
PAGE: Final = 60  # messages that get widgets; earlier ones on demand
AT_ONCE: Final = 4  # of them before the first frame; the others one by one, so that nothing stalls


class ChatView(QScrollArea):
    """A column of text about 72 characters wide, more in a very wide pane (`Theme.column_in`)."""

    regenerate_clicked = Signal()
    edit_clicked = Signal(str)
    branch_clicked = Signal(str)
    menu_requested = Signal(str, QPoint)
    shorten_clicked = Signal(str)  # the question that did not fit
    larger_clicked = Signal()
    policy_clicked = Signal()
    text_selected = Signal(str, int, int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._can_answer = True
        self._messages: list[Message] = []
        self._widgets: dict[MessageId, MessageWidget] = {}
        self._branches: Mapping[MessageId, tuple[MessageId, ...]] = {}
        self._retention: Mapping[MessageId, str] = {}
        self._full: set[MessageId] = set()  # answers that a full context ended, or kept from beginning
        self._dirty: set[MessageId] = set()
        self._following = True
        self._from_end = 0  # distance to the end that is kept while earlier messages come
        self._waiting: list[Message] = []
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Messages")
        self._earlier = QPushButton()
        self._earlier.setProperty("quiet", True)
        self._earlier.clicked.connect(self.show_earlier)
        self._text_column = QWidget()
        self._text_column.setMaximumWidth(theme.text_column)
        self._rows = QVBoxLayout(self._text_column)
        self._rows.setContentsMargins(0, 16, 0, 16)
        self._rows.setSpacing(24)
        self._rows.addWidget(self._earlier)
        self._rows.addStretch(1)
        holder = QWidget()
        holder.setObjectName("column")
        self._outer = QHBoxLayout(holder)
        self._outer.setContentsMargins(SIDE_PX, 0, SIDE_PX, 0)
        self._outer.addStretch(1)
        self._outer.addWidget(self._text_column, 100)
        self._outer.addStretch(1)
        self.setWidget(holder)
        self._rendering = Throttle(self, RENDER_INTERVAL_MS, self._render)
        self._builder = QTimer(self)
        self._builder.setInterval(0)
        self._builder.timeout.connect(self._on_builder)
        self.verticalScrollBar().rangeChanged.connect(self._on_range_changed)
        self.verticalScrollBar().valueChanged.connect(self._on_value_changed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._text_column.setMaximumWidth(self._theme.column_in(self.width()))

    @property
    def widgets(self) -> tuple[MessageWidget, ...]:
        """Those there are, oldest first."""
        return tuple(self._widgets[message.id] for message in self._messages if message.id in self._widgets)

    def set_can_answer(self, can: bool) -> None:
        """Whether the last answer can be made again, and messages be edited: the model can chat."""
        self._can_answer = can
        for name, widget in self._widgets.items():
            widget.set_last(can and name == self._messages[-1].id)
            widget.set_can_edit(can)

    def show_messages(self, messages: Sequence[Message]) -> None:
        self._messages = list(messages)
        self._branches, self._retention = {}, {}
        self._following = True
        self._rebuild()

    def append_message(self, message: Message) -> None:
        if message.id in self._widgets:
            self.update_message(message)
            return
        self._messages.append(message)
        self._following = True
        for widget in self._widgets.values():
            widget.set_last(False)
        self._add(message)

    def show_branches(self, branches: Mapping[MessageId, tuple[MessageId, ...]]) -> None:
        """Messages that have others at their place, and all of those."""
        self._branches = branches
        for name, widget in self._widgets.items():
            widget.show_branches(branches.get(name, ()))

    def show_retention(self, retention: Mapping[MessageId, str]) -> None:
        """How near messages are to being evicted: "in the cache", "next" or "evicted"."""
        self._retention = retention
        for name, widget in self._widgets.items():
            widget.show_retention(retention.get(name, ""))

    def show_overflow(self, event: Overflowed) -> None:
        """The context was full while this answer was asked for or written."""
        if event.policy is Overflow.STOP:
            self._full.add(event.answer)
        if widget := self._widgets.get(event.answer):
            widget.show_overflow(event.sentence)
            widget.set_full(event.answer in self._full)

    def highlight(self, message: MessageId, first: int, last: int) -> None:
        """Mark characters `[first, last)` of a message, and scroll to it; nothing where it is not shown."""
        if (widget := self._widgets.get(message)) is not None:
            widget.highlight(first, last)
            self.ensureWidgetVisible(widget, 0, 24)

    def clear_highlights(self) -> None:
        for widget in self._widgets.values():
            widget.highlight(0, 0)

    def widget_of(self, message: MessageId) -> MessageWidget | None:
        return self._widgets.get(message)

    def update_message(self, message: Message) -> None:
        for known in (self._messages, self._waiting):
            for i, old in enumerate(known):
                if old.id == message.id:
                    known[i] = message
        if widget := self._widgets.get(message.id):
            widget.show_message(message)

    def start_turn(self, event: TurnStarted) -> None:
        if widget := self._widgets.get(event.answer):
            widget.show_prompt(event.reused_tokens, event.prompt_tokens)

    def show_prefill(self, event: PrefillProgress) -> None:
        if widget := self._widgets.get(event.answer):
            widget.show_prefill(event.done, event.total, event.tok_s)

    def append_text(self, event: TextDelta) -> None:
        widget = self._widgets.get(event.answer)
        if widget is None or not event.text:
            return
        widget.append(event.text)
        self._dirty.add(event.answer)
        self._rendering.request()

    def end_turn(self, event: TurnEnded) -> None:
        if widget := self._widgets.get(event.answer):
            widget.end(event.state, event.stats, event.note)
            self.update_message(widget.message)

    @Slot(int)
    def scroll_page(self, direction: int) -> None:
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + direction * (bar.pageStep() - 48))

    @Slot()
    def show_earlier(self) -> None:
        """Make widgets for the page of messages before those that have some."""
        if not self._waiting:
            self._wait_for(len(self._messages) - len(self._widgets))

    @Slot()
    def _on_builder(self) -> None:
        if self._waiting:
            self._add(self._waiting.pop(), first=True)
        if not self._waiting:
            self._builder.stop()

    @Slot()
    def _on_range_changed(self) -> None:
        bar = self.verticalScrollBar()
        room = bar.sizeHint().width() if bar.maximum() > 0 else 0
        self._outer.setContentsMargins(SIDE_PX, 0, SIDE_PX - room, 0)  # the text stays where it is when the bar comes
        if self._following:
            bar.setValue(bar.maximum())
        elif self._builder.isActive():
            bar.setValue(bar.maximum() - self._from_end)

    @Slot(int)
    def _on_value_changed(self, value: int) -> None:
        self._from_end = self.verticalScrollBar().maximum() - value
        self._following = self._from_end <= 24

    def _render(self) -> None:
        for name in self._dirty:
            if widget := self._widgets.get(name):
                widget.flush()
        self._dirty.clear()

    def _rebuild(self) -> None:
        self._dirty.clear()
        for widget in self._widgets.values():
            self._rows.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._widgets.clear()
        self._wait_for(len(self._messages))
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._on_builder()

    def _wait_for(self, end: int) -> None:
        """The page of messages that ends at `end` gets widgets, from the newest to the oldest."""
        hidden = max(0, end - PAGE)
        self._waiting = self._messages[hidden:end]
        self._earlier.setVisible(hidden > 0)
        self._earlier.setText(f"Show {min(PAGE, hidden)} earlier messages")
        if self._waiting:
            self._builder.start()

    def _add(self, message: Message, first: bool = False) -> None:
        widget = MessageWidget(self._theme, message)
        widget.regenerate_clicked.connect(self.regenerate_clicked)
        widget.edit_clicked.connect(self.edit_clicked)
        widget.branch_clicked.connect(self.branch_clicked)
        widget.menu_requested.connect(self.menu_requested)
        widget.text_selected.connect(self.text_selected)
        widget.show_branches(self._branches.get(message.id, ()))
        widget.show_retention(self._retention.get(message.id, ""))
        widget.set_full(message.id in self._full)
        widget.larger_clicked.connect(self.larger_clicked)
        widget.policy_clicked.connect(self.policy_clicked)
        widget.shorten_clicked.connect(lambda: self.shorten_clicked.emit(message.parent or ""))
        widget.set_last(message.id == self._messages[-1].id and self._can_answer)
        widget.set_can_edit(self._can_answer)
        self._widgets[message.id] = widget
        self._rows.insertWidget(1 if first else self._rows.count() - 1, widget)
