"""The application's icon in every size and format, drawn from resources/kvdesk.svg: `python packaging/icons.py DIR`.

    DIR/16.png … 512.png, kvdesk.svg   for Linux, one a size
    DIR/kvdesk.ico                     for Windows
    DIR/kvdesk.icns                    for macOS

Both containers take PNG files as they are, so no other tool is needed.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
from pathlib import Path

SVG = Path(__file__).resolve().parent.parent / "resources" / "kvdesk.svg"
SIZES = (16, 22, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
ICO_SIZES = (16, 24, 32, 48, 64, 128, 256)
ICNS_TYPES = {
    b"icp4": 16,
    b"ic11": 32,
    b"icp5": 32,
    b"ic12": 64,
    b"ic07": 128,
    b"ic08": 256,
    b"ic09": 512,
    b"ic10": 1024,
}


def draw(folder: Path) -> None:
    """Write all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {size: _png(size) for size in SIZES}
    for size, data in pictures.items():
        (folder / f"{size}.png").write_bytes(data)
    shutil.copy(SVG, folder / SVG.name)
    (folder / "kvdesk.ico").write_bytes(ico({size: pictures[size] for size in ICO_SIZES}))
    (folder / "kvdesk.icns").write_bytes(icns({kind: pictures[size] for kind, size in ICNS_TYPES.items()}))


def ico(pictures: dict[int, bytes]) -> bytes:
    """A Windows icon: a directory of 16-byte entries, then the PNG files. 256 is written as 0."""
    head = struct.pack("<HHH", 0, 1, len(pictures))
    offset = len(head) + 16 * len(pictures)
    for size, data in pictures.items():
        head += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(data), offset)
        offset += len(data)
    return head + b"".join(pictures.values())


def icns(pictures: dict[bytes, bytes]) -> bytes:
    """A macOS icon: chunks of type, length and PNG file."""
    body = b"".join(kind + struct.pack(">I", 8 + len(data)) + data for kind, data in pictures.items())
    return b"icns" + struct.pack(">I", 8 + len(body)) + body


def _png(size: int) -> bytes:
    from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
    from PySide6.QtGui import QImage, QImageWriter, QPainter
    from PySide6.QtSvg import QSvgRenderer

    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(SVG)).render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not QImageWriter(buffer, QByteArray(b"PNG")).write(image):
        raise SystemExit("Qt cannot write PNG files here.")
    data: QByteArray = buffer.data()
    return bytes(data.data())


if __name__ == "__main__":
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    draw(Path(sys.argv[1]))
