"""The sequences of one context: leased, shared, kept as branches, and evicted when room is needed.

Alone changes sequences; everybody else sees them read-only (`CacheSequence`). The policies decide from values
(`kvdesk.policies`); this carries out what they decide, and tells every change of the cache as an operation with its
reason. States are saved and restored through `swapper`. Knows nothing of requests, prompts and templates. Runs on the
engine's thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kvdesk.backends.local.cache_manager.held import Held, held_by
from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.prefix_lookup import PrefixLookup
from kvdesk.backends.local.cache_manager.probe import Probe
from kvdesk.backends.local.cache_manager.saved_states import SavedState
from kvdesk.backends.local.cache_manager.sequences import (
    ALL_EXACT,
    Acquired,
    CacheSequence,
    LeasedSequence,
    SequencePool,
    Sequences,
)
from kvdesk.backends.local.cache_manager.shared_cells import SharedCells
from kvdesk.backends.local.cache_manager.state_swapper import StateSwapper
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.decodes import DecodeKind, PendingDecode
from kvdesk.cache.batch import Batch
from kvdesk.cache.blob import Blob
from kvdesk.chat import ConversationId
from kvdesk.errors import KvdeskError, PromptError, UserError
from kvdesk.policies.swap import eviction_order
from kvdesk.policies.tuned import MIN_REUSE_TOKENS
from kvdesk.protocol.cache import MessageSpan
from kvdesk.protocol.chat import Client
from kvdesk.translation import marked, tr

_NO_ROOM = marked("The cache has no room for the saved conversation.")
_DAMAGED = marked(
    "The saved state of this conversation is damaged and was forgotten: at its next turn the "
    "conversation is read again from its text."
)


class CacheManager:
    """The sequences of one context. `eviction_reasons`: of conversations that lost their cells with the last one.

    one_buffer  all sequences have cells of the same buffer (no streams)
    to_refill   what conversations had in the last context and get again, the last used first; what is deleted leaves
    """

    def __init__(
        self,
        context: Context,
        operation_journal: OperationJournal,
        swapper: StateSwapper,
        eviction_reasons: Mapping[ConversationId, str] | None = None,
    ) -> None:
        self._context = context
        self._memory = context.memory
        self._operation_journal = operation_journal
        self.swapper = swapper
        self._pool = SequencePool(context.n_seq_max)
        self.prefixes = PrefixLookup(context, self._pool)
        self.probe = Probe(context, self._pool)
        self.shared_cells = SharedCells(context, self._pool)
        self._eviction_reasons = dict(eviction_reasons or {})
        self.to_refill: dict[ConversationId, Held] = {}
        self.one_buffer = context.memory.mirror.geometry.n_stream == 1
        self._can_share = self.one_buffer and context.can("partial seq_cp") and not self.prefixes.has_small_window

    @property
    def pool(self) -> Sequences:
        """All leased sequences, read-only."""
        return self._pool

    # --- leases -------------------------------------------------------------------------------------------------------

    def can_lease(self, conversation: ConversationId) -> bool:
        """Whether `lease` would give a sequence. Read-only."""
        return bool(self._pool.get(conversation) or self._pool.free or any(not s.busy for s in self._pool))

    def lease(
        self, conversation: ConversationId, *, inactive: bool = False, client: Client | None = None
    ) -> CacheSequence:
        """The conversation's sequence; `inactive`: a new one for another branch. Where no seq_id is free, the sequence
        used least recently is evicted: requests of other programs first, then branches. Raises PromptError when every
        sequence is busy.
        """
        sequence = self._pool.lease(conversation, inactive=inactive, client=client)
        if sequence is None:
            idle = [s for s in self._pool if not s.busy]
            if not idle:
                raise PromptError(
                    tr("All {n_seq_max} sequences are answering. Wait for one to end.").format(
                        n_seq_max=self._context.n_seq_max
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
        """The sequence with this seq_id, empty: what it holds is evicted. Raises PromptError where it is busy."""
        if (before := self._pool.by_seq(seq_id)) is not None and not before.busy:
            self.evict(before, tr("its seq_id is needed for a state from a file"))
        sequence = self._pool.lease(conversation, client=client, seq_id=seq_id)
        if sequence is None:
            raise PromptError(tr("The sequence {seq_id} is answering.").format(seq_id=seq_id))
        return sequence

    def take_over(self, conversation: ConversationId, client: Client | None, prompt: Sequence[int]) -> None:
        """Let a request go on in the sequence of an earlier one, where its prompt begins with all that is there (but
        for a few tokens): those of several turns then lie in one sequence. Where cells cannot be shared, also where the
        prompt begins with a part of it that can be kept. `client` None: nothing, it is a chat.
        """
        if client is None or not client.reuse or self._pool.get(conversation) is not None:
            return
        earlier = self.prefixes.earlier_request(client, list(prompt[:-1]), whole=self._can_share)
        if earlier is not None:
            self._pool.rename(earlier.conversation, conversation, client)

    def free_a_sequence(self) -> None:
        """Where no seq_id is free, evict the branch that was used least recently. Nothing where no branch is kept."""
        branches = [s for s in self._pool if s.inactive and not s.busy]
        if branches and not self._pool.free:
            reason = tr("its seq_id is needed to compute in")
            self.evict(min(branches, key=lambda s: s.last_used), reason, self._why_no_sequence)

    def release(self, sequence: CacheSequence) -> None:
        """Give the seq_id of an empty sequence back."""
        sequence = _own(sequence)
        self._pool.release(sequence)

    def release_empty_branch(self, sequence: CacheSequence) -> None:
        """`release`, where the sequence is an inactive branch that holds nothing."""
        if sequence.inactive and not sequence.tokens:
            self.release(sequence)

    def forget(self, conversation: ConversationId, reason: str) -> None:
        """Remove all cells of the conversation, in every branch, and what is saved of it. Changes the cache."""
        for branch in self._pool.inactive_branches(conversation):
            self.truncate(branch, 0, reason)
            self.release(branch)
        if (sequence := self._pool.get(conversation)) is not None:
            self.truncate(sequence, 0, reason)
        self.swapper.saved_states.drop_of(conversation)
        self.to_refill.pop(conversation, None)

    def close(self, conversation: ConversationId, reason: str) -> None:
        """`forget`, and give its seq_id back. Changes the cache."""
        self.forget(conversation, reason)
        if (sequence := self._pool.get(conversation)) is not None:
            self.release(sequence)
        self.pop_eviction_reason(conversation)

    def evict(self, sequence: CacheSequence, reason: str, note: str = "") -> None:
        """Save its state to memory or disk where that pays, then remove its cells and release it. Changes the cache.

        `note`: a sentence for the person, see `OperationDone`.
        """
        self.swapper.save(sequence)
        self.truncate(sequence, 0, reason, note)
        self.release(sequence)

    @property
    def block(self) -> int:
        """See `Context.block`."""
        return self._context.block

    def pop_eviction_reason(self, conversation: ConversationId) -> str:
        """Why the cells of the conversation are no longer in the cache, "" where they are; asked once."""
        return self._eviction_reasons.pop(conversation, "")

    @property
    def _why_no_sequence(self) -> str:
        """What a person is told whose branch or conversation is evicted although cells are free."""
        return tr(
            "was removed from the cache although cells are free: all {n_seq_max} sequences (n_seq_max) are "
            "in use. Its text stays; a larger n_seq_max keeps more branches in the cache."
        ).format(n_seq_max=self._context.n_seq_max)

    # --- decode: changes the cache ------------------------------------------------------------------------------------

    def decode(self, parts: Sequence[tuple[CacheSequence, Batch]], kind: DecodeKind = "decode") -> PendingDecode:
        """Decode one batch made of a batch for each sequence, at its end. Changes the cache.

        Whatever the return code, each sequence has the tokens that were placed. Raises RefusedCall and DecodeError as
        `MirroredMemory.decode` does.
        """
        try:
            whole = parts[0][1] if len(parts) == 1 else Batch.joined([batch for _, batch in parts])
            decoded = self._context.decode(whole, kind)
        except KvdeskError:
            self._append_placed(parts)
            raise
        if decoded.rc == 0:
            for sequence, batch in parts:
                own = _own(sequence)
                own.exact = self._exact_after(own, batch.n_tokens)
                own.tokens += batch.tokens
        else:
            self._append_placed(parts)
        return decoded

    # --- what a sequence is known to hold: changes no cell ------------------------------------------------------------

    def adopt(self, sequence: CacheSequence, tokens: Sequence[int], exact: int = ALL_EXACT) -> None:
        """The sequence holds these tokens now. `exact`: see `CacheSequence`."""
        sequence = _own(sequence)
        sequence.tokens, sequence.exact = list(tokens), exact

    def follow_map(self, shifted: int = ALL_EXACT) -> None:
        """After a verb of `HandCells` or an unexpected error: every sequence has what the map shows, up to the first
        hole. `shifted`: positions from there on were moved, so no other sequence may reuse them.
        """
        if shifted < ALL_EXACT and self._context.traits.quantized_k:
            self._round_again()
        for sequence in self._pool:
            held = self._memory.mirror.tokens_of(sequence.seq_id)
            if held is None:  # recurrent states do not tell; they are whole or empty
                held = sequence.tokens[: self._memory.seq_pos_max(sequence.seq_id) + 1]
            if len(held) < len(sequence.tokens):
                self._eviction_reasons.setdefault(sequence.conversation, tr("its cells were changed by hand"))
            self.adopt(sequence, held, min(sequence.exact, shifted))

    def mark_busy(self, sequence: CacheSequence) -> None:
        """An answer is being written in it: it is not evicted, and its cells are not moved."""
        _own(sequence).busy = True

    def mark_idle(self, sequence: CacheSequence) -> None:
        """The answer has ended."""
        _own(sequence).busy = False

    def touch(self, sequence: CacheSequence) -> None:
        """It is used now: others are evicted before it."""
        self._pool.touch(_own(sequence))

    def set_texts(self, sequence: CacheSequence, texts: tuple[str, ...]) -> None:
        """The messages of the turn that begins in it."""
        _own(sequence).texts = texts

    def set_spans(self, sequence: CacheSequence, spans: tuple[MessageSpan, ...]) -> None:
        """Where those messages lie."""
        _own(sequence).spans = spans

    def copies(self) -> tuple[CacheSequence, ...]:
        """All leases as they are now, for `restore_leases`."""
        return self._pool.copies()

    def restore_leases(self, copies: Iterable[CacheSequence]) -> None:
        """All leases as they were when `copies` were made; the cells must be those of then."""
        self._pool.restore(_own(sequence) for sequence in copies)

    # --- cells of one sequence ----------------------------------------------------------------------------------------

    def truncate(self, sequence: CacheSequence, n: int, reason: str, note: str = "") -> bool:
        """Keep the first `n` tokens of the sequence, remove the rest: `seq_rm(seq, n, -1)`. Changes the cache.

        Cells that `sequence.tokens` does not know of, after operations by hand, are removed too. False where this
        memory cannot remove a part; then nothing changed.
        """
        sequence = _own(sequence)
        n_held = len(sequence.tokens)
        exact = ALL_EXACT if min(n, n_held) <= sequence.exact else sequence.exact  # no token that was moved stays
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

    def slide(self, sequence: CacheSequence, held: int, p0: int, p1: int, reason: str) -> bool:
        """Of its first `held` tokens remove `[p0, p1)` and move the later ones down to p0. Changes the cache.

        Cells that another sequence shares would move for it too, so idle ones that share cells that move are evicted.
        False where one of those sequences is busy; then nothing changed.
        """
        if not self.shared_cells.can_slide(sequence, p1):
            return False
        sequence = _own(sequence)
        for other in self.shared_cells.sharing(sequence, p1):
            self.evict(other, tr("cells that it shared are moved"))
        self.truncate(sequence, held, reason)
        with self._operation_journal.operation("slide", sequence.conversation, reason):
            self._memory.seq_rm(sequence.seq_id, p0, p1)
            self._memory.seq_add(sequence.seq_id, p1, -1, p0 - p1)
        if self._context.traits.quantized_k:
            self._round_again()
        self.adopt(sequence, sequence.tokens[:p0] + sequence.tokens[p1:], min(sequence.exact, p0))
        return True

    def make_room(self, sequence: CacheSequence, n_tokens: int) -> bool:
        """Free `n_tokens` cells for the sequence by evicting idle ones, in the order of `kvdesk.policies.swap`.

        False when there is not enough even so. May change the cache.
        """
        while not self._memory.has_room(sequence.seq_id, n_tokens):
            if not self.one_buffer:
                return False  # cells of other streams are of no use
            missing = n_tokens - self._memory.free_cells(sequence.seq_id)
            idle = [s for s in self._pool if s is not sequence and not s.busy and s.tokens]
            order = eviction_order([self.swapper.resident(s) for s in idle], missing)
            if not order:
                return False
            resident, reason = order[0]
            evicted = self._pool.by_seq(resident.seq_id)
            assert evicted is not None
            self.evict(evicted, tr("its cells are needed: {reason}").format(reason=reason))
        return True

    def room_at(self, sequences: Sequence[CacheSequence]) -> int:
        """How many tokens there is room for at the end of each of these sequences, with none evicted. Read-only."""
        free = [self._memory.free_cells(sequence.seq_id) for sequence in sequences]
        return min(free) // len(sequences) if self.one_buffer else min(free)

    # --- the beginning of a prompt ------------------------------------------------------------------------------------

    def acquire_prefix(self, sequence: CacheSequence, prompt: list[int], *, moved: bool = True) -> Acquired:
        """Get as much of the prompt's beginning into the sequence as is possible without computing, and remove the
        rest. At least one token is left to decode, since logits are needed. Changes the cache.

        From the sequence itself, from an inactive branch of the same conversation, from a saved state, or from another
        sequence, whose cells are shared (`seq_cp`). What the sequence held beyond is kept as an inactive branch where
        cells can be shared. A memory that cannot give back a part (recurrent states), or that no longer holds the
        window before the cut (sliding windows; llama-server's rule, `pos_min_thold` in server-context.cpp), goes back
        to the longest saved state that the prompt begins with, and without one starts again from nothing. `moved`:
        tokens of the conversation that were moved when messages were evicted may be reused.
        """
        sequence = _own(sequence)
        source, wanted = "", prompt[:-1]
        reusable = self.prefixes.reusable_prefix(sequence, wanted, exact=not moved)
        branch, n_branch = self.prefixes.best_branch(sequence.conversation, wanted, exact=not moved)
        if branch is not None and n_branch > reusable:
            self._pool.exchange(sequence, branch)
            self.release_empty_branch(branch)  # an answer beside others began with an empty sequence, not needed now
            reusable = n_branch
            source = tr("another branch of this conversation")
        lender, n_lent = self.prefixes.lender(sequence, wanted)
        whose = sequence.conversation if moved else None
        offer = self.swapper.offer(wanted, max(reusable, n_lent), whose, sequence.sharing)
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
        """After `acquire_prefix`: keep the state at which a turn begins, where it is worth it, and say after how many
        tokens of its prompt it pauses for another `swapper.checkpoint`. `marks`: where an edit would go back to.
        """
        self.swapper.checkpoint(sequence)
        return self.swapper.pauses(sequence, prompt, marks)

    def estimate_reuse(self, conversation: ConversationId, prompt: list[int], *, moved: bool) -> tuple[int, float]:
        """(tokens that `acquire_prefix` would find, ms to bring back the state they are saved in). Read-only."""
        wanted = prompt[:-1]
        sequence = self._pool.get(conversation)
        found = self.prefixes.lender(sequence, wanted)[1]
        if sequence is not None:
            n_branch = self.prefixes.best_branch(conversation, wanted, exact=not moved)[1]
            found = max(found, self.prefixes.reusable_prefix(sequence, wanted, exact=not moved), n_branch)
        offer = self.swapper.offer(wanted, found, conversation if moved else None)
        return (found, 0.0) if offer is None else (offer.n_tokens, offer.restore_ms)

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
        """Only the first `n` tokens stay; nothing where the memory cannot give back a part. `lost`: said where the rest
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

        Raises RefusedCall where this memory cannot be saved, UserError where the limit on bytes does not allow it.
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

    def swap_in(self, conversation: ConversationId) -> int:
        """Put a saved chat back, with no token computed. Returns its bytes.

        Raises UserError: nothing is saved; there is no room, then it stays saved; it is damaged, then it is forgotten.
        """
        saved, sequence = self.swapper.saved_states.of(conversation), self._pool.get(conversation)
        if saved is None or saved.client or (sequence is not None and sequence.tokens):
            raise UserError(tr("This conversation is not swapped out."))
        blob = self.swapper.saved_states.take(saved)
        why = tr(_DAMAGED) if blob is None else self._restore(_own(self.lease(conversation)), saved, blob)
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

    def save_all(self) -> None:
        """Before the engine closes: the state of every conversation to disk, so that it answers at once next time."""
        for sequence in sorted(self._pool, key=lambda s: s.last_used):
            if not sequence.sharing:
                self.swapper.save(sequence)
        self.swapper.saved_states.close()

    def _restore(self, sequence: LeasedSequence, saved: SavedState, blob: Blob) -> str:
        """Put a saved state in the place of what the sequence holds. Returns why that failed, "" where it did not."""
        self.truncate(sequence, 0, tr("its saved state takes its place"))
        if not self.make_room(sequence, len(saved.tokens)):
            return tr(_NO_ROOM)
        if not self.swapper.restore(sequence, saved, blob):
            self.truncate(sequence, 0, tr("the saved state is not what it was said to be"))
            return tr(_DAMAGED)
        self.pop_eviction_reason(sequence.conversation)
        if saved.conversation == sequence.conversation and not saved.checkpoint:
            sequence.texts, sequence.spans = saved.texts, saved.spans
        self.adopt(sequence, saved.tokens, saved.exact)
        return ""

    # --- private ------------------------------------------------------------------------------------------------------

    def _exact_after(self, sequence: CacheSequence, n_tokens: int) -> int:
        """`sequence.exact` once so many tokens were decoded at its end in one batch: only whole blocks count."""
        n, block = len(sequence.tokens), self._context.block
        if block == 1:
            return sequence.exact
        whole = n % block == 0 and n <= sequence.exact
        return (n + n_tokens if whole else min(n, sequence.exact)) // block * block

    def _append_placed(self, parts: Sequence[tuple[CacheSequence, Batch]]) -> None:
        """A decode failed or was stopped: llama.cpp reports which finished ubatches are in the cache.

        A state that cannot give back a part is emptied: llama.cpp moves its position before it computes and cannot take
        that back (`Mirror._stopped`), so its content is unknown.
        """
        for sequence, batch in parts:
            held = self._memory.seq_pos_max(sequence.seq_id) + 1
            _own(sequence).exact = self._exact_after(sequence, held - len(sequence.tokens))
            if held > len(sequence.tokens) and not self._context.can("partial seq_rm"):
                self.truncate(
                    sequence, 0, tr("it was stopped in the middle, and no part of this model's state can be removed")
                )
            else:
                _own(sequence).tokens = [*sequence.tokens, *batch.tokens][:held]

    def _round_again(self) -> None:
        """A K-shift dequantizes the whole of a quantized K and rounds it again, rows that do not move too
        (llama-kv-cache.cpp, `build_graph_shift`): nothing in this cache is as a prefill computes it.
        """
        for sequence in self._pool:
            if sequence.tokens:
                sequence.exact = 0


def _own(sequence: CacheSequence) -> LeasedSequence:
    """The sequence as this package changes it."""
    assert isinstance(sequence, LeasedSequence)
    return sequence
