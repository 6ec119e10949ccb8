"""Graphs in files: pictures of a widget, and every series as a table."""

import csv
import io
import math
from pathlib import Path

from PySide6.QtCore import QBuffer, QPoint, QRect
from PySide6.QtGui import QColor, QPainter, QPixmap, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from kvdesk.viewmodel.graphs.measurements import Measurements
from kvdesk.whole_file import write_whole

PNG_SCALE = 2.0
"""Pixels of a PNG per pixel of the widget."""


def write_png(widget: QWidget, background: str, file: Path) -> None:
    """The whole widget, also what is scrolled out of sight. Raises OSError."""
    pixmap = QPixmap(widget.size() * PNG_SCALE)
    pixmap.setDevicePixelRatio(PNG_SCALE)
    pixmap.fill(QColor(background))
    painter = QPainter(pixmap)
    _render(widget, painter)
    painter.end()
    buffer = QBuffer()
    pixmap.save(buffer, "PNG")
    write_whole(file, buffer.data().data())


def write_svg(widget: QWidget, background: str, file: Path) -> None:
    """The same as lines and text, which stay sharp at any size. Raises OSError."""
    buffer, generator = QBuffer(), QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(widget.size())
    generator.setViewBox(QRect(QPoint(0, 0), widget.size()))
    generator.setTitle("kvdesk: graphs")
    painter = QPainter(generator)
    painter.fillRect(widget.rect(), QColor(background))
    _render(widget, painter)
    painter.end()
    write_whole(file, buffer.data().data())


def write_csv(measured: Measurements, file: Path) -> None:
    """A line per value and one per operation: second since the first reading, series, value, unit. Raises OSError.

    A gap in a series is an empty value.
    """
    start = measured.start_s or 0.0
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("second", "series", "value", "unit"))
    for name, unit, series in measured.all_series():
        for at_s, value in zip(series.times.tolist(), series.values.tolist(), strict=True):
            writer.writerow((f"{at_s - start:.6f}", name, "" if math.isnan(value) else f"{value:.6g}", unit))
    for mark in measured.marks:
        operation = mark.operation
        second = f"{operation.at_s - start:.6f}"
        writer.writerow((second, f"operation {operation.name}: {operation.call}", f"{operation.ms:.6g}", "ms"))
    write_whole(file, text.getvalue().encode())


def _render(widget: QWidget, painter: QPainter) -> None:
    widget.render(painter, QPoint(0, 0), QRegion(), QWidget.RenderFlag.DrawChildren)
