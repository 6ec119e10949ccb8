"""The text of an answer, to be changed by a person in its place."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.direction import align_by_text
from kvdesk.ui.widgets.input_method import composes

_LEAST_LINES: Final = 4
_MOST_LINES: Final = 24
_EDGES_PX: Final = 12  # the box around it


class AnswerEditor(QWidget):
    """As high as its text, up to a bound. Ctrl+Enter saves, Esc leaves. An empty text cannot be saved."""

    saved = Signal(str, bool)  # the text, and whether the model is to continue it
    left = Signal()

    def __init__(self, text: str, *, can_continue: bool) -> None:
        super().__init__()
        self._edit = _Edit(text)
        self._edit.setAccessibleName(tr("Text of the answer"))
        self._edit.setTabChangesFocus(True)
        self._edit.setProperty("boxed", "true")
        self._edit.left.connect(self.left)
        self._edit.entered.connect(self._on_entered)
        self._edit.textChanged.connect(self._on_text_changed)
        hint = label(tr("Becomes a version of its own; the answer as it was stays."), tone="secondary", scale="small")
        hint.setWordWrap(True)
        self._save = QPushButton(tr("Save"))
        self._save.setToolTip(tr("Save (Ctrl+Enter)"))
        self._go_on = QPushButton(tr("Save and continue"))
        self._go_on.setToolTip(
            tr("The model goes on where your text ends; what is before your change stays in the cache")
        )
        self._go_on.setVisible(can_continue)
        self._cancel = QPushButton(tr("Cancel"))
        self._cancel.setToolTip(tr("Leave the answer as it was (Esc)"))
        self._save.setProperty("primary", True)
        self._save.clicked.connect(lambda: self.saved.emit(self._edit.toPlainText(), False))
        self._go_on.clicked.connect(lambda: self.saved.emit(self._edit.toPlainText(), True))
        self._cancel.clicked.connect(self.left)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addStretch(1)
        for button in (self._cancel, self._go_on, self._save):
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._edit)
        column.addWidget(hint)
        column.addLayout(row)

    @property
    def edit(self) -> QPlainTextEdit:
        return self._edit

    @property
    def buttons(self) -> tuple[QPushButton, QPushButton, QPushButton]:
        """Cancel, save and continue, save."""
        return self._cancel, self._go_on, self._save

    def begin(self) -> None:
        """The keyboard goes to the end of the text."""
        self._edit.moveCursor(QTextCursor.MoveOperation.End)
        self._edit.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _on_entered(self) -> None:
        self._save.click()  # nothing where it is disabled

    @Slot()
    def _on_text_changed(self) -> None:
        has_text = bool(self._edit.toPlainText().strip())
        self._save.setEnabled(has_text)
        self._go_on.setEnabled(has_text)


class _Edit(QPlainTextEdit):
    """As high as its text."""

    entered = Signal()
    left = Signal()

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.textChanged.connect(self._fit)
        composes(self)
        align_by_text(self)

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
        elif is_enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @Slot()
    def _fit(self) -> None:
        lines = round(self.document().documentLayout().documentSize().height())  # this layout counts in lines
        shown = min(max(lines + 1, _LEAST_LINES), _MOST_LINES)
        height = self.fontMetrics().lineSpacing() * shown + 2 * round(self.document().documentMargin()) + _EDGES_PX
        if height != self.height():
            self.setFixedHeight(height)
