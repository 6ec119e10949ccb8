"""The text of a message, to be changed by a person in its place."""

from math import ceil
from typing import Final

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QAbstractScrollArea, QHBoxLayout, QTextEdit, QWidget

from kvdesk.message import Message
from kvdesk.protocol.chat import TurnPreview
from kvdesk.translation import tr
from kvdesk.ui.markdown.prose import set_plain
from kvdesk.ui.messages.room_help import RoomHelp, edit_words, select_excess
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.input_method import composes
from kvdesk.ui.widgets.controls import label, push_button, show_text
from kvdesk.ui.widgets.dropped_files import leaves_files
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.timers import once
from kvdesk.ui.widgets.written import wrap_for, written

PAUSE_MS: Final = 300
_LEAST_LINES: Final = {"user": 2, "assistant": 4}
_MOST_LINES: Final = 24
_AROUND_LINES: Final = 11  # the height of what is above and below it: sender, price, buttons
_EDGES_PX: Final = 12  # the box around it


class MessageEditor(QWidget):
    """As high as its text, as long as all of it is in sight. Enter saves as it sends elsewhere, Esc leaves. An empty
    text cannot be saved, unless something is attached to it.
    """

    saved = Signal(str, bool)  # the text, and whether the model is to continue it
    left = Signal()
    paused = Signal(str)  # the text, at first and after a pause in typing

    def __init__(self, kit: Kit, message: Message, *, can_continue: bool = False) -> None:
        super().__init__()
        self._message = message
        self._preview: TurnPreview | None = None
        self._is_answer = message.role == "assistant"
        self._why_not = ""
        self._words = ("", "secondary")  # what the last count said, shown until the next one
        self.edit = _Edit(message.text, _LEAST_LINES["assistant" if self._is_answer else "user"])
        self.edit.setAccessibleName(tr("Text of the answer") if self._is_answer else tr("Text of the question"))
        self.edit.setTabChangesFocus(True)
        self.edit.setProperty("boxed", "true")
        kit.theme.give_font(self.edit, "text")
        self.edit.left.connect(self.left)
        self.edit.textChanged.connect(self._on_text_changed)
        what = tr("Saves a new version; the old answer stays.")
        if not self._is_answer:
            what = tr("Saves a new version and answers it; the old question stays.")
        keys = tr("Enter saves  ·  Shift+Enter starts a new line")
        hint = label(f"{what}\n{keys}", tone="secondary", scale="small", wrap=True)
        self._cost = label("", tone="secondary", scale="small", wrap=True)
        self._cost.hide()
        self.help = RoomHelp(kit, self._shorten)
        """The links under a text that is too long; hidden otherwise."""
        self.help.hide()
        self._pause = once(self, PAUSE_MS, self.ask)
        buttons = self._make_buttons(can_continue)
        boxes.column(self.edit, hint, self._cost, self.help, buttons, on=self, margins=0, spacing=8)
        self._show_state()

    @property
    def text(self) -> str:
        return self.edit.toPlainText()

    def begin(self) -> None:
        """The keyboard goes to the end of the text."""
        self.edit.moveCursor(QTextCursor.MoveOperation.End)
        self.edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self.ask()

    def ask(self) -> None:
        """Ask what it costs as it is."""
        if self._has_text:
            self.paused.emit(self.text)

    def ask_again(self) -> None:
        """Ask soon: it costs something else now."""
        self._pause.start()

    def show_preview(self, preview: TurnPreview) -> None:
        """What it costs; ignored where the text has changed since."""
        if preview.text.rstrip() == self.text.rstrip():
            self._preview = preview
            self._show_state()

    def refuse(self, why: str) -> None:
        """Why it cannot be saved now; "" if it can."""
        if why != self._why_not:
            self._why_not = why
            self._show_state()

    def _make_buttons(self, can_continue: bool) -> QHBoxLayout:
        self._save = push_button(
            tr("Save"), tip=tr("Save (Enter)"), primary=True, clicked=lambda: self.saved.emit(self.text, False)
        )
        self._go_on = push_button(
            tr("Save and continue"),
            tip=tr("The model goes on where your text ends; what is before your change stays in the cache"),
            clicked=lambda: self.saved.emit(self.text, True),
        )
        self._go_on.setVisible(can_continue)
        self.edit.entered.connect(self._save.click)  # nothing if it is disabled
        self._cancel = push_button(tr("Cancel"), tip=tr("Leave it as it was (Esc)"), clicked=self.left)
        return boxes.row(boxes.Stretch(1), self._cancel, self._go_on, self._save, margins=0, spacing=8)

    @property
    def _has_text(self) -> bool:
        return bool(self.text.strip()) or bool(self._message.attachments)

    def _show_state(self) -> None:
        preview = self._preview
        is_refused = preview is not None and bool(preview.refused) and not self._is_answer
        if preview is not None:
            self._words = edit_words(preview, is_answer=self._is_answer)
        words, tone = (self._why_not, "secondary") if self._why_not else self._words
        show_text(self._cost, words, tone)
        self.help.setVisible(is_refused and not self._why_not)
        self.help.offer_shorten(preview is not None and preview.n_fitting > 0)
        can = self._has_text and not self._why_not and not is_refused
        self._save.setEnabled(can)
        self._go_on.setEnabled(can)

    def _shorten(self) -> None:
        if self._preview is not None:
            select_excess(self.edit, self._preview.n_fitting)
            self.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_text_changed(self) -> None:
        if self._preview is not None and self._preview.text.rstrip() != self.text.rstrip():
            self._preview = None
        self._pause.start()
        self._show_state()


class _Edit(QTextEdit):
    """As high as its text, whose lines are as far from each other as those of the message."""

    entered = Signal()
    left = Signal()

    def __init__(self, text: str, least_lines: int) -> None:
        super().__init__(acceptRichText=False)
        wrap_for(self, text)
        set_plain(self.document(), text)
        self.document().clearUndoRedoStacks()
        self._least = least_lines
        self.textChanged.connect(self._fit)
        leaves_files(self)
        composes(self)

    def toPlainText(self) -> str:
        return written(self.document())

    def setPlainText(self, text: str) -> None:
        wrap_for(self, text, is_all=True)
        super().setPlainText(text)

    def insertFromMimeData(self, source: QMimeData) -> None:
        wrap_for(self, source.text())
        super().insertFromMimeData(source)

    def event(self, event: QEvent) -> bool:
        is_override = event.type() == QEvent.Type.ShortcutOverride
        if is_override and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()  # not the window's, which stops an answer
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        elif is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @property
    def _seen_px(self) -> int:
        """The height of what it is scrolled in: its buttons should be in sight with it."""
        around = self.parentWidget()
        while around is not None and not isinstance(around, QAbstractScrollArea):
            around = around.parentWidget()
        return around.viewport().height() if around is not None else self.screen().size().height()

    def _fit(self) -> None:
        document = self.document()
        layout, first, margin = document.documentLayout(), document.firstBlock(), document.documentMargin()
        line = layout.blockBoundingRect(first).height() / max(first.layout().lineCount(), 1)
        line = line or self.fontMetrics().lineSpacing()  # before the first layout
        lines = round((layout.documentSize().height() - 2 * margin) / line)
        most = min(_MOST_LINES, int(self._seen_px / line) - _AROUND_LINES)
        shown = max(min(lines + 1, most), self._least)
        height = ceil(line * shown + 2 * margin) + _EDGES_PX
        if height != self.height():
            self.setFixedHeight(height)
            room = self.viewport().height()  # Qt does not look again if this comes while it adjusts its scroll bar
            self.verticalScrollBar().setRange(0, max(0, ceil(layout.documentSize().height()) - room))
            self.verticalScrollBar().setPageStep(room)
