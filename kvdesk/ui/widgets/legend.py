"""A key of colours: swatches and their words, in as many lines as they need."""

from collections.abc import Iterable
from html import escape
from itertools import zip_longest
from typing import Final

from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QImage, QImageWriter
from PySide6.QtWidgets import QLabel

from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.flow import Flow

_GAP_PX: Final = 14


class Legend(Flow):
    """A label for each entry."""

    def __init__(self) -> None:
        super().__init__((_GAP_PX, 0))
        self._labels: list[QLabel] = []

    def show_entries(self, entries: Iterable[tuple[str, str]]) -> None:
        """Each is a `swatch` or an `ink`, in rich text, and plain words."""
        labels: list[QLabel] = []
        for known, entry in zip_longest(self._labels, list(entries)):
            if entry is None:
                known.deleteLater()
                continue
            labels.append(known or label("", tone="secondary", scale="small", rich=True))
            if (text := f"{entry[0]}&nbsp; {escape(entry[1])}") != labels[-1].text():
                labels[-1].setText(text)
        self._labels = labels
        self.show_parts(labels)


def ink(colour: str) -> str:
    """A square of one colour."""
    return f'<span style="color:{colour}">■</span>'


def swatch(image: QImage, width: int, height: int) -> str:
    """A picture of `width` by `height` pixels of the text."""
    data = QBuffer()
    data.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(data, b"PNG").write(image)
    png = data.data().toBase64().toStdString()
    return f'<img src="data:image/png;base64,{png}" width="{width}" height="{height}" style="vertical-align:middle">'
