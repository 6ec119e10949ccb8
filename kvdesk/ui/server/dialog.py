"""Serve on this computer: the switch, where clients find kvdesk and with which key, and what they ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from kvdesk.translation import tr
from kvdesk.ui.server.request_list import RequestList
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.number_fields import WholeField
from kvdesk.ui.widgets.sizes import DIALOG_MARGINS
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.curl import curl_line
from kvdesk.viewmodel.requests import RequestRow

_SIZE: Final = (720, 600)


@dataclass(frozen=True, slots=True)
class ServeChoice:
    """What a person chose. `others`: other computers may ask too; `shared`: clients share prefixes; `inspects`: the key
    may see what others asked.
    """

    port: int
    others: bool
    shared: bool
    inspects: bool


class ServerDialog(QDialog):
    """Shows what it is told; says what is wanted: `start_requested` with a ServeChoice, `stop_requested`,
    `new_key_requested`.
    """

    start_requested = Signal(object)
    stop_requested = Signal()
    new_key_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Serve on this computer"))
        self.resize(*(theme.px(side) for side in _SIZE))
        self.serve = QCheckBox(tr("Serve this model to other programs"))
        self.serve.setToolTip(tr("They ask over HTTP, as of OpenAI or llama-server, on the cache that is shown here"))
        self.serve.clicked.connect(self._on_serve)
        self._port = WholeField(1, 65535, grouped=False)
        self._port.setAccessibleName(tr("Port"))
        self._others = QCheckBox(tr("Allow other computers"))
        self._others.setToolTip(tr("Only on a network that you trust: there is no encryption"))
        self._shared = QCheckBox(tr("Share cached prompts between programs"))
        self._shared.setToolTip(
            tr("Saves time. How long an answer takes to begin then tells whether somebody has asked something alike")
        )
        self.inspects = QCheckBox(tr("Show all prompts and the cache map to programs"))
        self.inspects.setToolTip(
            tr("Your chats too, to programs with the key: another kvdesk can then show this cache")
        )
        self._address, self._copy_address = self._field(tr("Address"), tr("Copy the address"))
        self.key_field, self.copy_key = self._field(tr("API key"), tr("Copy the API key"))
        self.key_field.setEchoMode(QLineEdit.EchoMode.Password)
        self._new_key = QPushButton(tr("New key"))
        self._new_key.setToolTip(tr("Programs that have the old one are refused from then on"))
        self._new_key.clicked.connect(self.new_key_requested)
        self.curl, self.copy_curl = self._field(tr("Try it"), tr("Copy the command for a terminal"))
        self.curl.setToolTip(tr("Paste it into a terminal: it asks this model for an answer"))
        theme.give_font(self.curl, "mono_small")
        self._status = label("", tone="secondary")
        self._status.setWordWrap(True)
        self._requests = RequestList(theme)
        self._lay_out()
        self.show_stopped()

    def _field(self, name: str, copies: str) -> tuple[QLineEdit, QPushButton]:
        field = QLineEdit()
        field.setReadOnly(True)
        field.setAccessibleName(name)
        copy = QPushButton(tr("Copy"))
        copy.setAccessibleName(copies)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._copied(field)))
        return field, copy

    def _copied(self, field: QLineEdit) -> str:
        """What *Copy* beside a field copies: the command is shown without the key, and copied with it."""
        return curl_line(self.address, self.key_field.text()) if field is self.curl else field.text()

    def _lay_out(self) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        rows: tuple[tuple[str, QWidget, tuple[QWidget, ...]], ...] = (
            (tr("Port"), self._port, ()),
            (tr("Address"), self._address, (self._copy_address,)),
            (tr("API key"), self.key_field, (self.copy_key, self._new_key)),
            (tr("Try it"), self.curl, (self.copy_curl,)),
        )
        for i, (name, field, buttons) in enumerate(rows):
            caption = label(name)
            caption.setBuddy(field)
            grid.addWidget(caption, i, 0)
            grid.addWidget(field, i, 1, Qt.AlignmentFlag.AlignLeft if field is self._port else Qt.AlignmentFlag(0))
            for j, button in enumerate(buttons):
                grid.addWidget(button, i, 2 + j)
        close = QPushButton(tr("Close"))
        close.clicked.connect(self.close)
        foot = QHBoxLayout()
        foot.addWidget(self._status, 1)
        foot.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(*DIALOG_MARGINS)
        column.setSpacing(8)
        for widget in (self.serve, self._others, self._shared, self.inspects):
            column.addWidget(widget)
        column.addSpacing(8)
        column.addLayout(grid)
        column.addSpacing(8)
        column.addWidget(self._requests, 1)
        column.addLayout(foot)

    # --- facts --------------------------------------------------------------------------------------------------------

    def show_choice(self, choice: ServeChoice, key: str) -> None:
        """As it was chosen before."""
        self._port.setValue(choice.port)
        self._others.setChecked(choice.others)
        self._shared.setChecked(choice.shared)
        self.inspects.setChecked(choice.inspects)
        self.key_field.setText(key)

    def show_starting(self) -> None:
        self.serve.setEnabled(False)
        self._status.setText(tr("Starting…"))

    def show_serving(self, address: str) -> None:
        """Clients find it there."""
        self._show_running(True)
        self._address.setText(address)
        self.curl.setText(curl_line(address, "…"))
        self.curl.setCursorPosition(0)
        self._status.setText(tr("Serving. Programs need this address and this key."))

    def show_stopped(self, why: str = "") -> None:
        """Nobody is served. `why`: a sentence where that was not wanted."""
        self._show_running(False)
        self._address.setText("")
        self.curl.setText("")
        self._status.setText(why or tr("Off"))

    def show_requests(self, rows: Sequence[RequestRow]) -> None:
        """The newest first."""
        self._requests.show_rows(rows)

    def _show_running(self, running: bool) -> None:
        self.serve.setEnabled(True)
        self.serve.setChecked(running)
        for field in (self._port, self._others, self._shared, self.inspects, self._new_key):
            field.setEnabled(not running)
        for copy in (self._copy_address, self.copy_curl):
            copy.setEnabled(running)

    @property
    def choice(self) -> ServeChoice:
        """What is chosen now."""
        return ServeChoice(
            self._port.value(), self._others.isChecked(), self._shared.isChecked(), self.inspects.isChecked()
        )

    @property
    def port(self) -> WholeField:
        return self._port

    @property
    def address(self) -> str:
        return self._address.text()

    @property
    def status(self) -> str:
        return self._status.text()

    @property
    def requests(self) -> RequestList:
        return self._requests

    @Slot(bool)
    def _on_serve(self, on: bool) -> None:
        if on and self._port.problem:
            self.show_stopped(self._port.problem)
        elif on:
            self.start_requested.emit(self.choice)
        else:
            self.stop_requested.emit()
