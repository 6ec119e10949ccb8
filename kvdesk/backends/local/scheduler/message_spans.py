"""Reports where the messages of a conversation lie in its sequence, whenever that may have changed.

Owns these events and the spans that the cache keeps with a sequence. Runs on the engine's thread.
"""

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.scheduler.overflow_manager import OverflowManager
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.protocol.chat import MessageRetention


class MessageSpanReporter:
    """Reports for the sequences of one context. `overflow_manager`: None if the model has no text tokenizer."""

    def __init__(self, cache_manager: Cache, overflow_manager: OverflowManager | None, emit: Emit) -> None:
        self._cache_manager = cache_manager
        self._overflow_manager = overflow_manager
        self._emit = emit

    def tell(self, request: Request) -> None:
        """Where the messages of a request lie, and how far they are from being evicted from the context. Reports
        nothing for another program's request, whose messages nobody sees.
        """
        if request.command.client is not None:
            return
        sequence, spans, start = request.sequence, [], 0
        for place in request.whole.places:
            spans.append(MessageSpan(place.message, start, place.end, place.first, place.char_ends))
            start = place.end
        if ends := request.char_ends():
            first = len(request.prompt)
            spans.append(MessageSpan(request.command.answer, start, first + len(ends), first, tuple(ends)))
        self.restore(sequence, tuple(spans))
        if self._overflow_manager is not None:
            self._emit(MessageRetention(sequence.conversation, self._overflow_manager.retention(request)))

    def restore(self, sequence: CacheSequence, spans: tuple[MessageSpan, ...]) -> None:
        """The conversation's state was restored, so its messages lie here again."""
        self._cache_manager.set_spans(sequence, spans)
        self._emit(MessageSpans(sequence.conversation, sequence.seq_id, spans))
