"""The rows of the command palette: headings, and actions with their keys; what cannot be done says why."""

from collections.abc import Iterable, Sequence
from typing import Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from kvdesk.folding import fold
from kvdesk.translation import tr
from kvdesk.ui.widgets.actions import Action, ActionGroup
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import dataclass
from kvdesk.viewmodel.fuzzy import Match, match

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE: Final = Qt.ItemDataRole.UserRole + 1
_PAD_PX: Final = 6
_LETTERS_OF_TIP: Final = 5  # at least, of a word that is looked for in tips


@dataclass(frozen=True, slots=True)
class Row:
    """A heading, or an action; `why` it cannot be done now; the places of the letters that were typed."""

    text: str
    action: Action | None = None
    why: str = ""
    places: frozenset[int] = frozenset()

    @property
    def spoken(self) -> str:
        """For a screen reader."""
        keys = self.action.all_keys if self.action is not None else ""
        return tr(", ").join(part for part in (self.text, keys, self.why) if part)


def rows_of(groups: Iterable[ActionGroup], wanted: str, *, with_keys: bool = False) -> list[Row]:
    """Groups with headings; with something wanted the matches, best first. `with_keys`: only what has keys."""
    rows: list[Row] = []
    ranked: list[tuple[int, int, Row]] = []  # a label, then one with the title of its group, then a tip
    for group in groups:
        actions = [action for action in group.actions if action.keys or not with_keys]
        if not wanted.strip():
            if actions:
                rows.append(Row(group.title))
            rows += [Row(action.label, action, "" if with_keys else action.refusal()) for action in actions]
            continue
        for action in actions:
            ways = (match(wanted, action.label), match(wanted, f"{action.label} {group.title}"))
            rank = next((i for i, way in enumerate(ways) if way is not None), len(ways))
            found = ways[rank] if rank < len(ways) else _in_tip(wanted, action.tip)
            if found is not None:
                why = "" if with_keys else action.refusal()
                ranked.append((rank, -found.score, Row(action.label, action, why, found.places)))
    ranked.sort(key=lambda one: one[:2])
    return rows or [row for *_, row in ranked]


def _in_tip(wanted: str, tip: str) -> Match | None:
    """Words begin with each wanted one; fewer letters would be in most sentences. Nothing of it is in the label."""
    words, tip = fold(wanted).split(), fold(f" {tip}")
    is_long = all(len(word) >= _LETTERS_OF_TIP or not word.isascii() for word in words)
    return Match(0, frozenset()) if is_long and all(f" {word}" in tip for word in words) else None


class ActionModel(QAbstractListModel):
    """Rows, of which headings cannot be chosen."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[Row] = ()

    def show(self, rows: Sequence[Row]) -> None:
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, index: Index) -> Row | None:
        return self._rows[index.row()] if index.isValid() else None

    def step(self, start: int, by: int) -> int:
        """The next row from `start` on in steps of `by` that is an action; the other end after the last. -1: none."""
        for n in range(1, len(self._rows) + 1):
            at = (start + by * n) % len(self._rows)
            if self._rows[at].action is not None:
                return at
        return -1

    def rowCount(self, _parent: Index | None = None) -> int:
        return len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.row(index)
        if row is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return row.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return row.spoken
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.why or (row.action.tip if row.action is not None else "") or None
        return row if role == ROW_ROLE else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        row = self.row(index)
        if row is None or row.action is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable


class ActionDelegate(QStyledItemDelegate):
    """The label with the typed letters marked, its keys at the right, and below why it cannot be done."""

    def __init__(self, theme: Theme, view: QListView) -> None:
        super().__init__(view)
        self._theme, self._view = theme, view

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        row: Row = index.data(ROW_ROLE)
        height = QFontMetrics(self._theme.text).lineSpacing() + 2 * _PAD_PX
        if row.why:
            height += QFontMetrics(self._theme.small).lineSpacing()
        return QSize(80, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: Row = index.data(ROW_ROLE)
        rect: QRect = option.rect
        colours = self._theme.colours
        painter.save()
        state: QStyle.StateFlag = option.state
        if state & QStyle.StateFlag.State_Selected:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.selection))
            painter.drawRoundedRect(rect.adjusted(4, 0, -4, 0), 6, 6)
        inside = rect.adjusted(12, _PAD_PX, -12, -_PAD_PX)
        if row.action is None:
            painter.setFont(self._theme.small)
            painter.setPen(QColor(colours.secondary))
            painter.drawText(inside, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, row.text)
        else:
            self._paint_action(painter, inside, row, row.action)
        painter.restore()

    def _paint_action(self, painter: QPainter, inside: QRect, row: Row, action: Action) -> None:
        colours = self._theme.colours
        keys, mono = action.all_keys, QFontMetrics(self._theme.mono_small)
        first = QRect(inside.left(), inside.top(), inside.width(), QFontMetrics(self._theme.text).lineSpacing())
        painter.setFont(self._theme.mono_small)
        painter.setPen(QColor(colours.secondary))
        painter.drawText(first, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, keys)
        room = first.width() - (mono.horizontalAdvance(keys) + 16 if keys else 0)
        text = QFontMetrics(self._theme.text).elidedText(row.text, Qt.TextElideMode.ElideRight, room)
        painter.setPen(QColor(colours.secondary if row.why else colours.text))
        self._layout_of(text, row.places).draw(painter, first.topLeft())
        if row.why:
            painter.setFont(self._theme.small)
            below = inside.adjusted(0, first.height(), 0, 0)
            why = QFontMetrics(self._theme.small).elidedText(row.why, Qt.TextElideMode.ElideRight, below.width())
            painter.drawText(below, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, why)

    def _layout_of(self, text: str, places: frozenset[int]) -> QTextLayout:
        """The text in one line, the letters at `places` underlined."""
        layout = QTextLayout(text, self._theme.text)
        marked = QTextCharFormat()
        marked.setFontUnderline(True)
        marked.setUnderlineColor(QColor(self._theme.colours.accent))
        ranges = []
        for place in sorted(places):
            if place < len(text):
                one = QTextLayout.FormatRange()
                one.start, one.length, one.format = place, 1, marked
                ranges.append(one)
        layout.setFormats(ranges)
        layout.beginLayout()
        layout.createLine()
        layout.endLayout()
        return layout
