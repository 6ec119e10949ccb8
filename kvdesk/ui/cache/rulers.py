"""A ruler per conversation: which positions its sequence holds, where its holes are, and the next valid position."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFocusEvent, QFontMetrics, QHelpEvent, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from kvdesk.protocol.operations import BatchRefused
from kvdesk.translation import marked, tr
from kvdesk.ui.cache.refused_note import RefusedNote
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.key_tips import is_by_tab
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.cells.ruler_row import RulerRow
from kvdesk.viewmodel.graphs.series import round_up

ROW_PX: Final = 20
_GAP: Final = 12
_EMPTY: Final = marked("Each conversation in the cache gets a ruler of its positions.")
_RIGHT: Final = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight


class Rulers(QWidget):
    """A heading with the scale, as many rulers as there are sequences in the cache, all in the same scale."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows: tuple[RulerRow, ...] = ()
        self._rulers: list[Ruler] = []
        self._notes: dict[int, RefusedNote] = {}
        self._arranged: list[QWidget] = []
        self._heading = _Heading(theme)
        self._column = boxes.column(self._heading, on=self, margins=0, spacing=0)
        self.setAccessibleName(tr("Positions of each conversation"))

    def show_rows(self, rows: Sequence[RulerRow], limit: int) -> None:
        """`limit`: positions a sequence can have; the scale ends at an even number, there at the latest."""
        self.rows = tuple(rows)
        self.setAccessibleDescription("; ".join(f"{row.name}: {row.range_text}" for row in rows))
        for seq_id in [s for s, note in self._notes.items() if not self._holds(note)]:
            self._dismiss(seq_id)
        most = max((row.span.pos_max + 1 for row in rows), default=0)
        scale = max(min(int(round_up(max(most, 100))), limit), most, 1)
        metrics = QFontMetrics(self._theme.mono_small)
        room = max((metrics.horizontalAdvance(row.range_text) for row in rows), default=0)
        self._heading.show_scale(scale if rows else 0, room)
        while len(self._rulers) < len(rows):
            self._rulers.append(Ruler(self._theme))
        for ruler in self._rulers[len(rows) :]:
            ruler.hide()
        for ruler, row in zip(self._rulers, rows, strict=False):
            ruler.show_row(row, scale, room)
            ruler.show()
        self._arrange()

    def show_refused(self, event: BatchRefused) -> None:
        """Explain a refused batch under the ruler of its sequence, until it is dismissed or the sequence changes."""
        self._dismiss(event.seq_id)
        note = RefusedNote(self._theme, event)
        note.dismissed.connect(self._dismiss)
        self._notes[event.seq_id] = note
        self._holds(note)
        self._arrange()

    def _holds(self, note: RefusedNote) -> bool:
        seq_id, x = note.event_shown.seq_id, note.event_shown.x
        row = next((row for row in self.rows if row.span.seq_id == seq_id), None)
        if row is None:  # a sequence without cells has no ruler
            return note.still_holds(-1, -1, 0)
        ink = _ink(self._theme, row)
        note.scale.show_positions(x, note.event_shown.y, row.positions, ink)
        return note.still_holds(row.span.pos_min, row.span.pos_max, row.span.n_cells)

    def _arrange(self) -> None:
        """Every note under its ruler; notes of sequences without one at the end."""
        wanted: list[QWidget] = [self._heading]
        rest = dict(self._notes)
        for ruler, row in zip(self._rulers, self.rows, strict=False):
            wanted.append(ruler)
            if row.span.seq_id in rest:
                wanted.append(rest.pop(row.span.seq_id))
        wanted += [*rest.values(), *self._rulers[len(self.rows) :]]
        if wanted != self._arranged:
            self._arranged = wanted
            for place, widget in enumerate(wanted):
                self._column.insertWidget(place, widget)

    def _dismiss(self, seq_id: int) -> None:
        note = self._notes.pop(seq_id, None)
        if note is not None:
            boxes.drop(self._column, note)


class _Line(QWidget):
    """One line, as wide as there is room."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        return QSize(200, self._theme.px(ROW_PX))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class _Heading(_Line):
    """The scale over the rulers and the texts beside them; without rulers, what will appear here."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._scale = self._range_px = 0

    def show_scale(self, scale: int, range_px: int) -> None:
        """0: there are no rulers. `range_px`: of the widest text of the ranges below."""
        if (scale, range_px) != (self._scale, self._range_px):
            self._scale, self._range_px = scale, range_px
            self.setAccessibleName(
                tr("Scale: positions 0 to {scale}").format(scale=f"{scale:,}") if scale else tr(_EMPTY)
            )
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self._theme.small)
        painter.setPen(QColor(self._theme.colours.secondary))
        metrics = QFontMetrics(self._theme.small)
        middle = Qt.AlignmentFlag.AlignVCenter
        if not self._scale:
            painter.drawText(
                self.rect(), middle, metrics.elidedText(tr(_EMPTY), Qt.TextElideMode.ElideRight, self.width())
            )
            return
        left, width, range_right, next_right = _places(self._theme, self.width(), self._range_px)
        title = metrics.elidedText(tr("positions"), Qt.TextElideMode.ElideRight, int(left) - 16)
        painter.drawText(QRectF(16, 0, left, self._theme.px(ROW_PX)), middle, title)
        painter.drawText(QRectF(0, 0, range_right, self._theme.px(ROW_PX)), _RIGHT, tr("held"))
        painter.drawText(QRectF(0, 0, next_right, self._theme.px(ROW_PX)), _RIGHT, tr("next"))
        painter.setFont(self._theme.mono_small)
        painter.drawText(QRectF(left, 0, width, self._theme.px(ROW_PX)), middle, "0")
        painter.drawText(QRectF(left, 0, width, self._theme.px(ROW_PX)), _RIGHT, f"{self._scale:,}")


class Ruler(_Line):
    """One sequence: title, bar, positions held, next valid position. With the keyboard, its tip is shown on focus."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._row: RulerRow | None = None
        self._scale, self._range_px = 1, 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def show_row(self, row: RulerRow, scale: int, range_px: int) -> None:
        """`range_px`: of the widest text of the ranges of all rulers."""
        now = self._scale, self._range_px
        if self._row is not None and (scale, range_px) == now and row.says_the_same(self._row):
            return
        self._row, self._scale, self._range_px = row, scale, range_px
        self.setAccessibleName(tr("Positions of {name}: {range_text}").format(name=row.name, range_text=row.range_text))
        self.setAccessibleDescription(row.tip)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        row = self._row
        if row is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours, middle = self._theme.colours, Qt.AlignmentFlag.AlignVCenter
        left, width, range_right, next_right = _places(self._theme, self.width(), self._range_px)
        if self.hasFocus():
            painter.fillRect(self.rect(), QColor(colours.hover))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_ink(self._theme, row))
        painter.drawEllipse(QRectF(0, self._theme.px(ROW_PX) / 2 - 4, 8, 8))
        painter.setFont(self._theme.small)
        painter.setPen(QColor(colours.text))
        metrics, room = QFontMetrics(self._theme.small), left - 24
        number = f"{row.span.seq_id}" if row.branch and not row.follows else ""
        if number:
            room -= metrics.horizontalAdvance(number) + 6
            painter.drawText(QRectF(0, 0, left - 8, self._theme.px(ROW_PX)), _RIGHT, number)
        title = metrics.elidedText(row.short_name, Qt.TextElideMode.ElideRight, int(room))
        painter.drawText(QRectF(16, 0, left, self._theme.px(ROW_PX)), middle, title)
        self._draw_bar(painter, row, left, width)
        painter.setFont(self._theme.mono_small)
        painter.setPen(QColor(colours.secondary))
        mono, start = QFontMetrics(self._theme.mono_small), left + width + _GAP
        ranges = mono.elidedText(row.range_text, Qt.TextElideMode.ElideRight, int(range_right - start) + 1)
        painter.drawText(QRectF(0, 0, range_right, self._theme.px(ROW_PX)), _RIGHT, ranges)
        painter.setPen(QColor(colours.text))
        painter.drawText(QRectF(0, 0, next_right, self._theme.px(ROW_PX)), _RIGHT, row.next_text)

    def _draw_bar(self, painter: QPainter, row: RulerRow, left: float, width: float) -> None:
        """Held positions in the conversation's colour; holes as a thin line; a mark at the next valid position."""
        colours, ink = self._theme.colours, _ink(self._theme, row)
        middle, step = self._theme.px(ROW_PX) / 2, width / self._scale
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.fillRect(QRectF(left, middle - 1, width, 2), QColor(colours.cell_span))
        for start, stop in row.held:
            painter.fillRect(QRectF(left + start * step, middle - 4, max((stop - start) * step, 1.0), 8), ink)
        for start, stop in row.holes:  # wide enough to be seen, however short
            box = QRectF(left + start * step, middle - 4, max((stop - start) * step, 2.0), 8)
            painter.fillRect(box, QColor(colours.panel))
            painter.fillRect(box.adjusted(0, 3.5, 0, -3.5), QColor(colours.text))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        x = left + (row.span.pos_max + 1) * step
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.text))
        painter.drawRect(QRectF(x, middle - 6, 1.5, 12))
        painter.drawPolygon(
            QPolygonF([QPointF(x - 3, middle - 8), QPointF(x + 4.5, middle - 8), QPointF(x + 0.75, middle - 4)])
        )

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent) and self._row is not None:
            QToolTip.showText(event.globalPos(), plain_tip(self._row.tip), self)
            return True
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if is_by_tab(event) and self._row is not None:
            QToolTip.showText(self.mapToGlobal(QPoint(0, self._theme.px(ROW_PX))), plain_tip(self._row.tip), self)


def _places(theme: Theme, width: int, range_px: int) -> tuple[float, float, float, float]:
    """Left end and width of the bars, right ends of the columns beside them, in px.

    range_px   of the widest text of the ranges, which gets half as much as the bar at most
    """
    mono = QFontMetrics(theme.mono_small)
    next_width, range_width = mono.horizontalAdvance("88,888"), mono.horizontalAdvance("8,888–88,888")
    range_width = max(range_width, min(range_px, round(width * 0.35)))
    left = min(theme.px(180), width * 0.34)
    bar = max(width - left - range_width - next_width - 2 * _GAP, 8)
    return left, bar, left + bar + _GAP + range_width, float(width)


def _ink(theme: Theme, row: RulerRow) -> QColor:
    return QColor(theme.colours.secondary) if row.colour is None else theme.branch_colour(row.colour)
