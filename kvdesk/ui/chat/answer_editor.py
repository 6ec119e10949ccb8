"""The text of an answer, to be changed by a person in its place."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import label

_LEAST_LINES: Final = 4
_MOST_LINES: Final = 24


class AnswerEditor(QWidget):
    """As high as its text, up to a bound. Ctrl+Enter saves, Esc leaves. An empty text cannot be saved."""

    saved = Signal(str, bool)  # the text, and whether the model is to continue it
    left = Signal()

    def __init__(self, text: str, *, can_continue: bool) -> None:
        super().__init__()
        self._edit = QPlainTextEdit(text)
        self._edit.setAccessibleName(tr("Text of the answer"))
        self._edit.setTabChangesFocus(True)
        self._edit.installEventFilter(self)
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
        row.addWidget(hint, 1)
        for button in (self._cancel, self._go_on, self._save):
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._edit)
        column.addLayout(row)
        self._fit()

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

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        is_escape = event.key() == Qt.Key.Key_Escape
        if event.type() == QEvent.Type.ShortcutOverride and is_escape:
            event.accept()  # not the window's, which stops an answer
            return True
        if event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_escape:
            self.left.emit()
            return True
        if is_enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._save.click()
            return True
        return super().eventFilter(watched, event)

    @Slot()
    def _on_text_changed(self) -> None:
        has_text = bool(self._edit.toPlainText().strip())
        self._save.setEnabled(has_text)
        self._go_on.setEnabled(has_text)
        self._fit()

    def _fit(self) -> None:
        characters = max(self._edit.viewport().width() // max(self._edit.fontMetrics().averageCharWidth(), 1), 40)
        lines = sum(len(line) // characters + 1 for line in self._edit.toPlainText().split("\n"))
        height = self._edit.fontMetrics().lineSpacing() * min(max(lines + 1, _LEAST_LINES), _MOST_LINES)
        self._edit.setFixedHeight(height + 2 * round(self._edit.document().documentMargin()) + 8)
