"""Who is in the cache: sequences leased, prefixes shared, branches parked, and who leaves when room is needed.

The policies decide from values (`kvdesk.policies`); this carries out what they decide, and every change of the cache is
told as an operation with its reason. Owns the sequences of one context; states that are saved go out and in through
`swapper`. Knows nothing of turns, prompts and templates. Runs on the engine's thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.saved_states import SavedState
from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT, MIN_REUSE_TOKENS, CacheSequence, SequencePool
from kvdesk.backends.local.cache_manager.state_swapper import StateSwapper
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.blob import Blob
from kvdesk.cache.cells import seq_members
from kvdesk.cache.metrics import holders
from kvdesk.cache.prefix import common_prefix
from kvdesk.chat import ConversationId
from kvdesk.errors import PromptError, UserError
from kvdesk.policies.prefix_tree import PrefixTree
from kvdesk.policies.swap import who_leaves
from kvdesk.protocol import calls

_NO_ROOM = "The cache has no room for the saved conversation."
_DAMAGED = (
    "The saved state of this conversation is damaged and was forgotten: at its next turn the conversation is read again"
    " from its text."
)


class CacheManager:
    """The sequences of one context."""

    def __init__(self, context: Context, operation_journal: OperationJournal, swapper: StateSwapper) -> None:
        self._context = context
        self._memory = context.memory
        self._operation_journal = operation_journal
        self.swapper = swapper
        self.pool = SequencePool(context.n_seq_max)
        self.went_back = False  # the last prefix is a checkpoint of the conversation
        self.taken = ""  # where the last prefix came from, "" for the sequence itself
        self.gone: dict[ConversationId, str] = {}  # why the cells of a conversation are no longer there
        self._tree = PrefixTree()
        self._in_tree: dict[int, int] = {}
        geometry = context.memory.mirror.geometry
        self._can = context.can
        self._one_buffer = geometry.n_stream == 1
        self._n_swa = geometry.facts.n_swa if geometry.has_window else 0
        self._small_window = 0 < geometry.n_window < geometry.n_cells

    # --- leases -------------------------------------------------------------------------------------------------------

    def can_lease(self, conversation: ConversationId) -> bool:
        """Whether `lease` would give a sequence. Read-only."""
        return bool(self.pool.get(conversation) or self.pool.free or any(not s.busy for s in self.pool))

    def lease(self, conversation: ConversationId, *, parked: bool = False) -> CacheSequence:
        """The conversation's sequence. When all are taken, the one that is missed least yields its own: its state is
        saved, its cells are removed, its text stays. Raises PromptError when every sequence is busy.
        """
        sequence = self.pool.lease(conversation, parked=parked)
        if sequence is None:
            idle = [s for s in self.pool if not s.busy]
            if not idle:
                raise PromptError(f"All {self._context.n_seq_max} sequences are answering. Wait for one to end.")
            self.leave(
                min(idle, key=lambda s: (not s.parked, s.last_used)),
                f"its seq_id is needed: all {self._context.n_seq_max} (n_seq_max) are taken; least recently used",
                self._why_no_sequence,
            )
            sequence = self.pool.lease(conversation, parked=parked)
        assert sequence is not None
        return sequence

    def free_parked(self) -> None:
        """Where no seq_id is free, the branch leaves that was used least recently; nothing where no branch is kept."""
        parked = [s for s in self.pool if s.parked and not s.busy]
        if parked and not self.pool.free:
            reason = "its seq_id is needed to compute in"
            self.leave(min(parked, key=lambda s: s.last_used), reason, self._why_no_sequence)

    def give_back(self, sequence: CacheSequence) -> None:
        """A parked sequence that holds nothing; others stay."""
        if sequence.parked and not sequence.tokens:
            self._release(sequence)

    def forget(self, conversation: ConversationId, reason: str) -> None:
        """Remove all cells of the conversation, in every branch, and what is saved of it. Changes the cache."""
        for branch in self.pool.parked(conversation):
            self.keep(branch, 0, reason)
            self._release(branch)
        if (sequence := self.pool.get(conversation)) is not None:
            self.keep(sequence, 0, reason)
        self.swapper.snapshots.drop_of(conversation)

    def close(self, conversation: ConversationId, reason: str) -> None:
        """`forget`, and give its seq_id back. Changes the cache."""
        self.forget(conversation, reason)
        if (sequence := self.pool.get(conversation)) is not None:
            self._release(sequence)
        self.gone.pop(conversation, None)

    def leave(self, sequence: CacheSequence, reason: str, note: str = "") -> None:
        """The sequence goes: its state to memory or disk where that pays, then its cells. Changes the cache."""
        self.swapper.save(sequence)
        self.keep(sequence, 0, reason, note)
        self._release(sequence)

    def _release(self, sequence: CacheSequence) -> None:
        self._forget_in_tree(sequence.seq_id)
        self.pool.release(sequence)

    @property
    def _why_no_sequence(self) -> str:
        """What a person is told whose branch or conversation leaves although cells are free."""
        return (
            f"left the cache although cells are free: all {self._context.n_seq_max} sequences (n_seq_max) are in use."
            " Its text stays; a larger n_seq_max keeps more branches in the cache."
        )

    # --- cells of one sequence ----------------------------------------------------------------------------------------

    def keep(self, sequence: CacheSequence, n: int, reason: str, note: str = "") -> bool:
        """Keep the first `n` tokens of the sequence, remove the rest: `seq_rm(seq, n, -1)`. Changes the cache.

        Also what lies there that `sequence.tokens` does not know of, after operations by hand. False where this memory
        cannot remove a part; then nothing changed.
        """
        exact = ALL_EXACT if min(n, len(sequence.tokens)) <= sequence.exact else sequence.exact  # what moved leaves
        if n >= len(sequence.tokens) and self._memory.seq_pos_max(sequence.seq_id) < n:
            sequence.exact = exact
            return True
        start = time.perf_counter()
        p0 = n if n > 0 else -1
        with self._operation_journal.doing("", sequence.conversation, reason):
            removed = self._memory.seq_rm(sequence.seq_id, p0, -1)
        if not removed:
            return False
        del sequence.tokens[n:]
        sequence.exact = exact
        self._put_in_tree(sequence)
        emptied = n == 0 and not sequence.parked
        if emptied:
            self.gone[sequence.conversation] = reason
        call = calls.seq_rm(sequence.seq_id, p0, -1)
        self._operation_journal.report("seq_rm", call, start, sequence.conversation, reason, emptied=emptied, note=note)
        return True

    def stays(self, sequence: CacheSequence, tokens: list[int], *, exact: bool = False) -> int:
        """How many of its tokens can stay when it is to hold `tokens`: 0 where the window before the cut is lost, or no
        part can be given back. `exact`: none that were moved. Read-only.
        """
        n = common_prefix(sequence.tokens, tokens)
        if exact:
            n = min(n, sequence.exact)
        cut = n < len(sequence.tokens) or self._memory.seq_pos_max(sequence.seq_id) >= n
        if cut and not (self._can("partial seq_rm") and self._window_holds(sequence.seq_id, n)):
            return 0
        return n

    def may_slide(self, sequence: CacheSequence, p1: int) -> bool:
        """Whether nobody who is being answered shares the cells from position `p1` on, which would move. Read-only."""
        return not any(other.busy for other in self.sharing(sequence, p1))

    def own_cells(self, sequence: CacheSequence, p0: int, p1: int) -> int:
        """Cells at positions `[p0, p1)` that only the sequence holds, or that only idle ones do, which would leave:
        removing them makes room. Read-only.
        """
        if not self._one_buffer or not self._memory.mirror.caches:
            return 0
        cells = self._memory.snapshot().maps[0].streams[0]
        mine = holders(cells, sequence.seq_id) & (cells.pos >= p0) & (cells.pos < p1)
        for other in self.pool:
            if other.busy and other is not sequence:
                mine &= ~holders(cells, other.seq_id)
        return int(mine.sum())

    def slide(self, sequence: CacheSequence, held: int, p0: int, p1: int, reason: str) -> bool:
        """Of its first `held` tokens, `[p0, p1)` leave and the later ones move down to p0. Changes the cache.

        Cells that another sequence shares would move for it too, so an idle one that has any of those that move leaves.
        False where one of them is being answered; then nothing changed.
        """
        if not self.may_slide(sequence, p1):
            return False
        for other in self.sharing(sequence, p1):
            self.leave(other, "cells that it shared are moved")
        self.keep(sequence, held, reason)
        start = time.perf_counter()
        with self._operation_journal.doing("", sequence.conversation, reason):
            self._memory.seq_rm(sequence.seq_id, p0, p1)
            self._memory.seq_add(sequence.seq_id, p1, -1, p0 - p1)
        del sequence.tokens[p0:p1]
        sequence.exact = min(sequence.exact, p0)
        if self._context.traits.quantized_k:
            self._rounded_again()
        self._put_in_tree(sequence)
        s = sequence.seq_id
        call = f"{calls.seq_rm(s, p0, p1)}; {calls.seq_add(s, p1, -1, p0 - p1)}"
        self._operation_journal.report("slide", call, start, sequence.conversation, reason)
        return True

    def take_prefix(self, sequence: CacheSequence, prompt: list[int], *, moved: bool = True) -> int:
        """Get as much of the prompt's beginning into the sequence as is to be had without computing, and remove the
        rest; returns how many tokens that are. At least one is left to decode, since logits are needed.

        From the sequence itself, from another one that lends its cells (`seq_cp`), from a parked branch of the same
        conversation, or from a saved state. What the sequence held beyond is parked as a branch where cells can be
        shared. A memory that cannot give back a part (recurrent states), or that no longer holds the window before the
        cut (sliding windows; llama-server's rule, `pos_min_thold` in server-context.cpp), goes back to the longest
        saved state that the prompt begins with, and without one starts again from nothing. `moved`: K and V of the
        conversation that were moved when messages left may be reused.
        """
        self.taken, self.went_back = "", False
        most = prompt[:-1]
        own = self.stays(sequence, most, exact=not moved)
        branch, there = self._best_branch(sequence, most, exact=not moved)
        if branch is not None and there > own:
            self.pool.change_places(sequence, branch)
            self._put_in_tree(sequence)
            self._put_in_tree(branch)
            self.give_back(branch)  # an answer beside others began with an empty sequence, which nobody needs now
            own = there
            self.taken = "another branch of this conversation"
        lender, lent = self._lender(sequence, most)
        offer = self.swapper.offer(most, max(own, lent), sequence.conversation if moved else None)
        blob = None if offer is None else self.swapper.snapshots.take(offer.saved)
        unkept = "" if self._park(sequence, own) else self._why_no_sequence
        if own < len(sequence.tokens):
            self.swapper.checkpoint(sequence)  # for memories that cannot park: this branch may be gone on with
        if offer is not None and blob is not None and not self._restore(sequence, offer.saved, blob):
            self._cut(sequence, offer.n_tokens)
            mine = offer.saved.conversation == sequence.conversation
            self.taken = "its saved state" if mine else "a saved state"
            self.went_back = mine and offer.saved.checkpoint
        elif lender is not None and lent >= own + MIN_REUSE_TOKENS:
            self._borrow(sequence, lender, lent)
            mine = lender.conversation == sequence.conversation
            self.taken = "another branch of this conversation" if mine else "another conversation"
        else:
            self._cut(sequence, own, unkept)
        return len(sequence.tokens)

    def pauses(self, sequence: CacheSequence, prompt: list[int], marks: Iterable[int] = ()) -> tuple[int, ...]:
        """After `take_prefix`: keep the state at which a turn begins, where it is worth it, and say after how many
        tokens of its prompt it pauses for another `swapper.checkpoint`. `marks`: where an edit would go back to.
        """
        self.swapper.checkpoint(sequence)
        return self.swapper.pauses(sequence, prompt, marks)

    def foresee(self, conversation: ConversationId, prompt: list[int], *, moved: bool) -> tuple[int, float]:
        """(tokens that `take_prefix` would find, ms to bring back the state they are saved in). Changes nothing."""
        most = prompt[:-1]
        sequence = self.pool.get(conversation)
        found = self._lender(sequence, most)[1]
        if sequence is not None:
            there = self._best_branch(sequence, most, exact=not moved)[1]
            found = max(found, self.stays(sequence, most, exact=not moved), there)
        offer = self.swapper.offer(most, found, conversation if moved else None)
        return (found, 0.0) if offer is None else (offer.n_tokens, offer.restore_ms)

    def cached(self, conversation: ConversationId, tokens: list[int]) -> int:
        """How many of these first tokens the conversation has in the cache now, in any of its branches. Read-only."""
        mine = [s for s in self.pool if s.conversation == conversation]
        return max((common_prefix(s.tokens, tokens) for s in mine), default=0)

    def make_room(self, sequence: CacheSequence, n_tokens: int) -> bool:
        """Free `n_tokens` cells for the sequence: idle conversations leave, those that are missed least first.

        False when there is not enough even so. May change the cache.
        """
        while not self._memory.has_room(sequence.seq_id, n_tokens):
            if not self._one_buffer:
                return False  # cells of other streams are of no use
            missing = n_tokens - self._memory.free_cells(sequence.seq_id)
            leaving = who_leaves([self.swapper.resident(s) for s in self.pool if self._may_leave(s, sequence)], missing)
            if not leaving:
                return False
            resident, reason = leaving[0]
            victim = self.pool.by_seq(resident.seq_id)
            assert victim is not None
            self.leave(victim, f"its cells are needed: {reason}")
        return True

    def agree(self, sequence: CacheSequence, tried: list[int]) -> None:
        """After a decode of `tried` that did not end well: finished ubatches stay cached, so believe the engine.

        Not where a state cannot give back a part: llama.cpp moves its position on before it computes, and cannot take
        that back (`Mirror._stopped`), so nothing tells what it holds.
        """
        held = self._memory.seq_pos_max(sequence.seq_id) + 1
        if held > len(sequence.tokens) and not self._can("partial seq_rm"):
            self.keep(sequence, 0, "it was stopped in the middle, and no part of this model's state can be removed")
            return
        sequence.tokens = (sequence.tokens + tried)[:held]

    def believe_map(self, shifted: int = ALL_EXACT) -> None:
        """After operations by hand: what a sequence holds is what the map says it holds, up to the first hole.

        `shifted`: positions from there on were moved, so nobody else may take them over.
        """
        if shifted < ALL_EXACT and self._context.traits.quantized_k:
            self._rounded_again()
        for sequence in self.pool:
            held = self._memory.mirror.tokens_of(sequence.seq_id)
            if held is None:  # recurrent states do not tell; they are whole or empty
                held = sequence.tokens[: self._memory.seq_pos_max(sequence.seq_id) + 1]
            if len(held) < len(sequence.tokens):
                self.gone.setdefault(sequence.conversation, "its cells were changed by hand")
            sequence.tokens = held
            sequence.exact = min(sequence.exact, shifted)
            self._put_in_tree(sequence)

    def _rounded_again(self) -> None:
        """A K-shift takes the whole of a quantized K apart and rounds it again, rows that do not move too
        (llama-kv-cache.cpp, `build_graph_shift`): nothing in this cache is as a prefill makes it.
        """
        for sequence in self.pool:
            if sequence.tokens:
                sequence.exact = 0

    # --- out and in ---------------------------------------------------------------------------------------------------

    def swap_out(self, sequence: CacheSequence) -> int:
        """Save the sequence outside the cache, remove its cells, give its seq_id back. Returns the bytes saved.

        Raises RefusedCall where this memory cannot be saved, UserError where the limit on bytes does not allow it.
        """
        n_bytes = self.swapper.save(sequence, by_hand=True)
        if not n_bytes:
            raise UserError("Its state is larger than what may be kept outside the cache: raise the limit in settings.")
        self.keep(sequence, 0, "swapped out")
        self._release(sequence)
        self.gone.pop(sequence.conversation, None)
        return n_bytes

    def swap_in(self, conversation: ConversationId) -> int:
        """Put a saved sequence back, with no token computed. Returns its bytes.

        Raises UserError: nothing is saved; there is no room, then it stays saved; it is damaged, then it is forgotten.
        """
        saved, there = self.swapper.snapshots.of(conversation), self.pool.get(conversation)
        if saved is None or (there is not None and there.tokens):
            raise UserError("This conversation is not swapped out.")
        blob = self.swapper.snapshots.take(saved)
        why = _DAMAGED if blob is None else self._restore(self.lease(conversation), saved, blob)
        if why:
            raise UserError(why)
        return saved.n_bytes

    def save_all(self) -> None:
        """Before the engine closes: the state of every conversation to disk, so that it answers at once next time."""
        for sequence in sorted(self.pool, key=lambda s: s.last_used):
            self.swapper.save(sequence)
        self.swapper.snapshots.close()

    def _restore(self, sequence: CacheSequence, saved: SavedState, blob: Blob) -> str:
        """Put a saved state in the place of what the sequence holds. Returns why it is not there, "" where it is."""
        self.keep(sequence, 0, "its saved state takes its place")
        if not self.make_room(sequence, len(saved.tokens)):
            return _NO_ROOM
        if not self.swapper.restore(sequence, saved, blob):
            self.keep(sequence, 0, "the saved state is not what it was said to be")
            return _DAMAGED
        self.gone.pop(sequence.conversation, None)
        self._put_in_tree(sequence)
        return ""

    # --- prefixes -----------------------------------------------------------------------------------------------------

    def _window_holds(self, seq_id: int, n: int) -> bool:
        """Whether the sliding window before position `n` is still there."""
        return not self._n_swa or not n or self._memory.seq_pos_min(seq_id) <= max(0, n - self._n_swa)

    def _best_branch(
        self, sequence: CacheSequence, prompt: list[int], *, exact: bool
    ) -> tuple[CacheSequence | None, int]:
        parked = [branch for branch in self.pool.parked(sequence.conversation) if not branch.busy]
        return max(((b, self.stays(b, prompt, exact=exact)) for b in parked), key=lambda p: p[1], default=(None, 0))

    def _lender(self, sequence: CacheSequence | None, prompt: list[int]) -> tuple[CacheSequence | None, int]:
        """Who else holds the longest prefix of the prompt, and how much of it can be taken over."""
        self._sync()
        whole = not self._one_buffer or not self._can("partial seq_cp")
        match = self._tree.longest_prefix(prompt, without=sequence.seq_id if sequence else -1, whole=whole)
        lender = self.pool.by_seq(match.seq_id)
        if whole and lender is not None and match.n_tokens < len(lender.tokens):
            return None, 0  # it would be copied with what was moved
        if lender is None or not self._can("seq_cp"):
            return None, 0
        if not self._window_lends(match.seq_id, match.n_tokens, sequence.seq_id if sequence else -1):
            return None, 0
        return lender, match.n_tokens

    def _window_lends(self, seq_id: int, n: int, borrower: int) -> bool:
        """Whether the window before position `n` is there and may be shared with the sequence `borrower`.

        In a window smaller than the context a cell that two sequences hold is never overwritten (llama-kv-cache.cpp,
        `find_slot`): not more than one window of them is lent at once, and only as long as a window of its own is left
        for everybody who is there, and an ubatch.
        """
        if not self._small_window or not self._one_buffer or not self._window_holds(seq_id, n):
            return self._window_holds(seq_id, n)
        cells = self._memory.mirror.caches[-1].streams[0]
        lent = cells.holders(seq_id) & (cells.pos[: cells.high_water] < n)
        n_stuck = int((cells.shared() | lent).sum())
        n_there = len({*cells.sequences, borrower})
        room = cells.size - n_there * self._n_swa - self._context.n_ubatch
        return int(lent.sum()) <= self._n_swa and n_stuck <= room

    def _borrow(self, sequence: CacheSequence, lender: CacheSequence, n: int) -> None:
        """Share the lender's first `n` cells; with streams they are copied."""
        self.keep(sequence, 0, "a longer beginning is in another sequence")
        p0, p1 = (0, n) if self._one_buffer and self._can("partial seq_cp") else (-1, -1)
        self._share(lender, sequence, p0, p1, f"{n:,} tokens at the beginning are the same")
        sequence.tokens, sequence.exact = lender.tokens[:n], ALL_EXACT
        self._put_in_tree(sequence)
        self.pool.touch(lender)
        self.gone.pop(sequence.conversation, None)

    def _cut(self, sequence: CacheSequence, n: int, note: str = "") -> None:
        """Only the first `n` tokens stay; nothing where the memory cannot give back a part. `note`: what is lost by it
        could not be kept as a branch.
        """
        reason = f"the prompt diverges at position {n}" if n else "nothing of it can be reused"
        if note:
            reason += f", and no seq_id is free to keep it: all {self._context.n_seq_max} (n_seq_max) are taken"
        if not self.keep(sequence, n, reason, note):
            self.keep(sequence, 0, "no part of this model's state can be removed")

    def _park(self, sequence: CacheSequence, n: int) -> bool:
        """Keep what the sequence holds beyond its first `n` tokens as a branch, where cells are shared. Costs nothing:
        both have the same cells until one of them goes on. False: no seq_id is free for it.
        """
        tail = len(sequence.tokens) - n
        shares = self._one_buffer and self._can("partial seq_cp") and not self._small_window  # see `_window_lends`
        if tail < MIN_REUSE_TOKENS or not shares:
            return True
        if not self.pool.free:
            return False
        branch = self.pool.lease(sequence.conversation, parked=True)
        assert branch is not None
        self._share(sequence, branch, -1, -1, f"{tail:,} tokens of another branch stay while there is room")
        branch.tokens, branch.exact = list(sequence.tokens), sequence.exact
        branch.texts, branch.spans = sequence.texts, sequence.spans
        branch.branch, sequence.branch = sequence.branch, branch.branch  # what goes on from here is the new one
        self._put_in_tree(branch)
        return True

    def _share(self, src: CacheSequence, dst: CacheSequence, p0: int, p1: int, reason: str) -> None:
        """`seq_cp` of the positions `[p0, p1)`. Changes the cache, and not yet what `dst` is said to hold."""
        start = time.perf_counter()
        with self._operation_journal.doing("", dst.conversation, reason):
            self._memory.seq_cp(src.seq_id, dst.seq_id, p0, p1)
        call = calls.seq_cp(src.seq_id, dst.seq_id, p0, p1)
        self._operation_journal.report("seq_cp", call, start, dst.conversation, reason)

    # --- private ------------------------------------------------------------------------------------------------------

    def _may_leave(self, sequence: CacheSequence, asking: CacheSequence) -> bool:
        return sequence is not asking and not sequence.busy and bool(sequence.tokens)

    def sharing(self, sequence: CacheSequence, p0: int) -> list[CacheSequence]:
        """Who else has cells of the sequence at positions from `p0` on."""
        if not self._one_buffer:
            return []
        found: set[int] = set()
        for cache in self._memory.snapshot().maps:
            cells = cache.streams[0]
            mine = (cells.pos >= p0) & holders(cells, sequence.seq_id)
            found.update(seq_members(np.bitwise_or.reduce(cells.seq_bits[mine], axis=0)))
        return [s for s in self.pool if s.seq_id in found and s is not sequence]

    def _sync(self) -> None:
        """Tell the tree what was decoded since it was last told."""
        for sequence in self.pool:
            known = self._in_tree.get(sequence.seq_id, 0)
            held = min(len(sequence.tokens), sequence.exact)
            if held > known and known:
                self._tree.extend(sequence.seq_id, sequence.tokens[known:held])
                self._in_tree[sequence.seq_id] = held
            elif held != known:
                self._put_in_tree(sequence)

    def _put_in_tree(self, sequence: CacheSequence) -> None:
        held = sequence.tokens[: sequence.exact]
        if held:
            self._tree.insert(held, sequence.seq_id)
            self._in_tree[sequence.seq_id] = len(held)
        else:
            self._forget_in_tree(sequence.seq_id)

    def _forget_in_tree(self, seq_id: int) -> None:
        self._tree.remove(seq_id)
        self._in_tree.pop(seq_id, None)
