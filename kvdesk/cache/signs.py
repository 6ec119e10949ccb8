"""Cells as characters, for logs and for terminals without colours."""

from collections.abc import Iterator
from typing import Final

from kvdesk.cache.seq_bits import seqs_in
from kvdesk.cache.snapshot import StreamMap
from kvdesk.translation import marked

SIGN_LEGEND: Final = marked(". free · 0–9, a–z the sequence that holds the cells · M several sequences")
_SIGNS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def signs(cells: StreamMap, per_sign: int) -> Iterator[str]:
    """One sign for every `per_sign` cells of a stream with all its columns: `.` all free, a sequence's own sign, `M`
    for cells of several sequences, `?` for an unknown one, `#` for sequences above 35.
    """
    for first in range(0, cells.size, per_sign):
        part = slice(first, first + per_sign)
        used = cells.pos[part] != -1
        if not used.any():
            yield "."
            continue
        ids = seqs_in(cells.seq_bits[part][used])
        yield "?" if not ids else "M" if len(ids) > 1 else _SIGNS[ids[0]] if ids[0] < len(_SIGNS) else "#"
