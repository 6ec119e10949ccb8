"""The words of a message in the colours of how much of a token's attention they got; a click looks from another one."""

from typing import Final

from kvdesk.message import Message, attached_text
from kvdesk.session import Store
from kvdesk.ui.markdown.text_marks import TokenText
from kvdesk.ui.widgets.style.colours import Colours
from kvdesk.viewmodel.cells.attention import Spot, characters, column_words, position_at, words_of
from kvdesk.viewmodel.palette import mix

N_STEPS: Final = 13  # the first is no colour
_DARK, _LIGHT = "#1f6b5e", "#8fd3bd"  # the texts of both themes can be read on them
_SPOT_DARK, _SPOT_LIGHT = "#6b4d12", "#f8d98a"


def word_colours(colours: Colours) -> tuple[str, ...]:
    """The colour behind a word, by its step; "" for the first."""
    hue = _DARK if colours.dark else _LIGHT
    steps = (0.15 + 0.85 * i / (N_STEPS - 1) for i in range(1, N_STEPS))
    return ("", *(mix(colours.window, hue, share) for share in steps))


def spot_colour(colours: Colours) -> str:
    """Behind the word that is looked from."""
    return _SPOT_DARK if colours.dark else _SPOT_LIGHT


def sink_colour(colours: Colours) -> str:
    """Behind a word that is a sink."""
    return mix(colours.window, colours.secondary, 0.35)


def are_attended(store: Store) -> bool:
    """Whether somebody looks at attention in the chat that is shown, so that its words have no other colours."""
    return store.attention.is_open and store.selected is not None and store.selected in store.spans


def attention_words(store: Store, message: Message, colours: Colours) -> TokenText | None:
    """None while nobody looks at attention; without colours where it is not known which tokens a message has."""
    if store.selected is None or not are_attended(store):
        return None
    spans, looking = store.spans[store.selected], store.attention
    span = store.span_of(message.conversation, message.id)
    if span is None or not span.char_ends or message.state == "streaming":
        return TokenText((), lambda _at: "", lambda _at: None)
    before, seq_id = len(attached_text(message.attachments)), spans.seq_id
    shown = looking.shown if looking.shown is not None and looking.shown.seq_id == seq_id else None
    tints = []
    if shown is not None:
        by_step, sink = word_colours(colours), sink_colour(colours)
        for word in words_of(shown, span, N_STEPS):
            colour = sink if shown.sinks[word.column] else by_step[word.step]
            tints.append((word.first - before, word.last - before, colour))
        if shown.spot is not None and 0 <= shown.spot - span.text_p0 < len(span.char_ends):
            first, last = characters(span, shown.spot)
            tints.append((first - before, last - before, spot_colour(colours)))

    def tip(at: int) -> str:
        pos = position_at(span, at + before)
        column = shown.column_of(pos) if shown is not None and pos is not None else None
        return column_words(shown, column, store.texts) if shown is not None and column is not None else ""

    def click(at: int) -> None:
        if (pos := position_at(span, at + before)) is not None:
            store.look(store.attention.looked_from(Spot(seq_id, pos)))

    return TokenText(tuple(tints), tip, click)
