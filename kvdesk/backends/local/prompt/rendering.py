"""A rendered conversation, in segments: text to parse, text to leave alone, and answers with their ids."""

from collections.abc import Iterator, Sequence

import msgspec

from kvdesk.backends.local.prompt.template_spans import Marked, Span
from kvdesk.message import Message, MessageId
from kvdesk.values import dataclass


class TemplateText(msgspec.Struct, frozen=True, tag=True):
    """All marks in it were written by the template: they are tokens."""

    text: str


class UserText(msgspec.Struct, frozen=True, tag=True):
    """A user's or a model's text that contains a mark: it stays text."""

    text: str


class AnswerTokens(msgspec.Struct, frozen=True, tag=True):
    """Insert the generated ids of this answer; `text` is their text. Not `is_whole`: only the first ids."""

    message_id: MessageId
    text: str
    is_whole: bool = True


Segment = TemplateText | UserText | AnswerTokens


@dataclass(frozen=True, slots=True)
class Rendering:
    """A rendered conversation."""

    segments: tuple[Segment, ...]
    system_folded: bool  # the template takes no system prompt, so it is at the top of the first user message
    places: tuple[tuple[Span, MessageId], ...]  # where messages are in the text, in order, outer white space apart
    exact: bool  # False: the template searches a person's text for control tokens, and did not get them
    remark: str = ""  # what the user should know about this prompt; "" for nothing

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


def segments_of(marked: Marked, messages: Sequence[Message]) -> Iterator[Segment]:
    """The text in segments: `messages` are those that its spans count."""
    answers = {}
    for span, i in marked.answers:
        text = marked.text[span.start : span.end]
        answers[span] = AnswerTokens(messages[i].id, text, is_whole=text == messages[i].text)
    at = 0
    for span in sorted([*answers, *marked.typed_controls]):
        if span.start > at:
            yield TemplateText(marked.text[at : span.start])
        yield answers.get(span) or UserText(marked.text[span.start : span.end])
        at = span.end
    if at < len(marked.text):
        yield TemplateText(marked.text[at:])
