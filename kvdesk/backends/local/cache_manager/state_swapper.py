"""Saves the state of a sequence and restores it: when that pays off, and whether a restored state is complete.

The policies decide from values (`kvdesk.policies.swap`); this carries out what they decide. Owns the saved states of
one context. Must never know who has which sequence: the cache frees cells and makes room. Runs on the engine's
thread.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.saved_state import SavedState
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.state.blob import Blob
from kvdesk.errors import KvdeskError
from kvdesk.message import ConversationId
from kvdesk.policies.checkpoints import give_way, pauses, pays
from kvdesk.policies.swap import Placement, Resident, over_share, place
from kvdesk.policies.tuned import MIN_REUSE_TOKENS, PAYS, TILE
from kvdesk.protocol import calls
from kvdesk.translation import tr
from kvdesk.values import replace


class Offer(NamedTuple):
    """A saved state that begins like a prompt: how many of its tokens are useful, and ms to restore it."""

    saved: SavedState
    n_tokens: int
    restore_ms: float


class StateSwapper:
    """Saves and restores sequences. `costs` estimates (prefill ms, restore ms) for numbers of tokens and bytes."""

    def __init__(
        self,
        context: Context,
        operation_journal: OperationJournal,
        saved_states: SavedStateStore,
        costs: Callable[[int, int], tuple[float, float]],
    ) -> None:
        self._context = context
        self._memory, self._states = context.memory, context.states
        self._operation_journal = operation_journal
        self.saved_states = saved_states
        self._costs = costs
        geometry, removes = context.memory.mirror.geometry, context.can("partial seq_rm")
        self._only_whole = geometry.has_window or not removes  # of saved states: they leave out what no window sees
        self.keeps_checkpoints = context.can("swap") and (not removes or 0 < geometry.n_window < geometry.n_cells)

    # --- read-only ----------------------------------------------------------------------------------------------------

    def resident(self, sequence: CacheSequence) -> Resident:
        """What the policies judge."""
        n = len(sequence.tokens)
        n_bytes = self._states.seq_size(sequence.seq_id) if self._context.can("swap") else 0
        prefill_ms, restore_ms = self._costs(n, n_bytes)
        return Resident(
            seq_id=sequence.seq_id,
            n_tokens=n,
            n_own=n - self._memory.mirror.n_shared(sequence.seq_id),
            state_bytes=n_bytes,
            idle_s=time.monotonic() - sequence.used_at,
            prefill_ms=prefill_ms / (1.0 if not sequence.inactive and sequence.client is None else PAYS),  # missed less
            restore_ms=restore_ms,
            busy=sequence.busy,
            has_saved_state=self.saved_states.has(sequence.tokens, sequence.conversation, sequence.exact),
        )

    def offer(self, prompt: list[int], found: int, whose: ConversationId | None, sharing: str = "") -> Offer | None:
        """The saved state with the longest beginning of the prompt, if it pays off: it has enough tokens beyond the
        `found` ones, and restoring it takes less time than computing them. `whose`, `sharing`: see
        `SavedStateStore.longest_prefix`.
        """
        block = self._context.block
        if self._only_whole:
            saved = self.saved_states.longest_whole(prompt, whose, sharing, block)
            n = 0 if saved is None else len(saved.tokens)
        else:
            saved, n = self.saved_states.longest_prefix(prompt, whose, sharing, block)
        if saved is None or n < found + MIN_REUSE_TOKENS:
            return None
        prefill_ms, restore_ms = self._costs(n - found, saved.n_bytes)
        return Offer(saved, n, restore_ms) if restore_ms < prefill_ms else None

    def document(self, tokens: Sequence[int], n_spared: int, unrounding_ms: float) -> Offer | None:
        """The state of the document with exactly these tokens, if restoring it takes less time than computing
        `n_spared` of them. `unrounding_ms`: to convert a byte of a rounded one to the types of the cache.
        """
        saved = self.saved_states.document(tokens)
        if saved is None:
            return None
        prefill_ms, restore_ms = self._costs(n_spared, saved.n_bytes)
        restore_ms += unrounding_ms * saved.n_bytes if saved.rounded else 0.0
        return Offer(saved, n_spared, restore_ms) if restore_ms < prefill_ms else None

    def pauses(self, sequence: CacheSequence, prompt: list[int], marks: Iterable[int]) -> tuple[int, ...]:
        """Where the prefill of `prompt`, of which the sequence holds the beginning, pauses for a `checkpoint`."""
        if not self.keeps_checkpoints:
            return ()
        one, two, many = (self._costs(n, 0)[0] for n in (1, 2, 2 * TILE))
        kept, n_held = self._kept(prompt, sequence.sharing), len(sequence.tokens)
        return tuple(
            pauses(kept, n_held, len(prompt), marks, max(0.0, 2 * one - two), many / (2 * TILE), self._context.block)
        )

    def may_save(self, sequence: CacheSequence) -> bool:
        """Whether a state of the sequence could be reused."""
        block, n = self._context.block, len(sequence.tokens)
        if n < MIN_REUSE_TOKENS or sequence.inactive or not self._context.can("swap"):
            return False
        return not self._only_whole or block == 1 or (sequence.exact >= n and n % block == 0)

    # --- out and in ---------------------------------------------------------------------------------------------------

    def save(self, sequence: CacheSequence, *, by_hand: bool = False) -> int:
        """Returns the bytes that are saved; 0: not worth it, or no room. `by_hand`: save it whatever it costs.

        Raises with `by_hand` RefusedCall if this memory cannot be saved, EngineError.
        """
        if not by_hand and not self.may_save(sequence):
            return 0
        resident = self.resident(sequence)
        if resident.has_saved_state:
            return resident.state_bytes
        over: Sequence[str] = ()
        if (client := sequence.client) is not None and client.share < 1.0:
            theirs, limits = self.saved_states.values(client), self.saved_states.limits
            too_much = over_share(theirs, resident.state_bytes, limits, client.share)
            if too_much is None:
                return 0
            over = too_much
        judged = replace(resident, prefill_ms=float("inf")) if by_hand else resident
        others = [saved for saved in self.saved_states.values() if saved.key not in over]
        placement = place(judged, others, self.saved_states.limits)
        if placement.to == "nowhere" or (sequence.sharing and placement.to == "disk"):
            return 0
        try:
            blob = self._states.seq_get(sequence.seq_id)
        except KvdeskError:
            if by_hand:
                raise
            return 0
        self.saved_states.drop(over)
        self.saved_states.put(
            placement,
            sequence.conversation,
            sequence.tokens,
            blob,
            resident.prefill_ms,
            texts=sequence.texts,
            spans=sequence.spans,
            exact=sequence.exact,
            client=sequence.client,
        )
        return len(blob)

    def checkpoint(self, sequence: CacheSequence) -> None:
        """Keep the sequence's current state to return to, if that is worthwhile. Read-only for the cache."""
        tokens = sequence.tokens
        if not self.keeps_checkpoints or sequence.inactive or sequence.exact < len(tokens):
            return
        if len(tokens) % self._context.block:
            return
        n_new = len(tokens) - self._kept(tokens, sequence.sharing)
        if n_new < MIN_REUSE_TOKENS:
            return
        who, n_bytes = sequence.conversation, self._states.seq_size(sequence.seq_id)
        spared_ms, cost_ms = self._costs(n_new, n_bytes)
        if not pays(spared_ms, cost_ms):
            return
        dropped = give_way(self.saved_states.checkpoints(), who, n_bytes, self.saved_states.limits.memory_bytes)
        if dropped is None:
            return
        with self._operation_journal.operation(
            "checkpoint", who, call=calls.state_seq_get(sequence.seq_id)
        ) as operation:
            try:
                blob = self._states.seq_get(sequence.seq_id)
            except KvdeskError:
                operation.told = False
                return
            self.saved_states.drop(dropped)
            resident = Resident(sequence.seq_id, len(tokens), len(tokens), n_bytes, 0.0, spared_ms, cost_ms)
            placement = place(resident, self.saved_states.values(), self.saved_states.limits)
            self.saved_states.put(
                placement,
                who,
                tokens,
                blob,
                spared_ms,
                checkpoint=True,
                client=sequence.client,
                messages=tuple(span.message for span in sequence.spans if span.text_p0 < len(tokens)),
            )
            operation.reason = tr("an edit or another answer can go back to these {n:,} tokens: {reason}").format(
                n=len(tokens), reason=placement.reason
            )

    def place_document(self, sequence: CacheSequence, n_tokens: int, share: float) -> tuple[Placement, float]:
        """Where the state of `n_tokens` of the sequence goes, and ms of the prefill that it saves. `share`: bytes that
        are kept of it. Read-only.
        """
        n_bytes = round(share * self._states.seq_size(sequence.seq_id) * n_tokens / len(sequence.tokens))
        prefill_ms, restore_ms = self._costs(n_tokens, n_bytes)
        resident = Resident(sequence.seq_id, n_tokens, n_tokens, n_bytes, 0.0, prefill_ms, restore_ms)
        return place(resident, self.saved_states.values(), self.saved_states.limits), prefill_ms

    def restore(self, sequence: CacheSequence, saved: SavedState, blob: Blob) -> bool:
        """Put a saved state into the cells of the sequence, which is empty and has room. Changes the cache, not the
        sequence.

        False: its content is not what was recorded. It is forgotten, and what was restored must be removed.
        """
        reason = (
            tr("back to a checkpoint of {n:,} tokens").format(n=len(saved.tokens))
            if saved.checkpoint
            else tr("its state was saved")
        )
        with self._operation_journal.operation(
            "swap in", sequence.conversation, reason, call=calls.state_seq_set(sequence.seq_id, len(blob))
        ) as operation:
            try:
                accepted = self._states.seq_set(sequence.seq_id, blob, saved.tokens, audited=False)
            except KvdeskError:
                accepted = False
            operation.told = accepted and self._is_whole(sequence.seq_id, len(saved.tokens))
        if operation.told:
            self.saved_states.touch(saved)
        else:
            self.saved_states.drop([saved.key])
        return operation.told

    # --- private ------------------------------------------------------------------------------------------------------

    def _kept(self, tokens: Sequence[int], sharing: str) -> int:
        """Length in tokens of the longest saved state at their beginning that requests of this `sharing` may use."""
        saved = self.saved_states.longest_whole(tokens, sharing=sharing)
        return 0 if saved is None else len(saved.tokens)

    def _is_whole(self, seq_id: int, n: int) -> bool:
        """Whether the restored cells fill the first `n` positions; cells after them are removed."""
        context = self._context
        if context.memory.seq_pos_max(seq_id) >= n and not context.memory.seq_rm(seq_id, n, -1):
            return False
        held = context.memory.mirror.tokens_of(seq_id)  # None: a recurrent state, which does not tell
        return context.memory.seq_pos_max(seq_id) == n - 1 and (held is None or len(held) == n)
