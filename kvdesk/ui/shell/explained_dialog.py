"""The KV cache, explained: each part with a figure made from the model that is open and the chat that is shown."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QDialogButtonBox, QGridLayout, QLabel, QSizePolicy, QWidget

from kvdesk.session import Changed, Store
from kvdesk.session.changed import Update
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.dialog import Dialog, sentence
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.explained import Bar, Facts, Part, parts

_BAR_PX: Final = 8
_SHOWN: Final = Changed.MODEL | Changed.CONTEXT | Changed.NUMBERS | Changed.SELECTED | Changed.SPANS | Changed.RUNNING
"""Changes after which the figures are computed again."""


class ExplainedDialog(Dialog):
    """Beside the window, which it follows: the figures are those of what is shown there."""

    def __init__(self, kit: Kit, parent: QWidget) -> None:
        super().__init__(kit.theme, parent, tr("The KV cache, explained"))
        self._store = kit.store
        self.parts = tuple(PartView(kit.theme, part) for part in parts(facts_of(kit.store)))
        for part in self.parts:
            self.column.addWidget(part)
        self.column.addStretch(1)
        self.buttons.addButton(QDialogButtonBox.StandardButton.Close).setDefault(True)
        self.destroyed.connect(kit.store.listen(self._on_changed))

    def _on_changed(self, changed: Changed, _update: Update | None) -> None:
        if changed & _SHOWN:
            for view, part in zip(self.parts, parts(facts_of(self._store)), strict=True):
                view.show_part(part)


def facts_of(store: Store) -> Facts:
    """What is known of the model that is open and of the chat that is shown."""
    spans = store.spans.get(store.selected) if store.selected is not None else None
    return Facts(
        store.context,
        None if store.view is None else store.view.snapshot,
        0 if store.model is None else store.model.n_layer,
        0 if store.model is None else store.model.n_ctx_train,
        store.cells.get(store.selected, 0) if store.selected is not None else 0,
        store.turn,
        () if spans is None else spans.spans,
    )


class PartView(QWidget):
    """Heading, sentences, and the figure or what would fill it."""

    def __init__(self, theme: Theme, part: Part) -> None:
        super().__init__()
        self._theme, self._part = theme, part
        self._rows: list[tuple[QLabel, BarView, QLabel]] = []
        self._missing = label(part.missing, tone="secondary", scale="small", wrap=True)
        self._grid = QGridLayout()
        self._grid.setColumnStretch(1, 1)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(4)
        text = sentence(part.text)
        boxes.column(
            label(part.title, weight="strong"),
            text,
            self._missing,
            self._grid,
            boxes.Gap(12),
            on=self,
            margins=0,
            spacing=6,
        )
        self._fill(part.bars)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """Labels and values of the figure."""
        return tuple((name.text(), value.text()) for name, _, value in self._rows)

    def show_part(self, part: Part) -> None:
        """The same part with other numbers."""
        if part != self._part:
            self._part = part
            self._fill(part.bars)

    def _fill(self, bars: tuple[Bar, ...]) -> None:
        if len(bars) != len(self._rows):
            boxes.clear(self._grid)
            self._rows = [self._add_row(row) for row in range(len(bars))]
            self._missing.setVisible(not bars)
        largest = max((bar.value for bar in bars), default=0)
        for (name, view, value), bar in zip(self._rows, bars, strict=True):
            name.setText(bar.label)
            view.show_share(bar.value / largest if largest else 0.0)
            value.setText(bar.text)
            value.setAccessibleName(f"{bar.label}: {bar.text}")

    def _add_row(self, row: int) -> tuple[QLabel, BarView, QLabel]:
        found = label("", scale="small", tone="secondary"), BarView(self._theme), label("", scale="small")
        for column, widget in enumerate(found):
            self._grid.addWidget(widget, row, column, Qt.AlignmentFlag.AlignVCenter)
        found[2].setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return found


class BarView(QWidget):
    """One bar, as long as its share of the longest. Its value is beside it, so a screen reader passes it over."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._share = theme, 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(160, _BAR_PX + 8)

    def show_share(self, share: float) -> None:
        """From 0 to 1."""
        self._share = share
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        box = QRectF(0, (self.height() - _BAR_PX) / 2, self.width(), _BAR_PX)
        for colour, width in (
            (self._theme.colours.cell_free, box.width()),
            (self._theme.colours.accent, self._share * box.width()),
        ):
            painter.setBrush(QColor(colour))
            painter.drawRoundedRect(QRectF(box.left(), box.top(), width, box.height()), 2, 2)
