"""Icons from `resources/`: line drawings in one colour, drawn in the theme's text colour."""

from functools import cache
from typing import Final

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from kvdesk.paths import resources_dir

_BUBBLE: Final = "#16181d"
"""The colour of the bubble in the file."""


def line_icon(name: str, colour: str, disabled: str | None = None) -> QIcon:
    """The icon `name` in `colour`; an empty icon where the file is missing: a window without icons still works."""
    icon = QIcon()
    for mode, ink in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, disabled or colour)):
        for image in _drawn(name, ink):
            icon.addPixmap(QPixmap.fromImage(image), mode)
    return icon


@cache
def _drawn(name: str, ink: str) -> tuple[QImage, ...]:
    """The icon in each of its sizes. Images and not icons are kept: they may outlive the application."""
    file = resources_dir() / "icons" / f"{name}.svg"
    if not file.is_file():
        return ()
    renderer = QSvgRenderer(QByteArray(file.read_text(encoding="utf-8").replace("currentColor", ink).encode()))
    images = []
    for pixels in (16, 20, 32, 40, 64):
        image = QImage(pixels, pixels, QImage.Format.Format_ARGB32_Premultiplied)
        image.fill(Qt.GlobalColor.transparent)
        painter = QPainter(image)
        renderer.render(painter)
        painter.end()
        images.append(image)
    return tuple(images)


def application_icon() -> QIcon:
    file = resources_dir() / "kvdesk.svg"
    return QIcon(str(file)) if file.is_file() else QIcon()


def bubble_icon(colour: str) -> QIcon:
    """The application's icon with a bubble of this colour: on a dark ground its own would not be seen."""
    file = resources_dir() / "kvdesk.svg"
    if not file.is_file():
        return QIcon()
    renderer = QSvgRenderer(QByteArray(file.read_text(encoding="utf-8").replace(_BUBBLE, colour).encode()))
    icon = QIcon()
    for pixels in (28, 56, 112):
        pixmap = QPixmap(pixels, pixels)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter)
        painter.end()
        icon.addPixmap(pixmap)
    return icon
