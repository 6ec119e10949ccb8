"""The Log tab: the lines of llama.cpp and kvdesk, newest last, of a bounded number."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QColor, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from kvdesk.protocol.chat import LogLine
from kvdesk.ui.widgets.theme import Theme

_MAX_LINES: Final = 5000
_INTERVAL_MS: Final = 250


class LogPanel(QWidget):
    """Lines are gathered and written four times a second, and only while the panel is visible."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._lines: list[LogLine] = []
        self._written = 0
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setMaximumBlockCount(_MAX_LINES)
        self._text.setFont(theme.mono_small)
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._text.setAccessibleName("Log")
        self._text.setPlaceholderText("Log lines of llama.cpp and kvdesk appear here.")
        self._debug = QCheckBox("Debug lines")
        self._debug.toggled.connect(self._on_debug_toggled)
        copy = QPushButton("Copy all")
        copy.setProperty("scale", "small")
        copy.clicked.connect(self._on_copy_clicked)
        row = QHBoxLayout()
        row.addWidget(self._debug, 1)
        row.addWidget(copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 12, 0)
        column.setSpacing(8)
        column.addWidget(self._text, 1)
        column.addLayout(row)
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self._on_timer)
        self._timer.start()
        theme.changed.connect(self._on_look_changed)

    @property
    def text(self) -> str:
        self._on_timer()
        return self._text.toPlainText()

    def append(self, line: LogLine) -> None:
        self._lines.append(line)
        if len(self._lines) > _MAX_LINES:
            drop = len(self._lines) - _MAX_LINES // 2
            del self._lines[:drop]
            self._written = max(0, self._written - drop)

    @Slot()
    def _on_timer(self) -> None:
        if self._written == len(self._lines):
            return
        bar = self._text.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        cursor = QTextCursor(self._text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        for line in self._lines[self._written :]:
            if line.level == "debug" and not self._debug.isChecked():
                continue
            if not self._text.document().isEmpty():
                cursor.insertBlock()
            cursor.insertText(line.text.rstrip("\n"), self._format(line))
        self._written = len(self._lines)
        if at_end:
            bar.setValue(bar.maximum())

    @Slot()
    def _on_debug_toggled(self) -> None:
        self._text.clear()
        self._written = 0
        self._on_timer()

    @Slot()
    def _on_look_changed(self) -> None:
        self._text.setFont(self._theme.mono_small)
        self._on_debug_toggled()

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(f"{line.level}: {line.text}" for line in self._lines))

    def _format(self, line: LogLine) -> QTextCharFormat:
        colours = self._theme.colours
        tones = {"error": colours.danger, "warning": colours.warning, "debug": colours.secondary}
        form = QTextCharFormat()
        form.setForeground(QColor(tones.get(line.level, colours.text)))
        return form
