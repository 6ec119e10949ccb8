"""When a whole state is saved as a checkpoint while a turn is read, and which checkpoint is dropped for another.

For memories that can only be restored whole: recurrent states, and sliding windows smaller than the context. There an
edit or another answer goes back to the longest checkpoint that the new prompt begins with (llama-server's
`--ctx-checkpoints`, server-context.cpp), instead of to nothing. Pure: values in, positions and keys out.
"""

from collections.abc import Iterable, Sequence

from kvdesk.policies.tuned import (
    CHECKPOINT_EVERY,
    CHECKPOINT_MOST,
    CHECKPOINT_PRICE,
    CHECKPOINT_SHARE,
    MIN_REUSE_TOKENS,
)
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A kept state. gap: tokens that would be read again without it, from the next shorter state that is kept;
    age: uses of all states since its last one, which counts as 1.
    """

    key: str
    conversation: str
    gap: int
    n_bytes: int
    age: int


def pays(spared_ms: float, cost_ms: float) -> bool:
    """Whether a checkpoint that may save this much is worth its cost."""
    return cost_ms <= CHECKPOINT_PRICE * spared_ms


def pauses(
    n_kept: int, n_held: int, n_prompt: int, marks: Iterable[int], pause_ms: float, token_ms: float, block: int = 1
) -> list[int]:
    """Where the prefill of a prompt pauses so that its state can be kept: numbers of tokens, ascending.

    At `marks` (such as the beginning of the last message: an edit goes back there), at regular distances, and before
    the last token, whose logits another answer needs. n_kept: leading tokens whose state is saved already; n_held:
    tokens that need not be read; pause_ms: cost of one more batch; token_ms: cost of a token of a prompt; block: only
    multiples of it.
    """
    regular = range((n_held // CHECKPOINT_EVERY + 1) * CHECKPOINT_EVERY, n_prompt, CHECKPOINT_EVERY)
    found: list[int] = []
    for at in sorted({at // block * block for at in (*marks, *regular, n_prompt - 1)}):
        n_spared = at - max([n_kept, *found])
        if (
            n_held < at < n_prompt
            and n_spared >= MIN_REUSE_TOKENS
            and (token_ms <= 0 or pays(n_spared * token_ms, pause_ms))
        ):
            found.append(at)
    return found


def give_way(there: Sequence[Checkpoint], conversation: str, n_bytes: int, memory_bytes: int) -> list[str] | None:
    """Keys to drop so that `conversation` can have one more of `n_bytes`; None if it is too large anyway.

    Those that save least are dropped first, of equals the longest unused: the rest is spread over the conversation.
    """
    limit = int(CHECKPOINT_SHARE * memory_bytes)
    if n_bytes > limit:
        return None
    dropped: list[Checkpoint] = []
    by_value = sorted(there, key=lambda c: (c.gap / max(c.age, 1), -c.age))
    mine = [c for c in by_value if c.conversation == conversation]
    dropped += mine[: max(0, len(mine) + 1 - CHECKPOINT_MOST)]
    over = sum(c.n_bytes for c in there if c not in dropped) + n_bytes - limit
    for checkpoint in (c for c in by_value if c not in dropped):
        if over <= 0:
            break
        dropped.append(checkpoint)
        over -= checkpoint.n_bytes
    return [c.key for c in dropped]
