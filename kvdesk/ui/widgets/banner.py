"""An error where it belongs: one sentence, what to do next, details folded."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPushButton

from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import IconButton, label, push_button
from kvdesk.ui.widgets.style.theme import Theme


class Banner(QFrame):
    """Not modal; hidden until there is an error."""

    dismissed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("card", "banner")
        self._sentence = label("", tone="danger", wrap=True, selectable=True)
        self._detail = label("", tone="secondary", scale="small", family="mono", wrap=True, selectable=True)
        self._more = push_button(tr("Details"), scale="small", quiet=True)
        self._more.setCheckable(True)
        self._more.toggled.connect(self._detail.setVisible)
        close = IconButton(theme, "close", tr("Dismiss this message"), clicked=self._on_close_clicked)
        beside = boxes.column(boxes.row(self._more, close, spacing=8), boxes.Stretch(1), spacing=0)
        top = boxes.row((self._sentence, 1), beside, spacing=8)
        column = boxes.column(top, self._detail, on=self, margins=(12, 8, 8, 8), spacing=4)
        self._doors = boxes.row(boxes.Stretch(1), spacing=8)
        column.addLayout(self._doors)
        self._buttons: list[QPushButton] = []
        self.hide()

    @property
    def sentence(self) -> str:
        return self._sentence.text() if not self.isHidden() else ""

    @property
    def buttons(self) -> list[QPushButton]:
        """What helps, as long as the error is shown."""
        return [button for button in self._buttons if not button.isHidden()]

    def offer(self, *helps: tuple[str, str, Callable[[], object]]) -> None:
        """Buttons for what helps against the error that is shown: text, tip, what it does. A click ends the error."""
        for text, tip, act in helps:
            button = push_button(text, scale="small", tip=tip, clicked=self.hide)
            button.clicked.connect(act)
            self._doors.insertWidget(self._doors.count() - 1, button)
            button.show()
            self._buttons.append(button)

    def withdraw(self) -> None:
        """An error with something that helps is over."""
        if self.buttons:
            self.hide()

    def _forget_helps(self) -> None:
        boxes.drop(self._doors, *self._buttons)
        self._buttons.clear()

    def show_error(self, sentence: str, detail: str = "") -> None:
        self._forget_helps()
        self._sentence.setText(sentence)
        self._sentence.setAccessibleName(tr("Error: {sentence}").format(sentence=sentence))
        announce(self, self._sentence.accessibleName(), urgent=True)
        self._detail.setText(detail[:4000])
        self._more.setVisible(bool(detail))
        self._more.setChecked(False)
        self._detail.hide()
        self.show()

    def _on_close_clicked(self) -> None:
        self.hide()
        self.dismissed.emit()
