"""Cuts long texts into pieces whose layout is cheap. Pure text; a cut never moves when the text grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from kvdesk.ui.markdown.segments import Segment, split_segments

PIECE_CHARS: Final = 4_000  # laying out one unbroken run and parsing hostile Markdown are quadratic in its length
PIECE_LINES: Final = 150
_WIDGET: Final = 1 / 20  # what a widget costs, whatever is in it, as a share of a full piece


def answer_pieces(source: str) -> tuple[Segment, ...]:
    """The segments of an answer, long ones in several pieces."""
    return tuple(piece for segment in split_segments(source) for piece in _cut(segment))


def prose_pieces(text: str) -> tuple[Segment, ...]:
    """A text without segments, in pieces."""
    return tuple(_cut(Segment("prose", text))) if text else ()


def weights(pieces: Sequence[Segment]) -> list[float]:
    """The cost of showing each chunk, 1.0 for a full one. A collapsed thought costs little until it is opened."""
    return [
        _WIDGET
        if piece.kind == "think"
        else max(len(piece.text) / PIECE_CHARS, piece.text.count("\n") / PIECE_LINES) + _WIDGET
        for piece in pieces
    ]


def _cut(segment: Segment) -> Iterator[Segment]:
    text = segment.text
    start = 0
    while segment.kind != "think" and (length := _length(text, start, segment.kind == "prose")):
        end = start + length
        yield replace(segment, text=text[start:end].removesuffix("\n"), closed=True, whole=text)
        start = end
    yield segment if start == 0 else replace(segment, text=text[start:], whole=text)


def _length(text: str, start: int, blank_first: bool) -> int:
    """Length of the piece that begins at `start`, 0 when all the rest is one."""
    end = start + PIECE_CHARS
    at = start
    for _ in range(PIECE_LINES):
        found = text.find("\n", at, end)
        if found < 0:
            break
        at = found + 1
    else:
        end = at
    if end >= len(text):
        return 0
    half = start + (end - start) // 2
    for mark in ("\n\n", "\n", " ") if blank_first else ("\n", " "):
        found = text.rfind(mark, half, end)
        if found >= 0:
            return found + len(mark) - start
    return end - start
