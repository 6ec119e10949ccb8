"""The cell map in a terminal: two cells a character, one above the other, in the colours of the window's map."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.signs import SIGN_LEGEND, signs
from kvdesk.protocol.cache import CacheView
from kvdesk.session.store import Store
from kvdesk.translation import plural, tr
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import ColourBy, Scene, colour_table
from kvdesk.ui.map.frame import StripFrame, make_frame, strip_name, strips_of
from kvdesk.ui.widgets.style.colours import DARK
from kvdesk.viewmodel.palette import branch_colour

Fragments = list[tuple[str, str]]
"""One line: style and text of each piece, as prompt_toolkit's formatted text."""

COLUMNS: Final = 64
_MOST_ROWS: Final = 64  # of cells: 32 lines of text
_ALL: Final = 2**62  # no cell was written after this operation


def lines(store: Store, view: CacheView, *, coloured: bool, columns: int = COLUMNS) -> Iterator[Fragments]:
    """Numbers, map and legend of every stream of every cache, in at most `COLUMNS` of the terminal's `columns`. Without
    colours each character is a sign for its cells (`kvdesk.cache.signs`).
    """
    columns = min(columns, COLUMNS)
    snapshot = view.snapshot
    if not snapshot.maps:
        yield [("", tr("This model has no cells: its memory is one recurrent state a sequence."))]
        return
    colours, titles = store.looks({lease.seq_id: lease for lease in view.leases})
    scene = Scene(ColourBy.CONVERSATION, colours, titles)
    frame = make_frame(view, strips_of(view, columns, 1.0), scene, (_ALL, _ALL))
    for strip in frame.strips:
        name = strip_name(snapshot.maps, strip.strip.map_index, strip.strip.stream_index)
        stream = strip.stream
        said = tr("{used:,} of {size:,} cells used · n_kv {n_kv:,} · high water {high:,}")
        numbers = said.format(used=stream.used, size=stream.size, n_kv=strip.n_kv, high=stream.high_water)
        yield [("", " · ".join(filter(None, (name, numbers))))]
        if coloured:
            yield from _blocks(strip, columns)
        else:
            per_sign = -(-stream.size // columns)
            yield [
                ("", f"[{''.join(signs(stream, per_sign))}]  " + plural("1 cell a sign", "%n cells a sign", per_sign))
            ]
    if not coloured:
        yield [("", tr(SIGN_LEGEND))]
        return
    for seq_id, colour in sorted(colours.items()):
        hue = branch_colour(colour, DARK.panel, DARK.text, DARK.dark)
        yield [(f"fg:{hue}", "█ "), ("", titles[seq_id])]


def _blocks(strip: StripFrame, columns: int) -> Iterator[Fragments]:
    """The cells up to n_kv, and in words how many free ones follow."""
    code = strip.layer(0, strip.n_kv).code
    per_block = max(1, -(-code.size // (columns * _MOST_ROWS)))
    table = colour_table(ColourBy.CONVERSATION, DARK)
    shown = _rows(code, per_block, columns)
    for upper, lower in zip(shown[::2], shown[1::2], strict=True):
        yield _joined([(_colour(table, a), _colour(table, b)) for a, b in zip(upper, lower, strict=True)])
    notes = [plural("a half block is one cell", "a half block is %n cells", per_block)]
    if n_free := strip.stream.size - strip.n_kv:
        notes.append(plural("1 free cell follows", "%n free cells follow", n_free))
    yield [("fg:ansibrightblack", " · ".join(notes))]


def _rows(code: NDArray[np.uint16], per_block: int, columns: int) -> NDArray[np.uint16]:
    """Rows of `columns` blocks, an even number of them. A block with several cells shows a used one if there is any."""
    blocks = np.pad(code, (0, -code.size % per_block)).reshape(-1, per_block).max(axis=1)
    return np.pad(blocks, (0, -blocks.size % (2 * columns)), constant_values=raster.PAD).reshape(-1, columns)


def _colour(table: NDArray[np.uint32], code: np.uint16) -> str:
    return "" if code in (raster.PAD, raster.FREE) else f"#{int(table[code]) & 0xFFFFFF:06x}"


def _joined(pairs: list[tuple[str, str]]) -> Fragments:
    """Neighbours that look the same are one piece."""
    found: Fragments = []
    for upper, lower in pairs:
        if not (upper or lower):
            style, sign = "", " "
        elif upper == lower:
            style, sign = f"fg:{upper}", "█"
        else:
            style = " ".join(
                part for part in (f"fg:{upper or lower}", f"bg:{lower}" if upper and lower else "") if part
            )
            sign = "▀" if upper else "▄"
        if found and found[-1][0] == style:
            found[-1] = (style, found[-1][1] + sign)
        else:
            found.append((style, sign))
    return found
