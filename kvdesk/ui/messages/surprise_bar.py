"""Over the messages, while answers are coloured by surprise: what the colours mean."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import IconButton, label
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.token_surprise import LEVEL_NAMES, colours_of


class SurpriseBar(QWidget):
    """Hidden while no token has a colour."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._theme = kit.theme
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 12, 4)
        row.setSpacing(8)
        row.addWidget(label(tr("How likely each token was:"), tone="secondary", scale="small"))
        self._swatches = [label(f" {tr(name)} ", scale="small") for name in LEVEL_NAMES]
        for swatch in self._swatches:
            row.addWidget(swatch)
        row.addStretch(1)
        close = IconButton(
            kit.theme, "close", tr("No token probabilities"), tr("New answers are no longer kept with them")
        )
        close.clicked.connect(kit.act("view.probabilities"))
        row.addWidget(close)
        names = ", ".join(map(tr, LEVEL_NAMES))
        self.setAccessibleName(
            tr("Legend: how likely each token was, from no colour to the strongest: {names}").format(names=names)
        )
        self.setToolTip(tr("The probability before sampling. A click on a token shows what else was likely there"))
        kit.theme.changed.connect(self._show_colours)
        self._show_colours()
        self.hide()

    @Slot()
    def _show_colours(self) -> None:
        for swatch, colour in zip(self._swatches, colours_of(dark=self._theme.colours.dark), strict=True):
            swatch.setStyleSheet(f"background: {colour}; border-radius: 3px;" if colour else "")
