"""The page of models: a table of what other applications downloaded and what was opened, with what each can do here;
and the part where one gets more of them.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QButtonGroup, QHBoxLayout, QMenu, QStackedWidget, QTableView, QWidget

from kvdesk.errors import KvdeskError
from kvdesk.library.find import short_name
from kvdesk.translation import tr
from kvdesk.ui.models.get_models import GetModels
from kvdesk.ui.models.table import ModelTable, SortedModels
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.banner import Banner
from kvdesk.ui.widgets.choose_file import ask_for_folder
from kvdesk.ui.widgets.controls import IconButton, below, label, on_ground, pop_up, push_button, tab_button
from kvdesk.ui.widgets.grid import make_plain
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.search_field import SearchField
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.models import Machine, ModelRow, summary

_NAME_PX: Final = 200  # at least; the name has what the other columns leave
_WIDEST_PX: Final = 220  # of the others
_GAP_PX: Final = 24
_LEFT_OUT: Final = (1, 8, 9, 2)
"""Columns that a narrow window has no room for, in this order: architecture, licence, last use, parameters."""
_ROW_PX: Final = 30


class ModelView(QTableView):
    """Enter opens the chosen model. Columns are as wide as their texts; some are left out if there is no room."""

    entered_row = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        theme.follow(self._fit)

    def _fit(self) -> None:
        """Rows as high, and columns as wide, as the size of the text needs."""
        self.verticalHeader().setDefaultSectionSize(self._theme.px(_ROW_PX))
        if self.model() is not None:
            self.fit_columns()

    def fit_columns(self) -> None:
        """After other rows came, or another width."""
        model, header, widths = self.model(), self.horizontalHeader(), dict[int, int]()
        of_cell, of_caption = QFontMetrics(self._theme.text), QFontMetrics(self._theme.small)
        for column in range(1, header.count()):
            texts = (str(model.index(row, column).data()) for row in range(model.rowCount()))
            caption = str(model.headerData(column, Qt.Orientation.Horizontal))
            widest = max((of_caption.horizontalAdvance(caption), *map(of_cell.horizontalAdvance, texts)))
            widths[column] = min(widest, self._theme.px(_WIDEST_PX)) + self._theme.px(_GAP_PX)
        name, room = self._theme.px(_NAME_PX), self.viewport().width()
        for column in _LEFT_OUT:
            if is_narrow := name + sum(widths.values()) > room:
                del widths[column]
            self.setColumnHidden(column, is_narrow)
        for column, width in widths.items():
            self.setColumnWidth(column, width)
        self.setColumnWidth(0, max(name, room - sum(widths.values())))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self.fit_columns()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered_row.emit()
        else:
            super().keyPressEvent(event)


class ModelsPage(QWidget):
    """Passive: shows what its methods get."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit, theme = kit, kit.theme
        on_ground(self, "panel")
        self.banner = Banner(theme)
        self._table = ModelTable(theme, self)
        self._sorted = SortedModels(self)
        self._sorted.setSourceModel(self._table)
        self.filter = SearchField(tr("Filter models"), tr("Filter"))
        self.filter.textChanged.connect(self._on_filter)
        self.view = self._make_view(theme)
        self._said = label("", tone="secondary", scale="small", wrap=True)
        self._open = push_button(tr("Open"), primary=True, clicked=self._on_open)
        self._favourite = push_button(tr("Favourite"), clicked=self._on_favourite)
        self._favourite.setCheckable(True)
        self._delete = push_button(tr("Delete…"), clicked=self._on_delete)
        self._question = label("", wrap=True)
        self._yes = push_button(tr("Delete the file"), clicked=self._on_yes)
        self._no = push_button(tr("Keep it"), clicked=self._end_question)
        self._asked: ModelRow | None = None
        self.get_models = GetModels(theme, kit.commands)
        here = QWidget()
        parts = self._make_tools(), self.banner, (self.view, 1), self._make_foot()
        boxes.column(*parts, on=here, margins=0, spacing=8)
        self._parts = QStackedWidget()
        self._parts.addWidget(here)
        self._parts.addWidget(self.get_models)
        boxes.column(self._make_head(theme), (self._parts, 1), on=self, margins=(12, 10, 12, 12), spacing=8)
        self._end_question()
        self._show_choice()

    @property
    def rows(self) -> tuple[ModelRow, ...]:
        """In the order of the table."""
        indexes = (self._sorted.index(n, 0) for n in range(self._sorted.rowCount()))
        return tuple(row for index in indexes if (row := self._sorted.row_at(index)) is not None)

    @property
    def chosen(self) -> ModelRow | None:
        return self._sorted.row_at(self.view.currentIndex())

    def show_searching(self) -> None:
        """The folders are looked through."""
        self._said.setText(tr("Looking through the folders…"))

    def show_problem(self, error: KvdeskError) -> None:
        """The search has failed. The rows stay."""
        self._said.setText(str(error))
        announce(self, str(error), urgent=True)

    def show_rows(self, rows: Sequence[ModelRow], machine: Machine) -> None:
        """These and no others. The one that was chosen stays so."""
        chosen = self.chosen
        self._table.set_rows(rows)
        self.get_models.show_machine(machine)
        self.view.fit_columns()
        self._said.setText(summary(rows, machine))
        path = chosen.path if chosen is not None else None
        for n, row in enumerate(self.rows):
            if row.path == path or (path is None and n == 0):
                self.view.setCurrentIndex(self._sorted.index(n, 0))
        self._show_choice()

    def show_part(self, *, get: bool) -> None:
        """What is on this computer, or what can be downloaded."""
        (self._get_button if get else self._here_button).setChecked(True)
        self._parts.setCurrentIndex(int(get))
        (self.get_models.search if get else self.view).setFocus()

    def leave(self) -> bool:
        """Esc: a question is answered with no. False if there was none."""
        if self._asked is None:
            return False
        self._end_question()
        return True

    # --- making -------------------------------------------------------------------------------------------------------

    def _make_view(self, theme: Theme) -> ModelView:
        view = ModelView(theme)
        view.setModel(self._sorted)
        view.setObjectName("models")  # the style sheet marks the chosen row of this table
        view.setAccessibleName(tr("Models"))
        view.setSortingEnabled(True)
        view.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        view.horizontalHeader().setSortIndicatorClearable(True)
        view.horizontalHeader().setMinimumSectionSize(48)
        make_plain(view)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(lambda at: pop_up(self.menu(), view.viewport().mapToGlobal(at)))
        view.doubleClicked.connect(self._on_open)
        view.entered_row.connect(self._on_open)
        view.selectionModel().currentRowChanged.connect(self._on_current)
        return view

    def _make_head(self, theme: Theme) -> QHBoxLayout:
        name, tip, leave = tr("Back to the chats"), tr("Back to the chats (Esc)"), self._kit.act("chat.write")
        back = IconButton(theme, "chevron-left", name, tip, clicked=leave)
        self._here_button = tab_button(tr("On this computer"), checked=True)
        self._get_button = tab_button(tr("Get models"))
        choice = QButtonGroup(self)
        choice.addButton(self._here_button)
        choice.addButton(self._get_button)
        self._here_button.clicked.connect(lambda: self.show_part(get=False))
        self._get_button.clicked.connect(lambda: self.show_part(get=True))
        title = label(tr("Models"), scale="large")
        return boxes.row(back, title, self._here_button, self._get_button, boxes.Stretch(1), spacing=8)

    def _make_tools(self) -> QHBoxLayout:
        self._folders = folders = push_button(tr("Folders"), tip=tr("Where models are looked for"))
        folders.clicked.connect(lambda: pop_up(self.folders_menu(), below(folders)))
        file = push_button(tr("Open a file…"), clicked=self._kit.act("model.open"))
        return boxes.row((self.filter, 1), folders, file, spacing=8)

    def _make_foot(self) -> QHBoxLayout:
        buttons = self._no, self._yes, self._delete, self._favourite, self._open
        return boxes.row((self._said, 1), (self._question, 1), *buttons, spacing=8)

    # --- what a person does -------------------------------------------------------------------------------------------

    def _on_filter(self, words: str) -> None:
        self._sorted.set_words(words)
        if not self.view.currentIndex().isValid() and self._sorted.rowCount():
            self.view.setCurrentIndex(self._sorted.index(0, 0))
        self._show_choice()

    def _on_current(self) -> None:
        if self._asked is not None and (self.chosen is None or self.chosen.path != self._asked.path):
            self._end_question()
        self._show_choice()

    def folders_menu(self) -> QMenu:
        """Where models are looked for besides the folders of other applications."""
        models, menu = self._kit.commands.models, QMenu(self)
        menu.addAction(tr("Add a folder…"), self._on_add_folder)
        for folder in map(Path, self._kit.store.settings.current.model_folders):
            text = tr("List {folder} no more").format(folder=short_name(folder).replace("&", "&&"))
            menu.addAction(text, partial(models.drop_folder, folder))
        menu.addSeparator()
        menu.addAction(tr("Look again"), models.refresh)
        return menu

    def _on_add_folder(self) -> None:
        if folder := ask_for_folder(self, tr("Add a folder of models")):
            self._kit.commands.models.add_folder(folder)

    def _on_open(self) -> None:
        if (row := self.chosen) is not None and row.can_open:
            self._kit.commands.open_model(row.path)

    def _on_favourite(self) -> None:
        if (row := self.chosen) is not None:
            self._kit.commands.models.mark(row.path, favourite=not row.favourite)

    def _on_delete(self) -> None:
        if (row := self.chosen) is None:
            return
        self._asked = row
        said = tr("Delete {file} ({size}) from the disk? The application that downloaded it loses it too.")
        self._question.setText(said.format(file=row.path.name, size=row.cells[4].text))
        self._show_question(asking=True)
        self._no.setFocus()

    def _on_yes(self) -> None:
        row = self._asked
        self._end_question()
        if row is not None:
            self._kit.commands.models.delete(row.path)

    def _end_question(self) -> None:
        self._asked = None
        self._show_question(asking=False)

    def menu(self) -> QMenu | None:
        """Of the chosen model."""
        if (row := self.chosen) is None:
            return None
        menu = QMenu(self)
        menu.addAction(tr("Open"), self._on_open).setEnabled(row.can_open)
        menu.addAction(tr("No favourite") if row.favourite else tr("Favourite"), self._on_favourite)
        menu.addAction(tr("Delete…"), self._on_delete)
        return menu

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Delete) and self.view.hasFocus():
            self._on_delete()
        else:
            super().keyPressEvent(event)

    def _show_question(self, *, asking: bool) -> None:
        for part in (self._question, self._yes, self._no):
            part.setVisible(asking)
        for part in (self._said, self._delete, self._favourite, self._open):
            part.setVisible(not asking)

    def _show_choice(self) -> None:
        row = self.chosen
        self._open.setEnabled(row is not None and row.can_open)
        self._open.setToolTip(row.problem if row is not None else "")
        self._favourite.setEnabled(row is not None)
        self._favourite.setChecked(row is not None and row.favourite)
        self._delete.setEnabled(row is not None)
