"""A conversation without messages, or no model: how to begin."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from kvdesk.errors import NO_TOKENIZER
from kvdesk.protocol.chat import ModelInfo
from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import label


class EmptyPane(QWidget):
    """The pane without messages: how to begin."""

    open_model_clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._first = label("", scale="large")
        self._second = label("", tone="secondary")
        for widget in (self._first, self._second):
            widget.setAlignment(Qt.AlignmentFlag.AlignCenter)
            widget.setWordWrap(True)
        self._open = QPushButton(tr("Open a model…"))
        self._open.setProperty("primary", True)
        self._open.clicked.connect(self.open_model_clicked)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._open)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(48, 24, 48, 24)
        column.setSpacing(8)
        column.addStretch(2)
        column.addWidget(self._first)
        column.addWidget(self._second)
        column.addSpacing(8)
        column.addLayout(row)
        column.addStretch(3)
        self.show_model(None)

    def show_model(self, model: ModelInfo | None) -> None:
        self._open.setVisible(model is None)
        if model is None:
            self._say(tr("No model is open"), tr("Drop a .gguf file anywhere on this window, or open one."))
        else:
            begin = tr("Type a message below. The answer streams in here.")
            self._say(model.name, begin if model.has_text else tr(NO_TOKENIZER))

    def show_dead(self) -> None:
        self._open.hide()
        self._say(tr("The engine has stopped"), tr("Restart kvdesk to go on. Your chats are saved."))

    def show_loading(self, name: str, share: float) -> None:
        self._open.hide()
        self._say(tr("Loading {name}").format(name=name), f"{share:.0%}")

    def _say(self, first: str, second: str) -> None:
        self._first.setText(first)
        self._second.setText(second)
