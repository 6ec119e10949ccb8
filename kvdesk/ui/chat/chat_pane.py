"""The middle pane: title and model; messages; errors; composer."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from kvdesk.conversations.changes import AnswerEnded, BranchChanged, MessagesAdded, MessagesChanged, MessagesDeleted
from kvdesk.errors import NO_TOKENIZER, SILENT, UNREACHABLE
from kvdesk.message import Message, MessageId
from kvdesk.protocol.attention import Attend
from kvdesk.protocol.cache import ContextReady, OperationDone
from kvdesk.protocol.chat import (
    EngineDied,
    EngineRestarted,
    LoadModel,
    MessageRetention,
    ModelLoaded,
    ModelLoading,
    Overflowed,
    PrefillProgress,
    TextDelta,
    TurnEnded,
    TurnPreview,
    TurnStarted,
)
from kvdesk.protocol.messages import CommandFailed, SubscriptionDropped
from kvdesk.protocol.model import Endpoint
from kvdesk.session import Changed
from kvdesk.session.changed import Problem, Update
from kvdesk.settings import Overflow
from kvdesk.translation import plural, tr
from kvdesk.ui.chat.empty_pane import EmptyPane
from kvdesk.ui.chat.pane_header import PaneHeader
from kvdesk.ui.composer.composer import Composer, centred
from kvdesk.ui.composer.draft_attachments import DraftAttachments
from kvdesk.ui.composer.drafts import Drafts
from kvdesk.ui.composer.queue_view import QueueView
from kvdesk.ui.composer.sent_messages import SentMessages
from kvdesk.ui.messages.alternatives import AlternativesView
from kvdesk.ui.messages.attention_words import are_attended
from kvdesk.ui.messages.branch_tree import BranchTree
from kvdesk.ui.messages.chat_view import ChatView
from kvdesk.ui.messages.find_bar import FindBar
from kvdesk.ui.messages.pinned_bar import PinnedBar
from kvdesk.ui.messages.surprise_bar import SurpriseBar
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.banner import Banner
from kvdesk.ui.widgets.controls import ThinProgress, label, on_ground
from kvdesk.ui.widgets.floating import Floating
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.undo_notice import UndoNotice

DELETED_MS: Final = 15_000
"""What was deleted is said so long. It can be undone until kvdesk is closed (Ctrl+Z, menu)."""
_CHAT: Final = Changed.CONVERSATIONS | Changed.SELECTED
_CACHED: Final = Changed.NUMBERS | Changed.SELECTED
_STATE: Final = ~(Changed.VIEW | Changed.GROWTH)
"""Changes after which buttons and the meter of the context may differ."""


class ChatPane(QWidget):
    """Shows the conversation that is selected."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        on_ground(self, "window")
        theme = kit.theme
        self._kit, self._theme, self._store, self._commands = kit, theme, kit.store, kit.commands
        self.header = PaneHeader(kit)
        self.header.overflow.chosen.connect(self._on_overflow_chosen)
        self._progress = ThinProgress(tr("Work under way"))
        self.view = ChatView(kit)
        self.find_bar = FindBar(kit, self.view)
        self.pinned = PinnedBar(kit, self.view.jump_to)
        self.view.pinned_changed.connect(lambda: self.pinned.show_pinned(self.view.pinned))
        self.surprise = SurpriseBar(kit)
        self.view.texts_changed.connect(self._show_surprise)
        self.deleted = UndoNotice(theme, self.undelete, DELETED_MS)
        self.empty = EmptyPane(kit)
        self.branch_tree = BranchTree(kit)
        self.alternatives = AlternativesView(kit)
        self.alternatives.closed.connect(self.leave_comparison)
        self.messages = QStackedWidget()
        for page in (self.empty, self.view, self.alternatives):
            self.messages.addWidget(page)
        self.banner = Banner(theme)
        self.queue = QueueView(kit)
        self.queue.edit_clicked.connect(self._on_queued_edit)
        self.composer = Composer(kit)
        self.composer.sent.connect(self.banner.hide)
        self.composer.edit.paged.connect(self.view.scroll_page)
        self.composer.asked_again.connect(self.view.ask_again)
        self.drafts = Drafts(kit, self.composer, self.view)
        self.attachments = DraftAttachments(kit, self.composer)
        self.composer.edit.recall = SentMessages(self.composer, lambda: [*self.view.questions.values()]).step
        self._lay_out()
        self._floating = Floating(self.deleted, self, (self.messages,), lambda: self.messages)
        theme.changed.connect(self._fit_column)
        self.destroyed.connect(kit.store.listen(self._on_changed, often=(TextDelta,)))
        self.destroyed.connect(kit.store.settings.listen(self._on_settings_changed))
        self.show_all()

    def _lay_out(self) -> None:
        below = self._below = QWidget()
        self._no_chat = label(tr(NO_TOKENIZER), tone="secondary", wrap=True)  # in the composer's place
        self._no_chat.setContentsMargins(12, 8, 12, 16)
        boxes.column(self.banner, self.queue, self.composer, self._no_chat, on=below, margins=0, spacing=8)
        boxes.column(
            self.header,
            self._progress,
            boxes.column(self.branch_tree, self.find_bar, margins=(12, 0, 12, 0)),
            self.pinned,
            self.surprise,
            *[part.legend(self._kit) for part in self._kit.slices if part.legend is not None],
            (self.messages, 1),
            centred(below, self._theme.text_column),
            on=self,
            margins=0,
            spacing=0,
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_column()

    def _fit_column(self) -> None:
        self._below.setMaximumWidth(self._theme.column_in(self.width()))

    # --- what has changed ---------------------------------------------------------------------------------------------

    def show_all(self) -> None:
        """Everything as the store has it. Messages come by `BranchChanged`."""
        self._show_model()
        if self._store.dead:
            self._show_dead()
        self._show_conversation(is_other=True)
        self._on_changed(~_CHAT, None)
        self._on_settings_changed(frozenset(("tour_seen",)))

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        if "cache" in changed:
            self._show_overflow()
        if "token_probabilities" in changed:
            self.view.show_coloured()
            self._show_surprise()
        if "tour_seen" in changed:
            self.empty.offer_tour(not self._store.settings.current.tour_seen)

    def _show_surprise(self) -> None:
        """The legend of colours that there are."""
        is_on = self._store.settings.current.token_probabilities and not are_attended(self._store)
        self.surprise.setVisible(is_on and self.view.has_probabilities)

    def _on_changed(self, changed: Changed, update: Update | None) -> None:
        store = self._store
        if changed & _CHAT:
            self._show_conversation(is_other=bool(changed & Changed.SELECTED))
        if update is not None:
            self._apply(update)
        if changed & Changed.ATTENTION or (changed & Changed.SPANS and store.attention.is_open):
            self.view.show_words()
            self._show_surprise()
        if changed & Changed.FORKS:
            self.view.show_forks()
            self.header.set_branches(bool(store.forks))
        if changed & _CACHED or (changed & Changed.VIEW and store.view is None):
            self.branch_tree.show_cached(store.branch_ends(store.selected))
        if changed & Changed.CONTEXT:
            self.header.overflow.show_possible(store.possible)
        if changed & Changed.EMBEDDED:
            self.header.model.set_embedded(store.has_embedded)
            self.header.model.set_better(store.is_toy)
            self.empty.show_toy(store.is_toy)
        if changed & Changed.REBUILDING:
            self._show_working(store.rebuilding)
        if changed & _STATE:
            self._show_state()

    def _apply(self, update: Update) -> None:
        match update:
            case BranchChanged() | MessagesAdded() | MessagesChanged() | AnswerEnded() | MessagesDeleted():
                self._show_messages(update)
            case TextDelta() | TurnStarted() | PrefillProgress() | TurnEnded():
                if update.conversation == self._store.selected:
                    self._show_turn(update)
            case MessageRetention() | Overflowed() | TurnPreview():
                if update.conversation == self._store.selected:
                    self._show_room(update)
            case ModelLoading():
                self._show_loading(update)
            case ModelLoaded() | ContextReady():
                self._show_engine(update)
            case CommandFailed():
                self._show_failure(update)
            case EngineDied() | EngineRestarted() | Problem() | SubscriptionDropped():
                self._show_problem(update)
            case OperationDone() if update.changes_use:
                self.composer.ask_again()

    def _show_problem(self, problem: EngineDied | EngineRestarted | Problem | SubscriptionDropped) -> None:
        if isinstance(problem, EngineDied):
            self._show_dead()
        self.banner.show_error(problem.sentence, "" if isinstance(problem, SubscriptionDropped) else problem.detail)

    def _show_conversation(self, *, is_other: bool) -> None:
        """Title, draft, attachments and queue of the conversation that is shown."""
        conversation = self._store.shown
        if self.drafts.show():
            self.deleted.hide()
            self.composer.forget_preview()  # of the chat before, which may have the same draft
            self.composer.ask_again()
        self.attachments.show(is_other=is_other)
        self.queue.show_queue()
        self.header.set_title(conversation.title if conversation else "", is_new=conversation is not None)
        self.header.show_tools(conversation.tools if conversation else ())
        self._show_overflow()
        if is_other:
            self._set_messages(())
            self.view.restore_edits(self.drafts.edits())
            self.header.set_branches(False)

    def _show_messages(
        self, change: BranchChanged | MessagesAdded | MessagesChanged | AnswerEnded | MessagesDeleted
    ) -> None:
        match change:
            case BranchChanged():
                if change.conversation == self._store.selected:
                    self._set_messages(change.messages)
                    self.header.set_branches(False)
            case MessagesAdded():
                for message in change.messages:
                    if message.conversation == self._store.selected:
                        self.banner.hide()
                        self.view.append_message(message)
                        self.messages.setCurrentWidget(self.view)
                        self._show_chat()
            case MessagesChanged() | AnswerEnded():
                for message in change.messages if isinstance(change, MessagesChanged) else (change.message,):
                    if message.conversation == self._store.selected:
                        self.view.update_message(message)
            case MessagesDeleted():
                if change.conversation == self._store.selected:
                    self._remove_messages(change.deleted, change.branch)

    def _set_messages(self, messages: Sequence[Message]) -> None:
        self.view.show_messages(messages)
        self.messages.setCurrentWidget(self.view if messages else self.empty)
        self._show_chat()

    def _remove_messages(self, deleted: Sequence[MessageId], messages: Sequence[Message]) -> None:
        """Messages that were deleted go from their place; `messages` are all that are left."""
        self.view.remove_messages(deleted, messages)
        n = len(deleted)
        self.deleted.show_text(plural("1 message deleted.", "%n messages deleted.", n))
        self.messages.setCurrentWidget(self.view if messages else self.empty)
        self._show_chat()

    def _show_turn(self, event: TextDelta | TurnStarted | PrefillProgress | TurnEnded) -> None:
        match event:
            case TextDelta():
                self.view.append_text(event)
            case TurnStarted():
                self.view.start_turn(event)
            case PrefillProgress():
                self.view.show_prefill(event)
            case TurnEnded():
                if event.state == "failed" and any(tr(why) in event.note for why in (UNREACHABLE, SILENT)):
                    self._show_unreachable(event.note)
                elif event.state == "failed" and event.note and self.view.message(event.answer) is None:
                    self.banner.show_error(event.note)  # the answer gave way to the one before
                self.view.end_turn(event)
                self.composer.ask_again()

    def _show_room(self, event: MessageRetention | Overflowed | TurnPreview) -> None:
        """How far messages are from being evicted, and what sending a draft would do."""
        match event:
            case MessageRetention():
                self.view.show_retention()
            case Overflowed():
                self.view.show_overflow(event)
            case TurnPreview():
                self.composer.show_preview(event)
                self.view.show_preview(event)

    def _show_engine(self, event: ModelLoaded | ContextReady) -> None:
        self._show_working(False)
        self.composer.forget_preview()
        if isinstance(event, ModelLoaded):
            self._show_model()
            self.banner.withdraw()
        else:
            self.composer.ask_again()

    def _show_failure(self, event: CommandFailed) -> None:
        if isinstance(event.command, Attend):
            return  # said where it was asked for
        if isinstance(event.command, LoadModel) and self._store.loading is not None:
            return  # another one is being loaded instead
        if isinstance(event.command, LoadModel) and isinstance(event.command.source, Endpoint):
            self._show_unreachable(event.sentence, event.detail)
        elif event.stopped:
            self._store.notify(event.sentence)
        else:
            self.banner.show_error(event.sentence, event.detail)
        if isinstance(event.command, LoadModel):
            self._show_model()
            self._show_working(False)

    def _show_model(self) -> None:
        model = self._store.model
        self.header.model.set_model(model)
        self.empty.show_model(model)
        self.composer.set_loading("")
        self._block("" if model else tr("Open a model to send. Your text stays here."))
        self.view.set_can_answer(self._store.can_chat)
        self._show_chat()

    def _show_chat(self) -> None:
        """A model that cannot chat has no composer; why is said once, in the empty page or below the messages."""
        can_chat = self._store.can_chat
        self.composer.setVisible(can_chat)
        self._no_chat.setVisible(not can_chat and self.messages.currentWidget() is self.view)

    def _show_dead(self) -> None:
        """The engine has stopped for good: nothing can be opened, sent or answered until kvdesk is restarted."""
        self.header.model.set_dead()
        self.empty.show_dead()
        self.view.set_can_answer(False)
        self._progress.set_share(None)
        self._block(tr("Restart kvdesk to send."))

    def _show_loading(self, loading: ModelLoading) -> None:
        name, share, model = loading.source.name, loading.progress, self._store.model
        if not self.composer.is_loading and (model is None or loading.source != model.source):
            self.banner.hide()  # it was about the model before, not about why the same one is loaded again
        if share:
            self._progress.set_share(share)
        else:  # it is tried in a child process
            self._progress.set_busy()
        said = tr("Loading {name}  {share}") if share else tr("Loading {name}…")
        self.header.model.setText(said.format(name=name, share=f"{share:.0%}"))
        self.empty.show_loading(name, share)
        self.composer.set_loading(name)
        self._block("")

    def _show_unreachable(self, sentence: str, detail: str = "") -> None:
        """The connection to the server failed, and what helps."""
        self.banner.show_error(sentence, detail)
        embedded = (
            tr("Use the embedded model"),
            tr("The small model that comes with kvdesk answers on this computer"),
            self._commands.open_embedded,
        )
        self.banner.offer(
            (tr("Reconnect"), tr("Try the server again"), self._commands.reconnect),
            *([embedded] if self._store.has_embedded else []),
        )

    def _show_working(self, working: bool) -> None:
        """A moving line over the messages while something is under way that cannot say how far it is."""
        if working:
            self._progress.set_busy()
        else:
            self._progress.set_share(None)

    def _show_overflow(self) -> None:
        """The overflow policy of the shown conversation."""
        shown = self._store.shown
        chosen = shown.overflow if shown is not None else ""
        default = self._store.settings.current.cache.overflow
        self.header.overflow.show_chosen(Overflow(chosen) if chosen in set(Overflow) else default)

    def _show_state(self) -> None:
        store = self._store
        asks = any(self.view.message(name) is not None for name in store.tool_questions)
        self.composer.set_running(store.is_answering, asks=asks)
        self._show_why_not_saved()
        self.view.show_why_not_continued()
        self.composer.show_use(store.use.get(store.selected) if store.selected is not None else None)

    def _block(self, why: str) -> None:
        """Why nothing can be sent; "" if it can."""
        self.composer.set_blocked(why)
        self._show_why_not_saved()

    def _show_why_not_saved(self) -> None:
        """An edited question is sent, an edited answer is not."""
        running = tr("It can be saved when the answer has ended") if self.composer.is_running else ""
        loading = tr("It can be saved when the model is ready") if self.composer.is_loading else ""
        self.view.set_why_not_saved(running or self.composer.blocked or loading, running)

    # --- what a person does -------------------------------------------------------------------------------------------

    def find_text(self) -> None:
        """Find a text in the messages."""
        self.leave_comparison()
        self.find_bar.ask()

    def compare(self, question: str, answers: Sequence[Message], shown: MessageId) -> None:
        """Put several answers to a question side by side, in the place of the messages."""
        self.messages.setCurrentWidget(self.alternatives)
        self.alternatives.show_answers(question, answers, shown)

    @property
    def is_comparing(self) -> bool:
        """Whether several answers are shown side by side."""
        return self.messages.currentWidget() is self.alternatives

    def leave_comparison(self) -> None:
        """Back to the messages."""
        if self.is_comparing:
            self.messages.setCurrentWidget(self.view)
            self.composer.focus_edit()

    def leave(self) -> bool:
        """Close what lies over or beside the messages; False if nothing does."""
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

    def toggle_branches(self) -> None:
        """Show or hide the tree of branches."""
        if self.branch_tree.isVisible():
            self.branch_tree.close_tree()
        else:
            self.branch_tree.open_tree()

    def edit_last(self) -> None:
        """Edit the last question in its place."""
        if (last := self.last_question) is not None:
            self.view.start_edit(last)

    @property
    def last_question(self) -> MessageId | None:
        return next(iter(reversed(self.view.questions)), None)

    def undelete(self) -> None:
        """Bring back the messages that were deleted last, or say why not."""
        selected = self._store.selected
        if selected is None or selected not in self._store.undeletable:
            return
        if why := self._store.why_busy:
            self._store.notify(why)
            return
        self.deleted.hide()
        self._store.undelete(selected)
        self._commands.undelete_messages(selected)

    def _on_overflow_chosen(self, overflow: Overflow) -> None:
        if self._store.selected is not None:
            self._commands.conversations.choose_overflow(self._store.selected, overflow)
            self.composer.ask_again()

    def _on_queued_edit(self, index: int, text: str) -> None:
        """Put a queued message into the composer, before what is typed there; only then remove it from the queue."""
        typed = self.composer.text
        self.composer.set_text(f"{text}\n\n{typed}" if typed.strip() else text)
        self.drafts.keep()
        if self._store.selected is not None:
            self._commands.conversations.queued.cancel(self._store.selected, index, text, edited=True)
        self.composer.focus_edit()
