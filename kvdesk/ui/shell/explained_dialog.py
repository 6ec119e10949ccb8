"""The KV cache, explained: each part with a figure made from the model that is open and the chat that is shown."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QWidget

from kvdesk.session import Changed, Store
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ThinProgress, label
from kvdesk.ui.widgets.dialog import Dialog, sentence
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.explained import Bar, Facts, Part, parts

_BAR_PX: Final = 8
_SHOWN: Final = Changed.MODEL | Changed.CONTEXT | Changed.NUMBERS | Changed.SELECTED | Changed.SPANS | Changed.RUNNING
"""Changes after which the figures are computed again."""


class ExplainedDialog(Dialog):
    """Beside the window, which it follows: the figures are those of what is shown there."""

    def __init__(self, kit: Kit, parent: QWidget) -> None:
        super().__init__(kit.theme, parent, tr("The KV cache, explained"))
        self._store = kit.store
        self.parts = tuple(PartView(part) for part in parts(facts_of(kit.store)))
        for part in self.parts:
            self.column.addWidget(part)
        self.column.addStretch(1)
        self.buttons.addButton(QDialogButtonBox.StandardButton.Close).setDefault(True)
        self.destroyed.connect(kit.store.listen(self._show, _SHOWN))
        self._align()

    def _show(self, *_heard: object) -> None:
        for view, part in zip(self.parts, parts(facts_of(self._store)), strict=True):
            view.show_part(part)
        self._align()

    def _align(self) -> None:
        """All bars begin below each other."""
        widest = max(part.name_width for part in self.parts)
        for part in self.parts:
            part.set_name_width(widest)


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

    def __init__(self, part: Part) -> None:
        super().__init__()
        self._part = part
        self._rows: list[tuple[QLabel, ThinProgress, QLabel]] = []
        self._missing = label(part.missing, tone="secondary", scale="small", wrap=True)
        self._grid = boxes.grid(12, 4, 0, 1)
        title = label(part.title, weight="strong")
        shown = title, sentence(part.text), self._missing, self._grid, boxes.Gap(12)
        boxes.column(*shown, on=self, margins=0, spacing=6)
        self._fill(part.bars)

    def show_part(self, part: Part) -> None:
        """The same part with other numbers."""
        if part != self._part:
            self._part = part
            self._fill(part.bars)

    @property
    def name_width(self) -> int:
        """What the names of its bars need."""
        return max((name.sizeHint().width() for name, _, _ in self._rows), default=0)

    def set_name_width(self, px: int) -> None:
        self._grid.setColumnMinimumWidth(0, px)

    def _fill(self, bars: tuple[Bar, ...]) -> None:
        if len(bars) != len(self._rows):
            boxes.clear(self._grid)
            self._rows = [self._add_row(row) for row in range(len(bars))]
            self._missing.setVisible(not bars)
        largest = max((bar.value for bar in bars), default=0)
        for (name, line, value), bar in zip(self._rows, bars, strict=True):
            name.setText(bar.label)
            line.setAccessibleName(bar.label)
            line.set_share(bar.value / largest if largest else 0.0)
            value.setText(bar.text)
            value.setAccessibleName(f"{bar.label}: {bar.text}")

    def _add_row(self, row: int) -> tuple[QLabel, ThinProgress, QLabel]:
        found = label("", scale="small", tone="secondary"), ThinProgress(""), label("", scale="small")
        found[1].setFixedHeight(_BAR_PX)
        for column, widget in enumerate(found):
            self._grid.addWidget(widget, row, column, Qt.AlignmentFlag.AlignVCenter)
        found[2].setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return found
