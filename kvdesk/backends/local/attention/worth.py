"""What the tokens of a sequence are worth to those behind them, measured when a context is full.

By their attention: what the last tokens look at, in a second context (`job`). By the norms of their keys: from the
saved state, nothing is computed. Runs on the engine's thread.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.attention.job import attend
from kvdesk.backends.local.attention.price import price, restored_ms
from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.binding import StopFlag
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.attention_weights import combined
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.errors import KvdeskError, Stopped, UserError
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.library.hyper import read_hyper
from kvdesk.library.key_norms import norms_by_position
from kvdesk.message import ConversationId
from kvdesk.policies.overflow import N_RECENT, Measure, Worth
from kvdesk.protocol.attention import Attend, Attended, PreviewAttention, Queries
from kvdesk.protocol.messages import Event
from kvdesk.translation import tr


class TokenWorth:
    """Of the sequences of one context. The last answer is kept until the cells change: a request that waits asks
    again. `stop` ends what is measured.
    """

    def __init__(self, context: Context, cache: Cache, header: GgufHeader) -> None:
        self._context = context
        self._cache = cache
        self._header = header
        self.stop = StopFlag()
        self._last: tuple[object, ...] = ()
        self._known = Worth()

    def n_held(self, conversation: ConversationId, tokens: list[int], *, here: bool) -> int:
        """How many tokens of the conversation's prompt are in the cache or saved, and can be reused. `here`: in its
        sequence, to which a saved state is restored first.
        """
        if not here:
            return self._cache.estimate_reuse(conversation, tokens, moved=True)[0]
        sequence = self._restored(conversation)
        if sequence is None or sequence.busy:
            return 0
        return self._cache.prefixes.reusable_prefix(sequence, tokens[:-1])

    def of(
        self, measure: Measure, conversation: ConversationId, tokens: Sequence[int], running: CacheSequence | None
    ) -> Worth:
        """Of these tokens' beginning, as far as the conversation has it in the cache, in `running` if it is being
        answered there; a saved state is restored first. `Worth.why` where its cells cannot leave one by one, or nothing
        can be measured. Raises Stopped.
        """
        sequence = running or self._restored(conversation)
        n = common_prefix(sequence.tokens, tokens) if sequence is not None else 0
        if sequence is None or not n:
            return Worth(why=tr("the conversation is not in the cache."))
        if self._cache.block > 1 and running is None:
            return Worth(why=tr("exact answers reuse no token that was moved."))
        if (sequence.busy and running is None) or not self._cache.shared_cells.can_slide(sequence, 0):
            return Worth(why=tr("another answer that is being written shares its cells."))
        asked = measure, sequence.seq_id, n, self._cache.operation
        if asked != self._last:
            start = time.perf_counter()
            try:
                with self._cache.purpose(conversation, tr("to see which tokens matter least")):
                    values = self._attention(sequence, n) if measure == "attention" else self._norms(sequence)[:n]
                known = Worth(values.tolist(), (time.perf_counter() - start) * 1e3)
            except Stopped:
                raise
            except KvdeskError as error:
                known = Worth(why=str(error))
            self._last, self._known = (*asked[:3], self._cache.operation), known
        return self._known

    def price_ms(self, measure: Measure, conversation: ConversationId, tokens: Sequence[int]) -> float | None:
        """What `of` is expected to take for these tokens of a request that has not begun; None until something was
        measured. 0 if it would measure nothing, or knows the answer. Restoring a saved state first is not in it.
        """
        sequence = self._cache.pool.get(conversation)
        held, n_bytes = self._cache.held_if_restored(conversation)
        n = common_prefix(held, tokens)
        if not n or self._cache.block > 1:
            return 0.0
        if n_bytes and measure == "attention":
            return restored_ms(self._context, self._cache, self._header, held[:n], N_RECENT, n_bytes)
        if n_bytes or sequence is None:
            return self._cache.costs.state_ms(n_bytes)
        if (measure, sequence.seq_id, n, self._cache.operation) == self._last:
            return 0.0
        if measure != "attention":
            can = self._context.capabilities["swap"].allowed
            return self._cache.costs.state_ms(self._context.states.seq_size(sequence.seq_id)) if can else 0.0
        found = price(self._context, self._cache, self._header, PreviewAttention(_last_of(sequence, n)))
        return 0.0 if found.refused else None if found.seconds is None else 1e3 * found.seconds

    def _restored(self, conversation: ConversationId) -> CacheSequence | None:
        """Its sequence, with its saved state where it was empty and there is room for that."""
        sequence = self._cache.pool.get(conversation)
        if sequence is None or not sequence.tokens:
            with suppress(KvdeskError):
                self._cache.swap_in(conversation)
        return self._cache.pool.get(conversation)

    def _attention(self, sequence: CacheSequence, n: int) -> NDArray[np.float32]:
        """The share that each of the first `n` tokens gets of the attention of the last ones of them, the mean of all
        heads. Raises KvdeskError.
        """
        told: list[Event] = []
        command = Attend(_last_of(sequence, n))
        for _ in attend(self._context, self._cache, self._header, command, told.append, self.stop):
            pass
        (found,) = (event for event in told if isinstance(event, Attended))
        values = np.zeros(n, np.float32)
        np.add.at(values, found.columns.pos, combined(found.layers)[0] / len(found.pos))
        return values

    def _norms(self, sequence: CacheSequence) -> NDArray[np.float32]:
        """Minus the norm of each token's keys: long ones are worth least. Raises KvdeskError."""
        possible, geometry = self._context.capabilities["swap"], self._context.traits.geometry
        if not possible.allowed or not geometry.has_attention:
            raise UserError(possible.why)
        blob, hyper = self._cache.copy_state(sequence.seq_id), read_hyper(self._header)
        return -norms_by_position(blob, geometry, hyper, sequence.seq_id, len(sequence.tokens))


def _last_of(sequence: CacheSequence, n: int) -> Queries:
    """The last of its first `n` tokens, whose attention is measured: their sum."""
    return Queries(sequence.seq_id, max(0, n - N_RECENT), n)
