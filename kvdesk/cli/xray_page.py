"""The page and the picture of `kvdesk xray`: a small square for each head, its rows the tokens that look."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.attention_weights import LayerAttention, top
from kvdesk.errors import explained
from kvdesk.experiments import report
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass
from kvdesk.whole_file import write_whole

_GAP: Final = 3
_LEAST: Final = 48
"""Pixels of the side of a square at least."""
_NONE, _MOST = np.array((16, 24, 40), np.float32), np.array((255, 214, 102), np.float32)
"""The colours of no weight and of the most of a row."""
_BETWEEN: Final = 128
"""The grey between squares, which is seen on a light and on a dark page."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is said of all heads together.

    texts   of the tokens, by position
    n_rows  tokens that look: the last ones
    layers  numbers of those that are counted, n_heads: of their heads
    shares  of all that they look at, what each token gets: the mean over heads
    sinks   tokens that many heads look at whatever the text says
    chosen  for what share of the tokens that look, and of the layers, an indexer chose each token; None without one
    """

    model: str
    texts: list[str]
    n_rows: int
    layers: list[int]
    n_heads: int
    shares: list[float]
    sinks: list[int]
    chosen: list[float] | None = None

    @property
    def title(self) -> str:
        where = plural("layer {layer}", "%n layers", len(self.layers)).format(layer=self.layers[0])
        said = plural(
            "{model}: what {n_rows:,} of {n:,} tokens look at, in 1 head ({where})",
            "{model}: what {n_rows:,} of {n:,} tokens look at, the mean of %n heads ({where})",
            self.n_heads,
        )
        return said.format(model=self.model, n_rows=self.n_rows, n=len(self.texts), where=where)

    def best(self, n: int) -> list[int]:
        """The tokens that get most."""
        return top(np.array(self.shares, np.float32), n)

    def percents(self, i: int) -> list[str]:
        """What a token gets, and how often an indexer chose it if there is one."""
        return [f"{shares[i]:.1%}" for shares in (self.shares, self.chosen) if shares is not None]

    def mark(self, i: int) -> str:
        sink = tr("sink")
        return f"  [{sink}]" if i in self.sinks else ""


def write(folder: Path, seen: Seen, layers: Sequence[LayerAttention], n: int) -> tuple[Path, Path]:
    """xray.html and xray.png in `folder`, which is made. Raises UserError."""
    page, picture = folder / "xray.html", folder / "xray.png"
    strips = [strip(layer.weights) for layer in layers]
    width = max(one.shape[1] for one in strips)
    padded = [np.pad(one, ((0, 0), (0, width - one.shape[1]), (0, 0)), constant_values=_BETWEEN) for one in strips]
    with explained(tr("{folder} cannot be written: {why}."), folder=folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(picture, png(np.concatenate(padded)))
        write_whole(page, _page(seen, layers, strips, n).encode())
    return page, picture


def strip(weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The heads of a layer side by side, shape (height, width, 3). The root of a weight is shown, so that small ones
    differ from none; the brightest column of each row is what it looks at most.
    """
    n_heads, n_rows, n_columns = weights.shape
    scale = max(1, -(-_LEAST // max(n_rows, n_columns)))
    brightest = np.maximum(weights.max(axis=2, keepdims=True), 1e-9)
    bright = np.sqrt(weights / brightest)[..., None]
    tiles = np.rint(_NONE + bright * (_MOST - _NONE)).astype(np.uint8)
    tiles = tiles.repeat(scale, axis=1).repeat(scale, axis=2)
    tiles = np.pad(tiles, ((0, 0), (0, _GAP), (0, _GAP), (0, 0)), constant_values=_BETWEEN)
    height, width = tiles.shape[1:3]
    return np.ascontiguousarray(tiles.transpose(1, 0, 2, 3)).reshape(height, n_heads * width, 3)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A picture of shape (height, width, 3) as PNG."""
    from PySide6.QtCore import QBuffer, QByteArray, QIODevice
    from PySide6.QtGui import QImage, QImageWriter

    height, width, _ = pixels.shape
    image = QImage(pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())


def _picture(layer: LayerAttention, pixels: NDArray[np.uint8]) -> str:
    name, heads = tr("Layer {number}").format(number=layer.layer), plural("1 head", "%n heads", layer.n_heads)
    data = b64encode(png(pixels)).decode()
    return (
        f"<h2>{escape(name)}</h2>"
        f'<div class="scroll"><img alt="{escape(heads)}" src="data:image/png;base64,{data}"></div>'
    )


def _page(seen: Seen, layers: Sequence[LayerAttention], strips: Sequence[NDArray[np.uint8]], n: int) -> str:
    rows = "".join(
        f"<tr><td>{i:,}</td>{''.join(f'<td>{share}</td>' for share in seen.percents(i))}"
        f"<td><code>{escape(repr(seen.texts[i]))}</code>{escape(seen.mark(i))}</td></tr>"
        for i in seen.best(n)
    )
    names = tr("position"), tr("share"), *([tr("indexer")] if seen.chosen is not None else []), tr("token")
    heads = "".join(f"<th>{escape(name)}</th>" for name in names)
    explained = tr(
        "One square for each head. A row is a token that looks, the last one below; a column is a token that is looked "
        "at, the first one on the left. The brightest of each row is what it looks at most."
    )
    pictures = (_picture(layer, pixels) for layer, pixels in zip(layers, strips, strict=True))
    table = f"<table><tr>{heads}</tr>{rows}</table>"
    return report.page(seen.title, (f"<h1>{escape(seen.title)}</h1>", table, f"<p>{escape(explained)}</p>", *pictures))
