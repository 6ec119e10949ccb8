"""A text split at once: what one that grows is to be in the end."""

from kvdesk.reasoning import ReasoningMarks
from kvdesk.ui.markdown.segments import Segment, Splitter
from kvdesk.ui.markdown.text_chunks import GrowingAnswer


def split_segments(source: str, marks: ReasoningMarks | None = None) -> tuple[Segment, ...]:
    return tuple(Splitter(source, marks=marks).segments())


def answer_pieces(source: str, marks: ReasoningMarks | None = None) -> tuple[Segment, ...]:
    return GrowingAnswer().pieces(source, marks)
