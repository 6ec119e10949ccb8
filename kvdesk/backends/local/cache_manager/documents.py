"""Documents that are read once: K and V of an attached text are kept, and put behind another beginning.

What these cells hold depends on what came before them where they were computed (docs/questions/documents.md). So the
first tokens are read again at the new place, and what is put there counts as moved (`CacheSequence.exact`): no other
chat takes it over. The states are among the saved ones, under their limits, as they are or rounded to q8_0. Knows
tokens, no messages. Runs on the engine's thread.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.saved_states import NOBODY
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.cache_manager.state_swapper import Offer
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.requantize import rounded, rounded_share, unrounded, unrounding_ms
from kvdesk.cache.state.blob import Blob
from kvdesk.errors import KvdeskError
from kvdesk.message import MessageId
from kvdesk.policies.tuned import TILE
from kvdesk.protocol.operations import OperationName
from kvdesk.translation import tr

READ_AGAIN: Final = 32
"""Tokens at the beginning of a document that are read again at its new place (docs/questions/documents.md)."""
LEAST_TOKENS: Final = 4 * TILE
"""Fewer tokens are read: that takes little longer, and is exact."""
_NEEDED: Final[tuple[OperationName, ...]] = ("partial seq_rm", "partial seq_cp", "seq_add")


class Run(NamedTuple):
    """A document in a prompt: its name, where its tokens `[start, end)` lie, and the message that has it."""

    name: str
    start: int
    end: int
    message: MessageId


class Splice(NamedTuple):
    """What is put behind the first `at` tokens of a prompt: the last tokens of the document there."""

    run: Run
    at: int
    offer: Offer

    @property
    def n_tokens(self) -> int:
        """Tokens that are not read."""
        return self.offer.n_tokens


class Documents:
    """Of one context.

    why_not  why its documents are read each time, "" if they need not be
    rounds   whether K and V are kept as q8_0
    """

    def __init__(self, context: Context, cache_manager: Cache, operation_journal: OperationJournal) -> None:
        self.rounds = False
        self._memory, self._states, self._traits = context.memory, context.states, context.traits
        self._cache_manager = cache_manager
        self._journal = operation_journal
        self.why_not = _why_not(context)

    def planned(self, prompt: Sequence[int], runs: Sequence[Run], n_held: int) -> tuple[Splice, ...]:
        """What need not be read of a prompt whose first `n_held` tokens are in the cache, in order. Read-only."""
        if self.why_not:
            return ()
        found = []
        for run in runs:
            at = max(n_held, run.start + READ_AGAIN)
            if run.end - at < LEAST_TOKENS:
                continue
            tokens = prompt[run.start : run.end]
            offer = self._cache_manager.swapper.document(tokens, run.end - at, self._unrounding_ms)
            if offer is not None:
                found.append(Splice(run, at, offer))
        return tuple(found)

    def put(self, sequence: CacheSequence, splice: Splice) -> str:
        """Put the document behind the tokens of the sequence, which end at `splice.at`. Changes the cache.

        Returns why it could not be done, "" if it was; then the sequence is unchanged, and the document must be read.
        """
        cache, saved = self._cache_manager, splice.offer.saved
        blob = cache.swapper.saved_states.take(saved)
        if blob is None:
            return tr("what was kept of it is damaged")
        cache.free_a_sequence(sequence)
        if not cache.pool.free:
            return tr("no seq_id is free to restore it in")
        if not cache.make_room(sequence, len(saved.tokens)):
            return tr("the cache has no room for what was kept of it")
        reason = tr("{n:,} tokens of {name} were read at another place; its first {again} are read again").format(
            n=splice.n_tokens, name=splice.run.name, again=splice.at - splice.run.start
        )
        if saved.rounded:
            reason += " " + tr("(kept as q8_0)")
        with self._journal.operation("splice", sequence.conversation, reason) as operation:
            operation.told = self._spliced(sequence, splice, blob)
        if not operation.told:
            cache.swapper.saved_states.drop([saved.key])
            return tr("what was kept of it is damaged")
        cache.swapper.saved_states.touch(saved)
        return ""

    def keep(self, sequence: CacheSequence, prompt: Sequence[int], runs: Sequence[Run]) -> None:
        """Keep the documents of a prompt that the sequence holds, and that were read, not put there."""
        if self.why_not:
            return
        saved_states = self._cache_manager.swapper.saved_states
        for run in runs:
            tokens = list(prompt[run.start : run.end])
            if len(tokens) < READ_AGAIN + LEAST_TOKENS:
                continue
            if (saved := saved_states.document(tokens)) is not None:
                saved_states.join(saved, sequence.conversation, run.message)
            elif run.end <= sequence.exact and list(sequence.tokens[run.start : run.end]) == tokens:
                self._keep(sequence, run, tokens)

    # --- private ------------------------------------------------------------------------------------------------------

    @cached_property
    def _unrounding_ms(self) -> float:
        """Of a byte."""
        return unrounding_ms(1, self._traits)

    def _spliced(self, sequence: CacheSequence, splice: Splice, blob: Blob) -> bool:
        """False: the state is not what it was said to be; the sequence is unchanged then."""
        cache, memory, saved = self._cache_manager, self._memory, splice.offer.saved
        held = [*[-1] * saved.first, *saved.tokens]
        n_again = splice.at - splice.run.start
        try:
            if saved.rounded:
                blob = unrounded(blob, self._traits)
            with cache.spare(sequence.conversation) as spare:
                taken = self._states.seq_set(spare.seq_id, blob, held, audited=False)
                ends = (memory.seq_pos_min(spare.seq_id), memory.seq_pos_max(spare.seq_id))
                if not taken or ends != (saved.first, len(held) - 1):
                    return False
                memory.seq_rm(spare.seq_id, saved.first, saved.first + n_again)
                if by := splice.run.start - saved.first:
                    memory.seq_add(spare.seq_id, saved.first + n_again, -1, by)
                memory.seq_cp(spare.seq_id, sequence.seq_id, splice.at, splice.run.end)
        except KvdeskError:
            return False
        cache.adopt(sequence, [*sequence.tokens, *saved.tokens[n_again:]], min(sequence.exact, splice.at))
        return True

    def _keep(self, sequence: CacheSequence, run: Run, tokens: list[int]) -> None:
        """Does nothing if no seq_id is free: its next turn can do it."""
        cache, n = self._cache_manager, len(tokens)
        share = rounded_share(self._traits) if self.rounds else 1.0
        placement, prefill_ms = cache.swapper.place_document(sequence, n, share)
        if placement.to == "nowhere" or not cache.pool.free:
            return
        reason = tr("{n:,} tokens of {name} are kept for other chats").format(n=n, name=run.name)
        with (
            self._journal.operation("keep document", sequence.conversation, reason) as operation,
            cache.spare(sequence.conversation) as spare,
        ):
            operation.told = False
            self._memory.seq_cp(sequence.seq_id, spare.seq_id, run.start, run.end)
            try:
                computed = self._states.seq_get(spare.seq_id)
                blob = rounded(computed, self._traits) if self.rounds else computed
            except KvdeskError:
                return
            is_rounded = blob is not computed
            if is_rounded:
                operation.reason += " " + tr("(kept as q8_0)")
            operation.told = True
        cache.swapper.saved_states.put(
            placement,
            NOBODY,
            tokens,
            blob,
            prefill_ms,
            first=run.start,
            chats=(sequence.conversation,),
            messages=(run.message,),
            rounded=is_rounded,
        )


def _why_not(context: Context) -> str:
    """Why cells of a document cannot be put elsewhere in this context, or are not to be; "" if they can."""
    if context.settings.exact:
        return tr("with exact answers everything is read")
    if not context.can("swap"):
        return context.capabilities["swap"].why
    found = (context.capabilities[name] for name in _NEEDED)
    return next((capability.why for capability in found if capability.answer != "yes"), "")
