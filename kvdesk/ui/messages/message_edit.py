"""The text field of the composer. As tall as its text, up to eight lines."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QGuiApplication, QInputMethodEvent, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame

from kvdesk.ui.widgets.access.direction import align_by_text
from kvdesk.ui.widgets.access.input_method import composes
from kvdesk.ui.widgets.dropped_files import leaves_files
from kvdesk.ui.widgets.text_height import text_height
from kvdesk.ui.widgets.written import PlainField

_MAX_LINES: Final = 8
LONG_PASTE: Final = 4000
"""Characters. What is pasted and longer becomes an attachment."""
_AROUND_PX: Final = 4  # above and below the lines: whole ones are shown, in the middle of the button beside one


class MessageEdit(PlainField):
    """Enter submits, Shift+Enter breaks the line.

    can_attach  whether files and long texts can be attached now; else they are not taken, and pasted as text
    recall      with -1 and 1: put what was sent before, or after that, into the field; whether there is any
    """

    submitted = Signal()
    paged = Signal(int)  # Page Up (-1) or Page Down (1)
    focused = Signal(bool)
    files_given = Signal(list)  # paths of files that were pasted
    long_pasted = Signal(str)
    picture_pasted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.can_attach: Callable[[], bool] = lambda: False
        self.recall: Callable[[int], bool] = lambda _: False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.setViewportMargins(0, _AROUND_PX, 0, _AROUND_PX - 2)  # lines are laid out higher than they are counted
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        leaves_files(self)
        composes(self)
        align_by_text(self)
        self.fit()

    def fit(self) -> None:
        height = text_height(self, _MAX_LINES) + 2 * _AROUND_PX
        if height != self.height():
            self.setFixedHeight(height)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        if any(url.isLocalFile() for url in source.urls()):
            return bool(_attachable(source))
        return source.hasImage() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        files = _attachable(source)
        if files and self.can_attach():
            self.files_given.emit(files)
            return
        text = source.text()
        if source.hasImage() and not text:
            self.picture_pasted.emit()
            return
        if len(text) > LONG_PASTE and self.can_attach():
            self.long_pasted.emit(text)
            return
        super().insertFromMimeData(source)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, text_height(self, 1) + 2 * _AROUND_PX)

    def event(self, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.matches(QKeySequence.StandardKey.Undo)
            and not self.document().isUndoAvailable()
        ):
            event.ignore()  # nothing was typed: it undoes the deletion
            return False
        return super().event(event)

    def commit_preedit(self) -> None:
        """Take what an input method composes as typed, as when the field loses the focus."""
        QGuiApplication.inputMethod().commit()
        if composed := self.textCursor().block().layout().preeditAreaText():  # not every input method commits
            event = QInputMethodEvent()
            event.setCommitString(composed)
            QApplication.sendEvent(self, event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        super().inputMethodEvent(event)
        self.fit()  # what is composed may need a line more; it is no change of the text

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, plain = event.key(), not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        enter = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.paged.emit(-1 if key == Qt.Key.Key_PageUp else 1)
        elif plain and key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self.recall(-1 if key == Qt.Key.Key_Up else 1):
            pass
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)


def _attachable(source: QMimeData) -> list[str]:
    """The files on this computer among what is pasted; a model is not attached."""
    files = [url.toLocalFile() for url in source.urls() if url.isLocalFile()]
    return [file for file in files if not file.lower().endswith(".gguf")]
