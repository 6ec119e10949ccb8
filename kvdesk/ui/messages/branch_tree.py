"""The branches of the shown conversation as a small tree over its messages: one walks in it, and the chat follows."""

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QFrame, QHeaderView, QTreeWidget, QTreeWidgetItem

from kvdesk.conversations.branch_rows import BranchRow
from kvdesk.graphemes import cut
from kvdesk.message import MessageId
from kvdesk.translation import tr
from kvdesk.ui.messages.branch_switch import show_branch
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.typing import passes_typing_on
from kvdesk.ui.widgets.controls import IconButton, has_focus, label, plain_tip
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.timers import once
from kvdesk.viewmodel.palette import branch_index

_WALK_MS: Final = 120  # the chat follows after this pause
_ROWS: Final = 7  # that are seen at once
_TEXT: Final = 80  # characters of a message
_TIP: Final = 500  # and of its tooltip
_ROW: Final = Qt.ItemDataRole.UserRole
_ICON_PX: Final = 14


class BranchTree(QFrame):
    """Hidden until it is opened. A full dot: its beginning is in the cache; bold: it is on the branch that is shown."""

    opened = Signal()

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        theme = kit.theme
        self._kit, self._theme = kit, theme
        self._rows: tuple[BranchRow, ...] = ()
        self._items: list[QTreeWidgetItem] = []
        self._shown: frozenset[MessageId] = frozenset()
        self._ends: Mapping[MessageId, tuple[int, int]] | None = None
        self._colour = 0
        self._silent = False
        self.setProperty("card", "ask")
        self._note = label("", tone="secondary", scale="small")
        close = IconButton(theme, "close", tr("Close the branches"), tr("Close (Esc)"), clicked=self.close_tree)
        self.tree = QTreeWidget()
        self.tree.setHeaderHidden(True)
        self.tree.setColumnCount(2)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.tree.setAccessibleName(tr("Branches"))
        passes_typing_on(self.tree)
        self.tree.setFrameShape(QFrame.Shape.NoFrame)
        self.tree.setIndentation(16)
        self.tree.setExpandsOnDoubleClick(False)
        self.tree.currentItemChanged.connect(self._on_current_changed)
        self.tree.itemActivated.connect(self._on_walked)
        self._walking = once(self, _WALK_MS, self._on_walked)
        head = boxes.row(label(tr("Branches"), weight="strong"), (self._note, 1), close, spacing=8)
        boxes.column(head, self.tree, on=self, margins=(12, 6, 6, 6), spacing=4)
        theme.changed.connect(self._draw)
        self.hide()

    def open_tree(self) -> None:
        """Show it, with the keyboard in it."""
        self.show()
        self.opened.emit()
        self.tree.setFocus()

    def close_tree(self) -> None:
        """One goes on writing, unless the keyboard is elsewhere."""
        if self.isVisible():
            had_focus = has_focus(self)
            self.hide()
            if had_focus:
                self._kit.actions.run("chat.write")

    def show_rows(self, rows: Sequence[BranchRow], shown: frozenset[MessageId], colour: int) -> None:
        """The branches, the messages that are shown, and the colour of the conversation."""
        rows = tuple(rows)
        is_same = [row.messages[0] for row in rows] == [row.messages[0] for row in self._rows]
        self._rows, self._shown, self._colour = rows, shown, colour
        self._silent = True
        if not (is_same and self._items):
            self._make_items()
        deepest = next((n for n in reversed(range(len(rows))) if rows[n].messages[0] in shown), -1)
        current = self.tree.currentItem()
        here = current.data(0, _ROW) if current is not None else -1
        if deepest >= 0 and not (0 <= here < len(rows) and rows[here].messages[0] in shown):
            self.tree.setCurrentItem(self._items[deepest])
        self._silent = False
        self._draw()

    def show_cached(self, ends: Mapping[MessageId, tuple[int, int]] | None) -> None:
        """The branches in the cache by their last messages: number and seq_id. None if nobody knows."""
        if ends != self._ends:
            self._ends = ends
            self._draw()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _make_items(self) -> None:
        self.tree.clear()
        self._items = []
        for number, row in enumerate(self._rows):
            item = QTreeWidgetItem(["", ""])
            item.setData(0, _ROW, number)
            self._items.append(item)
            if row.parent >= 0:
                self._items[row.parent].addChild(item)
            else:
                self.tree.addTopLevelItem(item)
        self.tree.expandAll()

    def _draw(self) -> None:
        held = self._held()
        self._note.setText("" if self._ends is not None else tr("Open the inspector to see which are in the cache."))
        for number, (row, item) in enumerate(zip(self._rows, self._items, strict=True)):
            who = tr("You") if row.role == "user" else tr("Answer")
            line = cut(" ".join(row.text[: 4 * _TEXT].split()), _TEXT) or "…"
            more = tr("+{n} more").format(n=f"{len(row.messages) - 1:,}") if len(row.messages) > 1 else ""
            item.setText(0, f"{who}: {line}")
            item.setToolTip(0, plain_tip(cut(row.text, _TIP)))
            is_shown = row.messages[0] in self._shown
            item.setFont(0, self._theme.strong if is_shown else self._theme.text)
            branch, seq_id = held.get(number, (None, -1))
            if self._ends is not None:
                item.setIcon(0, self._dot(branch))
            where = tr("sequence {seq_id}").format(seq_id=seq_id) if branch is not None else tr("not in the cache")
            is_end = not any(other.parent == number for other in self._rows)
            item.setText(1, "  ·  ".join(filter(None, (more, where if is_end and branch is not None else ""))))
            item.setFont(1, self._theme.small)
            item.setForeground(1, QColor(self._theme.colours.secondary))
            said = (item.text(0), more, tr("shown") if is_shown else "", "" if self._ends is None else where)
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, tr(", ").join(part for part in said if part))
        self.tree.ensurePolished()  # rows are as high as the style sheet wants
        self.tree.setFixedHeight(self.tree.sizeHintForRow(0) * min(max(len(self._rows), 2), _ROWS) + 4)

    def _held(self) -> dict[int, tuple[int, int]]:
        """The rows of which the beginning is in the cache, and number and seq_id of the branch there, of several the
        first.
        """
        held: dict[int, tuple[int, int]] = {}
        for number in reversed(range(len(self._rows))):  # those that follow come later
            row = self._rows[number]
            ends = [self._ends[name] for name in row.messages if self._ends and name in self._ends]
            found = min([*ends, *([held[number]] if number in held else [])], default=None)
            if found is not None:
                held[number] = found
                if row.parent >= 0:
                    held[row.parent] = min(found, held.get(row.parent, found))
        return held

    def _dot(self, branch: int | None) -> QIcon:
        """Full in the colour of the branch, or a ring if nothing of it is in the cache."""
        picture = QPixmap(2 * _ICON_PX, 2 * _ICON_PX)
        picture.setDevicePixelRatio(2)
        picture.fill(Qt.GlobalColor.transparent)
        colour = QColor(self._theme.branch_colour(branch_index(self._colour, branch or 1)))
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colour, 1.5))
        if branch is not None:
            painter.setBrush(colour)
        painter.drawEllipse(QRectF(3, 3, 8, 8))
        painter.end()
        icon = QIcon(picture)
        icon.addPixmap(picture, QIcon.Mode.Selected)  # the same colour there
        return icon

    def _on_current_changed(self) -> None:
        if not self._silent:
            self._walking.start()

    def _on_walked(self) -> None:
        """Show the branch of the current row; nothing if it is shown already."""
        self._walking.stop()
        item = self.tree.currentItem()
        if item is None:
            return
        last, selected = self._rows[item.data(0, _ROW)].messages[-1], self._kit.store.selected
        if last not in self._shown and selected is not None:
            show_branch(self._kit, selected, last)
