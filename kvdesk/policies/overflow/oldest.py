"""What the policies have in common: which messages are the oldest, and how it is said that they are evicted. Pure."""

from kvdesk.policies.overflow.plan import Abilities, OverflowPlan, Situation
from kvdesk.settings import Overflow
from kvdesk.translation import plural, tr


def stop(now: Situation, why: str = "") -> OverflowPlan:
    """Nothing is evicted; `why` not, as a sentence."""
    full = tr("{what} is full.").format(what=now.full)
    ends = tr("The answer ends here.") if now.answering else ""
    return OverflowPlan(Overflow.STOP, " ".join(part for part in (full, why, ends) if part), why=why)


def why_not_moved(can: Abilities) -> str:
    """Why the tokens after a removed part cannot move down; "" if they can."""
    if not can.can_remove_part:
        return tr(can.why_not_remove)
    return "" if can.can_shift else tr(can.why_not_shift)


def stop_unmovable(now: Situation, why: str) -> OverflowPlan:
    return stop(now, tr("The oldest messages cannot be removed: {why}").format(why=why))


def stop_unremovable(now: Situation) -> OverflowPlan:
    return stop(now, tr("The remaining messages cannot be removed."))


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
    what = tr(" and ").join(
        [tr("the beginning of this answer")] * cuts_answer + [_messages(n_messages)] * (n_messages > 0)
    )
    first = plural("the first token stays", "the first %n tokens stay", n_before)
    stays = first if n_before else tr("nothing before them stays")
    return tr(
        "{full} was full: {removed}, {stays}, and the later tokens moved to lower positions without being computed "
        "again. From here on, answers are not exact."
    ).format(full=full, removed=_removed(what, n_messages + cuts_answer, n_tokens), stays=stays)


def recomputed_sentence(full: str, n_messages: int, n_tokens: int, n_read: int) -> str:
    """What is said when messages are evicted and the `n_read` tokens after them are computed again."""
    return tr(
        "{full} was full: {removed}, and {n_read:,} tokens are computed again, so that the answer is exact."
    ).format(full=full, removed=_removed(_messages(n_messages), n_messages, n_tokens), n_read=n_read)


def _messages(n: int) -> str:
    return plural("the oldest message", "the %n oldest messages", n)


def _removed(what: str, n: int, n_tokens: int) -> str:
    """What was removed: `n` things of `n_tokens` tokens."""
    said = plural("{what} ({n_tokens:,} tokens) was removed", "{what} ({n_tokens:,} tokens) were removed", n)
    return said.format(what=what, n_tokens=n_tokens)
