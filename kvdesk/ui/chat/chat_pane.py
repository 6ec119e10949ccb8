"""The middle pane: title, model and context meter; messages; errors; composer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from kvdesk.chat import Conversation, ConversationId, Message, MessageId
from kvdesk.errors import NO_TOKENIZER
from kvdesk.protocol.chat import ContextUse, Endpoint, LocalFile, ModelInfo
from kvdesk.ui.chat.chat_view import ChatView
from kvdesk.ui.chat.composer import Composer, centred
from kvdesk.ui.chat.conversation_model import NEW_CHAT
from kvdesk.ui.chat.overflow_choice import OverflowButton
from kvdesk.ui.chat.queue_view import QueueView
from kvdesk.ui.widgets.controls import (
    Banner,
    ElidedButton,
    ElidedLabel,
    IconButton,
    NumberLabel,
    ThinProgress,
    label,
    plain_tip,
    set_tone,
)
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.readout import megabytes

KEEP_MS: Final = 250  # what is typed is told at most so much later


ONE_LINE_PX: Final = 720  # from here on the header has one line


class ChatPane(QWidget):
    """Shows one conversation. Every conversation has its draft."""

    sent = Signal(str)
    edited = Signal(str, str)  # message, its new text
    draft_changed = Signal(str, str)  # what is typed, after a pause, never empty; the message it would replace, or ""
    larger_clicked = Signal()
    draft_typed = Signal(str, str)  # conversation, what is typed for it and not sent; empty once it is sent
    embedded_clicked = Signal()
    stop_clicked = Signal()
    regenerate_clicked = Signal()
    open_model_clicked = Signal()
    sidebar_clicked = Signal()
    inspector_clicked = Signal()
    overflow_chosen = Signal(object)  # Overflow

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("pane", "window")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._conversation: ConversationId | None = None
        self._drafts: dict[ConversationId | None, str] = {}
        self._editing: MessageId | None = None
        self._set_aside = ""  # what was typed before an edit began
        self._header = _Header(theme)
        self._header.open_model_clicked.connect(self.open_model_clicked)
        self._header.embedded_clicked.connect(self.embedded_clicked)
        self._header.sidebar_clicked.connect(self.sidebar_clicked)
        self._header.inspector_clicked.connect(self.inspector_clicked)
        self._header.overflow.chosen.connect(self.overflow_chosen)
        self._progress = ThinProgress(theme, "Work under way")
        self._view = ChatView(theme)
        self._view.regenerate_clicked.connect(self.regenerate_clicked)
        self._empty = _Empty()
        self._empty.open_model_clicked.connect(self.open_model_clicked)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self._view)
        self._banner = Banner(theme)
        self.queue = QueueView(theme)
        self.queue.edit_clicked.connect(self._on_queued_edit)
        self._composer = Composer(theme)
        self._composer.sent.connect(self._on_sent)
        self._composer.paged.connect(self._view.scroll_page)
        self._composer.stop_clicked.connect(self.stop_clicked)
        self._composer.paused.connect(self._on_paused)
        for asking in (self._composer, self._view):
            asking.larger_clicked.connect(self.larger_clicked)
            asking.policy_clicked.connect(self._header.overflow.choose)
        self._can_chat = True
        self._untold = False  # something was typed that `draft_typed` has not told
        self._keeping = QTimer(self, singleShot=True, interval=KEEP_MS)
        self._keeping.timeout.connect(self.tell_draft)
        self._composer.edit.textChanged.connect(self._on_typed)
        self._theme = theme
        below = self._below = QWidget()
        stack = QVBoxLayout(below)
        stack.setContentsMargins(0, 0, 0, 0)
        stack.setSpacing(8)
        stack.addWidget(self._banner)
        stack.addWidget(self.queue)
        stack.addWidget(self._composer)
        self._no_chat = label(NO_TOKENIZER, tone="secondary")  # in the composer's place
        self._no_chat.setWordWrap(True)
        self._no_chat.setContentsMargins(12, 8, 12, 16)
        stack.addWidget(self._no_chat)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addWidget(self._progress)
        column.addWidget(self._stack, 1)
        column.addWidget(centred(below, theme.text_column))
        self.show_model(None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._below.setMaximumWidth(self._theme.column_in(self.width()))

    @property
    def view(self) -> ChatView:
        return self._view

    @property
    def composer(self) -> Composer:
        return self._composer

    @property
    def banner(self) -> Banner:
        return self._banner

    def show_conversation(self, conversation: Conversation | None) -> None:
        """Title and draft of the conversation that is shown from now on."""
        name = conversation.id if conversation else None
        if name != self._conversation:
            self.end_edit()
            self.tell_draft()
            self._drafts[self._conversation] = self._composer.text
            self._conversation = name
            self._composer.set_text(self._drafts.get(name, conversation.draft if conversation else ""))
            self._untold = False
        self.queue.show_conversation(conversation)
        self._header.set_title(conversation.title if conversation else "", is_new=conversation is not None)

    @property
    def is_editing(self) -> bool:
        return self._editing is not None

    def start_edit(self, message: Message) -> None:
        """The text of an earlier message comes into the composer; what was typed there comes back afterwards."""
        if self._editing is None:
            self._set_aside = self._composer.text
        self._editing = message.id
        self._composer.set_text(message.text)
        self._composer.set_editing(True)
        self._composer.focus_edit()

    def end_edit(self) -> None:
        """The message stays as it was."""
        if self._editing is not None:
            self._editing = None
            self._composer.set_editing(False)
            self._composer.set_text(self._set_aside)

    @Slot()
    def tell_draft(self) -> None:
        """Tell now what is typed, if that has not been told."""
        if self._untold:
            self._untold = False
            self._keeping.stop()
            self.draft_typed.emit(self._conversation, self._set_aside if self.is_editing else self._composer.text)

    @Slot()
    def _on_typed(self) -> None:
        if self._conversation is not None and not self._untold:
            self._untold = True
            self._keeping.start()

    @Slot(str)
    def _on_paused(self, text: str) -> None:
        self.draft_changed.emit(text, self._editing or "")

    @Slot(str)
    def _on_sent(self, text: str) -> None:
        message = self._editing
        if message is None:
            self.sent.emit(text)
        else:
            self.end_edit()
            self.edited.emit(message, text)

    @Slot(int, str)
    def _on_queued_edit(self, index: int, text: str) -> None:
        """A queued message comes back into the composer, before what is typed there, and only then leaves the queue."""
        self.end_edit()
        typed = self._composer.text
        self._composer.set_text(f"{text}\n\n{typed}" if typed.strip() else text)
        self.tell_draft()
        self.queue.taken_back.emit(self._conversation or "", index, text)
        self._composer.focus_edit()

    def show_messages(self, messages: Sequence[Message]) -> None:
        self._view.show_messages(messages)
        self._stack.setCurrentWidget(self._view if messages else self._empty)
        self._show_chat()

    def append_message(self, message: Message) -> None:
        self._view.append_message(message)
        self._stack.setCurrentWidget(self._view)
        self._show_chat()

    def show_model(self, model: ModelInfo | None) -> None:
        self._header.set_model(model)
        self._empty.show_model(model)
        self._composer.set_loading("")
        self._composer.set_blocked("" if model else "Open a model to send. Your text stays here.")
        self._can_chat = model is None or model.has_text
        self._view.set_can_answer(self._can_chat)
        self._show_chat()

    @property
    def can_chat(self) -> bool:
        """Whether the model that is open, if one is, has text."""
        return self._can_chat

    def _show_chat(self) -> None:
        """A model that cannot chat has no composer; why is said once, in the empty page or below the messages."""
        self._composer.setVisible(self._can_chat)
        self._no_chat.setVisible(not self._can_chat and self._stack.currentWidget() is self._view)

    def show_dead(self) -> None:
        """The engine has stopped for good: nothing can be opened, sent or answered until kvdesk is restarted."""
        self._header.set_dead()
        self._empty.show_dead()
        self._view.set_can_answer(False)
        self._progress.set_share(None)
        self._composer.set_blocked("Restart kvdesk to send.")

    def show_loading(self, name: str, share: float) -> None:
        self._progress.set_share(share)
        self._header.set_model_text(f"Loading {name}  {share:.0%}")
        self._empty.show_loading(name, share)
        self._composer.set_blocked("")
        self._composer.set_loading(name)

    def show_working(self, working: bool) -> None:
        """A moving line over the messages while something is under way that cannot say how far it is."""
        if working:
            self._progress.set_busy()
        else:
            self._progress.set_share(None)

    def show_embedded(self, available: bool) -> None:
        """Whether the embedded model can be opened from the model's menu."""
        self._header.set_embedded(available)

    def show_use(self, use: ContextUse | None, *, has_context: bool) -> None:
        """How full the conversation's context is; None: not known."""
        self._header.set_use(use)
        self._header.overflow.setVisible(has_context)

    @property
    def overflow(self) -> OverflowButton:
        """The button of the overflow policy."""
        return self._header.overflow

    @property
    def meter_text(self) -> str:
        """The tip of the meter."""
        return self._header.meter_text

    def set_running(self, running: bool) -> None:
        self._composer.set_running(running)


class _Header(QWidget):
    open_model_clicked = Signal()
    embedded_clicked = Signal()
    sidebar_clicked = Signal()
    inspector_clicked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        sidebar = IconButton(theme, "sidebar", "Show or hide the conversations", "Conversations (Ctrl+B)")
        sidebar.clicked.connect(self.sidebar_clicked)
        inspector = IconButton(theme, "inspector", "Show or hide the cache inspector", "Cache inspector (Ctrl+I)")
        inspector.clicked.connect(self.inspector_clicked)
        self._title = ElidedLabel()
        self._title.setProperty("weight", "strong")
        self._title.setMinimumWidth(64)
        self._model = ElidedButton("Open a model")
        self._model.setProperty("quiet", True)
        self._model.setProperty("scale", "small")
        self._model.setToolTip("Open another model (Ctrl+O)")
        self._menu = QMenu(self)
        self._menu.addAction("Open a model file…", self.open_model_clicked.emit)
        self._embedded = self._menu.addAction("Open the embedded model", self.embedded_clicked.emit)
        self._embedded.setEnabled(False)
        self._model.clicked.connect(self._on_model_clicked)
        self._meter = NumberLabel()
        self._meter.setProperty("tone", "secondary")
        self._meter.setProperty("scale", "small")
        self._meter.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.overflow = OverflowButton()
        self._facts = QWidget()
        facts = QHBoxLayout(self._facts)
        facts.setContentsMargins(0, 0, 0, 0)
        facts.setSpacing(0)  # buttons bring their own
        for fact in (self._model, self._meter, self.overflow):
            facts.addWidget(fact)
        facts.addStretch(1)
        self._first = QHBoxLayout()
        self._first.setContentsMargins(4, 0, 4, 0)
        self._first.setSpacing(8)
        for widget in (sidebar, self._title, self._facts, inspector):
            self._first.addWidget(widget)
        self._first.setStretchFactor(self._title, 1)
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(8, 8, 8, 8)
        self._lines.setSpacing(0)
        self._lines.addLayout(self._first)

    def minimumSizeHint(self) -> QSize:
        """As wide as two lines need."""
        size = super().minimumSizeHint()
        one_line = self._lines.count() == 1
        return size - QSize(self._title.minimumWidth() + self._first.spacing(), 0) if one_line else size

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The title stands above the rest where one line is too short for both."""
        super().resizeEvent(event)
        is_narrow = self.width() < ONE_LINE_PX
        if is_narrow and self._lines.count() == 1:
            self._lines.addWidget(self._facts)
        elif not is_narrow and self._lines.count() == 2:
            self._first.insertWidget(2, self._facts)

    @property
    def meter_text(self) -> str:
        return self._meter.toolTip()

    def set_embedded(self, available: bool) -> None:
        """Whether there is an embedded model to open."""
        self._embedded.setEnabled(available)
        self._embedded.setToolTip("" if available else "It is not installed")

    @Slot()
    def _on_model_clicked(self) -> None:
        self._menu.popup(self._model.mapToGlobal(QPoint(0, self._model.height())))

    def set_title(self, title: str, is_new: bool) -> None:
        self._title.setText(title or (NEW_CHAT if is_new else ""))
        set_tone(self._title, "" if title else "secondary")

    def set_model(self, model: ModelInfo | None) -> None:
        self.set_model_text(model.name if model else "Open a model")
        if model:
            self._model.setToolTip(plain_tip(f"{_facts(model)}\n\nOpen another model (Ctrl+O)"))

    def set_dead(self) -> None:
        self._model.setText("Restart kvdesk")
        self._model.setToolTip("The engine has stopped")
        self._model.setEnabled(False)

    def set_model_text(self, text: str) -> None:
        self._model.setText(text)

    def set_use(self, use: ContextUse | None) -> None:
        if use is None:
            self._meter.setText("")
            self._meter.setToolTip("")
            return
        self._meter.reserve(f"100% of {use.n_ctx:,}")
        self._meter.setText(f"{use.n_tokens / use.n_ctx:.0%} of {use.n_ctx:,}")
        set_tone(self._meter, "danger" if use.n_tokens >= use.n_ctx else "secondary")
        cached = "all of them" if use.n_cached >= use.n_tokens else f"{use.n_cached:,}" if use.n_cached else "none"
        where = f"; {cached} in the cache" if use.n_tokens else ""
        self._meter.setToolTip(f"This conversation takes {use.n_tokens:,} of {use.n_ctx:,} tokens of context{where}")


def _facts(model: ModelInfo) -> str:
    """What is known of a model, and where it is."""
    known = (
        model.description,
        f"{megabytes(model.size_bytes)} MB" if model.size_bytes else "",
        f"{model.n_params / 1e6:,.0f} M parameters" if model.n_params else "",
        f"trained for {model.n_ctx_train:,} tokens" if model.n_ctx_train else "",
    )
    match model.source:
        case LocalFile(path):
            where = str(path)
        case Endpoint(url):
            where = url
    return f"{', '.join(fact for fact in known if fact)}\n{where}".strip()


class _Empty(QWidget):
    """The pane without messages: how to begin."""

    open_model_clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._first = label("", scale="large")
        self._second = label("", tone="secondary")
        for widget in (self._first, self._second):
            widget.setAlignment(Qt.AlignmentFlag.AlignCenter)
            widget.setWordWrap(True)
        self._open = QPushButton("Open a model…")
        self._open.setProperty("primary", True)
        self._open.clicked.connect(self.open_model_clicked)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._open)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(48, 24, 48, 24)
        column.setSpacing(8)
        column.addStretch(2)
        column.addWidget(self._first)
        column.addWidget(self._second)
        column.addSpacing(8)
        column.addLayout(row)
        column.addStretch(3)
        self.show_model(None)

    def show_model(self, model: ModelInfo | None) -> None:
        self._open.setVisible(model is None)
        if model is None:
            self._say("No model is open", "Drop a .gguf file anywhere on this window, or open one.")
        else:
            begin = "Type a message below. The answer streams in here."
            self._say(model.name, begin if model.has_text else NO_TOKENIZER)

    def show_dead(self) -> None:
        self._open.hide()
        self._say("The engine has stopped", "Restart kvdesk to go on. Your chats are saved.")

    def show_loading(self, name: str, share: float) -> None:
        self._open.hide()
        self._say(f"Loading {name}", f"{share:.0%}")

    def _say(self, first: str, second: str) -> None:
        self._first.setText(first)
        self._second.setText(second)
