"""Cuts long texts into pieces whose layout is cheap. Pure text; a cut never moves when the text grows."""

from collections.abc import Iterator, Sequence
from typing import Final

from kvdesk.reasoning import ReasoningMarks
from kvdesk.ui.markdown.segments import Segment, Splitter
from kvdesk.values import replace

PIECE_CHARS: Final = 4_000  # laying out one unbroken run and parsing hostile Markdown are quadratic in its length
PIECE_LINES: Final = 150
MOST_LATEX: Final = 2_000  # characters of a formula; longer ones are shown as they are written
_WIDGET: Final = 1 / 20  # what a widget costs, whatever is in it, as a share of a full piece


class GrowingAnswer:
    """The pieces of an answer that grows. Only its end is split again: from the last piece but one, or the beginning of
    the program, table or reasoning that it is in.
    """

    def __init__(self) -> None:
        self._settled: list[Segment] = []
        self._text = ""  # the source up to where the settled pieces end
        self._marks: ReasoningMarks | None = None
        self.n_settled = 0  # pieces that the last call left as they were

    def pieces(self, source: str, marks: ReasoningMarks | None = None, *, grows: bool = False) -> tuple[Segment, ...]:
        """Its segments, long ones in several pieces. `marks`, `grows`: as in `Splitter`."""
        if not source.startswith(self._text) or marks != self._marks:
            self._settled, self._text, self._marks = [], "", marks
        self.n_settled, done = len(self._settled), len(self._text)
        splitter = Splitter(source[done:], self._settled, marks, grows=grows)
        new = [piece for segment in splitter.segments() for piece in _cut(segment)]
        if splitter.swallows and self._settled:
            self._settled, self._text = [], ""
            return self.pieces(source, marks, grows=grows)
        new = [replace(piece, start=piece.start + done) for piece in new] if done else new
        pieces = (*self._settled, *new)
        for i in range(len(new) - 2, 0, -1):
            at = new[i].start
            begins = new[i].kind == "prose" or not new[i].whole or new[i - 1].whole is not new[i].whole
            if begins and source[at - 1] == "\n":
                self._settled += new[:i]
                self._text = source[:at]
                break
        return pieces


def prose_pieces(text: str) -> tuple[Segment, ...]:
    """A text without segments, in pieces."""
    return tuple(_cut(Segment("prose", text))) if text else ()


def typed_pieces(text: str) -> tuple[Segment, ...]:
    """What a person typed, in pieces: programs between fences, and what is around them without empty lines there."""
    segments = Splitter(text).typed_segments()
    if all(segment.kind == "prose" for segment in segments):
        return prose_pieces(text)
    return tuple(piece for segment in segments for piece in _cut(_without_empty_lines(segment)))


def _without_empty_lines(segment: Segment) -> Segment:
    """Before and behind prose."""
    if segment.kind != "prose":
        return segment
    n_before = len(segment.text) - len(segment.text.lstrip("\n"))
    return replace(segment, text=segment.text.strip("\n"), start=segment.start + n_before)


def weights(pieces: Sequence[Segment]) -> list[float]:
    """The cost of showing each chunk, 1.0 for a full one. A collapsed thought costs little until it is opened."""
    return [
        _WIDGET
        if piece.kind == "think"
        else max(len(piece.text) / PIECE_CHARS, piece.text.count("\n") / PIECE_LINES) + _WIDGET
        for piece in pieces
    ]


def _cut(segment: Segment) -> Iterator[Segment]:
    if segment.kind == "table":
        yield from _cut_table(segment)
        return
    if segment.kind == "formula" and len(segment.text) > MOST_LATEX:
        segment = replace(segment, kind="code", language="latex")
    text = segment.text
    start = 0
    while segment.kind in ("prose", "code") and (length := _length(text, start, segment.kind == "prose")):
        end = start + length
        cut, at = text[start:end].removesuffix("\n"), segment.start + start
        yield replace(segment, text=cut, closed=True, whole=text, start=at)
        start = end
    yield segment if start == 0 else replace(segment, text=text[start:], whole=text, start=segment.start + start)


def _cut_table(segment: Segment) -> Iterator[Segment]:
    """Every piece with the heads of the columns."""
    head, ruler, *rows = segment.text.split("\n")
    cut: list[str] = []
    size, at = 0, segment.start
    for row in rows:
        if cut and (len(cut) >= PIECE_LINES // 2 or size + len(row) > PIECE_CHARS):
            yield replace(segment, text="\n".join((head, ruler, *cut)), closed=True, whole=segment.text, start=at)
            at += size + (len(head) + len(ruler) + 2 if at == segment.start else 0)
            cut, size = [], 0
        cut.append(row)
        size += len(row) + 1
    whole = "" if len(cut) == len(rows) else segment.text
    yield replace(segment, text="\n".join((head, ruler, *cut)), whole=whole, start=at)


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
