"""Saved states on their way out of the cache and back in: what pays, and whether what comes back is whole.

The policies decide from values (`kvdesk.policy.swap`); this carries out what they decide. Owns the saved states of one
context. Must never know who has which sequence: the `keeper` frees cells and makes room. Runs on the engine's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kvdesk import calls
from kvdesk.engine.chronicle import Chronicle
from kvdesk.engine.context import Context
from kvdesk.engine.sequences import UNMOVED, WORTH, Sequence
from kvdesk.engine.snapshots import Saved, Snapshots
from kvdesk.errors import KvdeskError
from kvdesk.policy.swap import Resident, place


class Offer(NamedTuple):
    """A saved state that begins like a prompt: so many of its tokens are of use, and ms to bring it back."""

    saved: Saved
    n_tokens: int
    restore_ms: float


class Swapper:
    """Saves and restores sequences. `costs` estimates (prefill ms, restore ms) of so many tokens and bytes."""

    def __init__(
        self,
        context: Context,
        chronicle: Chronicle,
        snapshots: Snapshots,
        costs: Callable[[int, int], tuple[float, float]],
    ) -> None:
        self._context = context
        self._chronicle = chronicle
        self.snapshots = snapshots
        self._costs = costs

    # --- read-only ----------------------------------------------------------------------------------------------------

    def resident(self, sequence: Sequence) -> Resident:
        """What the policies judge."""
        n = len(sequence.tokens)
        n_bytes = self._context.state_seq_size(sequence.seq_id) if self._context.can("swap") else 0
        prefill_ms, restore_ms = self._costs(n, n_bytes)
        spans = self._context.snapshot().sequences
        n_shared = next((span.n_shared for span in spans if span.seq_id == sequence.seq_id), 0)
        return Resident(
            seq_id=sequence.seq_id,
            n_tokens=n,
            n_own=n - n_shared,
            state_bytes=n_bytes,
            idle_s=time.monotonic() - sequence.used_at,
            prefill_ms=prefill_ms / (4.0 if sequence.parked else 1.0),  # a branch is missed less
            restore_ms=restore_ms,
            busy=sequence.busy,
            has_snapshot=self.snapshots.has(sequence.tokens),
        )

    def offer(self, prompt: list[int], found: int) -> Offer | None:
        """The saved state with the longest beginning of the prompt, where it pays: it has enough beyond the `found`
        tokens that are there already, and is back before they would be computed.
        """
        saved, n = self.snapshots.longest_prefix(prompt)
        if saved is None or n < found + WORTH or not self._usable(saved, n):
            return None
        prefill_ms, restore_ms = self._costs(n - found, saved.n_bytes)
        return Offer(saved, n, restore_ms) if restore_ms < prefill_ms else None

    # --- out and in ---------------------------------------------------------------------------------------------------

    def save(self, sequence: Sequence, *, by_hand: bool = False) -> int:
        """The bytes that were saved, or are already; 0: not worth it, or no place. `by_hand`: it is, whatever it costs.

        Raises with `by_hand` RefusedCall where this memory cannot be saved, EngineError.
        """
        if not by_hand and (len(sequence.tokens) < WORTH or sequence.parked or not self._context.can("swap")):
            return 0
        resident = self.resident(sequence)
        if resident.has_snapshot:
            return resident.state_bytes
        judged = replace(resident, prefill_ms=float("inf")) if by_hand else resident
        placement = place(judged, self.snapshots.values(), self.snapshots.limits)
        if placement.to == "nowhere" or sequence.exact < len(sequence.tokens):
            return 0
        try:
            blob = self._context.state_seq_get(sequence.seq_id)
        except KvdeskError:
            if by_hand:
                raise
            return 0
        who, ms = sequence.conversation, resident.prefill_ms
        self.snapshots.put(placement, who, sequence.tokens, blob, ms, sequence.texts, sequence.spans)
        return len(blob)

    def restore(self, sequence: Sequence, saved: Saved, blob: bytes) -> bool:
        """Put a saved state into the sequence, which is empty and for which there is room. Changes the cache.

        False: it is not what it was said to be; it is forgotten, and what is there of it must be removed.
        """
        start = time.perf_counter()
        with self._chronicle.doing("swap in", sequence.conversation, "computing it again would take longer"):
            try:
                taken = self._context.state_seq_set(sequence.seq_id, blob, saved.tokens, audited=False)
            except KvdeskError:
                taken = False
        if not taken or not self._is_whole(sequence.seq_id, len(saved.tokens)):
            self.snapshots.drop([saved.key])
            return False
        sequence.tokens, sequence.exact = list(saved.tokens), UNMOVED
        if saved.conversation == sequence.conversation:
            sequence.texts, sequence.spans = saved.texts, saved.spans
        call = calls.state_seq_set(sequence.seq_id, len(blob))
        self._chronicle.report("swap in", call, start, sequence.conversation, "its state was saved")
        return True

    # --- private ------------------------------------------------------------------------------------------------------

    def _usable(self, saved: Saved, n: int) -> bool:
        """Whether `n` tokens of a saved state can stay when it is back."""
        windowed = self._context.mirror.geometry.has_window
        return n == len(saved.tokens) or (self._context.can("partial seq_rm") and not windowed)

    def _is_whole(self, seq_id: int, n: int) -> bool:
        """Whether what was restored lies at the first `n` positions; what lies behind them is removed."""
        context = self._context
        if context.seq_pos_max(seq_id) >= n and not context.seq_rm(seq_id, n, -1):
            return False
        held = context.mirror.tokens_of(seq_id)  # None: a recurrent state, which does not tell
        return context.seq_pos_max(seq_id) == n - 1 and (held is None or len(held) == n)
