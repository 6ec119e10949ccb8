"""What the policies have in common: which messages are the oldest, and how it is said that they are evicted. Pure."""

from __future__ import annotations

from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, Situation
from kvdesk.settings import Overflow


def stop(now: Situation, why: str = "") -> OverflowPlan:
    """Nothing is evicted; `why` not, as a sentence."""
    ends = "The answer ends here." if now.answering else ""
    return OverflowPlan(Overflow.STOP, " ".join(part for part in (f"{now.full} is full.", why, ends) if part))


def why_not_moved(can: Abilities) -> str:
    """Why the tokens behind a removed part cannot move down; "" where they can."""
    if not can.can_remove_part:
        return can.why_not_remove
    return "" if can.can_shift else can.why_not_shift


def stop_unmovable(now: Situation, why: str) -> OverflowPlan:
    return stop(now, f"The oldest messages cannot be removed: {why}")


def stop_unremovable(now: Situation) -> OverflowPlan:
    return stop(now, "The remaining messages cannot be removed.")


def oldest_messages(now: Situation, missing: int) -> tuple[int, ...]:
    """The oldest messages that may be evicted, as few as free `missing` tokens; () when even all of them do not.

    They are neighbours: the system prompt and `n_keep` tokens at the beginning stay, and so do the question that is
    being answered and its answer.
    """
    found: list[int] = []
    freed, stays = 0, False
    for i, message in enumerate(now.messages[: -2 if now.answering else -1]):
        if freed >= missing and not message.follows:
            break
        stays = message.is_system or message.start < now.n_keep or (stays and message.follows)
        if stays and found:
            break  # a system message in the middle ends what may be removed in one piece
        if stays or message.start >= message.end:
            continue
        found.append(i)
        freed += message.end - message.start
    return tuple(found) if freed >= missing else ()


def tokens_of(now: Situation, messages: tuple[int, ...]) -> tuple[int, int]:
    """The tokens [start, end) of these neighbours."""
    return now.messages[messages[0]].start, now.messages[messages[-1]].end


def moved_sentence(full: str, n_messages: int, n_tokens: int, n_before: int, *, cuts_answer: bool = False) -> str:
    """What is said when messages are evicted and later ones move down. full: `Situation.full`; n_messages and n_tokens
    are evicted, n_before tokens stay before them; cuts_answer: the beginning of the answer is evicted too.
    """
    were = _were(n_messages + cuts_answer)
    what = " and ".join(["the beginning of this answer"] * cuts_answer + [_messages(n_messages)] * (n_messages > 0))
    stays = f"the first {n_before:,} tokens stay" if n_before else "nothing before them stays"
    return (
        f"{full} was full: {what} ({n_tokens:,} tokens) {were} removed, {stays}, and the later tokens moved to lower "
        "positions without being computed again. From here on, answers are not exact."
    )


def recomputed_sentence(full: str, n_messages: int, n_tokens: int, n_read: int) -> str:
    """What is said when messages are evicted and the `n_read` tokens behind them are computed again."""
    return (
        f"{full} was full: {_messages(n_messages)} ({n_tokens:,} tokens) {_were(n_messages)} removed, and "
        f"{n_read:,} tokens are computed again, so that the answer is exact."
    )


def _messages(n: int) -> str:
    return "the oldest message" if n == 1 else f"the {n} oldest messages"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"
