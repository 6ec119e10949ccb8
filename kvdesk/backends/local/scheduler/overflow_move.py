"""Carries out in the cache what `overflow_manager` has planned for a full context, and reports it."""

from collections.abc import Sequence
from typing import NamedTuple

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT, CacheSequence
from kvdesk.backends.local.scheduler.overflow_manager import Step
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.policies.overflow import Tokens, moved_sentence, policy_of, recomputed_sentence
from kvdesk.settings import Overflow


class Move(NamedTuple):
    """Of the first `held` tokens of a sequence, those `removed` leave, and what is behind each range moves down."""

    held: int
    removed: tuple[Tokens, ...]

    @property
    def n_kept(self) -> int:
        """Tokens that the sequence has afterwards."""
        return self.held - sum(p1 - p0 for p0, p1 in self.removed)


def move_for(held: Sequence[int], step: Step) -> Move | None:
    """How moving turns a sequence that holds `held` into the beginning of `step.after`. None if nothing would move: the
    rest is computed again, or the sequence holds none of it.
    """
    if not step.removed:
        return None
    n = common_prefix(held, step.before)
    return Move(n, step.removed) if n > step.removed[-1][1] else None


def frees_enough(cache_manager: Cache, sequence: CacheSequence, step: Step, policy: Overflow, n_free: int) -> bool:
    """Whether `carry_out` leaves room for the tokens to be decoded afterwards. `n_free`: as in `RequestOverflow.go_on`.

    Cells that another sequence shares are not freed. Read-only.
    """
    move = move_for(sequence.tokens, step)
    if move is not None and cache_manager.shared_cells.can_slide(sequence, move.removed[0][1]):
        freed = cache_manager.shared_cells.cells_freed(sequence, *move.removed, (move.held, ALL_EXACT))
        return n_free + freed >= len(step.after) - move.n_kept
    n = cache_manager.prefixes.reusable_prefix(sequence, step.after[:-1], exact=policy_of(policy).exact)
    return n_free + cache_manager.shared_cells.cells_freed(sequence, (n, ALL_EXACT)) >= len(step.after) - n


def carry_out(cache_manager: Cache, sequence: CacheSequence, step: Step, policy: Overflow) -> str:
    """Remove evicted tokens from the sequence, and return the sentence that reports it. Changes the cache.

    Whatever of `step.after` the sequence lacks afterwards must be decoded: only the last token if K and V could be
    moved (`move_for`). They cannot if another running answer shares the cells.
    """
    because = f"{step.plan.why} " if step.plan.why else ""
    n_messages, n_tokens = len(step.newly_evicted), len(step.before) - len(step.after)
    move = move_for(sequence.tokens, step)
    if move is not None:
        before = move.removed[0][0]
        sentence = moved_sentence(step.full, n_messages, n_tokens, before, cuts_answer=step.plan.cuts_answer)
        sentence = step.plan.sentence if policy_of(step.plan.policy).measures else because + sentence
        if cache_manager.slide(sequence, move.held, move.removed, sentence):
            return sentence
    n = cache_manager.prefixes.reusable_prefix(sequence, step.after[:-1], exact=policy_of(policy).exact)
    sentence = because + recomputed_sentence(step.full, n_messages, n_tokens, len(step.after) - n)
    cache_manager.truncate(sequence, n, sentence)
    cache_manager.pop_eviction_reason(sequence.conversation)
    return sentence
