"""Carries out in the cache what `departures` has planned for a full context, and says what was done."""

from __future__ import annotations

from kvdesk.cache.prefix import common_prefix
from kvdesk.engine.departures import Step
from kvdesk.engine.keeper import Keeper
from kvdesk.engine.sequences import Sequence
from kvdesk.policy.overflow import recompute_sentence, slide_sentence
from kvdesk.settings import Overflow


def carry_out(keeper: Keeper, sequence: Sequence, step: Step, policy: Overflow, n_ctx_seq: int) -> str:
    """Let what leaves leave the sequence; returns the sentence that tells it. Changes the cache.

    What of `step.after` the sequence does not hold afterwards is to be decoded: nearly all of it with "recompute";
    nothing but the last token when K and V could be moved. They cannot where the template writes the rest in other
    words when messages are gone, or where another answer that is being written shares the cells.
    """
    before, after = step.before, step.after
    same, n_left = common_prefix(before, after), len(before) - len(after)
    if policy is not Overflow.RECOMPUTE and before[same + n_left :] == after[same:]:
        held = common_prefix(sequence.tokens, before)
        sentence = slide_sentence(n_ctx_seq, len(step.gone), n_left, same, parted=step.plan.parted)
        if held > same + n_left and keeper.slide(sequence, held, same, same + n_left, sentence):
            return sentence
    n = keeper.stays(sequence, after, exact=policy is Overflow.RECOMPUTE)
    sentence = recompute_sentence(n_ctx_seq, len(step.gone), n_left, len(after) - n)
    keeper.keep(sequence, n, sentence)
    keeper.gone.pop(sequence.conversation, None)
    return sentence
