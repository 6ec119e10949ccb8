"""Formulas: LaTeX that is drawn by a child process (`formula_child`), asked once for each, and painted with Qt."""

from __future__ import annotations

import atexit
import json
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final

from PySide6.QtCore import QByteArray, QObject, QProcess, QSize, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from kvdesk.library.child import child_command, import_folder
from kvdesk.ui.markdown.formula_child import INK
from kvdesk.ui.markdown.text_chunks import MOST_LATEX
from kvdesk.ui.widgets.throttle import Throttle

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

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._known: OrderedDict[tuple[str, bool], Formula | None] = OrderedDict()
        self._waiting: dict[tuple[str, bool], None] = {}  # in the order in which they were asked for
        self._sent: list[tuple[str, bool]] = []
        self._process: QProcess | None = None
        self._buffer = b""
        self._answers = 0  # of the process that runs
        self._limit = QTimer(self, singleShot=True)
        self._limit.timeout.connect(self._on_limit)
        self._idle = QTimer(self, singleShot=True, interval=_IDLE_MS)
        self._idle.timeout.connect(self.stop)
        self._telling = Throttle(self, _TELL_MS, self.drawn.emit)

    def look(self, latex: str, *, display: bool) -> Formula | None:
        """The formula; None where it cannot be read, or is not known yet (`is_waiting`): it is drawn then."""
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

    @Slot()
    def stop(self) -> None:
        """End the process. It is started again when it is needed."""
        process, self._process = self._process, None
        self._limit.stop()
        self._idle.stop()
        self._sent.clear()
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(2_000)
            process.deleteLater()

    def _send(self) -> None:
        if self._process is None:
            self._start()
        self._idle.stop()
        for key in self._waiting:
            if len(self._sent) >= _IN_FLIGHT:
                break
            if key not in self._sent and self._process is not None:
                self._sent.append(key)
                self._process.write(QByteArray(json.dumps(key).encode() + b"\n"))
        if self._sent and not self._limit.isActive():
            self._limit.start(TIME_LIMIT_MS if self._answers else START_LIMIT_MS)

    def _start(self) -> None:
        program, *arguments = child_command("--formulas")
        self._process = process = QProcess(self)
        self._buffer, self._answers = b"", 0
        self._sent.clear()
        if (folder := import_folder()) is not None:
            process.setWorkingDirectory(str(folder))
        process.setStandardErrorFile(QProcess.nullDevice())
        process.readyReadStandardOutput.connect(self._on_output)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)
        process.start(program, arguments)

    @Slot()
    def _on_output(self) -> None:
        assert self._process is not None
        *lines, self._buffer = (self._buffer + self._process.readAllStandardOutput().data()).split(b"\n")
        for line in lines:
            if not self._sent:
                return
            self._answers += 1
            told = json.loads(line)
            self._keep(self._sent.pop(0), Formula(*told) if told else None)
        if lines:
            self._limit.stop()
            self._go_on()

    @Slot()
    def _on_limit(self) -> None:
        """What takes so long is not shown as a formula."""
        self._give_up()

    @Slot()
    def _on_finished(self) -> None:
        self._give_up()

    @Slot(QProcess.ProcessError)
    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            logging.getLogger(__name__).warning("the process that draws formulas could not be started")
            for key in list(self._waiting):
                self._keep(key, None)
            self._process = None
            self._sent.clear()
            self._limit.stop()

    def _give_up(self) -> None:
        """The formula that the process was drawing is one that cannot be shown; the others are drawn by a new one."""
        broken = self._sent[:1]
        self.stop()
        for key in broken:
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
