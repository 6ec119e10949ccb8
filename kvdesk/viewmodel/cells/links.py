"""From characters of a message to cells, and back. Functions of spans and a frozen view, without Qt.

Characters are counted in the message's own text, ranges are half open. A token that completes no character (a part of
one, or a control token) counts as part of the next character.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.seq_bits import seq_has
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.message import MessageId
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CellRun:
    """Cells of one stream, by index, ascending."""

    cache: int
    stream: int
    cells: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TextRange:
    """Characters `[start, end)` of a message. `exact` is False if only the whole message is known to be meant."""

    message: MessageId
    start: int
    end: int
    exact: bool = True


def span_at(spans: MessageSpans, pos: int) -> tuple[int, MessageSpan] | None:
    """The message at a position, and its number from 0 on."""
    return next(((i, span) for i, span in enumerate(spans.spans) if span.p0 <= pos < span.p1), None)


def positions_of_text(span: MessageSpan, start: int, end: int) -> tuple[int, int]:
    """Positions `[p0, p1)` of the tokens that characters `[start, end)` touch; all of the message if that is not
    known, nothing for no characters.
    """
    if start >= end:
        return span.p0, span.p0
    if not span.char_ends:
        return span.p0, span.p1
    ends = np.asarray(span.char_ends, np.int64)
    starts = np.concatenate(([0], ends[:-1]))
    touched = np.flatnonzero((starts < end) & (np.maximum(ends, starts + 1) > start))
    if not touched.size:
        return span.p0, span.p0
    return span.text_p0 + int(touched[0]), span.text_p0 + int(touched[-1]) + 1


def text_of_positions(span: MessageSpan, positions: NDArray[np.int32]) -> TextRange | None:
    """The characters between the first and the last of these positions in the message; None if it has none of them.

    Template text around the message's own is no character: its positions alone give an empty range.
    """
    inside = positions[(positions >= span.p0) & (positions < span.p1)]
    if not inside.size:
        return None
    if not span.char_ends:
        return TextRange(span.message, 0, 0, exact=False)
    n = len(span.char_ends)
    tokens = inside[(inside >= span.text_p0) & (inside < span.text_p0 + n)] - span.text_p0
    if not tokens.size:
        return TextRange(span.message, 0, 0)
    first, last = int(tokens.min()), int(tokens.max())
    start = span.char_ends[first - 1] if first else 0
    end = next((e for e in span.char_ends[last:] if e > (span.char_ends[last - 1] if last else 0)), start)
    return TextRange(span.message, start, max(start, end))


def cells_of_text(
    spans: MessageSpans, snapshot: CacheSnapshot, message: MessageId, start: int, end: int
) -> tuple[CellRun, ...]:
    """The cells, in every cache and stream, that hold these characters of a message."""
    span = next((span for span in spans.spans if span.message == message), None)
    if span is None:
        return ()
    return cells_of_positions(snapshot, spans.seq_id, *positions_of_text(span, start, end))


def cells_of_positions(snapshot: CacheSnapshot, seq_id: int, p0: int, p1: int) -> tuple[CellRun, ...]:
    """The cells, in every cache and stream, that hold positions `[p0, p1)` of a sequence."""
    found = []
    for c, cache in enumerate(snapshot.maps):
        for s, stream in enumerate(cache.streams):
            cells = np.flatnonzero(seq_has(stream.seq_bits, seq_id) & (stream.pos >= p0) & (stream.pos < p1))
            if cells.size:
                found.append(CellRun(c, s, cells))
    return tuple(found)


def range_of_cells(
    snapshot: CacheSnapshot, cache: int, stream: int, first: int, last: int, own: int = -1
) -> tuple[int, int, int] | None:
    """The sequence that has most of the cells `[first, last)` of a stream, `own` at a tie, and from where to where its
    positions there go, end excluded; None if no sequence has one of them.
    """
    if cache >= len(snapshot.maps) or stream >= len(snapshot.maps[cache].streams):
        return None
    cells = snapshot.maps[cache].streams[stream]
    best: tuple[int, bool, int] = (0, False, -1)
    for sequence in snapshot.sequences:
        n = int(seq_has(cells.seq_bits, sequence.seq_id)[first:last].sum())
        best = max(best, (n, sequence.seq_id == own, int(sequence.seq_id)))
    if not best[0]:
        return None
    positions = cells.pos[first:last][seq_has(cells.seq_bits, best[2])[first:last]]
    return best[2], int(np.min(positions)), int(np.max(positions)) + 1


def text_of_cells(
    spans: Mapping[int, MessageSpans], snapshot: CacheSnapshot, cache: int, stream: int, first: int, last: int
) -> tuple[TextRange, ...]:
    """The characters that the cells `[first, last)` of a stream hold, message by message, of every known sequence."""
    if cache >= len(snapshot.maps) or stream >= len(snapshot.maps[cache].streams):
        return ()
    cells = snapshot.maps[cache].streams[stream]
    found = []
    for seq, known in spans.items():
        positions = cells.pos[first:last][seq_has(cells.seq_bits, seq)[first:last]]
        ranges = (text_of_positions(span, positions) for span in known.spans)
        found += [one for one in ranges if one is not None]
    return tuple(found)
