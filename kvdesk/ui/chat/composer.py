"""The field for the next message. Enter sends, Shift+Enter breaks the line; grows with its text up to eight lines."""

from __future__ import annotations

import re
from math import ceil
from typing import Final

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent, QTextOption
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from kvdesk.protocol.chat import TurnPreview
from kvdesk.ui.chat.room_help import RoomHelp, room_words
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, set_tone
from kvdesk.ui.widgets.theme import Theme

_MAX_LINES: Final = 8
PAUSE_MS: Final = 300
_LONG_RUN: Final = re.compile(r"\S{2000}")


class Composer(QFrame):
    """The field, a line about it, what helps where it is too long, and one button, which is Send or Stop."""

    sent = Signal(str)
    stop_clicked = Signal()
    paused = Signal(str)  # a pause in typing; not when the field is empty
    larger_clicked = Signal()  # what is typed is too long: a larger context
    policy_clicked = Signal()  # and: another overflow policy
    paged = Signal(int)  # Page Up (-1) or Page Down (1): the messages scroll while one types

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("card", "composer")
        self._running = False
        self._blocked = self._loading = ""
        self._editing = False
        self._edit = _Edit(self)
        self._edit.setAccessibleName("Message")
        self._edit.setPlaceholderText("Type a message")
        self._edit.setFont(theme.text)
        self._edit.textChanged.connect(self._on_text_changed)
        self._preview: TurnPreview | None = None
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self._on_pause)
        self._hint = ElidedLabel(n_lines=2)  # no higher than the button beside it
        self._hint.setProperty("tone", "secondary")
        self._hint.setProperty("scale", "small")
        self._send = IconButton(theme, "send", "Send", "Send (Enter)", ink="accent_text")
        self._send.setProperty("send", True)
        self._send.clicked.connect(self._on_send_clicked)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._hint, 1)
        row.addWidget(self._send)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 8)
        column.setSpacing(4)
        self._help = RoomHelp()
        self._help.shorten_clicked.connect(self.select_excess)
        self._help.larger_clicked.connect(self.larger_clicked)
        self._help.policy_clicked.connect(self.policy_clicked)
        column.addWidget(self._edit)
        column.addWidget(self._help)
        column.addLayout(row)
        self._show_state()

    @property
    def text(self) -> str:
        return self._edit.toPlainText()

    @property
    def edit(self) -> QPlainTextEdit:
        return self._edit

    @property
    def is_running(self) -> bool:
        return self._running

    @property
    def is_blocked(self) -> bool:
        return bool(self._blocked)

    @property
    def hint_text(self) -> str:
        return self._hint.full_text

    def set_text(self, text: str) -> None:
        self._edit.wrap_for(text)
        self._edit.setPlainText(text)
        self._edit.moveCursor(self._edit.textCursor().MoveOperation.End)

    def set_running(self, running: bool) -> None:
        """An answer is being written: the button stops it."""
        self._running = running
        self._show_state()

    def set_loading(self, name: str) -> None:
        """The model of this name is being opened: what is sent waits for it. Empty: none is."""
        self._loading = name
        self._show_state()

    def set_blocked(self, reason: str) -> None:
        """Why nothing can be sent now; empty when it can. Typing is always possible."""
        self._blocked = reason
        self._show_state()

    @property
    def help(self) -> RoomHelp:
        """The links under a text that is too long; hidden otherwise."""
        return self._help

    @property
    def is_too_long(self) -> bool:
        """Whether the text, as it is now, is known not to fit."""
        return self._preview is not None and bool(self._preview.refused)

    def show_preview(self, preview: TurnPreview) -> None:
        """Show the cost of sending; ignored where the text has changed since."""
        if preview.text == self.text:
            self._preview = preview
            self._show_state()

    def forget_preview(self) -> None:
        """Forget the preview: it is no longer valid."""
        self._preview = None
        self._show_state()

    def ask_again(self) -> None:
        """Something that the preview hangs on has changed: another context, another policy, a longer conversation."""
        if self.text.strip():
            self._pause.start()

    @Slot()
    def select_excess(self) -> None:
        """Select what is too much of the text, so that it can be seen, and deleted."""
        if self._preview is None:
            return
        cursor = self._edit.textCursor()
        text = self.text.encode("utf-16-le")  # positions in a document count UTF-16 units
        start = len(self.text[: self._preview.n_fitting].encode("utf-16-le")) // 2
        cursor.setPosition(len(text) // 2)
        cursor.setPosition(start, cursor.MoveMode.KeepAnchor)
        self._edit.setTextCursor(cursor)
        self.focus_edit()

    def set_editing(self, editing: bool) -> None:
        """The text replaces an earlier message."""
        self._editing = editing
        self._show_state()

    def focus_edit(self) -> None:
        self._edit.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def submit(self) -> None:
        """Send what is typed, if that is possible; whoever hears of it queues it while an answer is written."""
        text = self.text
        if text.strip() and not self._why_not():
            self._edit.clear()
            self.sent.emit(text)

    def _why_not(self) -> str:
        """Why what is typed cannot be sent or queued, "" where it can."""
        if self._blocked:
            return self._blocked
        if self._editing and (self._running or self._loading):
            return "Editing: it can be sent when " + ("the answer has ended" if self._running else "the model is ready")
        return room_words(self._preview)[0] if self._preview is not None and self.is_too_long else ""

    def set_focused(self, focused: bool) -> None:
        self.setProperty("focused", focused)
        self.style().unpolish(self)
        self.style().polish(self)

    @Slot()
    def _on_send_clicked(self) -> None:
        if self._running:
            self.stop_clicked.emit()
        else:
            self.submit()

    @Slot()
    def _on_text_changed(self) -> None:
        self._edit.fit()
        if self._preview is not None and self._preview.text != self.text:
            self._preview = None
        if self.text.strip():
            self._pause.start()
        else:
            self._pause.stop()
        self._show_state()

    @Slot()
    def _on_pause(self) -> None:
        if self.text.strip() and not self._running:
            self.paused.emit(self.text)

    def _show_state(self) -> None:
        name = "Stop" if self._running else "Send"
        self._send.set_icon_name(name.lower())
        self._send.setAccessibleName(name)
        self._send.setToolTip("Stop (Esc)" if self._running else "Send (Enter)")
        self._help.setVisible(self._preview is not None and bool(self._preview.refused) and not self._running)
        self._send.setEnabled(self._running or (bool(self.text.strip()) and not self._why_not()))
        words, tone = self._words()
        self._hint.setText(words)
        set_tone(self._hint, tone)

    def _words(self) -> tuple[str, str]:
        """The line under the text, and its tone."""
        if self._blocked or (self._editing and self._why_not() and not self.is_too_long):
            return self._why_not(), "secondary"
        if self._running:
            queues = "Enter queues it  ·  " if self.text.strip() else ""
            return f"{queues}Esc stops the answer", "secondary"
        if self._loading:
            return f"Loading {self._loading}. What you send waits for it.", "secondary"
        if self._preview is not None:
            return room_words(self._preview)
        if self._editing:
            return "Editing: Enter sends it as a new branch  ·  Esc cancels", "secondary"
        return "Enter sends  ·  Shift+Enter starts a new line", "secondary"


class _Edit(QPlainTextEdit):
    """A text field as tall as its text."""

    def __init__(self, composer: Composer) -> None:
        super().__init__()
        self._composer = composer
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.fit()

    def fit(self) -> None:
        layout = self.document().documentLayout()
        lines = max(1, round(layout.documentSize().height()))  # QPlainTextDocumentLayout counts in lines
        height = ceil(self.fontMetrics().lineSpacing() * min(lines, _MAX_LINES)) + 8
        if height != self.height():
            self.setFixedHeight(height)

    def wrap_for(self, text: str) -> None:
        """Before `text` comes in: Qt looks for a word's end again and again in a run that has none."""
        long = _LONG_RUN.search(text) is not None
        if long:
            self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        elif not self.toPlainText():
            self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)

    def insertFromMimeData(self, source: QMimeData) -> None:
        self.wrap_for(source.text())
        super().insertFromMimeData(source)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.fontMetrics().lineSpacing() + 8)

    def event(self, event: QEvent) -> bool:
        # On X11 a text field claims Ctrl+K, "delete to the end of the line"; here it searches, as everywhere else.
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            control = event.modifiers() == Qt.KeyboardModifier.ControlModifier
            if control and event.key() == Qt.Key.Key_K:
                event.ignore()
                return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._composer.submit()
        elif event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self._composer.paged.emit(-1 if event.key() == Qt.Key.Key_PageUp else 1)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._composer.set_focused(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._composer.set_focused(False)


def centred(widget: QWidget, width: int) -> QWidget:
    """The widget in the middle of a row, at most `width` wide."""
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(24, 8, 24, 16)
    widget.setMaximumWidth(width)
    row.addStretch(1)
    row.addWidget(widget, 100)
    row.addStretch(1)
    return holder
