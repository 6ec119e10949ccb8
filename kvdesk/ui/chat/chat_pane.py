"""The middle pane: title and model; messages; errors; composer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from kvdesk.chat import Conversation, ConversationId, Message, MessageId
from kvdesk.errors import NO_TOKENIZER
from kvdesk.protocol.chat import ContextUse, ModelInfo, TurnPreview
from kvdesk.translation import tr
from kvdesk.ui.chat.empty_pane import EmptyPane
from kvdesk.ui.chat.overflow_choice import OverflowChoice
from kvdesk.ui.chat.pane_header import PaneHeader
from kvdesk.ui.chat.parameters_button import ParametersButton
from kvdesk.ui.composer.composer import Composer, centred
from kvdesk.ui.composer.draft_attachments import DraftAttachments
from kvdesk.ui.composer.queue_view import QueueView
from kvdesk.ui.composer.sent_messages import SentMessages
from kvdesk.ui.messages.alternatives import AlternativesView
from kvdesk.ui.messages.branch_tree import BranchTree
from kvdesk.ui.messages.chat_view import ChatView
from kvdesk.ui.messages.find_bar import FindBar
from kvdesk.ui.messages.message_edit import attachable_files, is_for_window
from kvdesk.ui.messages.pinned_bar import PinnedBar
from kvdesk.ui.widgets.controls import Banner, ThinProgress, label
from kvdesk.ui.widgets.floating import Floating
from kvdesk.ui.widgets.theme import Theme
from kvdesk.ui.widgets.undo_notice import UndoNotice

KEEP_MS: Final = 50
"""What is typed is told at most so much later, and written `store.writer.INTERVAL_S` after that: 250 ms with all."""


DELETED_MS: Final = 15_000
"""What was deleted is said so long. It can be undone until kvdesk is closed (Ctrl+Z, menu)."""


class ChatPane(QWidget):
    """Shows one conversation. Every conversation has its draft."""

    sent = Signal(str)
    draft_changed = Signal(str, str)  # what is typed, after a pause, never empty; the message it would replace, or ""
    larger_clicked = Signal()
    draft_typed = Signal(str, str)  # conversation, what is typed for it and not sent; empty once it is sent
    embedded_clicked = Signal()
    reconnect_clicked = Signal()
    stop_clicked = Signal()
    regenerate_clicked = Signal()
    continue_clicked = Signal()
    unpin_clicked = Signal(str)  # message
    undelete_clicked = Signal()
    open_model_clicked = Signal()
    server_clicked = Signal()
    models_clicked = Signal()
    better_clicked = Signal()
    starter_clicked = Signal(str)  # a card of the empty chat
    offer_clicked = Signal(object)  # Offer: to be downloaded
    found_clicked = Signal(object)  # Path of a model that is on this computer
    sidebar_clicked = Signal()
    inspector_clicked = Signal()
    menu_clicked = Signal(QPoint)  # where the main menu comes to lie
    overflow_chosen = Signal(object)  # Overflow
    parameters_clicked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("pane", "window")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAcceptDrops(True)
        self._conversation: ConversationId | None = None
        self._drafts: dict[ConversationId | None, str] = {}
        self._header = PaneHeader(theme)
        self._header.model.open_clicked.connect(self.open_model_clicked)
        self._header.model.server_clicked.connect(self.server_clicked)
        self._header.model.models_clicked.connect(self.models_clicked)
        self._header.model.better_clicked.connect(self.better_clicked)
        self._header.model.embedded_clicked.connect(self.embedded_clicked)
        self._header.sidebar_clicked.connect(self.sidebar_clicked)
        self._header.inspector_clicked.connect(self.inspector_clicked)
        self._header.branches_clicked.connect(self.toggle_branches)
        self._header.menu_clicked.connect(self.menu_clicked)
        self._header.overflow.chosen.connect(self.overflow_chosen)
        self._header.parameters.clicked.connect(self.parameters_clicked)
        self._progress = ThinProgress(theme, tr("Work under way"))
        self._view = ChatView(theme)
        self._view.regenerate_clicked.connect(self.regenerate_clicked)
        self._view.continue_clicked.connect(self.continue_clicked)
        self._view.edit_paused.connect(self._on_edit_paused)
        self.find_bar = FindBar(theme, self._view)
        self.find_bar.left.connect(self.focus_composer)
        self._view.stop_clicked.connect(self.stop_clicked)
        self.pinned = PinnedBar(theme)
        self._view.pinned_changed.connect(self._on_pinned_changed)
        self.pinned.chosen.connect(self._view.jump_to)
        for pins in (self._view, self.pinned):
            pins.unpin_clicked.connect(self.unpin_clicked)
        self._undeletable: set[ConversationId] = set()  # conversations of which messages were deleted
        self.deleted = UndoNotice(theme, DELETED_MS)
        self.deleted.undo_clicked.connect(self.undelete_clicked)
        self.empty = EmptyPane(theme)
        self.empty.open_model_clicked.connect(self.open_model_clicked)
        self.empty.starter_clicked.connect(self.starter_clicked)
        self.empty.offer.download_clicked.connect(self.offer_clicked)
        self.empty.offer.open_clicked.connect(self.found_clicked)
        self.empty.offer.others_clicked.connect(self.better_clicked)
        self.messages = QStackedWidget()
        self.messages.addWidget(self.empty)
        self.messages.addWidget(self._view)
        self.branch_tree = BranchTree(theme)
        self.branch_tree.closed.connect(self.focus_composer)
        self.alternatives = AlternativesView(theme)
        self.alternatives.closed.connect(self.leave_comparison)
        self.messages.addWidget(self.alternatives)
        self._banner = Banner(theme)
        self.queue = QueueView(theme)
        self.queue.edit_clicked.connect(self._on_queued_edit)
        self._composer = Composer(theme)
        self._composer.sent.connect(self.sent)
        self._composer.paged.connect(self._view.scroll_page)
        self._composer.stop_clicked.connect(self.stop_clicked)
        self._composer.paused.connect(self._on_paused)
        self.attachments = DraftAttachments(self._composer)
        self._composer.edit.recall = SentMessages(self._composer, lambda: [*self._view.questions.values()]).step
        for asking in (self._composer, self._view):
            asking.larger_clicked.connect(self.larger_clicked)
            asking.policy_clicked.connect(self._header.overflow.choose)
        self._can_chat = True
        self._untold = False  # something was typed that `draft_typed` has not told
        self._keeping = QTimer(self, singleShot=True, interval=KEEP_MS)
        self._keeping.timeout.connect(self.tell_draft)
        self._composer.text_changed.connect(self._on_typed)
        self._theme = theme
        below = self._below = QWidget()
        stack = QVBoxLayout(below)
        stack.setContentsMargins(0, 0, 0, 0)
        stack.setSpacing(8)
        stack.addWidget(self._banner)
        stack.addWidget(self.queue)
        stack.addWidget(self._composer)
        self._no_chat = label(tr(NO_TOKENIZER), tone="secondary")  # in the composer's place
        self._no_chat.setWordWrap(True)
        self._no_chat.setContentsMargins(12, 8, 12, 16)
        stack.addWidget(self._no_chat)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addWidget(self._progress)
        over = QVBoxLayout()  # over the messages
        over.setContentsMargins(12, 0, 12, 0)
        over.addWidget(self.branch_tree)
        over.addWidget(self.find_bar)
        column.addLayout(over)
        column.addWidget(self.pinned)
        column.addWidget(self.messages, 1)
        column.addWidget(centred(below, theme.text_column))
        self._floating = Floating(self.deleted, self, (self.messages,), lambda: self.messages)
        theme.changed.connect(self._fit_column)
        self.show_model(None)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        can = self._can_chat and self.attachments.can_attach and not is_for_window(event.mimeData())
        if can and attachable_files(event.mimeData()):
            event.acceptProposedAction()
        else:
            event.ignore()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.attachments.give(attachable_files(event.mimeData()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_column()

    @Slot()
    def _fit_column(self) -> None:
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
            self.deleted.hide()
            self.tell_draft()
            self._drafts[self._conversation] = self._composer.text
            self._conversation = name
            self._composer.set_text(self._drafts.get(name, conversation.draft if conversation else ""))
            self._untold = False
        self.attachments.show_conversation(conversation)
        self.queue.show_conversation(conversation)
        self._header.set_title(conversation.title if conversation else "", is_new=conversation is not None)

    # --- branches -----------------------------------------------------------------------------------------------------

    def show_branches(self, branches: Mapping[MessageId, tuple[MessageId, ...]]) -> None:
        """Messages that have others at their place, and all of those."""
        self._view.show_branches(branches)
        self._header.set_branches(bool(branches))

    @Slot()
    def toggle_branches(self) -> None:
        """Show or hide the tree of branches."""
        if self.branch_tree.isVisible():
            self.branch_tree.close_tree()
        else:
            self.branch_tree.open_tree()

    def compare(self, question: str, answers: Sequence[Message], shown: MessageId) -> None:
        """Put several answers to a question side by side, in the place of the messages."""
        self.messages.setCurrentWidget(self.alternatives)
        self.alternatives.show_answers(question, answers, shown)

    @property
    def is_comparing(self) -> bool:
        """Whether several answers are shown side by side."""
        return self.messages.currentWidget() is self.alternatives

    @Slot()
    def leave_comparison(self) -> None:
        """Back to the messages."""
        if self.is_comparing:
            self.messages.setCurrentWidget(self._view)
            self.focus_composer()

    def leave(self) -> bool:
        """Close what lies over or beside the messages; False where nothing does."""
        if not self.find_bar.isHidden():
            self.find_bar.leave()
            return True
        if self.is_comparing:
            self.leave_comparison()
            return True
        if self.branch_tree.isVisible():
            self.branch_tree.close_tree()
            return True
        return False

    @Slot()
    def focus_composer(self) -> None:
        """The keyboard goes where one writes."""
        self._composer.focus_edit()

    def show_preview(self, preview: TurnPreview) -> None:
        """What sending the draft, or saving an edited message, would cost."""
        self._composer.show_preview(preview)
        self._view.show_preview(preview)

    @Slot()
    def tell_draft(self) -> None:
        """Tell now what is typed, if that has not been told."""
        if self._untold:
            self._untold = False
            self._keeping.stop()
            self.draft_typed.emit(self._conversation, self._composer.text)

    @Slot()
    def _on_typed(self) -> None:
        if self._conversation is not None and not self._untold:
            self._untold = True
            self._keeping.start()

    @Slot(str)
    def _on_paused(self, text: str) -> None:
        self.draft_changed.emit(text, "")

    @Slot(str, str)
    def _on_edit_paused(self, message: str, text: str) -> None:
        self.draft_changed.emit(text, message)

    @Slot(int, str)
    def _on_queued_edit(self, index: int, text: str) -> None:
        """A queued message comes back into the composer, before what is typed there, and only then leaves the queue."""
        typed = self._composer.text
        self._composer.set_text(f"{text}\n\n{typed}" if typed.strip() else text)
        self.tell_draft()
        self.queue.taken_back.emit(self._conversation or "", index, text)
        self._composer.focus_edit()

    def show_messages(self, messages: Sequence[Message]) -> None:
        self._view.show_messages(messages)
        self.messages.setCurrentWidget(self._view if messages else self.empty)
        self._show_chat()

    def remove_messages(self, deleted: Sequence[MessageId], messages: Sequence[Message]) -> None:
        """Messages that were deleted go from their place; `messages` are all that are left."""
        self._view.remove_messages(deleted, messages)
        if self._conversation is not None:
            self._undeletable.add(self._conversation)
        n = len(deleted)
        self.deleted.show_text(tr("1 message deleted.") if n == 1 else tr("%n messages deleted.", n))
        self.messages.setCurrentWidget(self._view if messages else self.empty)
        self._show_chat()

    @property
    def can_undelete(self) -> bool:
        """Whether messages of this conversation were deleted, which can be brought back."""
        return self._conversation in self._undeletable

    def show_undeleted(self) -> None:
        """The messages that were deleted last are brought back."""
        self.deleted.hide()
        if self._conversation is not None:
            self._undeletable.discard(self._conversation)

    @Slot()
    def _on_pinned_changed(self) -> None:
        self.pinned.show_pinned(self._view.pinned)

    def append_message(self, message: Message) -> None:
        self._view.append_message(message)
        self.messages.setCurrentWidget(self._view)
        self._show_chat()

    def show_model(self, model: ModelInfo | None) -> None:
        self._header.model.set_model(model)
        self.empty.show_model(model)
        self._composer.set_loading("")
        self._block("" if model else tr("Open a model to send. Your text stays here."))
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
        self._no_chat.setVisible(not self._can_chat and self.messages.currentWidget() is self._view)

    def show_dead(self) -> None:
        """The engine has stopped for good: nothing can be opened, sent or answered until kvdesk is restarted."""
        self._header.model.set_dead()
        self.empty.show_dead()
        self._view.set_can_answer(False)
        self._progress.set_share(None)
        self._block(tr("Restart kvdesk to send."))

    def show_loading(self, name: str, share: float) -> None:
        self._progress.set_share(share)
        self._header.model.setText(tr("Loading {name}  {share}").format(name=name, share=f"{share:.0%}"))
        self.empty.show_loading(name, share)
        self._composer.set_loading(name)
        self._block("")

    def show_unreachable(self, sentence: str, detail: str = "") -> None:
        """The connection to the server failed, and what helps."""
        self._banner.show_error(sentence, detail)
        embedded = (
            tr("Use the embedded model"),
            tr("The small model that comes with kvdesk answers on this computer"),
            self.embedded_clicked.emit,
        )
        self._banner.offer(
            (tr("Reconnect"), tr("Try the server again"), self.reconnect_clicked.emit),
            *([embedded] if self._header.model.has_embedded else []),
        )

    def show_working(self, working: bool) -> None:
        """A moving line over the messages while something is under way that cannot say how far it is."""
        if working:
            self._progress.set_busy()
        else:
            self._progress.set_share(None)

    def show_embedded(self, available: bool) -> None:
        """Whether the embedded model can be opened from the model's menu."""
        self._header.model.set_embedded(available)

    def show_better(self, there: bool) -> None:
        """Whether the menu of models offers a better one: the embedded model is open."""
        self._header.model.set_better(there)
        self.empty.show_toy(there)

    def show_use(self, use: ContextUse | None) -> None:
        """How full the conversation's context is; None: not known."""
        self._composer.show_use(use)

    def show_parameters(self, text: str, changes: str, *, is_changed: bool) -> None:
        """Which parameters of the chat are changed: in short, and all of them."""
        self._header.parameters.show_changes(text, changes, is_changed=is_changed)

    @property
    def parameters(self) -> ParametersButton:
        """The button of the chat's parameters."""
        return self._header.parameters

    @property
    def overflow(self) -> OverflowChoice:
        """The choice of the overflow policy."""
        return self._header.overflow

    def set_running(self, running: bool) -> None:
        self._composer.set_running(running)
        self._show_why_not_saved()

    def _block(self, why: str) -> None:
        """Why nothing can be sent; "" where it can."""
        self._composer.set_blocked(why)
        self._show_why_not_saved()

    def _show_why_not_saved(self) -> None:
        """An edited question is sent, an edited answer is not."""
        running = tr("It can be saved when the answer has ended") if self._composer.is_running else ""
        loading = tr("It can be saved when the model is ready") if self._composer.is_loading else ""
        self._view.set_why_not_saved(running or self._composer.blocked or loading, running)
