"""The command palette: every action of the window, found by a few letters. It shows the list of shortcuts too."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListView, QWidget
from shiboken6 import isValid

from kvdesk.translation import tr
from kvdesk.ui.shell.action_list import ActionDelegate, ActionModel, rows_of
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.access.input_method import composes
from kvdesk.ui.widgets.actions import Action, ActionGroup, ActionSet
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.search_field import clearable
from kvdesk.ui.widgets.style.theme import Theme

_WIDTH_PX: Final = 640
_EDGE_PX: Final = 16  # of the window, that stays free
_TOP_PX: Final = 48
_ROOM_PX: Final = 12  # below the last row
_STEPS: Final = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_Tab: 1, Qt.Key.Key_Backtab: -1}
_PAGE: Final = 8


class CommandPalette(QFrame):
    """Lies over the window while it has the focus. Enter runs the chosen action, Esc leaves it.

    `widget_keys`: keys that parts of the window have, for the list of shortcuts; they cannot be run from here.
    `settings`: found by their letters, but not listed without any.
    """

    def __init__(
        self,
        window: QWidget,
        theme: Theme,
        actions: ActionSet,
        widget_keys: Sequence[ActionGroup],
        settings: ActionGroup,
    ) -> None:
        super().__init__(window)
        self.setProperty("card", "palette")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._window, self._actions, self._widget_keys = window, actions, tuple(widget_keys)
        self._settings = settings
        self._shows_keys = False
        self._before: QWidget | None = None
        self.edit = QLineEdit()
        clearable(self.edit)
        self.edit.textChanged.connect(self._on_text_changed)
        self._model = ActionModel()
        self._list = QListView()
        self._list.setModel(self._model)
        self._list.setItemDelegate(ActionDelegate(theme, self._list))
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setUniformItemSizes(False)
        self._list.setAccessibleName(tr("Actions"))
        self._list.clicked.connect(self._run)
        self._none = label(tr("No action has these letters."), tone="secondary")
        self._none.setContentsMargins(12, 8, 12, 8)
        self._none.hide()
        boxes.column(self.edit, self._none, (self._list, 1), on=self, margins=8, spacing=8)
        for watched in (window, self.edit):
            watched.installEventFilter(self)
        composes(self.edit)
        self.hide()

    @property
    def chosen(self) -> Action | None:
        """The action that Enter runs."""
        row = self._model.row(self._list.currentIndex())
        return row.action if row is not None else None

    def open(self) -> None:
        """Show all actions."""
        self._open(shows_keys=False)

    def open_shortcuts(self) -> None:
        """Show all that has keys."""
        self._open(shows_keys=True)

    def close_palette(self) -> None:
        """Leave it; the focus goes back to where it was."""
        if self.isHidden():
            return
        before = self._before
        self.hide()
        if before is not None and isValid(before) and before.isVisible():  # messages come and go meanwhile
            before.setFocus(Qt.FocusReason.OtherFocusReason)

    def _open(self, *, shows_keys: bool) -> None:
        self._shows_keys = shows_keys
        name = tr("Shortcuts") if shows_keys else tr("Command palette")
        self.edit.setAccessibleName(name)
        self.edit.setPlaceholderText(tr("Find a shortcut") if shows_keys else tr("Find an action"))
        if self.isHidden():
            self._before = self._window.focusWidget()
        self.edit.clear()
        self._fill()
        self.show()
        self.raise_()
        self.edit.setFocus(Qt.FocusReason.PopupFocusReason)
        announce(self, name)

    def _fill(self) -> None:
        more = self._widget_keys if self._shows_keys else (self._settings,) if self.edit.text().strip() else ()
        groups = (*self._actions.groups, *more)
        self._model.show(rows_of(groups, self.edit.text(), with_keys=self._shows_keys))
        found = self._model.rowCount() > 0
        self._none.setVisible(not found)
        self._list.setVisible(found)
        self._place()
        self._choose(self._model.step(-1, 1))

    def _choose(self, row: int) -> None:
        if row < 0:
            return
        index = self._model.index(row, 0)
        self._list.setCurrentIndex(index)
        self._list.scrollTo(self._model.index(max(row - 1, 0), 0))  # with its heading
        self._list.scrollTo(index)
        if self.isVisible():
            announce(self.edit, str(index.data(Qt.ItemDataRole.AccessibleTextRole)))

    def _move(self, by: int) -> None:
        row = self._list.currentIndex().row()
        for _ in range(abs(by)):
            row = self._model.step(row, 1 if by > 0 else -1)
        self._choose(row)

    def _place(self) -> None:
        area = self._window.rect()
        width = min(self._theme.px(_WIDTH_PX), area.width() - 2 * _EDGE_PX)
        top = min(_TOP_PX, area.height() // 8)
        needed = self.sizeHint().height()
        if n_rows := self._model.rowCount():
            rows = sum(self._list.sizeHintForRow(row) for row in range(n_rows))
            needed += rows + self._theme.px(_ROOM_PX) - self._list.sizeHint().height()
        height = min(area.height() - top - 2 * _EDGE_PX, round(area.height() * 0.72), needed)
        self.setGeometry((area.width() - width) // 2, top, width, height)

    def _on_text_changed(self, _text: str) -> None:
        if self.isVisible():
            self._fill()

    def _run(self) -> None:
        """Run what is chosen. Where that cannot be done the list stays, and it is said why."""
        action = self.chosen
        if action is None:
            return
        if why := action.refusal():
            self._actions.refuse(why)
            return
        self.close_palette()
        action.run()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window:
            if event.type() == QEvent.Type.Resize and self.isVisible():
                self._place()
            return False
        if isinstance(event, QFocusEvent) and event.type() == QEvent.Type.FocusOut:
            if event.reason() not in (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason):
                self._before = None
                self.hide()
            return False
        if isinstance(event, QKeyEvent):
            return self._take_key(event)
        return False

    def _take_key(self, event: QKeyEvent) -> bool:
        """Keys of the list, which the field has while one types."""
        key = Qt.Key(event.key())
        ours = key in (Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp)
        if not ours and key not in _STEPS:
            return False
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # Esc is the window's elsewhere
            return True
        if event.type() != QEvent.Type.KeyPress:
            return False
        if key in _STEPS:
            self._move(_STEPS[key])
        elif key in (Qt.Key.Key_PageDown, Qt.Key.Key_PageUp):
            self._move(_PAGE if key == Qt.Key.Key_PageDown else -_PAGE)
        elif key == Qt.Key.Key_Escape:
            self.close_palette()
        else:
            self._run()
        return True
