"""The cursor and the selection of a map of cells, by mouse and keyboard.

Mouse      wheel scrolls, with Ctrl it zooms; middle button, or Space held, drags the map; a click selects a cell, a
           drag or Shift a range
Keyboard   arrows, Home, End, Page Up and Down move the cursor, with Shift they select, with Ctrl arrows move the map;
           Space selects, Delete lets go; + and - zoom, 0 shows everything again
"""

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent

from kvdesk.ui.map.key_bindings import ACTIONS, ARROWS, MOVES, moved
from kvdesk.ui.map.scrolled_map import ScrolledMap
from kvdesk.ui.map.selection import MapSelection
from kvdesk.ui.widgets.access.key_tips import is_by_tab


class PointedMap(ScrolledMap):
    """Knows which cell is meant, and which are selected."""

    cells_selected = Signal(int, int, int, int)
    """Cache, stream, first cell, last cell + 1 of what a person selected; (-1, -1, 0, 0) for no cell."""
    pointed_at = Signal(int, int, int)
    """Cache, stream and cell under the pointer or the cursor; (-1, -1, -1) for none."""

    def __init__(self) -> None:
        super().__init__()
        self._selection = MapSelection()
        self._at_mouse = False
        self._drag: QPointF | None = None
        self._selecting = self._space = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def _describe(self) -> None:
        """Say what the cursor is on, or what is selected."""
        raise NotImplementedError

    def _on_selection_changed(self) -> None:
        """Draw and say what is selected."""
        raise NotImplementedError

    # --- cursor and selection -----------------------------------------------------------------------------------------

    def _set_at(self, at: tuple[int, int] | None, *, by_mouse: bool = False) -> None:
        self._at_mouse = by_mouse
        if at != self._selection.at:
            self._selection.at = at
            self._describe()
            self.update()
            strip = self.strips[at[0]] if at is not None and at[0] < len(self.strips) else None
            if strip is None or at is None:
                self.pointed_at.emit(-1, -1, -1)
            else:
                self.pointed_at.emit(strip.map_index, strip.stream_index, at[1])

    def _select(self, at: tuple[int, int], *, extend: bool) -> None:
        strip = self.strips[at[0]]
        if extend:
            self._selection.extend(at[0], strip, at[1])
        else:
            self._selection.begin(at[0], strip, at[1])
        self._tell_selection()

    def clear_selection(self) -> None:
        """Select no cell, and emit that."""
        if self._selection.runs:
            self._selection.clear()
            self._tell_selection()

    def _tell_selection(self) -> None:
        self._on_selection_changed()
        if found := self._selection.by_hand:
            self.cells_selected.emit(*found[0], *found[1:])
        else:
            self.cells_selected.emit(-1, -1, 0, 0)

    def _go(self, at: tuple[int, int], *, select: bool) -> None:
        """Move the cursor by keyboard; the map follows."""
        if select and self._selection.by_hand is None and self._selection.at is not None:
            self._select(self._selection.at, extend=False)
        self._set_at(at)
        self._bring_into_view(*at)
        if select:
            self._select(at, extend=True)

    # --- mouse and keys -----------------------------------------------------------------------------------------------

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = self._cell_under(event.position())
        if self._drag is not None:
            self.move_by(event.position() - self._drag)
            self._drag = event.position()
        elif self._selecting and at is not None:
            self._set_at(at, by_mouse=True)
            self._select(at, extend=True)
        elif not self._selecting:
            self._set_at(at, by_mouse=True)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.MiddleButton or self._space:
            self._drag = event.position()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        elif event.button() == Qt.MouseButton.LeftButton:
            at = self._cell_under(event.position())
            if at is None:
                self.clear_selection()
                return
            self._selecting = True
            self._set_at(at, by_mouse=True)
            self._select(at, extend=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self._drag, self._selecting = None, False
        self.unsetCursor()

    def leaveEvent(self, _event: object) -> None:
        self._set_at(None)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if is_by_tab(event) and self.strips:
            self._go(self._selection.at or (0, 0), select=False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._space = False
        self._set_at(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.strips or not self._heed(event):
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space and not event.isAutoRepeat() and self._space:
            self._space = False
            if self._drag is None and self._selection.at is not None:
                self._select(self._selection.at, extend=False)
            self._drag = None
            self.unsetCursor()

    def _heed(self, event: QKeyEvent) -> bool:
        """Do what a key asks for; False when it asks for nothing here."""
        key, modifiers = Qt.Key(event.key()), event.modifiers()
        if key in ARROWS and modifiers & Qt.KeyboardModifier.ControlModifier:
            columns, rows = ARROWS[key]
            self.move_by(QPointF(-columns * self.width(), -rows * self.height()) / 8)
        elif key in MOVES:
            at = moved(key, self.strips, self._viewport, self._selection.at or (0, 0))
            self._go(at, select=bool(modifiers & Qt.KeyboardModifier.ShiftModifier))
        elif key == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._space = True
        elif key in ACTIONS:
            getattr(self, ACTIONS[key])()
        else:
            return False
        return True
