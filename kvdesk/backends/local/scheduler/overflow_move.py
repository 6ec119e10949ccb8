"""Carries out in the cache what `overflow_manager` has planned for a full context, and says what was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kvdesk.backends.local.cache_manager.manager import CacheManager
from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT, CacheSequence
from kvdesk.backends.local.scheduler.overflow_manager import Step
from kvdesk.cache.prefix import common_prefix
from kvdesk.policies.overflow import recompute_sentence, slide_sentence
from kvdesk.settings import Overflow


class Move(NamedTuple):
    """Of the first `held` tokens of a sequence, those of [p0, p1) leave, and the later ones move down to p0."""

    held: int
    p0: int
    p1: int

    @property
    def stays(self) -> int:
        """Tokens that the sequence has afterwards."""
        return self.held - (self.p1 - self.p0)


def move_for(held: Sequence[int], step: Step, policy: Overflow) -> Move | None:
    """How a sequence that holds `held` gets to what `step.after` begins with; None where nothing of it would move.

    That is so with "recompute", where the template writes the rest in other words when messages are gone, and where the
    sequence does not hold what would move.
    """
    before, after = step.before, step.after
    same, n_left = common_prefix(before, after), len(before) - len(after)
    if policy is Overflow.RECOMPUTE or before[same + n_left :] != after[same:]:
        return None
    n = common_prefix(held, before)
    return Move(n, same, same + n_left) if n > same + n_left else None


def frees_enough(
    cache_manager: CacheManager, sequence: CacheSequence, step: Step, policy: Overflow, n_free: int
) -> bool:
    """Whether `carry_out` leaves room for the tokens that are then to be decoded: `n_free` cells are free now.

    Cells that another sequence shares are not freed. Read-only.
    """
    move = move_for(sequence.tokens, step, policy)
    if move is not None and cache_manager.can_slide(sequence, move.p1):
        freed = cache_manager.cells_freed(sequence, move.p0, move.p1) + cache_manager.cells_freed(
            sequence, move.held, ALL_EXACT
        )
        return n_free + freed >= len(step.after) - move.stays
    n = cache_manager.reusable_prefix(sequence, step.after[:-1], exact=policy is Overflow.RECOMPUTE)
    return n_free + cache_manager.cells_freed(sequence, n, ALL_EXACT) >= len(step.after) - n


def carry_out(cache_manager: CacheManager, sequence: CacheSequence, step: Step, policy: Overflow) -> str:
    """Let what leaves leave the sequence; returns the sentence that tells it. Changes the cache.

    What of `step.after` the sequence does not hold afterwards is to be decoded: nothing but the last token when K and V
    could be moved (`move_for`). They cannot where another answer that is being written shares the cells.
    """
    n_left = len(step.before) - len(step.after)
    move = move_for(sequence.tokens, step, policy)
    if move is not None:
        sentence = slide_sentence(step.full, len(step.gone), n_left, move.p0, parted=step.plan.parted)
        if cache_manager.slide(sequence, move.held, move.p0, move.p1, sentence):
            return sentence
    n = cache_manager.reusable_prefix(sequence, step.after[:-1], exact=policy is Overflow.RECOMPUTE)
    sentence = recompute_sentence(step.full, len(step.gone), n_left, len(step.after) - n)
    cache_manager.truncate(sequence, n, sentence)
    cache_manager.pop_eviction_reason(sequence.conversation)
    return sentence
