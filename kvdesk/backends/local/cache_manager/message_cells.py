"""Removes cells and saved states of single messages when they are deleted. Runs on the engine's thread."""

from collections.abc import Collection

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.message import ConversationId, MessageId
from kvdesk.translation import marked, tr

_DELETED = marked("a message was deleted")


def drop_messages(cache_manager: Cache, conversation: ConversationId, messages: Collection[MessageId]) -> None:
    """Remove the cells of these messages and of all later ones, which were computed from them: in every branch of the
    conversation that is not being answered, in its saved states, and the documents that no other chat has. Earlier
    cells stay, unless nothing says which messages they are of, as in a copy before its first turn. Changes the
    cache.
    """
    held = cache_manager.to_refill.get(conversation)
    if held is not None and (not held.spans or any(span.message in messages for span in held.spans)):
        del cache_manager.to_refill[conversation]
    own = cache_manager.pool.get(conversation)
    for sequence in (*cache_manager.pool.inactive_branches(conversation), *([own] if own is not None else [])):
        first = min((span.text_p0 for span in sequence.spans if span.message in messages), default=None)
        if first is None and not sequence.spans:
            first = 0
        if first is None or sequence.busy:
            continue
        if first >= len(sequence.tokens):  # they were removed by hand
            cache_manager.set_spans(sequence, tuple(span for span in sequence.spans if span.message not in messages))
            continue
        kept = (
            0 if sequence.inactive else cache_manager.prefixes.reusable_prefix(sequence, list(sequence.tokens[:first]))
        )
        cache_manager.set_spans(sequence, tuple(span for span in sequence.spans if span.p1 <= kept))
        if not cache_manager.truncate(sequence, kept, tr(_DELETED)):
            cache_manager.truncate(sequence, 0, tr(_DELETED))
        cache_manager.release_unused(sequence)
    saved_states = cache_manager.swapper.saved_states
    saved_states.drop_of(conversation, messages)
    saved_states.leave(conversation)  # until its next turn, which has what it still has
