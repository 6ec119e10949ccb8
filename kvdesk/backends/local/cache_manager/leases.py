"""The sequences of one context and their cells: leased, shared, truncated, moved, and evicted when room is needed.

The part of `Cache` that knows no prompts. Runs on the engine's thread.
"""

from collections.abc import Iterable, Mapping, Sequence

from kvdesk.backends.local.cache_manager.held import Held
from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.prefix_lookup import PrefixLookup
from kvdesk.backends.local.cache_manager.probe import Logits, Probe
from kvdesk.backends.local.cache_manager.sequences import (
    ALL_EXACT,
    CacheSequence,
    LeasedSequence,
    SequencePool,
    Sequences,
)
from kvdesk.backends.local.cache_manager.shared_cells import SharedCells
from kvdesk.backends.local.cache_manager.state_swapper import StateSwapper
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.take_out import take_out
from kvdesk.errors import PromptError
from kvdesk.message import ConversationId
from kvdesk.policies.costs import Costs
from kvdesk.policies.swap import eviction_order
from kvdesk.protocol.cache import MessageSpan
from kvdesk.protocol.chat import Client
from kvdesk.translation import plural, tr


class Leases:
    """The sequences of one context. `eviction_reasons`: of conversations whose cells were lost with the previous
    context.

    one_buffer  all sequences share one buffer of cells (no streams)
    costs       what batches and states take with these settings
    to_refill   what conversations had in the previous context and get back, most recently used first
    """

    def __init__(
        self,
        context: Context,
        operation_journal: OperationJournal,
        swapper: StateSwapper,
        costs: Costs,
        eviction_reasons: Mapping[ConversationId, str] | None = None,
    ) -> None:
        self._context = context
        self._memory = context.memory
        self._operation_journal = operation_journal
        self.swapper = swapper
        self.costs = costs
        self._pool = SequencePool(context.n_seq_max)
        self.prefixes = PrefixLookup(context, self._pool)
        self.probe = Probe(context, self._pool)
        self.shared_cells = SharedCells(context, self._pool)
        self._eviction_reasons = dict(eviction_reasons or {})
        self.to_refill: dict[ConversationId, Held] = {}
        self.removed: dict[ConversationId, tuple[int, Logits]] = {}
        """The conversation from which a part was last removed by hand: the tokens left, and the logits before."""
        self.one_buffer = context.memory.mirror.geometry.n_stream == 1
        self._can_share = self.one_buffer and context.can("partial seq_cp") and not self.prefixes.has_small_window

    @property
    def pool(self) -> Sequences:
        """All leased sequences, read-only."""
        return self._pool

    @property
    def block(self) -> int:
        """See `Context.block`."""
        return self._context.block

    @property
    def shares_beginnings(self) -> bool:
        """Whether another sequence can have the beginning of what one reads: by sharing cells, or by a checkpoint."""
        return self._can_share or self.swapper.keeps_checkpoints

    # --- leases -------------------------------------------------------------------------------------------------------

    @property
    def can_lease(self) -> bool:
        """Whether `lease` would succeed for another answer of any conversation. Read-only."""
        return bool(self._pool.free or any(not s.busy for s in self._pool))

    def lease(
        self,
        conversation: ConversationId,
        *,
        inactive: bool = False,
        client: Client | None = None,
        beside: CacheSequence | None = None,
    ) -> CacheSequence:
        """The conversation's sequence; `inactive`: a new one for another branch. If no seq_id is free, the least
        recently used sequence but `beside` is evicted: requests of other programs first, then branches. Raises
        PromptError if every one of them is busy.
        """
        sequence = None
        if client is not None and client.slot >= 0 and not inactive:
            sequence = self._pool.lease(conversation, client=client, seq_id=self._named_id(client))
        sequence = sequence or self._pool.lease(conversation, inactive=inactive, client=client)
        if sequence is None:
            idle = [s for s in self._pool if not s.busy and s is not beside]
            if not idle and beside is not None:
                raise PromptError(tr("No seq_id is free: a larger n_seq_max keeps more conversations in the cache."))
            if not idle:
                raise PromptError(
                    plural(
                        "The only sequence is answering. Wait for it to end.",
                        "All %n sequences are answering. Wait for one to end.",
                        self._context.n_seq_max,
                    )
                )
            self.evict(
                min(idle, key=lambda s: (s.client is None, not s.inactive, s.last_used)),
                tr("its seq_id is needed: all {n_seq_max} (n_seq_max) are taken; least recently used").format(
                    n_seq_max=self._context.n_seq_max
                ),
                self._why_no_sequence,
            )
            sequence = self._pool.lease(conversation, inactive=inactive, client=client)
        assert sequence is not None
        return sequence

    def lease_at(self, seq_id: int, conversation: ConversationId, client: Client | None) -> CacheSequence:
        """The sequence with this seq_id, emptied by eviction. Raises PromptError if it is busy."""
        if (before := self._pool.by_seq(seq_id)) is not None and not before.busy:
            self.evict(before, tr("its seq_id is needed for a state from a file"))
        sequence = self._pool.lease(conversation, client=client, seq_id=seq_id)
        if sequence is None:
            raise PromptError(tr("The sequence {seq_id} is answering.").format(seq_id=seq_id))
        return sequence

    def take_over(self, conversation: ConversationId, client: Client | None, prompt: Sequence[int]) -> None:
        """Let a request continue the sequence of an earlier one if its prompt begins with all of it (but for a few
        tokens), so that several turns share one sequence. Also if the earlier one asked the same last and no seq_id is
        free: no other request then leaves the cache, and its tokens get the same cells, so that attention adds up in
        the same order. If cells cannot be shared, a prompt that begins with half of it is enough. A request that names
        a sequence (`Client.slot`) continues that, whatever it holds; if it reuses nothing, that is emptied first. Does
        nothing for a chat (`client` None).
        """
        if client is None or self._pool.get(conversation) is not None:
            return
        earlier = None
        if client.slot >= 0:
            earlier = self._named(client)
        elif client.reuse:
            earlier = self.prefixes.earlier_request(client, list(prompt[:-1]), whole=self._can_share)
        if earlier is not None:
            self._pool.rename(earlier.conversation, conversation, client)

    def _named(self, client: Client) -> LeasedSequence | None:
        """The sequence that a request asks for, if it can continue that. A branch there is evicted, and everything is
        for a request that reuses nothing.
        """
        there = self._pool.by_seq(self._named_id(client))
        if there is None or there.busy or there.client is None or there.sharing != client.sharing:
            return None
        if there.inactive or not client.reuse:
            self.evict(there, tr("its seq_id is needed to compute in"), self._why_no_sequence)
            return None
        return there

    def _named_id(self, client: Client) -> int:
        """The seq_id that a request asks for."""
        return client.slot % self._context.n_seq_max

    def free_a_sequence(self, beside: CacheSequence) -> None:
        """If no seq_id is free, evict the least recently used request of another program, or else branch, but `beside`.
        Does nothing if there is neither.
        """
        idle = [s for s in self._pool if not s.busy and s is not beside and (s.inactive or s.client is not None)]
        if idle and not self._pool.free:
            reason = tr("its seq_id is needed to compute in")
            self.evict(min(idle, key=lambda s: (s.client is None, s.last_used)), reason, self._why_no_sequence)

    def release(self, sequence: CacheSequence) -> None:
        """Give the seq_id of an empty sequence back."""
        sequence = own(sequence)
        self._pool.release(sequence)

    def release_unused(self, sequence: CacheSequence) -> None:
        """`release`, where the sequence holds nothing, and is an inactive branch or of a request that does not run."""
        if (sequence.inactive or sequence.client is not None) and not sequence.tokens and not sequence.busy:
            self.truncate(sequence, 0, tr("nothing of it can be reused"))
            self.release(sequence)

    def forget(self, conversation: ConversationId, reason: str) -> None:
        """Remove all cells of the conversation, in every branch, its saved states, and the documents that no other chat
        has. Changes the cache.
        """
        for branch in self._pool.inactive_branches(conversation):
            self.truncate(branch, 0, reason)
            self.release(branch)
        if (sequence := self._pool.get(conversation)) is not None:
            self.truncate(sequence, 0, reason)
        self.swapper.saved_states.drop_of(conversation)
        self.swapper.saved_states.leave(conversation)
        self.to_refill.pop(conversation, None)

    def close(self, conversation: ConversationId, reason: str) -> None:
        """`forget`, and give its seq_id back. Changes the cache."""
        self.forget(conversation, reason)
        if (sequence := self._pool.get(conversation)) is not None:
            self.release(sequence)
        self.pop_eviction_reason(conversation)

    def evict(self, sequence: CacheSequence, reason: str, note: str = "") -> None:
        """Save its state to memory or disk if that pays off, then remove its cells and release it. Changes the cache.

        `note`: a sentence for the user, see `OperationDone`.
        """
        self.swapper.save(sequence)
        self.truncate(sequence, 0, reason, note)
        self.release(sequence)

    def pop_eviction_reason(self, conversation: ConversationId) -> str:
        """Why the conversation's cells are no longer in the cache, "" if they are; forgets the reason."""
        return self._eviction_reasons.pop(conversation, "")

    @property
    def _why_no_sequence(self) -> str:
        """What the user reads if a branch or conversation is evicted although cells are free."""
        return tr(
            "was removed from the cache although cells are free: all {n_seq_max} sequences (n_seq_max) are "
            "in use. Its text stays; a larger n_seq_max keeps more branches in the cache."
        ).format(n_seq_max=self._context.n_seq_max)

    # --- what a sequence is known to hold: changes no cell ------------------------------------------------------------

    def adopt(self, sequence: CacheSequence, tokens: Sequence[int], exact: int = ALL_EXACT) -> None:
        """Record that the sequence holds these tokens. `exact`: see `CacheSequence`."""
        sequence = own(sequence)
        sequence.tokens, sequence.exact = list(tokens), exact

    def follow_map(self, shifted: int = ALL_EXACT) -> None:
        """After a method of `HandCells` or an unexpected error, make every sequence match the map up to the first hole.
        `shifted`: positions from there on were moved, so other sequences may not reuse them.
        """
        if shifted < ALL_EXACT and self._context.traits.quantized_k:
            self.round_again()
        for sequence in self._pool:
            held = self._memory.mirror.tokens_of(sequence.seq_id)
            if held is None:  # a recurrent state does not show its content; it is whole or empty
                held = sequence.tokens[: self._memory.seq_pos_max(sequence.seq_id) + 1]
            if not self.prefixes.window_holds(sequence.seq_id, len(held)):
                held = []  # to go on there, everything is read again
            if len(held) < len(sequence.tokens):
                self._eviction_reasons.setdefault(sequence.conversation, tr("its cells were changed by hand"))
            self.adopt(sequence, held, min(sequence.exact, shifted))

    def round_again(self) -> None:
        """K and V of all cells were rounded again, so no cell is as a prefill computes it.

        A K-shift does that: it dequantizes all of a quantized K and rounds it again, including rows that do not move
        (llama-kv-cache.cpp, `build_graph_shift`).
        """
        for sequence in self._pool:
            if sequence.tokens:
                sequence.exact = 0

    def mark_busy(self, sequence: CacheSequence) -> None:
        """An answer is being written in it, so it is not evicted and its cells are not moved."""
        own(sequence).busy = True

    def mark_idle(self, sequence: CacheSequence) -> None:
        """The answer has ended: it was used until now."""
        own(sequence).busy = False
        self.touch(sequence)

    def touch(self, sequence: CacheSequence) -> None:
        """Mark it as just used, so that others are evicted first."""
        self._pool.touch(own(sequence))

    def set_texts(self, sequence: CacheSequence, texts: tuple[str, ...]) -> None:
        """Tools and messages of the turn that begins in it."""
        own(sequence).texts = texts

    def set_spans(self, sequence: CacheSequence, spans: tuple[MessageSpan, ...]) -> None:
        """Where those messages lie."""
        own(sequence).spans = spans

    def copies(self) -> tuple[CacheSequence, ...]:
        """Copies of all leases, for `restore_leases`."""
        return self._pool.copies()

    def restore_leases(self, copies: Iterable[CacheSequence]) -> None:
        """Restore the leases to when `copies` were made; the cells must be those of that time."""
        self._pool.restore(own(sequence) for sequence in copies)

    # --- cells of one sequence ----------------------------------------------------------------------------------------

    def truncate(self, sequence: CacheSequence, n: int, reason: str, note: str = "") -> bool:
        """Keep the first `n` tokens of the sequence, remove the rest: `seq_rm(seq, n, -1)`. Changes the cache.

        Cells that `sequence.tokens` does not cover, after operations by hand, are removed too. False if this memory
        cannot remove a part; then nothing has changed.
        """
        sequence = own(sequence)
        n_held = len(sequence.tokens)
        exact = ALL_EXACT if min(n, n_held) <= sequence.exact else sequence.exact  # no moved token stays
        if n >= n_held and self._memory.seq_pos_max(sequence.seq_id) < n:
            sequence.exact = exact
            return True
        with self._operation_journal.operation("seq_rm", sequence.conversation, reason) as operation:
            operation.told = self._memory.seq_rm(sequence.seq_id, n if n > 0 else -1, -1)
            operation.emptied = n == 0 and not sequence.inactive
            operation.note = note
        if not operation.told:
            return False
        del sequence.tokens[n:]
        sequence.exact = exact
        if operation.emptied and sequence.client is None:
            self._eviction_reasons[sequence.conversation] = reason
        return True

    def slide(self, sequence: CacheSequence, held: int, removed: Sequence[tuple[int, int]], reason: str) -> bool:
        """Of its first `held` tokens remove the ranges `[p0, p1)`, which ascend, and move what is behind each down to
        its p0. Changes the cache.

        Shared cells would also move for other sequences, so idle ones that share moved cells are evicted. False if one
        of those sequences is busy; then nothing has changed.
        """
        first, end = removed[0]
        if not self.shared_cells.can_slide(sequence, end):
            return False
        sequence = own(sequence)
        for other in self.shared_cells.sharing(sequence, end):
            self.evict(other, tr("cells that it shared are moved"))
        self.truncate(sequence, held, reason)
        tokens = list(sequence.tokens)
        with self._operation_journal.operation("slide", sequence.conversation, reason):
            take_out(self._memory, sequence.seq_id, removed)
        for p0, p1 in reversed(removed):
            del tokens[p0:p1]
        if self._context.traits.quantized_k:
            self.round_again()
        self.adopt(sequence, tokens, min(sequence.exact, first))
        return True

    def make_room(self, sequence: CacheSequence, n_tokens: int) -> bool:
        """Free `n_tokens` cells for the sequence by evicting idle ones, in the order of `kvdesk.policies.swap`.

        False if that would still not be enough; then none is evicted. May change the cache.
        """
        if self._memory.has_room(sequence.seq_id, n_tokens):
            return True
        if self.shared_cells.most_room(sequence) < n_tokens:
            return False
        while not self._memory.has_room(sequence.seq_id, n_tokens):
            missing = n_tokens - self._memory.free_cells(sequence.seq_id)
            idle = [s for s in self._pool if s is not sequence and not s.busy and s.tokens]
            order = eviction_order([self.swapper.resident(s) for s in idle], missing)
            if order:
                resident, reason = order[0]
                evicted = self._pool.by_seq(resident.seq_id)
            else:  # what each of them holds, others of them hold too, or it lies behind a hole
                together = self.shared_cells.leaving_together(sequence)
                if not together:
                    return False  # a small window
                evicted = own(min(together, key=lambda s: s.last_used))
                reason = tr("neither it nor those that share them are used")
            assert evicted is not None
            self.evict(evicted, tr("its cells are needed: {reason}").format(reason=reason))
        return True

    def most_room(self, sequence: CacheSequence) -> int:
        """How many tokens fit behind the sequence once every idle one has left. Read-only."""
        if self.prefixes.has_small_window:  # whose cells have more rules; `make_room` has evicted what it could
            return self._memory.free_cells(sequence.seq_id)
        return self.shared_cells.most_room(sequence)

    def has_room(self, sequence: CacheSequence, n_tokens: int) -> bool:
        """Whether this many more tokens fit without an eviction. Read-only."""
        return self._memory.has_room(sequence.seq_id, n_tokens)

    def free_cells(self, sequence: CacheSequence) -> int:
        """Cells that a batch of the sequence can still take. Read-only."""
        return self._memory.free_cells(sequence.seq_id)

    def room_at(self, sequences: Sequence[CacheSequence]) -> int:
        """How many tokens fit at the end of each of these sequences without an eviction. Read-only."""
        free = [self._memory.free_cells(sequence.seq_id) for sequence in sequences]
        return min(free) // len(sequences) if self.one_buffer else min(free)


def own(sequence: CacheSequence) -> LeasedSequence:
    """The mutable sequence, for this package."""
    assert isinstance(sequence, LeasedSequence)
    return sequence
