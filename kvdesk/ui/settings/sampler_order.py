"""The order of the samplers: a list that is dragged, or moved with Alt and the arrow keys; what is not ticked rests."""

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from kvdesk.settings import SamplerName
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import IconButton
from kvdesk.ui.widgets.style.theme import Theme

_KEYS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}


class SamplerOrder(QWidget):
    """`value` are the ticked samplers in their order."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.list = _List()
        self.list.moved.connect(self._on_moved)
        self.list.itemChanged.connect(self.edited)
        self.list.model().rowsMoved.connect(self.edited)
        up, down = tr("Move up (Alt+Up)"), tr("Move down (Alt+Down)")
        self.up = IconButton(theme, "chevron-up", tr("Move up"), up, clicked=lambda: self._on_moved(-1))
        self.down = IconButton(theme, "chevron-down", tr("Move down"), down, clicked=lambda: self._on_moved(1))
        buttons = boxes.column(self.up, self.down, boxes.Stretch(1))
        boxes.row((self.list, 1), buttons, on=self, margins=0)
        self.setFocusProxy(self.list)
        self.set_value(tuple(SamplerName))
        theme.changed.connect(self._fit)

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        self.list.setAccessibleName(name)

    def setAccessibleDescription(self, description: str) -> None:
        super().setAccessibleDescription(description)
        self.list.setAccessibleDescription(description)

    def value(self) -> tuple[SamplerName, ...]:
        items = [self.list.item(row) for row in range(self.list.count())]
        return tuple(
            item.data(Qt.ItemDataRole.UserRole) for item in items if item.checkState() == Qt.CheckState.Checked
        )

    def set_value(self, samplers: tuple[SamplerName, ...]) -> None:
        """Show these, ticked; the others come after them."""
        if samplers == self.value() and self.list.count():
            return
        with QSignalBlocker(self.list):
            self.list.clear()
            for name in (*samplers, *(name for name in SamplerName if name not in samplers)):
                item = QListWidgetItem(f"{shown_name(name)}  ·  {name.value}")
                item.setData(Qt.ItemDataRole.UserRole, name)
                item.setFlags(
                    Qt.ItemFlag.ItemIsEnabled
                    | Qt.ItemFlag.ItemIsSelectable
                    | Qt.ItemFlag.ItemIsUserCheckable
                    | Qt.ItemFlag.ItemIsDragEnabled
                )
                item.setCheckState(Qt.CheckState.Checked if name in samplers else Qt.CheckState.Unchecked)
                self.list.addItem(item)
            self.list.setCurrentRow(0)
            self._fit()

    def _fit(self) -> None:
        """All rows are seen, at every size of text."""
        row_px = self._theme.text.pixelSize() * 7 // 4
        with QSignalBlocker(self.list):
            for row in range(self.list.count()):
                self.list.item(row).setSizeHint(QSize(0, row_px))
        self.list.setFixedHeight(row_px * len(SamplerName) + 2)

    def _on_moved(self, step: int) -> None:
        row = self.list.currentRow()
        if row >= 0 and 0 <= row + step < self.list.count():
            with QSignalBlocker(self.list):
                item = self.list.takeItem(row)
                self.list.insertItem(row + step, item)
                self.list.setCurrentRow(row + step)
            self.edited.emit()


class _List(QListWidget):
    moved = Signal(int)  # the current item, by this number of rows

    def __init__(self) -> None:
        super().__init__()
        self.setDragDropMode(QListWidget.DragDropMode.InternalMove)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _KEYS.get(Qt.Key(event.key()))
        if step and event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self.moved.emit(step)
            event.accept()
            return
        super().keyPressEvent(event)


def shown_name(name: SamplerName) -> str:
    """A sampler's name in the person's language."""
    return {
        SamplerName.PENALTIES: tr("Repeat, presence and frequency penalties"),
        SamplerName.DRY: tr("DRY"),
        SamplerName.TOP_N_SIGMA: tr("Top n-sigma"),
        SamplerName.TOP_K: tr("Top K"),
        SamplerName.TYPICAL_P: tr("Typical P"),
        SamplerName.TOP_P: tr("Top P"),
        SamplerName.MIN_P: tr("Min P"),
        SamplerName.XTC: tr("XTC"),
        SamplerName.TEMPERATURE: tr("Temperature"),
    }[name]
