"""The guesses after the tokens of running answers in a batch (*Speculative decoding*), and what became of them."""

import time
from collections.abc import Sequence

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.scheduler.jobs import Reading
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.cache.batch import Batch
from kvdesk.policies.drafting import Drafts, DraftSize
from kvdesk.protocol.cache import SpeedSample

Part = tuple[Request | Reading, Batch]
"""What a batch has of one request, or of the job."""


class DraftedBatches:
    """Of one context. `size`: how many guesses pay off."""

    def __init__(self, context: Context, cache_manager: Cache, size: DraftSize, emit: Emit) -> None:
        self._context, self._cache_manager = context, cache_manager
        self._size, self._emit = size, emit
        geometry = context.traits.geometry
        alone = context.settings.exact or geometry.has_state or not context.together
        self._most_answers = 1 if alone else context.n_ubatch
        self._most_tokens = 1 + geometry.most_removable  # of one answer in a batch

    def begin(self) -> Drafts:
        """The statistics of a request that begins."""
        return Drafts(self._size.why_not if self._size.wanted else "")

    def may_draft(self, requests: Sequence[Request], *, all_write: bool = True) -> bool:
        """Not while one of them, or the job, reads a text. With exact answers only one answer at a time, because wrong
        guesses of several leave holes between their cells (`keep_order`). The same with a state: llama.cpp may not keep
        the earlier states of several in one ubatch. Answers that therefore have none can say so.
        """
        if self._size.is_off:
            return False
        alone = len(requests) <= self._most_answers
        if all_write and alone:
            return True
        for request in requests:
            if not request.n_to_read:
                request.drafts.waited(for_answers=not alone)
        return False

    def next_tokens(self, requests: Sequence[Request], n_room: int) -> list[Part]:
        """The token that each answer sampled last, followed by guesses if they pay off. `n_room`: tokens for each that
        fit without another check.
        """
        if not self.may_draft(requests):
            return [(request, request.next_token()) for request in requests]
        n_most = min(n_room, self._most_tokens)
        chances = [request.chance(n_most) for request in requests]
        at = [request.position for request in requests]
        draft = self._size.choose(chances, self._context.n_ubatch, lambda n_tokens: self._usual_ms(at, n_tokens))
        if draft.gain == 1.0:
            for request, chance in zip(requests, chances, strict=True):
                request.drafts.none(chance, draft.price)
        return [
            (request, request.next_token() if n == 1 else request.with_draft(n))
            for request, n in zip(requests, draft.sizes, strict=True)
        ]

    def took(self, parts: Sequence[Part], ms: float) -> None:
        """A batch of answers took so long."""
        if not self._size.is_off:
            self._size.took(len(parts), sum(len(batch.tokens) for _, batch in parts), ms)

    def verified(self, parts: Sequence[Part], ms: float, n_new: int, n_accepted: int) -> None:
        """A batch with guesses gave `n_new` tokens, `n_accepted` of them guessed."""
        drafted = [(one, len(batch.tokens)) for one, batch in parts if isinstance(one, Request)]
        if steps := self._size.steps(len(drafted), sum(n for _, n in drafted)):
            for request, n in drafted:
                if n > 1:
                    request.drafts.gave(n_new / len(drafted), steps)
        n_kv, n_drafted = self._cache_manager.totals()[2], sum(n - 1 for _, n in drafted)
        now = time.monotonic()
        self._emit(SpeedSample(now, "decode", n_new, ms, n_kv, n_drafted=n_drafted, n_accepted=n_accepted))

    def _usual_ms(self, at: Sequence[int], n_tokens: int) -> float | None:
        """Milliseconds of a batch with `n_tokens` tokens of answers at these positions."""
        n_kv = (sum(at) if self._cache_manager.one_buffer else max(at)) + n_tokens
        n_visible = sum(at) / len(at) + (n_tokens / len(at) + 1) / 2
        return self._cache_manager.costs.batch_ms(n_tokens, n_kv, n_visible)
