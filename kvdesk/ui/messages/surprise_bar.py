"""Over the messages, while answers are coloured by surprise: what the colours mean."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, label, plain_tip
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
        lead = ElidedLabel(tr("How likely each token was:"))
        lead.setProperty("tone", "secondary")
        lead.setProperty("scale", "small")
        row.addWidget(lead, 1)
        self._swatches = [label(f" {tr(name)} ", scale="small") for name in LEVEL_NAMES]
        for swatch in self._swatches:
            row.addWidget(swatch, 0, Qt.AlignmentFlag.AlignVCenter)
        close = IconButton(
            kit.theme, "close", tr("No token probabilities"), tr("New answers are no longer kept with them")
        )
        close.clicked.connect(kit.act("view.probabilities"))
        row.addWidget(close)
        names = ", ".join(map(tr, LEVEL_NAMES))
        self.setAccessibleName(
            tr("Legend: how likely each token was, from no colour to the strongest: {names}").format(names=names)
        )
        tip = tr("The probability before sampling: {names}. A click on a token shows what else was likely there")
        self.setToolTip(plain_tip(tip.format(names=names)))
        kit.theme.changed.connect(self._show_colours)
        self._show_colours()
        self.setMinimumWidth(1)  # a narrow pane stays as narrow: the words are in the tooltip too
        self.hide()

    @Slot()
    def _show_colours(self) -> None:
        for swatch, colour in zip(self._swatches, colours_of(dark=self._theme.colours.dark), strict=True):
            swatch.setStyleSheet(f"background: {colour}; border-radius: 3px;" if colour else "")
