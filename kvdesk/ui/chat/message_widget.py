"""One message: its author, its text, and under an answer a line with its cost in tokens and time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from PySide6.QtCore import QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGraphicsOpacityEffect,
    QHBoxLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from kvdesk.chat import FEW_TOKENS, Message, MessageId, MessageState, TurnStats, attached_text
from kvdesk.reasoning import ThoughtClock
from kvdesk.ui.chat.attachment_cards import AttachmentCards
from kvdesk.ui.chat.branch_switch import BranchSwitch
from kvdesk.ui.chat.message_body import MessageBody
from kvdesk.ui.chat.message_list import settle
from kvdesk.ui.chat.room_help import RoomHelp
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, ThinProgress, label, set_tone
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.readout import stats_line, stats_tip

_STATE_WORDS: Final = {"stopped": "Stopped", "interrupted": "Interrupted", "failed": "Failed"}
_RETENTION: Final = {  # the word beside the message, what it means, the opacity of its text
    "next": (
        "removed next",
        "The context is nearly full: this message is removed from it next. Its text stays here.",
        0.8,
    ),
    "evicted": ("not in context", "The model no longer sees this message. Its text stays here.", 0.5),
}
_STATE_TONES: Final = {"stopped": "secondary", "interrupted": "warning", "failed": "danger"}


class MessageWidget(QWidget):
    """Shows a message as it is and as it grows."""

    regenerate_clicked = Signal()
    edit_clicked = Signal(str)  # message
    shorten_clicked = Signal()
    larger_clicked = Signal()
    policy_clicked = Signal()
    branch_clicked = Signal(str)  # another message at this place
    text_selected = Signal(str, int, int)
    """Message, first character of it as the model reads it, last + 1; equal where nothing is selected."""
    menu_requested = Signal(str, QPoint)  # message; where, on the screen

    def __init__(self, theme: Theme, message: Message) -> None:
        super().__init__()
        self._theme = theme
        self._message = message
        self._shown: tuple[str, bool, int] | None = None  # text, whether it grows, time of its reasoning
        self._clock = ThoughtClock()
        self._is_last = self._is_full = False
        self._help: RoomHelp | None = None  # made where it is needed
        self._edit: IconButton | None = None  # of what a person wrote
        who = {"user": "You", "system": "System prompt"}.get(message.role, message.model or "Answer")
        self._who = label(who, tone="secondary", scale="small", weight="strong")
        self._retention = label("", tone="secondary", scale="small")
        self._retention.hide()
        self._overflow = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self._body = MessageBody(theme, plain=message.role != "assistant")
        self._body.copy_clicked.connect(self._on_copy_clicked)
        self._body.selected.connect(self._on_selected)
        self._switch: BranchSwitch | None = None  # made where there are several to choose from
        self._more = IconButton(theme, "more", "More about this message")
        self._more.clicked.connect(self._on_more_clicked)
        if message.role == "assistant":
            column.addLayout(self._make_head(theme))
            column.addWidget(self._body)
        else:
            card = QFrame()
            card.setProperty("card", "user")
            inner = QVBoxLayout(card)
            inner.setContentsMargins(12, 8, 12, 8)
            inner.setSpacing(4)
            inner.addLayout(self._make_head(theme))
            if message.attachments:
                inner.addWidget(AttachmentCards(theme, message.attachments))
            inner.addWidget(self._body)
            column.addWidget(card)
        self._note = label("", scale="small")
        self._note.setWordWrap(True)
        self._waiting: _Waiting | None = None
        self._foot: _Foot | None = None
        if message.role == "assistant":
            self._waiting, self._foot = _Waiting(theme), _Foot(theme)
            self._foot.copy_clicked.connect(self._on_copy_clicked)
            self._foot.again_clicked.connect(self.regenerate_clicked)
        for widget in (self._waiting, self._note, self._foot):
            if widget is not None:
                column.addWidget(widget)
        self._column = column
        self.show_message(message)

    @property
    def message(self) -> Message:
        return self._message

    @property
    def status_text(self) -> str:
        """The sentence shown while there is no text yet."""
        return self._waiting.text if self._waiting is not None and not self._waiting.isHidden() else ""

    @property
    def note(self) -> str:
        """Why the answer is not simply complete."""
        return self._note.text()

    @property
    def retention(self) -> str:
        """The word for a message that is evicted from the context, or will be next; empty for others."""
        return "" if self._retention.isHidden() else self._retention.text()

    def show_retention(self, retention: str) -> None:
        """ "in the cache", "next" (evicted next) or "evicted": a word beside the message, and fainter text."""
        word, tip, ink = _RETENTION.get(retention, ("", "", 1.0))
        self._retention.setText(word)
        self._retention.setToolTip(tip)
        self._retention.setVisible(bool(word))
        faint = QGraphicsOpacityEffect(self._body, opacity=ink) if word else None
        self._body.setGraphicsEffect(faint)  # type: ignore[arg-type]  # None takes it away

    def show_overflow(self, sentence: str) -> None:
        """Said under the answer from now on; when it ends its note says it too."""
        self._overflow = sentence
        self._show_state()

    def set_full(self, is_full: bool) -> None:
        """The context was too small for this answer: what helps is offered under it while it is the last one."""
        if is_full != self._is_full:
            self._is_full = is_full
            self._show_help()

    @property
    def help(self) -> RoomHelp | None:
        """The links offered where the context was too small."""
        return self._help if self._help is not None and not self._help.isHidden() else None

    def _show_help(self) -> None:
        shown = self._is_full and self._is_last and self._message.state != "streaming"
        if shown and self._help is None:
            self._help = RoomHelp()
            self._help.shorten_clicked.connect(self.shorten_clicked)
            self._help.larger_clicked.connect(self.larger_clicked)
            self._help.policy_clicked.connect(self.policy_clicked)
            self._column.insertWidget(self._column.indexOf(self._note) + 1, self._help)
        if self._help is not None:
            self._help.setVisible(shown)
            self._help.offer_shorten(self._message.state == "failed")

    @property
    def switch(self) -> BranchSwitch:
        if self._switch is None:
            self._switch = BranchSwitch(self._theme)
            self._switch.chosen.connect(self.branch_clicked)
            self._column.addWidget(self._switch, 0, Qt.AlignmentFlag.AlignLeft)
        return self._switch

    @property
    def selected_text(self) -> str:
        return self._body.selected_text

    def highlight(self, first: int, last: int) -> None:
        """Mark characters `[first, last)` of the text as the model reads it; none where the range is empty."""
        before = len(attached_text(self._message.attachments))
        self._body.highlight(max(0, first - before), max(0, last - before))

    def mark(self, words: Sequence[str]) -> QPoint:
        """Mark every place where one of the words stands, none without words; where the first one is."""
        place = self._body.mark(words)
        return self._body.mapTo(self, place) if place is not None else QPoint(0, 0)

    def show_branches(self, everyone: tuple[MessageId, ...]) -> None:
        """All messages at this place; the switch is there where they are several."""
        if everyone or self._switch is not None:
            self.switch.show_branches(everyone, self._message.id)

    def show_message(self, message: Message) -> None:
        """Replace what is shown by `message`."""
        self._message = message
        self.setAccessibleName(f"{self._who.text()}: {message.text[:200]}")
        self.flush()
        self._show_state()

    def append(self, text: str) -> None:
        """Add to the answer; seen at the next `flush`."""
        self._clock.take(text, time.monotonic())
        thought_ms = self._message.thought_ms or self._clock.ms
        self._message = replace(self._message, text=self._message.text + text, thought_ms=thought_ms)

    def flush(self, may_collapse: bool = True) -> None:
        """Draw the text as it is now. `may_collapse`: reasoning that ended closes, which moves what is under it."""
        text = self._message.text
        shown = text, self._message.state == "streaming", self._message.thought_ms
        if shown == self._shown:
            return
        self._shown = shown
        self._body.show_source(text, shown[1], shown[2], may_collapse)
        self._body.setVisible(bool(text) or not (self._message.role == "assistant" or self._message.attachments))
        if text and self._waiting is not None:
            self._waiting.hide()
        settle(self)

    def show_prompt(self, reused: int, prompt: int) -> None:
        if self._waiting is not None:
            self._waiting.show_prompt(reused, prompt)

    def show_prefill(self, done: int, total: int, tok_s: float) -> None:
        if self._waiting is not None:
            self._waiting.show_prefill(done, total, tok_s)

    def end(self, state: MessageState, stats: TurnStats, note: str) -> None:
        self.show_message(replace(self._message, state=state, stats=stats, note=note))

    def set_last(self, is_last: bool) -> None:
        """Only the last answer can be made again."""
        if is_last != self._is_last:
            self._is_last = is_last
            self._show_state()

    def set_can_edit(self, can: bool) -> None:
        """Whether an edited message could be sent."""
        if self._edit is not None:
            self._edit.setVisible(can)

    @Slot(int, int)
    def _on_selected(self, first: int, last: int) -> None:
        before = len(attached_text(self._message.attachments))
        self.text_selected.emit(self._message.id, before + first, before + last)

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._message.text)
        if self._foot is not None:
            self._foot.show_copied()

    @Slot()
    def _on_more_clicked(self) -> None:
        self.menu_requested.emit(self._message.id, self._more.mapToGlobal(QPoint(0, self._more.height())))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_requested.emit(self._message.id, event.globalPos())

    def _make_head(self, theme: Theme) -> QHBoxLayout:
        """The line over the text: the author, and the buttons."""
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._who, 1)
        row.addWidget(self._retention)
        if self._message.role == "user":
            self._edit = IconButton(theme, "edit", "Edit this message", "Edit and send as a new branch; this one stays")
            self._edit.clicked.connect(lambda: self.edit_clicked.emit(self._message.id))
            row.addWidget(self._edit)
        row.addWidget(self._more)
        return row

    def _show_state(self) -> None:
        message = self._message
        streaming = message.state == "streaming"
        if self._waiting is not None:
            self._waiting.setVisible(streaming and not message.text)
        word = _STATE_WORDS.get(message.state, "")
        if message.note and message.state == "stopped":
            word = "Ended"  # not by the person
        note = f"{word}. {message.note}" if word and message.note else word or message.note
        note = note or (self._overflow if streaming else "")
        self._note.setText(note)
        set_tone(self._note, _STATE_TONES.get(message.state, "secondary"))
        self._note.setVisible(bool(note))
        self._show_help()
        if self._foot is not None:
            self._foot.setVisible(not streaming)
            self._foot.show_stats(message.stats, can_regenerate=self._is_last, can_copy=bool(message.text))


class _Waiting(QWidget):
    """Between sending and the first token: what the engine is reading, and how far it is."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._text = label("Waiting for the engine…", tone="secondary", scale="small")
        self._bar = ThinProgress(theme, "Reading the prompt")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 4)
        column.setSpacing(8)
        column.addWidget(self._text)
        column.addWidget(self._bar)

    @property
    def text(self) -> str:
        return self._text.text()

    def show_prompt(self, reused: int, prompt: int) -> None:
        if not prompt:
            return  # nobody says how long it is
        self._text.setText(f"Reading {prompt - reused:,} new tokens, {reused:,} are in the cache already")
        self._bar.set_share(0.0)

    def show_prefill(self, done: int, total: int, tok_s: float) -> None:
        speed = f"  ·  {tok_s:,.0f} tok/s" if tok_s and done >= FEW_TOKENS else ""
        self._text.setText(f"Reading the prompt: {done:,} of {total:,} tokens{speed}")
        self._bar.set_share(done / total if total else 1.0)


class _Foot(QWidget):
    """The quiet line and its two buttons."""

    copy_clicked = Signal()
    again_clicked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._stats = ElidedLabel()
        self._stats.setObjectName("answerStats")
        self._stats.setProperty("tone", "secondary")
        self._stats.setProperty("scale", "small")
        self._copy = IconButton(theme, "copy", "Copy this answer")
        self._again = IconButton(theme, "again", "Answer again", "Answer again (Ctrl+R)")
        self._copy.clicked.connect(self.copy_clicked)
        self._again.clicked.connect(self.again_clicked)
        self._ask = QToolButton()
        self._ask.setText("Why?")
        self._ask.setToolTip("Why this many tokens were prefilled")
        self._ask.setProperty("link", "true")
        self._ask.setProperty("scale", "small")
        self._ask.setCheckable(True)
        self._why = label("", tone="secondary", scale="small")
        self._why.setWordWrap(True)
        self._why.hide()
        self._ask.toggled.connect(self._why.setVisible)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._stats, 1)
        row.addWidget(self._ask)
        row.addWidget(self._copy)
        row.addWidget(self._again)
        row.addStretch(0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(row)
        column.addWidget(self._why)
        self._row, self._column = row, column

    def show_stats(self, stats: TurnStats | None, can_regenerate: bool, can_copy: bool) -> None:
        if stats is not None and not stats.prompt_tokens:
            stats = None  # the turn never began: nothing was reused because nothing was asked
        self._stats.setText(stats_line(stats) if stats else "")
        self._stats.setToolTip(stats_tip(stats) if stats else "")
        why = stats.why if stats else ""
        self._why.setText(why)
        self._ask.setVisible(bool(why))
        self._copy.setVisible(can_copy)
        self._again.setVisible(can_regenerate)
        self._arrange()

    def _arrange(self) -> None:
        """The line stands beside the buttons, above them where there is no room for all of it."""
        buttons = sum(button.sizeHint().width() for button in (self._ask, self._copy, self._again))
        needed = self._stats.fontMetrics().horizontalAdvance(self._stats.full_text) + buttons
        is_above = self._row.indexOf(self._stats) < 0
        if (needed > self.width()) == is_above:
            return
        if is_above:
            self._row.insertWidget(0, self._stats, 1)
        else:
            self._column.insertWidget(0, self._stats)
        self._row.setStretch(self._row.count() - 1, int(not is_above))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def show_copied(self) -> None:
        self._copy.set_icon_name("check")
        QTimer.singleShot(1200, self._copy, lambda: self._copy.set_icon_name("copy"))
