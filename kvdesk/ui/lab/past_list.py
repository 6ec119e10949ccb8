"""The runs of one experiment that were kept: one is looked at, or two are compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem, QWidget

from kvdesk.protocol.experiment import Parameter
from kvdesk.session import Commands
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import IconButton, label, plain_tip
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.lab import PastResult, result_names

_ROW_PX: Final = 24


class PastList(QWidget):
    """`chosen` has a tuple of one or two PastResults, the earlier one first."""

    chosen = Signal(tuple)

    def __init__(self, theme: Theme, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self._results: tuple[PastResult, ...] = ()
        self.view = QListWidget()
        self.view.setAccessibleName(tr("Past results"))
        theme.give_font(self.view, "small")
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.view.itemSelectionChanged.connect(self._on_selected)
        self.view.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # the column scrolls
        tip = tr("Move the selected results to the trash (Del)")
        self._delete = IconButton(theme, "trash", tr("Delete the selected results"), tip, clicked=self._on_delete)
        delete = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.view)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self._on_delete)
        self._hint = label("", tone="secondary", scale="small", wrap=True)
        head = boxes.row((label(tr("Results"), weight="strong"), 1), self._delete)
        boxes.column(head, self._hint, self.view, on=self, margins=0, spacing=4)
        self._theme = theme
        theme.changed.connect(self._fit)

    def _fit(self) -> None:
        """As high as its rows."""
        row = self._theme.px(_ROW_PX)
        for i in range(self.view.count()):
            self.view.item(i).setSizeHint(QSize(0, row))
        self.view.setFixedHeight(row * self.view.count() + 4)

    def _on_delete(self) -> None:
        if rows := [index.row() for index in self.view.selectedIndexes()]:
            self._commands.lab.delete_results(tuple(self._results[row] for row in rows))

    def show_results(
        self, results: Sequence[PastResult], selected: Path | None = None, parameters: Sequence[Parameter] = ()
    ) -> None:
        """The newest first. `selected`: the folder of the one to show; None: the newest. `parameters`: of the form, for
        their names.
        """
        self._results = tuple(results)
        with QSignalBlocker(self.view):
            self.view.clear()
            for past, name in zip(results, result_names(results, parameters), strict=True):
                item = QListWidgetItem(name)
                item.setToolTip(plain_tip(f"{name}\n{past.record.finished.result.verdict.short}"))
                self.view.addItem(item)
            self._fit()
        n = len(results)
        self._hint.setText(
            tr("None yet: Run makes the first one.")
            if not n
            else tr("Ctrl and click selects a second one to compare.")
            if n > 1
            else ""
        )
        self._hint.setVisible(n != 1)
        self.view.setVisible(n > 0)
        self._delete.setVisible(n > 0)
        folders = [past.folder for past in results]
        if n:
            self.view.setCurrentRow(folders.index(selected) if selected in folders else 0)
        else:
            self.chosen.emit(())

    def _on_selected(self) -> None:
        rows = sorted((index.row() for index in self.view.selectedIndexes()), reverse=True)
        picked = tuple(self._results[row] for row in rows[-2:])
        if picked:
            self.chosen.emit(picked)

    def select(self, *rows: int) -> None:
        """Select these and no other."""
        with QSignalBlocker(self.view):
            self.view.clearSelection()
            for row in rows:
                self.view.item(row).setSelected(True)
        self._on_selected()
