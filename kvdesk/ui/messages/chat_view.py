"""The messages of one conversation, newest at the bottom, following the answer while one reads its end."""

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from math import ceil
from typing import Final, cast

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from kvdesk.conversations.tool_steps import spent
from kvdesk.message import Message, MessageId, finish_of
from kvdesk.protocol.chat import Overflowed, PrefillProgress, TextDelta, TurnEnded, TurnPreview, TurnStarted
from kvdesk.settings import Overflow
from kvdesk.translation import tr
from kvdesk.ui.markdown.text_chunks import PIECE_LINES
from kvdesk.ui.messages.attention_words import attention_words
from kvdesk.ui.messages.message_list import GAP_PX, Gradual, MessageList
from kvdesk.ui.messages.message_menu import message_menu, why_not_edited
from kvdesk.ui.messages.message_widget import MessageWidget
from kvdesk.ui.messages.tool_message import ToolMessage
from kvdesk.ui.tools.words import budget_text
from kvdesk.ui.widgets.controls import has_focus, pop_up
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.throttle import Throttle
from kvdesk.values import replace

RENDER_INTERVAL_MS: Final = 100  # at most 10 renderings a second
_LINE_CHARS: Final = 80  # of a line, where a height is estimated


class ChatView(MessageList):
    """A column of text about 72 characters wide, more in a very wide pane (`Theme.column_in`)."""

    pinned_changed = Signal()
    edits_changed = Signal()
    texts_changed = Signal()  # other messages, or a text that ended
    text_selected = Signal(str, int, int)
    looked_at = Signal(str, bool)
    """The message under the pointer, or with the keyboard (True), from now on; "" for none."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(self._made_for, kit.theme.column_in, self._is_busy)
        self._kit, self._store = kit, kit.store
        self._can_answer = True
        self._messages: dict[MessageId, Message] = {}  # in their order
        self._full: set[MessageId] = set()  # answers that a full context ended, or kept from beginning
        self._dirty: set[MessageId] = set()
        self._edits: dict[MessageId, str] = {}  # of messages that have no widget now
        self._why_not_saved: dict[str, str] = {}
        self._words: Sequence[str] = ()  # that are marked
        self._hit: tuple[MessageId, int] | None = None  # a message, and which of its places; -1: none
        self._pointed: set[MessageId] = set()  # messages with a mark of `point_at`
        self._looked_at: tuple[MessageId, bool] | None = None  # and whether the keyboard is there
        self.setAccessibleName(tr("Messages"))
        cast("QApplication", QApplication.instance()).focusChanged.connect(self._on_focus_changed)
        self._rendering = Throttle(self, RENDER_INTERVAL_MS, self._render)
        kit.theme.changed.connect(self.show_words)

    @property
    def widgets(self) -> tuple[MessageWidget, ...]:
        """Those there are, oldest first."""
        return tuple(self._widgets().values())

    @property
    def questions(self) -> dict[MessageId, str]:
        """What a person wrote in the branch that is shown, oldest first."""
        return {name: one.text for name, one in self._messages.items() if one.role == "user" and one.text}

    @property
    def last(self) -> MessageId | None:
        """The last message, the only one that can be answered again."""
        return next(reversed(self._messages), None)

    @property
    def pinned(self) -> tuple[Message, ...]:
        """The pinned ones of these messages, the oldest first."""
        return tuple(message for message in self._messages.values() if message.pinned)

    def message(self, name: MessageId) -> Message | None:
        """None where it is not among those that are shown."""
        return self._messages.get(name)

    @property
    def edits(self) -> dict[MessageId, str]:
        """What was made so far of messages that are being edited, of other branches too."""
        return self._edits | {name: one.editor.text for name, one in self._widgets().items() if one.editor is not None}

    @property
    def is_editing(self) -> bool:
        """Whether a message that is shown is being edited."""
        return any(widget.editor is not None for widget in self.widgets)

    def start_edit(self, message: MessageId) -> None:
        """Edit a message in its place, or say why not."""
        known = self._messages.get(message)
        if known is None:
            return
        if why := why_not_edited(self._store, known):
            self._store.notify(why)
        elif isinstance(widget := self.scroll_to(message), MessageWidget):
            widget.start_edit()
            self._show_editor(widget)

    def end_edit(self) -> None:
        """The message that is edited, with the keyboard in it or else the last one, stays as it was."""
        edited = [widget for widget in self.widgets if widget.editor is not None]
        here = [widget for widget in edited if has_focus(widget)]
        for widget in (here or edited)[-1:]:
            widget.end_edit()

    def show_preview(self, preview: TurnPreview) -> None:
        """What another version of a message would cost."""
        widget = self.widget_of(preview.replaced) if preview.replaced is not None else None
        if widget is not None:
            widget.show_preview(preview)

    def ask_again(self) -> None:
        """What edited messages would cost may have changed."""
        for widget in self.widgets:
            if widget.editor is not None:
                widget.editor.ask_again()

    def set_why_not_saved(self, question: str, answer: str) -> None:
        """Why an edited question, and an edited answer, cannot be saved now; "" if they can."""
        self._why_not_saved = {"user": question, "assistant": answer}
        for widget in self.widgets:
            widget.set_why_not_saved(self._why_not_saved.get(widget.message.role, ""))

    def _show_editor(self, widget: MessageWidget) -> None:
        """Bring all of it into sight, its end where it is higher than that."""
        self.arrange()
        self.ensureWidgetVisible(widget, 0, GAP_PX)

    def _restore_edit(self, widget: MessageWidget) -> None:
        if (text := self._edits.pop(widget.message.id, None)) is not None:
            widget.start_edit(text)

    def _follows_edit(self, message: MessageId) -> bool:
        """Whether a message before this one is edited: this one stays in the branch that is shown."""
        edits = self.edits
        if not edits or message in edits:
            return False
        return any(name in edits for name in takewhile(lambda name: name != message, self._messages))

    def restore_edits(self, edits: Mapping[MessageId, str]) -> None:
        """The texts so far of messages that are being edited in this chat. Call it before they are shown."""
        self._edits = {**edits}

    def edit_changed(self) -> None:
        self.edits_changed.emit()

    def editing_changed(self) -> None:
        self.edits_changed.emit()
        for name, widget in self._widgets().items():
            widget.set_dim(self._follows_edit(name))
        self.arrange()

    def _widgets(self) -> dict[MessageId, MessageWidget]:
        return {name: widget for name, widget in self.made().items() if isinstance(widget, MessageWidget)}

    def _shown(self) -> dict[MessageId, MessageWidget | ToolMessage]:
        """Calls of tools too."""
        made = self.made().items()
        return {name: widget for name, widget in made if isinstance(widget, MessageWidget | ToolMessage)}

    def show_coloured(self) -> None:
        """Whether answers have the colours of how likely their tokens were may have changed."""
        for widget in self.widgets:
            widget.set_coloured(self._is_coloured)
        self.arrange()

    def show_words(self) -> None:
        """What the words of messages are coloured by may have changed."""
        for widget in self.widgets:
            self._show_words(widget)

    def _show_words(self, widget: MessageWidget) -> None:
        widget.show_words(attention_words(self._store, widget.message, self._kit.theme.colours))

    @property
    def _is_coloured(self) -> bool:
        return self._store.settings.current.token_probabilities

    @property
    def has_probabilities(self) -> bool:
        """Whether it is known of an answer how likely its tokens were."""
        return any(message.probabilities for message in self._messages.values())

    def show_token(self) -> None:
        """Look at the first token of the last answer of which that is known."""
        known = [name for name, message in self._messages.items() if message.probabilities]
        widget = self.scroll_to(known[-1]) if known else None
        if isinstance(widget, MessageWidget):
            widget.show_token(0)
            self.arrange()

    def close_token(self) -> bool:
        """Close what shows a token; False if none is shown."""
        closed = [widget.close_token() for widget in self.widgets]
        self.arrange()
        return any(closed)

    def set_can_answer(self, can: bool) -> None:
        """Whether the last answer can be made again, and messages be edited: the model can chat."""
        self._can_answer = can
        for name, widget in self._widgets().items():
            widget.set_last(can and name == self.last)
            widget.set_can_edit(can)

    def show_messages(self, messages: Sequence[Message]) -> None:
        self._edits = self.edits
        self._messages = {message.id: message for message in messages}
        self._words, self._hit = (), None
        self._pointed.clear()
        self._look_at(None, by_keyboard=False)
        self._dirty.clear()
        self.reset([*self._messages], lambda name: _estimate(self._messages[name]))
        self.pinned_changed.emit()
        self.texts_changed.emit()

    def remove_messages(self, deleted: Collection[MessageId], messages: Sequence[Message]) -> None:
        """What one reads stays where it is, unless another branch is shown without them."""
        left = {message.id: message for message in messages}
        if [name for name in self._messages if name not in deleted] != list(left):
            self.show_messages(messages)
            return
        self._edits = self.edits
        self._messages = left
        self.remove(deleted)
        for name in self._widgets():
            self._edits.pop(name, None)
        self.set_can_answer(self._can_answer)
        self.pinned_changed.emit()
        self.texts_changed.emit()

    def append_message(self, message: Message) -> None:
        if message.id in self._messages:
            self.update_message(message)
            return
        self._messages[message.id] = message
        for widget in self.widgets:
            widget.set_last(False)
        if message.role == "tool":
            self._show_tool(message)  # of those before it
        self.append(message.id, _estimate(message))
        self.texts_changed.emit()

    def show_why_not_continued(self) -> None:
        """Whether the engine can continue an answer may have changed."""
        why = self._store.why_not_continued
        for widget in self.widgets:
            widget.set_why_not_continued(why)

    def show_forks(self) -> None:
        """Messages that have others at their place may be others."""
        for name, widget in self._widgets().items():
            widget.show_branches(self._store.forks.get(name, ()))

    @property
    def comparable(self) -> MessageId | None:
        """The last answer that is shown and has others at its place."""
        answers = (name for name in reversed(self._messages) if self._messages[name].role == "assistant")
        return next((name for name in answers if name in self._store.forks), None)

    @property
    def _retention(self) -> Mapping[MessageId, str]:
        """How near messages are to being evicted: "in the cache", "next" or "evicted"."""
        return self._store.retention_of(self._store.selected) if self._store.selected is not None else {}

    def show_retention(self) -> None:
        """Messages may be nearer to being evicted."""
        retention = self._retention
        for name, widget in self._widgets().items():
            widget.show_retention(retention.get(name, ""))

    def show_overflow(self, event: Overflowed) -> None:
        """The context was full while this answer was asked for or written."""
        if event.policy is Overflow.STOP:
            self._full.add(event.answer)
        if widget := self.widget_of(event.answer):
            widget.show_overflow(event.sentence)
            widget.set_full(event.answer in self._full)

    def highlight(self, message: MessageId, first: int, last: int) -> None:
        """Mark characters `[first, last)` of a message, and scroll to it; nothing if it is not shown."""
        if isinstance(widget := self.scroll_to(message), MessageWidget):
            widget.highlight(first, last)

    def point_at(self, places: Mapping[MessageId, tuple[int, int]]) -> None:
        """Mark characters of messages that have widgets, and none of others. Nothing scrolls."""
        for name in self._pointed - set(places):
            if widget := self.widget_of(name):
                widget.point_at(0, 0)
        for name, (first, last) in places.items():
            if widget := self.widget_of(name):
                widget.point_at(first, last)
        self._pointed = set(places)

    def menu(self, message: MessageId) -> QMenu | None:
        """The menu of a message; None if it is not shown."""
        return message_menu(self, self._kit, self._shown().get(message), is_last=message == self.last)

    def open_menu(self, message: MessageId, at: QPoint) -> None:
        """Open the menu of a message there on the screen."""
        pop_up(self.menu(message), at)

    def select_text(self, message: MessageId, first: int, last: int) -> None:
        self.text_selected.emit(message, first, last)

    def hover(self, message: MessageId, *, over: bool) -> None:
        if over:
            self._look_at(message, by_keyboard=False)
        elif self._looked_at == (message, False):
            self._look_at(None, by_keyboard=False)

    def _on_focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        """The keyboard looks at a message as the pointer does; a click into the one that is hovered changes nothing."""
        message = next((name for name, one in self._shown().items() if now and one.isAncestorOf(now)), None)
        known, by_keyboard = self._looked_at or (None, False)
        if message is not None and not (message == known and not by_keyboard):
            self._look_at(message, by_keyboard=True)
        elif message is None and by_keyboard:
            self._look_at(None, by_keyboard=False)

    def _look_at(self, message: MessageId | None, *, by_keyboard: bool) -> None:
        looked_at = None if message is None else (message, by_keyboard)
        if looked_at != self._looked_at:
            self._looked_at = looked_at
            self.looked_at.emit(message or "", by_keyboard)

    def mark_found(self, words: Sequence[str], message: MessageId | None = None, at: int = -1) -> None:
        """Mark all places of some words, nothing without words, and scroll to place number `at` of a message."""
        self._words = words
        self._hit = (message, at) if message is not None else None
        for name, widget in self._shown().items():
            self._mark(name, widget)
        hit = self.scroll_to(message) if message is not None else None
        if message is not None and isinstance(hit, MessageWidget | ToolMessage):
            place = self._mark(message, hit)
            self.arrange()  # what was folded may be open now
            self.ensureVisible(0, hit.y() + place.y(), 0, self.viewport().height() // 3)

    def _mark(self, name: MessageId, widget: MessageWidget | ToolMessage) -> QPoint:
        is_hit = self._hit is not None and self._hit[0] == name
        return widget.mark(self._words, self._hit[1] if self._hit is not None and is_hit else -1, unfold=is_hit)

    @property
    def selected(self) -> tuple[MessageId | None, str]:
        """What is selected in a message; None and "" if nothing is."""
        selected = ((name, widget.selected_text) for name, widget in self._shown().items())
        return next((one for one in selected if one[1]), (None, ""))

    @property
    def messages(self) -> tuple[Message, ...]:
        """Those that are shown, oldest first."""
        return tuple(self._messages.values())

    @property
    def first_seen(self) -> MessageId | None:
        """The message at the upper edge."""
        seen = self._seen()
        return seen[0].id if seen else None

    def jump_to(self, message: str) -> None:
        """Bring a message into sight and give it the keyboard; nothing if it is not shown."""
        if isinstance(widget := self.scroll_to(MessageId(message)), MessageWidget | ToolMessage):
            widget.show_arrival()

    def close_reasons(self) -> bool:
        """Close what "Why?" has opened; False if nothing is open."""
        closed = [widget.close_why() for widget in self.widgets]
        self.arrange()
        return any(closed)

    def clear_highlights(self) -> None:
        for widget in self.widgets:
            widget.highlight(0, 0)

    def widget_of(self, message: MessageId) -> MessageWidget | None:
        """None if the message is not among these, or far from what is seen."""
        widget = self.widget_at(message)
        return widget if isinstance(widget, MessageWidget) else None

    def update_message(self, message: Message) -> None:
        before = self._messages.get(message.id)
        if before is not None:
            self._messages[message.id] = message
        if message.state == "streaming":
            self._full.discard(message.id)  # it is continued: there is room now
        if before is not None and message.role == "tool":
            self._show_tool(message)
        if widget := self.widget_of(message.id):
            widget.set_full(self._is_full(message))
            widget.show_message(message)
            self._show_words(widget)
            self.arrange()
        if before is not None and (before.pinned or message.pinned):
            self.pinned_changed.emit()
        if message.state != "streaming":
            self.texts_changed.emit()

    def start_turn(self, event: TurnStarted) -> None:
        if widget := self.widget_of(event.answer):
            widget.show_prompt(event.reused_tokens, event.prompt_tokens, event.marks, event.calls)

    def show_prefill(self, event: PrefillProgress) -> None:
        if widget := self.widget_of(event.answer):
            widget.show_prefill(event.done, event.total, event.tok_s)

    def append_text(self, event: TextDelta) -> None:
        widget = self.widget_of(event.answer)
        if widget is None:
            if (message := self._messages.get(event.answer)) is not None:
                self._messages[message.id] = replace(message, text=message.text + event.text)
            return
        if not event.text:
            return
        widget.append(event.text)
        self._dirty.add(event.answer)
        self._rendering.request()

    def end_turn(self, event: TurnEnded) -> None:
        widget = self.widget_of(event.answer)
        if widget is not None and widget.message.state == "streaming":  # else `update_message` has told more
            widget.end(event)
            self.update_message(widget.message)

    def scroll_page(self, direction: int) -> None:
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + direction * (bar.pageStep() - 48))

    def _render(self) -> None:
        for name in self._dirty:
            if widget := self.widget_of(name):
                widget.flush(may_collapse=self.is_following)
        self._dirty.clear()
        self.arrange()

    def _made_for(self, message_id: MessageId, parent: QWidget, gradually: bool) -> Gradual:
        message = self._messages[message_id]
        if message.role == "tool":
            tool = ToolMessage(self._kit, self, message, self._spent_at, parent)
            if self._words:
                self._mark(message_id, tool)
            return tool
        widget = MessageWidget(self._kit, self, message, parent, gradually=gradually)
        widget.set_why_not_continued(self._store.why_not_continued)
        widget.set_why_not_saved(self._why_not_saved.get(message.role, ""))
        widget.show_branches(self._store.forks.get(message.id, ()))
        widget.show_retention(self._retention.get(message.id, ""))
        widget.set_full(self._is_full(message))
        widget.set_last(message.id == self.last and self._can_answer)
        widget.set_can_edit(self._can_answer)
        widget.set_coloured(self._is_coloured)
        self._show_words(widget)
        self._restore_edit(widget)
        widget.set_dim(self._follows_edit(message_id))
        if self._words:
            self._mark(message_id, widget)
        return widget

    def _show_tool(self, message: Message) -> None:
        """A call or its result, and what is said of those before it."""
        for name, widget in self.made().items():
            if isinstance(widget, ToolMessage):
                widget.show_message(message if name == message.id else self._messages[name])
        self.arrange()

    def _spent_at(self, message: Message) -> str:
        """What tools have cost up to this call, of the last question only."""
        messages = list(self._messages.values())
        later = messages[messages.index(message) + 1 :] if message in messages else []
        if any(one.role in ("user", "tool") for one in later):
            return ""
        return budget_text(spent(messages), self._store.settings.current.tools)

    def _is_full(self, message: Message) -> bool:
        """Whether a full context ended this answer, now or in an earlier run, or kept it from beginning."""
        return message.id in self._full or finish_of(message) == "context full"

    def _is_busy(self, widget: QWidget) -> bool:
        """An answer is being written in it, something in it is selected, or the keyboard is in it."""
        if not isinstance(widget, MessageWidget):
            return False
        is_used = widget.message.state == "streaming" or widget.editor is not None
        return is_used or bool(widget.selected_text) or has_focus(widget)


def _estimate(message: Message) -> int:
    """About how many pixels high a message is, before it has a widget."""
    lines = ceil(len(message.text) / _LINE_CHARS) + message.text.count("\n")
    return 64 + 22 * min(lines, PIECE_LINES)
