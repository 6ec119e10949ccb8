"""Finds which beginning of a prompt is already in the cache, and which sequence can lend it.

Looks through all leased sequences, at most 64: with 200 tokens in common that takes 1 ms, with 4,000 8 ms. A
sliding window adds 2 ms if there are 32,768 cells. Reads sequences and cells, changes neither. Runs on the
engine's thread.
"""

import numpy as np

from kvdesk.backends.local.cache_manager.sequences import CacheSequence, LeasedSequence, SequencePool
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.memories.cells import masked_swa
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.message import ConversationId
from kvdesk.policies.tuned import MIN_REUSE_TOKENS
from kvdesk.protocol.chat import Client


class PrefixLookup:
    """Over the sequences of one context."""

    def __init__(self, context: Context, pool: SequencePool) -> None:
        self._context = context
        self._pool, self._block = pool, context.block
        geometry = context.memory.mirror.geometry
        self._one_buffer = geometry.n_stream == 1
        windowed = geometry.has_window and geometry.facts.kind != "dsv4"  # which goes on at its end alone: always there
        self._n_swa = geometry.facts.n_swa if windowed else 0
        self.has_small_window = 0 < geometry.n_window < geometry.n_cells
        """Whether the cells of a sliding window are fewer than the context has positions."""

    def reusable_prefix(self, sequence: CacheSequence, tokens: list[int], *, exact: bool = False) -> int:
        """How many of its tokens can stay if the sequence is to hold `tokens`.

        0 if the sliding window before the cut is lost, or if this memory cannot give back that part. `exact`:
        none that were moved (`exact_part`).
        """
        n = common_prefix(sequence.tokens, tokens)
        if exact or self._block > 1:
            n = self.exact_part(sequence, n)
        cut = n < len(sequence.tokens) or self._context.memory.seq_pos_max(sequence.seq_id) >= n
        possible = self._can_cut(sequence.seq_id, n) if cut else self.window_holds(sequence.seq_id, n)
        return n if possible else 0

    def exact_part(self, sequence: CacheSequence, n: int) -> int:
        """How many of its first `n` tokens were not moved; whole blocks only for exact answers (`Context.block`)."""
        return min(n, sequence.exact) // self._block * self._block

    def window_holds(self, seq_id: int, n: int) -> bool:
        """Whether what a token at position `n` sees through the sliding window is still in the cache. The first
        position is not enough: a compaction keeps shared cells before those that it drops (`plan_compaction`).
        """
        if not self._n_swa or not n:
            return True
        cache = next(cache for cache in self._context.memory.mirror.caches if cache.n_swa)
        cells, first = cache.cells_of(seq_id), max(0, n - self._n_swa)
        missing = ~masked_swa(cache.n_swa, cache.swa_type, np.arange(first, n, dtype=np.int32), n)
        pos = cells.pos[: cells.high_water]
        held = pos[cells.seq_has(seq_id) & (pos >= first) & (pos < n)]
        missing[held - first] = False
        return not missing.any()

    def best_branch(
        self, conversation: ConversationId, prompt: list[int], *, exact: bool
    ) -> tuple[LeasedSequence | None, int]:
        """The inactive branch of the conversation with the longest reusable prefix of the prompt, and its tokens."""
        branches = [branch for branch in self._pool.inactive_branches(conversation) if not branch.busy]
        found = ((branch, self.reusable_prefix(branch, prompt, exact=exact)) for branch in branches)
        return max(found, key=lambda pair: pair[1], default=(None, 0))

    def lender(self, sequence: CacheSequence | None, prompt: list[int]) -> tuple[LeasedSequence | None, int]:
        """The other sequence with the longest prefix of the prompt, and how many of its tokens can be copied.

        Only sequences that share with it count (`Client.sharing`), up to their first moved token. Among equals, one
        that holds nothing else wins, then the last used. From a stream only a whole sequence can be copied.
        """
        whole = not self._one_buffer or not self._context.can("partial seq_cp")
        borrower, sharing = (sequence.seq_id, sequence.sharing) if sequence else (-1, "")
        found: list[tuple[int, bool, int, LeasedSequence]] = []
        for other in self._pool:
            n = self.exact_part(other, common_prefix(other.tokens, prompt))
            ends = n == len(other.tokens)
            waits = self._context.memory.mirror.gone_back(other.seq_id)  # a copy would get the later state
            if n and other.seq_id != borrower and other.sharing == sharing and (ends or not whole) and not waits:
                found.append((n, ends, other.last_used, other))
        n, _, _, lender = max(found, key=lambda one: one[:3], default=(0, False, 0, None))
        if lender is None or not self._context.can("seq_cp"):
            return None, 0
        if not self._window_can_be_shared(lender.seq_id, n, borrower):
            return None, 0
        return lender, n

    def earlier_request(self, client: Client, prompt: list[int], *, whole: bool) -> LeasedSequence | None:
        """The idle request of another program, sharing with `client`, that has the longest reusable prefix of the
        prompt: one that holds nothing else, but for a few tokens, or that asked the same last while no seq_id is free;
        where it need not be `whole`, also one that holds no more of something else. `prompt` is without its last token,
        which is decoded in any case.
        """
        best, most = None, MIN_REUSE_TOKENS - 1
        for sequence in self._pool:
            if sequence.client is None or sequence.busy or sequence.inactive or sequence.sharing != client.sharing:
                continue
            n = self.reusable_prefix(sequence, prompt)
            n_lost = len(sequence.tokens) - n
            is_whole = n_lost < MIN_REUSE_TOKENS or (not whole and n_lost <= n)
            asked_the_same = n == len(prompt) == sequence.n_last_prompt - 1 and not self._pool.free
            if n > most and (is_whole or asked_the_same):
                best, most = sequence, n
        return best

    def cached(self, conversation: ConversationId, tokens: list[int]) -> int:
        """How many of these first tokens the conversation has in the cache, in any of its branches."""
        mine = [s for s in self._pool if s.conversation == conversation]
        return max((common_prefix(s.tokens, tokens) for s in mine), default=0)

    # --- private ------------------------------------------------------------------------------------------------------

    def _can_cut(self, seq_id: int, n: int) -> bool:
        """Whether everything after the sequence's first `n` tokens can be removed."""
        memory = self._context.memory
        n_removed = memory.seq_pos_max(seq_id) + 1 - n
        removes = self._context.can("partial seq_rm") or n_removed <= memory.removable(seq_id)
        return removes and self.window_holds(seq_id, n)

    def _window_can_be_shared(self, seq_id: int, n: int, borrower: int) -> bool:
        """Whether the window before position `n` is in the cache and may be shared with the sequence `borrower`.

        In a window smaller than the context llama.cpp never overwrites a cell that two sequences hold
        (llama-kv-cache.cpp, `find_slot`), so such cells are lost to everyone. Therefore at most one window is shared at
        a time, and only while every sequence still finds enough cells for its own window and an ubatch.
        """
        if not self.has_small_window or not self._one_buffer or not self.window_holds(seq_id, n):
            return self.window_holds(seq_id, n)
        cells = self._context.memory.mirror.caches[-1].streams[0]
        lent = cells.seq_has(seq_id) & (cells.pos[: cells.high_water] < n)
        n_stuck = int((cells.shared() | lent).sum())
        n_there = len({*cells.sequences, borrower})
        room = cells.size - n_there * self._n_swa - self._context.n_ubatch
        return int(lent.sum()) <= self._n_swa and n_stuck <= room
