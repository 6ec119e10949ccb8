"""The sequences of one context: leased, shared, kept as branches, and evicted when room is needed.

Only this changes sequences; everyone else sees them read-only (`CacheSequence`). Policies decide on plain values
(`kvdesk.policies`); this carries their decisions out, and reports every change of the cache as an operation with its
reason. States are saved and restored through `swapper`. Knows nothing of requests, prompts and templates. Runs on the
engine's thread.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from kvdesk.backends.local.cache_manager.compacting import compact, planned
from kvdesk.backends.local.cache_manager.held import Held, held_by
from kvdesk.backends.local.cache_manager.leases import Leases, own
from kvdesk.backends.local.cache_manager.saved_state import SavedState
from kvdesk.backends.local.cache_manager.sequences import Acquired, CacheSequence, LeasedSequence
from kvdesk.backends.local.cache_manager.state_swapper import Offer
from kvdesk.backends.local.llama.memory.decodes import DecodeKind, MirroredDecode, PendingDecode
from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import CompactionPlan, Layout
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.cache.state.blob import Blob
from kvdesk.errors import KvdeskError, UserError
from kvdesk.message import ConversationId
from kvdesk.policies.tuned import MIN_REUSE_TOKENS
from kvdesk.protocol.operations import Compact
from kvdesk.translation import marked, tr

_NO_ROOM = marked("The cache has no room for the saved conversation.")
_DAMAGED = marked(
    "The saved state of this conversation is damaged and was forgotten: at its next turn the "
    "conversation is read again from its text."
)


class Cache(Leases):
    """The only access to the cells of a context: decoding, reusing, saving and changing cells are methods of it."""

    # --- what the cache holds: read-only ------------------------------------------------------------------------------

    def snapshot(self) -> CacheSnapshot:
        """The cells as they are now, with how far they are proven."""
        return self._memory.snapshot()

    def totals(self) -> tuple[int, int, int]:
        """Used cells, high-water mark and n_kv of the whole cache (the largest stream's mark)."""
        return self._memory.totals()

    def walk(self, sequence: CacheSequence, n_new: int, without: Iterable[CacheSequence] = ()) -> tuple[int, int]:
        """What a decoded token of `sequence` walks over after `n_new` more, once those `without` have left: n_kv, and
        the visible cells that it waits for (`Costs.awaited`).
        """
        n_kv, own = self._memory.mirror.placed(sequence.seq_id, n_new, [s.seq_id for s in without])
        return n_kv, self.costs.awaited(own, n_kv)

    @property
    def fills_gaps(self) -> bool:
        """Whether llama.cpp may place the next tokens before a used cell: in a free one, or in one that no window sees
        any more.
        """
        return any(
            cells.used < cells.high_water or (cache.n_swa > 0 and cells.goes_back(cache.n_swa, cache.swa_type))
            for cache in self._memory.mirror.caches
            for cells in cache.streams
        )

    @property
    def operation(self) -> int:
        """Number of the last operation on the cells; it follows all decodes first."""
        return self._memory.mirror.operation

    def changed_since(self, operation: int) -> bool:
        """Whether another operation followed this one."""
        return self._memory.changed_since(operation)

    @property
    def pending_shift(self) -> bool:
        """Whether cells wait for a K-shift."""
        return self._memory.mirror.pending_shift

    def listen(self, on_decoded: Callable[[Sequence[MirroredDecode]], None]) -> None:
        """`on_decoded` gets the decodes that the mirror has followed, in order."""
        self._memory.on_decoded = on_decoded

    def publish(self) -> None:
        """Report all decodes so far to the listeners."""
        self._memory.publish()

    # --- decode: changes the cache ------------------------------------------------------------------------------------

    def decode(self, parts: Sequence[tuple[CacheSequence, Batch]], kind: DecodeKind = "decode") -> PendingDecode:
        """Decode one batch, made of one batch for the end of each sequence. Changes the cache.

        Each sequence then has the tokens that were placed, whatever the return code. Raises RefusedCall and DecodeError
        as `MirroredMemory.decode` does.
        """
        try:
            whole = parts[0][1] if len(parts) == 1 else Batch.joined([batch for _, batch in parts])
            decoded = self._context.decode(whole, kind)
        except KvdeskError:
            self._append_placed(parts)
            raise
        if decoded.rc == 0:
            for sequence, batch in parts:
                held = own(sequence)
                held.exact = self._exact_after(held, batch.n_tokens)
                held.tokens += batch.tokens
        else:
            self._append_placed(parts)
        return decoded

    def purpose(self, conversation: ConversationId | None, reason: str) -> AbstractContextManager[None]:
        """Record decodes made inside the block with this reason."""
        return self._operation_journal.purpose(conversation, reason)

    @contextmanager
    def spare(self, conversation: ConversationId) -> Iterator[CacheSequence]:
        """An empty sequence for computing on behalf of a conversation; its cells are removed after the block.

        Raises RefusedCall if no seq_id is free.
        """
        with self._pool.reserved() as seq_id:
            try:
                yield LeasedSequence(seq_id, conversation, inactive=True)
            finally:
                self._memory.seq_rm(seq_id, -1, -1)

    # --- the order of cells: changes the cache ------------------------------------------------------------------------

    def planned(self, layout: Layout, hot: Sequence[int] = ()) -> CompactionPlan:
        """What `compact` would do. Read-only."""
        return planned(self._context, self.snapshot(), layout, hot)

    def compact(self, layout: Layout, hot: Sequence[int] = ()) -> int:
        """See `compacting.compact`."""
        return compact(self._context, self.costs, layout, hot)

    def close_holes(self, reason: str) -> bool:
        """Compact without changing the order of cells, as an automatic operation. False: llama.cpp does not accept it,
        and the cache is unchanged.
        """
        try:
            with self._operation_journal.operation("compact", None, reason, call=Compact(Layout.KEEP_ORDER).call()):
                self.compact(Layout.KEEP_ORDER)
        except KvdeskError:
            return False
        return True

    def keep_order(self) -> None:
        """For exact answers: leave no cell before a used one that llama.cpp would take, unless it refuses the new
        layout.

        Attention sums over cells in their order (ggml-cpu, flash attention), and llama.cpp takes the first cells that
        it may use (`find_slot`). A token before cells of earlier positions gives sums in another order than a fresh
        start.
        """
        if self._context.settings.exact and self._context.can("compaction") and self.fills_gaps:
            self.close_holes(tr("exact answers: new tokens must not come before older ones"))

    # --- the beginning of a prompt ------------------------------------------------------------------------------------

    def acquire_prefix(self, sequence: CacheSequence, prompt: list[int], *, moved: bool = True) -> Acquired:
        """Put as much of the prompt's beginning into the sequence as is possible without computing, and remove the
        rest. At least one token is left to decode, because logits are needed. Changes the cache.

        The beginning comes from the sequence itself, an inactive branch of the same conversation, a saved state, or
        another sequence whose cells are shared (`seq_cp`). The sequence's other cells are kept as an inactive branch if
        cells can be shared. Some memories cannot remove a part (recurrent states) or no longer hold the window before
        the cut (sliding windows; llama-server's rule, `pos_min_thold` in server-context.cpp). They return to the
        longest saved state that the prompt begins with, or start again. `moved`: tokens of the conversation that were
        moved when messages were evicted may be reused, but for exact answers.
        """
        sequence, moved = own(sequence), moved and not self._context.settings.exact
        source, wanted, sequence.n_last_prompt = "", prompt[:-1], len(prompt)
        reusable = self.prefixes.reusable_prefix(sequence, wanted, exact=not moved)
        branch, n_branch = self.prefixes.best_branch(sequence.conversation, wanted, exact=not moved)
        if branch is not None and n_branch > reusable:
            self._pool.exchange(sequence, branch)
            self.release_unused(branch)  # an answer beside others began with an empty sequence, not needed now
            reusable = n_branch
            source = tr("another branch of this conversation")
        lender, n_lent = self.prefixes.lender(sequence, wanted)
        whose = sequence.conversation if moved else None
        offer = self._offer(sequence, wanted, max(reusable, n_lent), whose, sequence.sharing)
        from_disk = offer is not None and offer.saved.blob is None
        blob = None if offer is None else self.swapper.saved_states.take(offer.saved)
        lost = "" if self._keep_branch(sequence, reusable) else self._why_no_sequence
        if reusable < len(sequence.tokens):
            self.swapper.checkpoint(sequence)  # for memories that cannot share: this branch may be gone on with
        if offer is not None and blob is not None and not self._restore(sequence, offer.saved, blob):
            self._cut(sequence, offer.n_tokens)
            return self._acquired_saved(sequence, offer.saved)._replace(saved="disk" if from_disk else "memory")
        if lender is not None and n_lent >= reusable + MIN_REUSE_TOKENS:
            held = list(lender.tokens)
            self._borrow(sequence, lender, n_lent)
            mine = lender.conversation == sequence.conversation
            source = tr("another branch of this conversation") if mine else tr("another conversation")
            return Acquired(len(sequence.tokens), source, held=held, texts=lender.texts)
        self._cut(sequence, reusable, lost)
        return Acquired(len(sequence.tokens), source)

    def pauses(self, sequence: CacheSequence, prompt: list[int], marks: Iterable[int] = ()) -> tuple[int, ...]:
        """After `acquire_prefix`: keep the state at which a turn begins, if it is worth it, and say after how many
        tokens of its prompt it pauses for another `swapper.checkpoint`. `marks`: where an edit would go back to.
        """
        self.swapper.checkpoint(sequence)
        return self.swapper.pauses(sequence, prompt, marks)

    def estimate_reuse(self, conversation: ConversationId, prompt: list[int], *, moved: bool) -> tuple[int, float]:
        """(tokens that `acquire_prefix` would find, ms to bring back the state they are saved in). Read-only."""
        wanted, moved = prompt[:-1], moved and not self._context.settings.exact
        sequence = self._pool.get(conversation)
        found = self.prefixes.lender(sequence, wanted)[1]
        if sequence is not None:
            n_branch = self.prefixes.best_branch(conversation, wanted, exact=not moved)[1]
            found = max(found, self.prefixes.reusable_prefix(sequence, wanted, exact=not moved), n_branch)
        offer = self._offer(sequence, wanted, found, conversation if moved else None)
        return (found, 0.0) if offer is None else (offer.n_tokens, offer.restore_ms)

    def _offer(
        self,
        sequence: CacheSequence | None,
        wanted: list[int],
        found: int,
        whose: ConversationId | None,
        sharing: str = "",
    ) -> Offer | None:
        """`StateSwapper.offer` for the sequence, None if its cells cannot have room for that. Read-only."""
        offer = self.swapper.offer(wanted, found, whose, sharing)
        fits = offer is None or self._would_fit(sequence, offer.saved)
        return offer if fits else None

    def _would_fit(self, sequence: CacheSequence | None, saved: SavedState) -> bool:
        """Whether a saved state fits in the place of what the sequence holds, once idle ones have left. Read-only."""
        return len(saved.tokens) <= self.shared_cells.most_room(sequence, emptied=True)

    def _acquired_saved(self, sequence: LeasedSequence, saved: SavedState) -> Acquired:
        """The beginning was restored from this state. A request that goes on with all of an earlier one has it now, and
        is saved in its place once it is idle.
        """
        n, mine = len(sequence.tokens), saved.conversation == sequence.conversation
        source = tr("its saved state") if mine else tr("a saved state")
        if n < len(saved.tokens):
            return Acquired(n, source, mine and saved.checkpoint, saved.tokens, saved.texts)
        if saved.client and sequence.client is not None:
            self.swapper.saved_states.drop([saved.key])
        return Acquired(n, source, mine and saved.checkpoint)

    def _borrow(self, sequence: LeasedSequence, lender: LeasedSequence, n: int) -> None:
        """Share the lender's first `n` cells; with streams they are copied."""
        self.truncate(sequence, 0, tr("a longer beginning is in another sequence"))
        p0, p1 = (0, n) if self.one_buffer and self._context.can("partial seq_cp") else (-1, -1)
        self._share(lender, sequence, p0, p1, tr("{n:,} tokens at the beginning are the same").format(n=n))
        self.adopt(sequence, lender.tokens[:n])
        self._pool.touch(lender)
        self.pop_eviction_reason(sequence.conversation)

    def _cut(self, sequence: LeasedSequence, n: int, lost: str = "") -> None:
        """Only the first `n` tokens stay; nothing if the memory cannot give back a part. `lost`: said where the rest
        could not be kept as a branch.
        """
        reason = tr("the prompt diverges at position {n}").format(n=n) if n else tr("nothing of it can be reused")
        if lost:
            reason += tr(", and no seq_id is free to keep it: all {n_seq_max} (n_seq_max) are taken").format(
                n_seq_max=self._context.n_seq_max
            )
        if not self.truncate(sequence, n, reason, lost):
            self.truncate(sequence, 0, tr("no part of this model's state can be removed"))

    def _keep_branch(self, sequence: LeasedSequence, n: int) -> bool:
        """Keep what the sequence holds beyond its first `n` tokens as an inactive branch, where cells can be shared:
        both have the same cells until one of them goes on. False: no seq_id is free for it.
        """
        held = len(sequence.tokens)
        if self.block > 1:
            held = self.prefixes.exact_part(sequence, held)  # what is behind the last whole block is never reused
        tail = held - n
        if tail < MIN_REUSE_TOKENS or not self._can_share:
            return True
        if not self._pool.free:
            return False
        branch = self._pool.lease(sequence.conversation, inactive=True, client=sequence.client)
        assert branch is not None
        self._share(
            sequence, branch, -1, -1, tr("{tail:,} tokens of another branch stay while there is room").format(tail=tail)
        )
        branch.texts, branch.spans = sequence.texts, sequence.spans
        branch.branch, sequence.branch = sequence.branch, branch.branch  # what goes on from here is the new one
        self.adopt(branch, sequence.tokens, sequence.exact)
        return True

    def _share(self, src: LeasedSequence, dst: LeasedSequence, p0: int, p1: int, reason: str) -> None:
        """`seq_cp` of the positions `[p0, p1)`. `adopt` must follow for `dst`."""
        with self._operation_journal.operation("seq_cp", dst.conversation, reason):
            self._memory.seq_cp(src.seq_id, dst.seq_id, p0, p1)

    # --- saved states -------------------------------------------------------------------------------------------------

    def swap_out(self, sequence: CacheSequence) -> int:
        """Save the sequence outside the cache, remove its cells, release it. Returns the bytes saved.

        Raises RefusedCall if this memory cannot be saved, UserError if the limit on bytes does not allow it.
        """
        n_bytes = self.swapper.save(sequence, by_hand=True)
        if not n_bytes:
            raise UserError(
                tr("Its state is larger than what may be kept outside the cache: raise the limit in settings.")
            )
        self.truncate(sequence, 0, tr("swapped out"))
        self.release(sequence)
        self.pop_eviction_reason(sequence.conversation)
        return n_bytes

    def held_if_restored(self, conversation: ConversationId) -> tuple[list[int], int]:
        """(tokens of the chat's sequence, with what `swap_in` would put back; bytes of that state, 0 for none).
        Read-only.
        """
        if saved := self._swapped_out(conversation):
            return list(saved.tokens), saved.n_bytes
        sequence = self._pool.get(conversation)
        return ([], 0) if sequence is None else (sequence.tokens, 0)

    def _swapped_out(self, conversation: ConversationId) -> SavedState | None:
        """The state of a chat that is only saved."""
        saved, sequence = self.swapper.saved_states.of(conversation), self._pool.get(conversation)
        return None if saved is None or saved.client or (sequence is not None and sequence.tokens) else saved

    def swap_in(self, conversation: ConversationId) -> int:
        """Put a saved chat back, with no token computed. Returns its bytes.

        Raises UserError: nothing is saved; there is no room, then it stays saved; it is damaged, then it is forgotten.
        """
        saved = self._swapped_out(conversation)
        if saved is None:
            raise UserError(tr("This conversation is not swapped out."))
        if not self._would_fit(self._pool.get(conversation), saved):
            raise UserError(tr(_NO_ROOM))
        blob = self.swapper.saved_states.take(saved)
        why = tr(_DAMAGED) if blob is None else self._restore(own(self.lease(conversation)), saved, blob)
        if why:
            raise UserError(why)
        return saved.n_bytes

    def hold(self, *, with_state: bool) -> dict[ConversationId, Held]:
        """What every conversation has in the cache now, the last used first: for `to_refill` of the next context.

        Raises RefusedCall, EngineError.
        """
        used = sorted(self._pool, key=lambda s: -s.last_used)
        kept = [s for s in used if s.tokens and not s.inactive]
        return {s.conversation: held_by(self._context, s, with_state=with_state) for s in kept}

    def carry_in(self, sequence: CacheSequence, blob: Blob, tokens: Sequence[int], exact: int) -> bool:
        """Put the state of these tokens, of another context, into an empty sequence. False: llama.cpp does not take it.

        Changes the cache. Raises RefusedCall, EngineError.
        """
        done = self._context.states.seq_set(sequence.seq_id, blob, tokens)
        if done:
            self.adopt(sequence, tokens, exact)
        return done

    def copy_state(self, seq_id: int | None) -> memoryview:
        """The saved state of a sequence, or of all together (None). They stay as they are; K of positions that have
        moved is rotated first. Raises RefusedCall, EngineError.
        """
        return self._context.states.get() if seq_id is None else self._context.states.seq_get(seq_id)

    def save_all(self) -> None:
        """Before the engine closes: the state of every conversation to disk, so that it answers at once next time."""
        for sequence in sorted(self._pool, key=lambda s: s.last_used):
            if not sequence.sharing:
                self.swapper.save(sequence)
        self.swapper.saved_states.close()

    def _restore(self, sequence: LeasedSequence, saved: SavedState, blob: Blob) -> str:
        """Put a saved state in the place of what the sequence holds. Returns why that failed, "" if it did not."""
        self.truncate(sequence, 0, tr("its saved state takes its place"))
        if not self.make_room(sequence, len(saved.tokens)):
            return tr(_NO_ROOM)
        restored = self.swapper.restore(sequence, saved, blob)
        if not restored or not self.prefixes.window_holds(sequence.seq_id, len(saved.tokens)):
            self.swapper.saved_states.drop([saved.key])
            self.truncate(sequence, 0, tr("the saved state is not what it was said to be"))
            return tr(_DAMAGED)
        self.pop_eviction_reason(sequence.conversation)
        if saved.conversation == sequence.conversation and not saved.checkpoint:
            sequence.texts, sequence.spans = saved.texts, saved.spans
        self.adopt(sequence, saved.tokens, saved.exact)
        return ""

    # --- private ------------------------------------------------------------------------------------------------------

    def _exact_after(self, sequence: CacheSequence, n_tokens: int) -> int:
        """`sequence.exact` after a batch of `n_tokens` tokens at its end: only whole blocks count."""
        n, block = len(sequence.tokens), self._context.block
        if block == 1:
            return sequence.exact
        whole = n % block == 0 and n <= sequence.exact
        return (n + n_tokens if whole else min(n, sequence.exact)) // block * block

    def _append_placed(self, parts: Sequence[tuple[CacheSequence, Batch]]) -> None:
        """A decode failed or was stopped: llama.cpp reports which finished ubatches are in the cache.

        A sequence whose state is not known any more is emptied: llama.cpp moves its position before it computes and
        cannot take that back, or goes back to a state that may not be there (`Mirror.unknown`).
        """
        unknown = self._memory.mirror.unknown
        for sequence, batch in parts:
            held = self._memory.seq_pos_max(sequence.seq_id) + 1
            own(sequence).exact = self._exact_after(sequence, held - len(sequence.tokens))
            if sequence.seq_id in unknown or held < len(sequence.tokens):
                self.truncate(
                    sequence, 0, tr("it was stopped in the middle, and no part of this model's state can be removed")
                )
            else:
                own(sequence).tokens = [*sequence.tokens, *batch.tokens][:held]
