"""Carries out in the cache what `overflow_manager` has planned for a full context, and reports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT, CacheSequence
from kvdesk.backends.local.scheduler.overflow_manager import Step
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.policies.overflow import moved_sentence, policy_of, recomputed_sentence
from kvdesk.settings import Overflow


class Move(NamedTuple):
    """Of the first `held` tokens of a sequence, those of [p0, p1) are removed and the later ones move down to p0."""

    held: int
    p0: int
    p1: int

    @property
    def n_kept(self) -> int:
        """Tokens of the sequence afterwards."""
        return self.held - (self.p1 - self.p0)


def move_for(held: Sequence[int], step: Step) -> Move | None:
    """How moving turns a sequence that holds `held` into the beginning of `step.after`. None if nothing would move: the
    rest is computed again, or the sequence holds none of it.
    """
    if step.removed is None:
        return None
    p0, p1 = step.removed
    n = common_prefix(held, step.before)
    return Move(n, p0, p1) if n > p1 else None


def frees_enough(cache_manager: Cache, sequence: CacheSequence, step: Step, policy: Overflow, n_free: int) -> bool:
    """Whether `carry_out` leaves room for the tokens to be decoded afterwards. `n_free`: cells that are free now.

    Cells that another sequence shares are not freed. Read-only.
    """
    move = move_for(sequence.tokens, step)
    if move is not None and cache_manager.shared_cells.can_slide(sequence, move.p1):
        freed = cache_manager.shared_cells.cells_freed(sequence, move.p0, move.p1)
        freed += cache_manager.shared_cells.cells_freed(sequence, move.held, ALL_EXACT)
        return n_free + freed >= len(step.after) - move.n_kept
    n = cache_manager.prefixes.reusable_prefix(sequence, step.after[:-1], exact=policy_of(policy).exact)
    return n_free + cache_manager.shared_cells.cells_freed(sequence, n, ALL_EXACT) >= len(step.after) - n


def carry_out(cache_manager: Cache, sequence: CacheSequence, step: Step, policy: Overflow) -> str:
    """Remove evicted tokens from the sequence, and return the sentence that reports it. Changes the cache.

    Whatever of `step.after` the sequence lacks afterwards must be decoded: only the last token if K and V could be
    moved (`move_for`). They cannot if another running answer shares the cells.
    """
    n_messages, n_tokens = len(step.newly_evicted), len(step.before) - len(step.after)
    move = move_for(sequence.tokens, step)
    if move is not None:
        sentence = moved_sentence(step.full, n_messages, n_tokens, move.p0, cuts_answer=step.plan.cuts_answer)
        if cache_manager.slide(sequence, move.held, move.p0, move.p1, sentence):
            return sentence
    n = cache_manager.prefixes.reusable_prefix(sequence, step.after[:-1], exact=policy_of(policy).exact)
    sentence = recomputed_sentence(step.full, n_messages, n_tokens, len(step.after) - n)
    cache_manager.truncate(sequence, n, sentence)
    cache_manager.pop_eviction_reason(sequence.conversation)
    return sentence
