"""The Log tab: the lines of llama.cpp and kvdesk, newest last, of a bounded number; filtered, copied, saved."""

from pathlib import Path
from typing import Final

from PySide6.QtGui import QColor, QGuiApplication, QHideEvent, QShowEvent, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from kvdesk.folding import fold
from kvdesk.protocol.chat import LogLine
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import label, push_button, set_tone
from kvdesk.ui.widgets.search_field import SearchField
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import every, once
from kvdesk.whole_file import write_whole

_MAX_LINES: Final = 5000
_INTERVAL_MS: Final = 250
_LEVELS: Final = ("debug", "info", "warning", "error")
_FILTER_MS: Final = 150  # after the last letter


class LogPanel(QWidget):
    """Lines are gathered and written four times a second, and only while the panel is visible."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._lines: list[LogLine] = []
        self._written = 0
        self._text = QPlainTextEdit(readOnly=True, tabChangesFocus=True, maximumBlockCount=_MAX_LINES)
        self._text.setFont(theme.mono_small)
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._text.setAccessibleName(tr("Log"))
        self._text.setPlaceholderText(tr("Log lines of llama.cpp and kvdesk appear here."))
        self.level_choice = Choice(scale="small", name=tr("Least level"))
        for level, name in zip(_LEVELS, (tr("All"), tr("Info"), tr("Warnings"), tr("Errors")), strict=True):
            self.level_choice.addItem(name, level)
        self.level_choice.setCurrentIndex(_LEVELS.index("info"))
        self.level_choice.currentIndexChanged.connect(self._on_filter_changed)
        self.filter_field = SearchField(tr("Filter the log"), tr("Filter"))
        self._filtering = once(self, _FILTER_MS, self._on_filter_changed)
        self.filter_field.textChanged.connect(lambda _text: self._filtering.start())
        self._said = label("", tone="secondary", scale="small")
        copy = push_button(
            tr("Copy"), scale="small", tip=tr("Copies the lines that are shown"), clicked=self._on_copy_clicked
        )
        save = push_button(
            tr("Save…"), scale="small", tip=tr("Saves the lines that are shown"), clicked=self._on_save_clicked
        )
        above = boxes.row(self.level_choice, (self.filter_field, 1), spacing=8)
        below = boxes.row((self._said, 1), copy, save, spacing=8)
        boxes.column(above, (self._text, 1), below, on=self, margins=(0, 0, 12, 0), spacing=8)
        self._timer = every(self, _INTERVAL_MS, self._on_timer)
        theme.changed.connect(self._on_look_changed)

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """All lines that are kept, whatever is shown."""
        return tuple(self._lines)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()
        self._on_timer()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def take(self, line: LogLine) -> None:
        self._lines.append(line)
        if len(self._lines) > _MAX_LINES:
            drop = len(self._lines) - _MAX_LINES // 2
            del self._lines[:drop]
            self._written = max(0, self._written - drop)

    def _is_shown(self, line: LogLine) -> bool:
        enough = _LEVELS.index(line.level) >= self.level_choice.currentIndex()
        return enough and fold(self.filter_field.text()) in fold(line.text)

    def _on_timer(self) -> None:
        if self._written == len(self._lines):
            return
        bar = self._text.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        cursor = QTextCursor(self._text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.beginEditBlock()
        is_empty = self._text.document().isEmpty()
        for line in filter(self._is_shown, self._lines[self._written :]):
            if not is_empty:
                cursor.insertBlock()
            is_empty = False
            cursor.insertText(line.text.rstrip("\n"), self._format(line))
        cursor.endEditBlock()
        self._written = len(self._lines)
        if at_end:
            bar.setValue(bar.maximum())

    def _on_filter_changed(self) -> None:
        self._filtering.stop()
        self._text.clear()
        self._written = 0
        self._on_timer()

    def _on_look_changed(self) -> None:
        self._text.setFont(self._theme.mono_small)
        self._on_filter_changed()

    def _shown_text(self) -> str:
        """The lines that are shown, each with its level."""
        return "".join(f"{line.level}: {line.text.rstrip()}\n" for line in self._lines if self._is_shown(line))

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._shown_text())
        self._say(tr("Copied."))

    def _on_save_clicked(self) -> None:
        file = ask_where_to_save(self, tr("Save the log"), "kvdesk-log.txt", tr("Text (*.txt)"))
        if file is not None:
            self.save(file)

    def save(self, file: Path) -> None:
        """Write the lines that are shown, and say what came of it."""
        try:
            write_whole(file, self._shown_text().encode(errors="replace"))
        except OSError as error:
            self._say(tr("It could not be saved: {why}.").format(why=error.strerror), "danger")
            return
        self._say(tr("Saved to {name}.").format(name=file.name))

    def _say(self, text: str, tone: str = "secondary") -> None:
        self._said.setText(text)
        set_tone(self._said, tone)

    def _format(self, line: LogLine) -> QTextCharFormat:
        colours = self._theme.colours
        tones = {"error": colours.danger, "warning": colours.warning, "debug": colours.secondary}
        form = QTextCharFormat()
        form.setForeground(QColor(tones.get(line.level, colours.text)))
        return form
