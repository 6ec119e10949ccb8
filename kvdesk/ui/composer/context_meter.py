"""How full the context is, and with what: one bar with its numbers; pressed, it says what each part is."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import NumberLabel, set_tone
from kvdesk.ui.widgets.legend import Legend, ink
from kvdesk.ui.widgets.style.colours import Colours
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.cells.context_parts import ContextParts
from kvdesk.viewmodel.palette import mix

_BAR_PX: Final = 6
_Part = tuple[str, int, str]


def named_parts(parts: ContextParts, colours: Colours) -> list[_Part]:
    """Name, tokens and colour of each part, from left to right."""
    c = colours
    return [
        (tr("System prompt"), parts.system, c.secondary),
        (tr("History"), parts.history, mix(c.accent, c.raised, 0.5)),
        (tr("Attachments"), parts.attachments, mix(c.good, c.raised, 0.25)),
        (tr("Draft"), parts.draft, c.accent),
        (tr("Free"), parts.free, c.cell_span),
        (tr("Room for the answer"), parts.answer_room, mix(c.secondary, c.raised, 0.6)),
    ]


class ContextMeter(QWidget):
    """Hidden if nothing is known."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.parts: ContextParts | None = None
        self.bar = _Bar(theme)
        self.bar.toggled.connect(self._show_legend)
        self.number = NumberLabel(scale="small")
        self.number.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.legend = Legend()
        self.legend.hide()
        row = boxes.row((self.bar, 1), self.number, margins=0, spacing=8)
        boxes.column(row, self.legend, on=self, margins=(0, 0, 4, 0), spacing=4)
        theme.changed.connect(self._show_legend)
        self.hide()

    def show_parts(self, parts: ContextParts | None) -> None:
        """None, or a context of unknown size: nothing is shown."""
        if parts == self.parts:
            return
        self.parts = parts
        self.setVisible(parts is not None and parts.n_ctx > 0)
        if parts is None or not parts.n_ctx:
            return
        about = "≈ " if parts.is_estimate else ""
        self.number.reserve(f"≈ {parts.n_ctx:,} / {parts.n_ctx:,}")
        self.number.setText(f"{about}{parts.used:,} / {parts.n_ctx:,}")
        set_tone(self.number, "danger" if parts.used >= parts.n_ctx else "secondary")
        lines = [f"{name}: {n:,}" for name, n, _ in named_parts(parts, self._theme.colours)]
        title = tr("Tokens of the context, {n} in all").format(n=f"{parts.n_ctx:,}")
        if parts.is_estimate:
            title += "\n" + tr("Draft and attachments are estimated until you pause")
        self.bar.setToolTip("\n".join((title, *lines)))
        self.bar.setAccessibleDescription(tr(", ").join(lines))
        self.bar.show_parts(parts)
        self._show_legend()

    def _show_legend(self) -> None:
        parts = self.parts
        if parts is None or not self.bar.isChecked():
            self.legend.hide()
            return
        found = named_parts(parts, self._theme.colours)
        self.legend.show_entries((ink(colour), f"{name} {n:,}") for name, n, colour in found)
        self.legend.setAccessibleName(tr(", ").join(f"{name}: {n:,}" for name, n, _ in found))
        self.legend.show()


class _Bar(QAbstractButton):
    """Draws the parts; checked while the legend is shown."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._parts: ContextParts | None = None
        self.setCheckable(True)
        self.setAccessibleName(tr("Context: show what it is filled with"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(120, _BAR_PX + 8)

    def show_parts(self, parts: ContextParts) -> None:
        self._parts = parts
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._parts is None:
            return
        colours = self._theme.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(1, (self.height() - _BAR_PX) / 2, self.width() - 2, _BAR_PX)
        outline = QPainterPath()
        outline.addRoundedRect(box, _BAR_PX / 2, _BAR_PX / 2)
        painter.save()
        painter.setClipPath(outline)
        _paint_parts(painter, box, named_parts(self._parts, colours), lambda part: part == tr("Room for the answer"))
        painter.restore()
        if self.hasFocus():
            painter.setPen(QColor(colours.accent))
            frame = QPainterPath()
            frame.addRoundedRect(box.adjusted(-0.5, -2.5, 0.5, 2.5), 4, 4)
            painter.drawPath(frame)


def _paint_parts(painter: QPainter, box: QRectF, parts: list[_Part], is_reserved: Callable[[str], bool]) -> None:
    """Side by side over the box, as wide as each is of all; what is reserved is hatched."""
    total = max(1, sum(n for _, n, _ in parts))
    left = box.left()
    for name, n, colour in parts:
        width = box.width() * n / total
        style = Qt.BrushStyle.Dense5Pattern if is_reserved(name) else Qt.BrushStyle.SolidPattern
        painter.fillRect(QRectF(left, box.top(), width, box.height()), QBrush(QColor(colour), style))
        left += width
