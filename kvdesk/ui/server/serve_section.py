"""Serving other programs, a section of the settings: the switch, where programs find kvdesk and with which key, and
their requests.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPushButton, QWidget

from kvdesk.agents import AGENTS, Place
from kvdesk.session import Commands
from kvdesk.translation import tr
from kvdesk.ui.server.request_list import RequestList
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import label, push_button, show_text
from kvdesk.ui.widgets.kit import SectionWidget
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.curl import curl_line
from kvdesk.viewmodel.requests import RequestRow

MODEL_NAME: Final = "kvdesk"
"""What agents call the model in their requests: the server answers with the one that is open."""
_INDENT_PX: Final = 22  # of sentences under a check box: as far as its words


class ServeSection(SectionWidget):
    """Passive: shows what its methods get. What is chosen (`ServeSettings`) is between it and `below`."""

    def __init__(self, theme: Theme, commands: Commands, apply: Callable[[], str]) -> None:
        """`apply`: what is edited counts; which entry is invalid."""
        super().__init__()
        self._commands, self._apply = commands, apply
        self._starting = False
        self.serve = QCheckBox(tr("Serve this model to other programs"))
        self.serve.clicked.connect(self._on_serve)
        self._about = label(
            tr("Other programs ask this model over HTTP, on this cache; you see what they reuse, and why"),
            tone="secondary",
            scale="small",
            wrap=True,
        )
        self._about.setContentsMargins(theme.px(_INDENT_PX), 0, 0, 0)
        self._status = label("", tone="secondary", wrap=True)
        self._status.setContentsMargins(theme.px(_INDENT_PX), 0, 0, 0)
        self._address, self._copy_address = self._field(tr("Address"), tr("Copy the address"))
        self.key_field, self.copy_key = self._field(tr("API key"), tr("Copy the API key"))
        self.key_field.setEchoMode(QLineEdit.EchoMode.Password)
        self._new_key = push_button(
            tr("New key"),
            tip=tr("Programs that have the old one are refused from then on"),
            clicked=lambda _: commands.serving.renew_key(),
        )
        self.curl, self.copy_curl = self._field(tr("Try it"), tr("Copy the command for a terminal"))
        self.curl.setToolTip(tr("Paste it into a terminal: it asks this model, with settings that keep the cache warm"))
        self.program = Choice(name=tr("Program"))
        for title, name in (("curl", ""), *((agent.title, agent.name) for agent in AGENTS.values())):
            self.program.addItem(title, name)
        self.program.currentIndexChanged.connect(self._show_line)
        self._n_ctx = 0
        theme.give_font(self.curl, "mono_small")
        self.below = self.requests = RequestList(theme)
        self.kept = label("", tone="secondary", wrap=True)
        self.kept.hide()
        self.words = " ".join(
            (
                self.serve.text(),
                self._about.text(),
                tr("Serve on this computer"),
                tr("Address"),
                tr("API key"),
                tr("Try it"),
            )
        )
        self._lay_out()
        self.show_stopped()

    def _field(self, name: str, copies: str) -> tuple[QLineEdit, QPushButton]:
        field = QLineEdit(readOnly=True)
        field.setAccessibleName(name)
        field.setPlaceholderText(tr("Shown while serving"))
        copy = push_button(
            tr("Copy"), name=copies, clicked=lambda: QGuiApplication.clipboard().setText(self._copied(field))
        )
        return field, copy

    def _copied(self, field: QLineEdit) -> str:
        """What *Copy* beside a field copies: the command is shown without the key, and copied with it."""
        return self._line(self.key_field.text()) if field is self.curl else field.text()

    def _line(self, key: str) -> str:
        """The command of the program that is chosen; "" while nobody is served."""
        agent = AGENTS.get(str(self.program.currentData()))
        if not self.address:
            return ""
        if agent is None:
            return curl_line(self.address, key)
        place = Place(self.address.removesuffix("/v1"), key, MODEL_NAME, self._n_ctx)
        return agent.line(place, windows=sys.platform == "win32")

    def _show_line(self) -> None:
        self.curl.setText(self._line("…"))
        self.curl.setCursorPosition(0)

    def _lay_out(self) -> None:
        grid = boxes.grid(6, 8)
        rows: tuple[tuple[str, QWidget, tuple[QWidget, ...]], ...] = (
            (tr("Address"), self._address, (self._copy_address,)),
            (tr("API key"), self.key_field, (self.copy_key, self._new_key)),
            (tr("Try it"), self.curl, (self.copy_curl, self.program)),
        )
        for i, (name, field, buttons) in enumerate(rows):
            caption = label(name)
            caption.setBuddy(field)
            grid.addWidget(caption, i, 0)
            grid.addWidget(field, i, 1)
            for j, button in enumerate(buttons):
                grid.addWidget(button, i, 2 + j)
        boxes.column(
            self.serve,
            self._about,
            self._status,
            boxes.Gap(8),
            grid,
            self.kept,
            on=self,
            margins=(0, 0, 0, 8),
            spacing=4,
        )

    def focus_first(self) -> None:
        """The switch."""
        self.serve.setFocus()

    # --- facts --------------------------------------------------------------------------------------------------------

    def show_key(self, key: str) -> None:
        """The key that programs need."""
        self.key_field.setText(key)
        self.key_field.setCursorPosition(0)

    def show_starting(self) -> None:
        """It takes a moment, in which the switch does nothing; it keeps the focus."""
        self._starting = True
        self._status.setText(tr("Starting…"))

    def show_serving(self, address: str, n_ctx: int = 4096) -> None:
        """Programs find it there. `n_ctx`: tokens of a conversation, which agents get."""
        self._show_running(True)
        self._n_ctx = n_ctx
        self._address.setText(address)
        self._show_line()
        self._status.setText(tr("Serving. Programs need this address and this key."))

    def show_stopped(self, why: str = "") -> None:
        """Nobody is served. `why`: a sentence if that was not wanted."""
        self._show_running(False)
        self._address.setText("")
        self._show_line()
        self._status.setText(why or tr("Off"))

    def show_requests(self, rows: Sequence[RequestRow], kept: str = "", score: str = "") -> None:
        """The newest first. `kept`: what stays of them in the cache and in memory; `score`: of all of them."""
        self.requests.show_rows(rows, score)
        show_text(self.kept, kept)

    def _show_running(self, running: bool) -> None:
        self._starting = False
        self.serve.setChecked(running)
        self._new_key.setEnabled(not running)
        for copy in (self._copy_address, self.copy_curl):
            copy.setEnabled(running)
        self.locked.emit(tr("Stop serving to change these.") if running else "")

    @property
    def address(self) -> str:
        """Where programs find it; "" while nobody is served."""
        return self._address.text()

    def _on_serve(self, on: bool) -> None:
        if self._starting:
            self.serve.setChecked(True)
        elif on:
            if problem := self._apply():
                self.show_stopped(problem)
            else:
                self._commands.serving.begin()
        else:
            self._commands.serving.end()
