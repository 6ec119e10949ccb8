"""The tokens of an answer in the colours of how likely they were; a click looks at one."""

from bisect import bisect_right
from collections.abc import Callable

from kvdesk.message import Message
from kvdesk.protocol.logprobs import places, unpack
from kvdesk.ui.markdown.text_marks import TokenText
from kvdesk.viewmodel.chat.token_surprise import colours_of, level_of, tip


def surprise_words(message: Message, look_at: Callable[[int], None], *, dark: bool) -> TokenText:
    """`look_at` gets the number of a token."""
    known = unpack(message.probabilities)
    spans = places(known, message.text)
    starts = [first for first, _ in spans]
    colours = colours_of(dark=dark)
    tints = tuple(
        (first, last, colours[level])
        for one, (first, last) in zip(known, spans, strict=True)
        if (level := level_of(one)) and last > first
    )

    def token_at(character: int) -> int:
        return bisect_right(starts, character) - 1

    return TokenText(tints, lambda at: tip(known[token_at(at)]), lambda at: look_at(token_at(at)))
