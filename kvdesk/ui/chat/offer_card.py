"""The one model that is offered in place of a toy: what it is, and what brings it here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFrame

from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.kit import Kit

if TYPE_CHECKING:
    from kvdesk.viewmodel.downloads import Offer


class OfferCard(QFrame):
    """Hidden until a model is offered and wanted."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._commands = kit.commands
        self.setProperty("card", "ask")
        self._offer: Offer | None = None
        self._path: Path | None = None
        self._wanted = False
        self._title = label("", weight="strong", wrap=True)
        self._facts = label("", tone="secondary", scale="small", wrap=True)
        self.button = push_button(tr("Download"), primary=True, clicked=self._on_clicked)
        self.others = push_button(tr("Other models…"), quiet=True, clicked=kit.act("model.get"))
        row = boxes.row(self.button, self.others, boxes.Stretch(1), spacing=8)
        boxes.column(self._title, self._facts, boxes.Gap(4), row, on=self, margins=(16, 12, 16, 12), spacing=4)
        self.hide()

    def show_offer(self, offer: Offer | None, facts: str, path: Path | None) -> None:
        """`path`: where the file is already, which is opened then; else it can be downloaded."""
        self._offer, self._path = offer, path
        if offer is not None:
            said = tr("On this computer: {name}") if path is not None else tr("For this computer: {name}")
            self._title.setText(said.format(name=offer.title))
            self._facts.setText(facts)
            self.button.setText(tr("Open") if path is not None else tr("Download"))
            self.button.setAccessibleName(f"{self.button.text()}: {offer.title}")
            self.button.setAccessibleDescription(facts)
        self._show()

    def set_wanted(self, wanted: bool) -> None:
        """Whether a better model would help."""
        self._wanted = wanted
        self._show()

    def _show(self) -> None:
        self.setVisible(self._wanted and self._offer is not None)

    def _on_clicked(self) -> None:
        if self._path is not None:
            self._commands.open_model(self._path)
        elif self._offer is not None:
            self._commands.download(self._offer)
