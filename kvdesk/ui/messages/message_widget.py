"""One message: its author, its text, and under an answer a line with its cost in tokens and time."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGraphicsOpacityEffect, QHBoxLayout, QLabel, QWidget

from kvdesk.call_format import CallFormat
from kvdesk.conversations.tool_steps import without_calls
from kvdesk.graphemes import cut
from kvdesk.message import Message, MessageId, attached_text
from kvdesk.protocol.chat import TurnEnded, TurnPreview
from kvdesk.protocol.logprobs import places, unpack
from kvdesk.reasoning import ReasoningMarks, ThoughtClock
from kvdesk.translation import marked, tr
from kvdesk.ui.markdown.text_marks import TokenText
from kvdesk.ui.messages.attachment_cards import AttachmentCards
from kvdesk.ui.messages.branch_switch import BranchSwitch, show_branch
from kvdesk.ui.messages.listed import Listed, Owner
from kvdesk.ui.messages.loop_notice import LoopNotice
from kvdesk.ui.messages.message_body import MessageBody
from kvdesk.ui.messages.message_editor import MessageEditor
from kvdesk.ui.messages.message_foot import MessageFoot, Waiting, note_of
from kvdesk.ui.messages.message_list import settle_around
from kvdesk.ui.messages.room_help import RoomHelp
from kvdesk.ui.messages.surprise_words import surprise_words
from kvdesk.ui.messages.token_card import TokenCard
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import IconButton, below, has_focus, label, set_tone
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import replace
from kvdesk.viewmodel.chat.repetition import repeated

_NAME: Final = 200  # characters of a message that a screen reader says first
_RETENTION: Final = {  # the word beside the message, what it means, the opacity of its text
    "next": (
        marked("removed next"),
        marked("The context is nearly full: this message is removed from it next. Its text stays here."),
        0.8,
    ),
    "evicted": (marked("not in context"), marked("The model no longer sees this message. Its text stays here."), 0.5),
}
_DIM: Final = 0.4
_LOOK_EVERY: Final = 40  # characters after which an answer may begin to repeat itself
_STATE_TONES: Final = {"stopped": "secondary", "interrupted": "warning", "failed": "danger"}


class MessageWidget(Listed):
    """Shows a message as it is and as it grows."""

    def __init__(
        self, kit: Kit, owner: Owner, message: Message, parent: QWidget | None = None, *, gradually: bool = False
    ) -> None:
        """`gradually`: the text is made piece by piece, by `make_next`. With a parent it is styled only once."""
        super().__init__(owner, message, parent)
        self._kit, self._theme = kit, kit.theme
        theme = kit.theme
        self._shown: tuple[str, bool, int] | None = None  # text, whether it grows, time of its reasoning
        self._clock = ThoughtClock()
        self._marks = message.marks
        self._opening = ""  # what shows that calls begin, while the answer is written
        self._is_last = self._is_full = False
        self._is_read = False  # it is continued, and the engine still reads
        self._why_not_continued = self._why_not_saved = ""
        self._can_edit = True
        self.editor: MessageEditor | None = None  # while a person changes the text
        self._pin: IconButton | None = None  # made when it is pinned first
        self._help: RoomHelp | None = None  # made if it is needed
        self._loop: LoopNotice | None = None  # made when the answer repeats itself first
        self._n_looked_at = 0  # characters that it had when this was looked at
        self._edit: IconButton | None = None  # of what a person wrote
        self._is_coloured = False  # by how likely its tokens were
        self._words: TokenText | None = None  # in the place of that
        self._tokens: TokenCard | None = None  # made when one is looked at first
        who = {"user": tr("You"), "system": tr("System prompt")}.get(message.role, message.model or tr("Answer"))
        self._who = label(who, tone="secondary", scale="small", weight="strong")
        self._retention: QLabel | None = None  # made when the message leaves the context first
        self._overflow = ""
        self._ink, self.is_dim = 1.0, False
        self._column = column = boxes.column(on=self, margins=0, spacing=4)
        self._body = MessageBody(theme, typed=message.role != "assistant")
        if gradually:
            self._body.make_gradually()
        self._body.selected.connect(self._on_selected)
        self._cards: AttachmentCards | None = None
        self._switch: BranchSwitch | None = None  # made if there are several to choose from
        self._more = more = IconButton(theme, "more", tr("More about this message"))
        more.clicked.connect(lambda: owner.open_menu(self.message.id, below(more)))
        self._head = self._make_head(theme)
        if message.role == "assistant":
            column.addLayout(self._head)
            column.addWidget(self._body)
            self._inner = column  # where the text is
        else:
            card = QFrame()
            card.setProperty("card", "user")
            self._inner = inner = boxes.column(self._head, on=card, margins=(12, 8, 12, 8), spacing=4)
            if message.attachments:
                self._cards = AttachmentCards(theme, message.attachments)
                inner.addWidget(self._cards)
            inner.addWidget(self._body)
            column.addWidget(card)
        self._note = label("", scale="small", wrap=True)
        column.addWidget(self._note)
        self._waiting: Waiting | None = None  # made when nothing is there yet first
        self._foot: MessageFoot | None = None
        if message.role == "assistant":
            self._foot = MessageFoot(kit, lambda: QGuiApplication.clipboard().setText(self.message.text))
            column.addWidget(self._foot)
        theme.changed.connect(self._show_tokens)
        self.show_message(message)

    def make_next(self) -> bool:
        """Make one more piece of the text. False if none is missing."""
        return self._body.make_next()

    @property
    def note(self) -> str:
        """Why the answer is not simply complete."""
        return self._note.text()

    def close_why(self) -> bool:
        """Whether the reasons were shown until now."""
        return self._foot is not None and self._foot.close_why()

    def show_retention(self, retention: str) -> None:
        """ "in the cache", "next" (evicted next) or "evicted": a word beside the message, and fainter text."""
        word, tip, ink = _RETENTION.get(retention, ("", "", 1.0))
        if word and self._retention is None:
            self._retention = label("", tone="secondary", scale="small")
            self._head.insertWidget(1, self._retention)
        if self._retention is not None:
            self._retention.setText(tr(word))
            self._retention.setToolTip(tr(tip))
            self._retention.setVisible(bool(word))
        self._ink = ink
        self._show_ink()

    def set_dim(self, is_dim: bool) -> None:
        """Fainter while a message before it is edited: it is no part of what comes of that."""
        if is_dim != self.is_dim:
            self.is_dim = is_dim
            self._show_ink()

    def _show_ink(self) -> None:
        """The text is as faint as the message is far from the context; all of it while it is dimmed."""
        dimmed = _DIM if self.is_dim else 1.0
        switch = self._switch if self._foot is None else None  # of an answer it is in the foot
        for part in (self._who, self._body, self._cards, self._note, self._foot, switch):
            ink = min(self._ink, dimmed) if part is self._body else dimmed
            if part is not None:
                faint = QGraphicsOpacityEffect(part, opacity=ink) if ink < 1.0 else None
                part.setGraphicsEffect(faint)  # type: ignore[arg-type]  # None takes it away

    def show_overflow(self, sentence: str) -> None:
        """Said under the answer from now on; when it ends its note says it too."""
        self._overflow = sentence
        self._show_state()

    def set_full(self, is_full: bool) -> None:
        """The context was too small for this answer: what helps is offered under it while it is the last one."""
        if is_full != self._is_full:
            self._is_full = is_full
            self._show_help()

    def _show_help(self) -> None:
        shown = self._is_full and self._is_last and self.message.state != "streaming"
        if shown and self._help is None:
            self._help = RoomHelp(self._kit, lambda: self._owner.start_edit(self.message.parent or MessageId("")))
            self._column.insertWidget(self._column.indexOf(self._note) + 1, self._help)
        if self._help is not None:
            self._help.setVisible(shown)
            self._help.offer_shorten(self.message.state == "failed")

    @property
    def switch(self) -> BranchSwitch:
        if self._switch is None:
            commands, conversation = self._kit.commands, self.message.conversation
            self._switch = BranchSwitch(
                self._theme,
                partial(show_branch, self._kit, conversation),
                lambda: commands.compare(conversation, self.message.id),
            )
            if self._foot is not None:
                self._foot.add_switch(self._switch)
            else:
                self._column.addWidget(self._switch, 0, Qt.AlignmentFlag.AlignLeft)
        return self._switch

    @property
    def selected_text(self) -> str:
        return self._body.selected_text

    def highlight(self, first: int, last: int) -> None:
        """Mark characters `[first, last)` of the text as the model reads it; none if the range is empty."""
        before = len(attached_text(self.message.attachments))
        self._body.highlight(max(0, first - before), max(0, last - before))

    def point_at(self, first: int, last: int) -> None:
        """The same, beside what is highlighted, for as long as a cell of them is hovered."""
        before = len(attached_text(self.message.attachments))
        self._body.point_at(max(0, first - before), max(0, last - before))

    def mark(self, words: Sequence[str], at: int = -1, *, unfold: bool = True) -> QPoint:
        """Mark every place where one of the words occurs, none without words; where number `at` is, or the first one.
        `unfold`: opens what hides it.
        """
        marked: list[QPoint] = []
        for part in (self._cards, self._body):
            if part is not None:
                places = part.mark(words, at - len(marked), unfold=unfold)
                marked += (part.mapTo(self, place) for place in places)
        return marked[min(max(at, 0), len(marked) - 1)] if marked else QPoint(0, 0)

    def show_branches(self, everyone: tuple[MessageId, ...]) -> None:
        """All messages at this place; the switch is there where they are several."""
        if everyone or self._switch is not None:
            is_answer = self.message.role == "assistant"
            self.switch.show_branches(everyone, self.message.id, can_compare=is_answer)
            self._show_parts()

    def show_message(self, message: Message) -> None:
        """Replace what is shown by `message`."""
        continues = message.state == "streaming" and bool(message.text)
        if self.message.state != "streaming" and continues:
            self._overflow = ""
        self._is_read = continues and (self._is_read or self.message.state != "streaming")
        self.message = message
        self._marks = message.marks or self._marks
        self.setAccessibleName(f"{self._who.text()}: {cut(message.text, _NAME)}")
        self.flush()
        self._show_tokens()
        self._show_state()

    def append(self, text: str) -> None:
        """Add to the answer; seen at the next `flush`."""
        self._is_read = False
        self._clock.take(text, time.monotonic(), self._marks)
        thought_ms = self.message.thought_ms or self._clock.ms
        self.message = replace(self.message, text=self.message.text + text, thought_ms=thought_ms)

    def flush(self, may_collapse: bool = True) -> None:
        """Draw the text as it is now. `may_collapse`: reasoning that ended closes, which moves what is under it."""
        text = without_calls(self.message)
        if self._opening and self.message.state == "streaming":
            text = text.partition(self._opening)[0]
        shown = text, self.message.state == "streaming", self.message.thought_ms
        if shown == self._shown:
            return
        self._shown = shown
        self._body.marks = self._marks
        self._body.show_source(text, shown[1], shown[2], may_collapse)
        self._show_parts()
        if self.message.text and self._waiting is not None and not self._is_read:
            self._waiting.hide()
        self._show_loop()
        settle_around(self._body.end, self)

    def _show_parts(self) -> None:
        """What there is to see of the text and around it: none of that while it is edited."""
        message, is_edited = self.message, self.editor is not None
        can_be_empty = message.role == "assistant" or bool(message.attachments)
        self._body.setVisible(not is_edited and (bool(without_calls(message)) or not can_be_empty))
        self._note.setVisible(not is_edited and bool(self._note.text()))
        if self._foot is not None:
            self._foot.setVisible(not is_edited and message.state != "streaming")
        if self._switch is not None:
            self._switch.setVisible(not is_edited and self._switch.has_several)
        if self._edit is not None:
            self._edit.setVisible(self._can_edit and not is_edited)

    def _show_loop(self) -> None:
        is_streaming, n = self.message.state == "streaming", len(self.message.text)
        if is_streaming and 0 <= n - self._n_looked_at < _LOOK_EVERY:
            return
        self._n_looked_at = n if is_streaming else 0
        is_loop = is_streaming and bool(repeated(self.message.text))
        if is_loop and self._loop is None:
            self._loop = LoopNotice(self._kit)
            self._column.insertWidget(self._column.indexOf(self._note), self._loop)
        if self._loop is not None:
            self._loop.set_shown(is_loop)

    def show_prompt(
        self, reused: int, prompt: int, marks: ReasoningMarks | None = None, calls: CallFormat | None = None
    ) -> None:
        """The answer begins. `marks`: around its reasoning; `calls`: how it calls tools, which is shown below it."""
        self._marks = marks or self._marks
        self._opening = calls.opening if calls is not None else ""
        if self._waiting is not None:
            self._waiting.show_prompt(reused, prompt)

    def show_prefill(self, done: int, total: int, tok_s: float) -> None:
        if self._waiting is not None:
            self._waiting.show_prefill(done, total, tok_s)

    def end(self, event: TurnEnded) -> None:
        """The answer has ended."""
        ended = replace(self.message, state=event.state, stats=event.stats, note=event.note, finish=event.finish)
        self.show_message(ended)

    def ask_for_edit(self) -> None:
        """Edit it in its place, if that is possible now."""
        self._owner.start_edit(self.message.id)

    @property
    def can_show_tokens(self) -> bool:
        """Whether it is known how likely its tokens were."""
        return self.message.state != "streaming" and bool(unpack(self.message.probabilities))

    def set_coloured(self, is_coloured: bool) -> None:
        """Whether its tokens have the colours of how likely they were, if that is known."""
        self._is_coloured = is_coloured
        self._show_tokens()

    def show_words(self, words: TokenText | None) -> None:
        """Colour its words by something else, in the place of how likely its tokens were; None: no longer."""
        if words is not None or self._words is not None:
            self._words = words
            self._show_tokens()

    def _show_tokens(self) -> None:
        shown = self._is_coloured and self.can_show_tokens
        own = None
        if shown and self._words is None:
            own = surprise_words(self.message, self.show_token, dark=self._theme.colours.dark)
        self._body.show_tokens(self._words or own)
        if not self.can_show_tokens:
            self.close_token()

    @property
    def token_card(self) -> TokenCard | None:
        """The token that is looked at; None if none is."""
        return self._tokens if self._tokens is not None and not self._tokens.isHidden() else None

    def show_token(self, at: int) -> None:
        """Look at number `at` of its tokens: under the text, with the keyboard there."""
        if not self.can_show_tokens:
            return
        if self._tokens is None:
            self._tokens = TokenCard(self._kit, self.show_token, self.close_token)
            self._column.insertWidget(self._column.indexOf(self._note), self._tokens)
        self._tokens.show_token(self.message, at)
        first, last = places(unpack(self.message.probabilities), self.message.text)[self._tokens.at]
        self._body.point_at(first, last)
        self._owner.select_text(self.message.id, first, last)
        self._tokens.show()
        self._tokens.setFocus(Qt.FocusReason.OtherFocusReason)
        settle_around(self._tokens, self)

    def close_token(self) -> bool:
        """Whether one was looked at until now. The keyboard stays with the message."""
        card = self.token_card
        if card is None:
            return False
        had_focus = has_focus(card)
        card.hide()
        self._body.point_at(0, 0)
        self._owner.select_text(self.message.id, 0, 0)
        if had_focus:
            self.show_arrival()
        return True

    def show_preview(self, preview: TurnPreview) -> None:
        """What another version of it would cost: an edited one, or one with another token."""
        if self.editor is not None:
            self.editor.show_preview(preview)
        elif self._tokens is not None:
            self._tokens.show_preview(preview)

    def set_last(self, is_last: bool) -> None:
        """Only the last answer can be made again."""
        if is_last != self._is_last:
            self._is_last = is_last
            self._show_state()

    def set_why_not_continued(self, why: str) -> None:
        """Why an answer cannot be continued by this engine; "" if it can."""
        if why != self._why_not_continued:
            self._why_not_continued = why
            self._show_state()

    def start_edit(self, text: str | None = None) -> None:
        """Let a person change the text of this message, in its place; `text`: as far as that was changed before, which
        takes no keyboard.
        """
        if self.editor is None:
            message, turns = self.message, self._kit.commands.conversations.turns
            can_continue = self._foot is not None and self._is_last and not self._why_not_continued
            editor = MessageEditor(self._kit, message, can_continue=can_continue)
            editor.refuse(self._why_not_saved)
            editor.saved.connect(self._on_edited)
            editor.left.connect(self.end_edit)
            editor.edit.textChanged.connect(self._owner.edit_changed)
            editor.paused.connect(lambda text: turns.preview(message.conversation, text, message.id))
            self._inner.insertWidget(self._inner.indexOf(self._body), editor)
            self.editor = editor
            self._show_parts()
            editor.show()  # now, so that it can get the focus
        if text is None:
            self.editor.begin()
            self._owner.editing_changed()
        else:  # the view is just making this widget
            self.editor.edit.setPlainText(text)

    def end_edit(self) -> None:
        """The message stays as it was; the keyboard stays with it."""
        if (editor := self.editor) is not None:
            had_focus = has_focus(editor)
            self.editor = None
            boxes.drop(self._inner, editor)
            self._show_parts()
            if had_focus:
                self.show_arrival()
            self._owner.editing_changed()

    def set_why_not_saved(self, why: str) -> None:
        """Why what is edited cannot be saved now; "" if it can."""
        self._why_not_saved = why
        if self.editor is not None:
            self.editor.refuse(why)

    def _on_edited(self, text: str, go_on: bool) -> None:
        self.end_edit()
        message, commands = self.message, self._kit.commands
        if self._kit.store.is_answering or (text.rstrip() == message.text.rstrip() and not go_on):
            return
        if message.role == "assistant":
            commands.conversations.turns.edit_answer(message.conversation, message.id, text, go_on=go_on)
        else:
            commands.conversations.turns.edit(message.conversation, message.id, text)

    def set_can_edit(self, can: bool) -> None:
        """Whether an edited message could be sent."""
        self._can_edit = can
        self._show_parts()

    def _on_selected(self, first: int, last: int) -> None:
        before = len(attached_text(self.message.attachments))
        self._owner.select_text(self.message.id, before + first, before + last)

    def show_arrival(self) -> None:
        """Somebody was led here: the keyboard goes on from here."""
        self._more.setFocus(Qt.FocusReason.OtherFocusReason)

    def _make_head(self, theme: Theme) -> QHBoxLayout:
        """The line over the text: the author, and the buttons."""
        row = boxes.row((self._who, 1), margins=0, spacing=0)
        if self.message.role == "user":
            tip = tr("Edit it here, and have that answered in a new branch; this one stays")
            self._edit = IconButton(theme, "edit", tr("Edit this message"), tip, clicked=self.ask_for_edit)
            row.addWidget(self._edit)
        row.addWidget(self._more)
        return row

    def _show_state(self) -> None:
        message = self.message
        streaming = message.state == "streaming"
        waits = streaming and (self._is_read or not message.text)
        if waits and self._waiting is None:
            self._waiting = Waiting()
            self._column.insertWidget(self._column.indexOf(self._note), self._waiting)
        if self._waiting is not None:
            self._waiting.setVisible(waits)
        self._note.setText(note_of(message, self._overflow))
        set_tone(self._note, _STATE_TONES.get(message.state, "secondary"))
        self._show_parts()
        self._show_help()
        if self._foot is not None:
            self._foot.show_answer(message, is_last=self._is_last, why_not_continued=self._why_not_continued)
        if message.pinned and self._pin is None:
            turns = self._kit.commands.conversations.turns
            self._pin = IconButton(self._theme, "pin", tr("Unpin this message"))
            self._pin.clicked.connect(lambda: turns.pin(message.conversation, message.id, pinned=False))
            self._head.insertWidget(self._head.indexOf(self._edit if self._edit is not None else self._more), self._pin)
        if self._pin is not None:
            self._pin.setVisible(message.pinned)
