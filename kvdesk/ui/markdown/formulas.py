"""Formulas: LaTeX that is drawn by a child process (`formula_child`), asked once for each, and painted with Qt."""

import atexit
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final

from PySide6.QtCore import QByteArray, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from kvdesk.children.process import Child, ChildStopped, child_command
from kvdesk.ui.markdown.formula_child import INK
from kvdesk.ui.markdown.text_chunks import MOST_LATEX
from kvdesk.ui.widgets.throttle import Throttle
from kvdesk.ui.widgets.timers import once

TIME_LIMIT_MS: Final = 5_000  # for one formula on a busy machine; the child refuses what needs a second on a free one
START_LIMIT_MS: Final = 30_000
_IDLE_MS: Final = 120_000  # then the process ends, and gives back its 40 MB
_KEPT: Final = 1_000
_TELL_MS: Final = 60
_IN_FLIGHT: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A formula as SVG, its text in `INK`. Lengths in em; `ascent` above and `depth` below the baseline."""

    svg: str = field(repr=False)
    width: float
    ascent: float
    depth: float


class FormulaDrawer(QObject):
    """Has formulas drawn and keeps them. `drawn` tells that some of those that were waited for are known now."""

    drawn = Signal()
    _heard = Signal()  # from the process's thread

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._known: OrderedDict[tuple[str, bool], Formula | None] = OrderedDict()
        self._waiting: dict[tuple[str, bool], None] = {}  # in the order in which they were asked for
        self._sent: list[tuple[str, bool]] = []
        self._retried: set[tuple[str, bool]] = set()
        self._process: Child | None = None
        self._answers = 0  # of the process that runs
        self._limit = once(self, 0, self._on_limit)
        self._idle = once(self, _IDLE_MS, self.stop)
        self._heard.connect(self._on_heard, Qt.ConnectionType.QueuedConnection)
        self._telling = Throttle(self, _TELL_MS, self.drawn.emit)

    def look(self, latex: str, *, display: bool) -> Formula | None:
        """The formula; None if it cannot be read, or is not known yet (`is_waiting`): it is drawn then."""
        key = latex, display
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        if len(latex) > MOST_LATEX:
            return None
        if key not in self._waiting:
            self._waiting[key] = None
            self._send()
        return None

    def is_waiting(self, latex: str, *, display: bool) -> bool:
        return (latex, display) in self._waiting

    def stop(self) -> None:
        """End the process. It is started again when it is needed."""
        process, self._process = self._process, None
        self._limit.stop()
        self._idle.stop()
        self._sent.clear()
        if process is not None:
            process.close()

    def _send(self) -> None:
        if self._process is None:
            self._start()
        self._idle.stop()
        for key in self._waiting:
            if len(self._sent) >= _IN_FLIGHT:
                break
            if key not in self._sent and self._process is not None:
                self._sent.append(key)
                self._process.send_value(key)
        if self._sent and not self._limit.isActive():
            self._limit.start(TIME_LIMIT_MS if self._answers else START_LIMIT_MS)

    def _start(self) -> None:
        self._answers = 0
        self._sent.clear()
        try:
            self._process = Child(child_command("--formulas"), background=True, on_message=self._heard.emit)
        except OSError:
            logging.getLogger(__name__).warning("the process that draws formulas could not be started")
            for key in list(self._waiting):
                self._keep(key, None)

    def _on_heard(self) -> None:
        process, n_before = self._process, self._answers
        if process is None:
            return
        try:
            while process.has_message:
                told = process.receive_value()
                self._answers += 1
                if self._sent:
                    self._keep(self._sent.pop(0), Formula(*told) if told else None)
        except ChildStopped:
            self._give_up(ended=True)
            return
        if self._answers > n_before:
            self._limit.stop()
            self._go_on()

    def _on_limit(self) -> None:
        """What takes so long is not shown as a formula."""
        self._give_up(ended=False)

    def _give_up(self, *, ended: bool) -> None:
        """The formula that the process was drawing cannot be shown; the others are drawn by a new one. If the process
        ended on its own, something may have killed it: the formula is tried once more.
        """
        broken = self._sent[:1]
        self.stop()
        for key in broken:
            if ended and key not in self._retried:
                self._retried.add(key)
            else:
                self._keep(key, None)
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting:
            self._send()
        else:
            self._idle.start()

    def _keep(self, key: tuple[str, bool], formula: Formula | None) -> None:
        self._waiting.pop(key, None)
        self._known[key] = formula
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        self._telling.request()


@cache
def formula_drawer() -> FormulaDrawer:
    """The one of this process."""
    drawer = FormulaDrawer()
    atexit.register(drawer.stop)  # while Qt is still there
    return drawer


@lru_cache(maxsize=256)
def picture(formula: Formula, colour: str, em_px: float, ratio: float) -> QImage:
    """A formula in a colour (#rrggbb), for text of `em_px` pixels an em, on a screen of `ratio` dots a pixel."""
    width, height = formula.width * em_px, (formula.ascent + formula.depth) * em_px
    size = QSize(max(1, round(width * ratio)), max(1, round(height * ratio)))
    image = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(QColor(0, 0, 0, 0))
    painter = QPainter(image)
    QSvgRenderer(QByteArray(formula.svg.replace(INK, colour).encode())).render(painter)
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image
