"""A text of several lines that means a value, with a sentence under it where it means none."""

from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from kvdesk.errors import UserError
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, show_text
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import once
from kvdesk.ui.widgets.written import text_box

_LOOK_MS: Final = 300
"""After the last keystroke: reading a long grammar takes longer than a keystroke may."""


class TextField(QWidget):
    """`value` is the last text that could be read; `problem` says what is wrong with the one shown.

    shown    the text of a value; parsed: the way back, which raises ValueError with a sentence
    check    raises UserError with what is wrong with a text that can be kept all the same
    """

    edited = Signal()

    def __init__(
        self,
        theme: Theme,
        shown: Callable[[Any], str],
        parsed: Callable[[str], Any],
        check: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._shown, self._parsed, self._check = shown, parsed, check
        self._value: Any = parsed("")
        self.problem = ""
        self.edit = text_box()
        self.edit.setProperty("family", "mono")
        self._sentence = label("", tone="danger", scale="small", wrap=True)
        self._sentence.hide()
        boxes.column(self.edit, self._sentence, on=self, margins=0, spacing=4)
        self.setFocusProxy(self.edit)
        self._look = once(self, _LOOK_MS, self._on_look)
        self.edit.textChanged.connect(self._on_text_changed)
        theme.follow(self._fit)

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        self.edit.setAccessibleName(name)

    def setAccessibleDescription(self, description: str) -> None:
        super().setAccessibleDescription(description)
        self.edit.setAccessibleDescription(description)

    def value(self) -> Any:
        return self._value

    def set_value(self, value: Any) -> None:
        if value != self._value or self.problem:
            self._value = value
            self.edit.setPlainText(self._shown(value))

    def _fit(self) -> None:
        self.edit.setFixedHeight(self._theme.text.pixelSize() * 7)

    def _on_text_changed(self) -> None:
        try:
            self._value, self.problem = self._parsed(self.edit.toPlainText()), ""
        except ValueError as error:
            self.problem = str(error)
        self._look.start()
        self.edited.emit()

    def _on_look(self) -> None:
        sentence, text = self.problem, self.edit.toPlainText()
        try:
            if not sentence and text.strip():
                self._check(text)
        except UserError as error:
            sentence = str(error)
        show_text(self._sentence, sentence)
        self.edit.setAccessibleDescription(sentence or self.accessibleDescription())
