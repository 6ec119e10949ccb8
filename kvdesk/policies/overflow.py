"""What leaves when a context is full: a plan made of whole messages, announced in a sentence.

Four policies. "stop" ends the answer. "slide" removes the oldest messages and moves the rest down, keeping K and V as
they are: quick, approximate. "recompute" prefills what stays behind the removed messages: exact, slow. "sinks" keeps
the first few tokens and the most recent window, like "slide" with the beginning instead of the system prompt; it alone
goes on when one answer fills the context, by letting the beginning of that answer go. Where the model cannot do what
was chosen the plan says so and stops. Otherwise messages leave whole, an answer together with its question, and never
silently. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OverflowPolicy = Literal["stop", "slide", "recompute", "sinks"]
Retention = Literal["in the cache", "next", "gone"]

RESERVE = 8
"""Messages leave until 1/8 of the context is free where they can, so that this does not happen at every other token."""

N_SINKS = 4
"""Tokens at the very beginning that attention leans on (Xiao et al., StreamingLLM)."""

WHY: dict[OverflowPolicy, str] = {
    "stop": "The answer ends and says that the context is full. Nothing is forgotten.",
    "slide": "Fast, nearly exact: the oldest messages are forgotten. What was computed from them for later messages "
    "is kept, so answers differ a little from those of a shorter conversation.",
    "recompute": "Slow, exact: the oldest messages are forgotten and all others are computed again.",
    "sinks": "Fast, least exact: even this answer's beginning may be forgotten. The first tokens and the latest "
    "messages stay.",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A message's tokens `[start, end)` in the prompt, the template's marks included. An answer `follows` its question:
    it stays or leaves with it, since many templates refuse an answer to nothing.
    """

    start: int
    end: int
    is_system: bool = False
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the memory allows and, where it does not, why (sentences of the capability matrix)."""

    can_remove_part: bool = True
    can_shift: bool = True
    why_not_remove: str = "No part of this model's state can be removed."
    why_not_shift: str = "This model's positions cannot be moved."


@dataclass(frozen=True, slots=True)
class Situation:
    """A full context. Messages are in order and touch each other; the last one is being asked or answered.

    n_held     tokens of the sequence in the cache, n_room tokens that must fit behind them
    n_keep     leading tokens that stay whatever they are (rounded up to whole messages, except for "sinks")
    answering  the last message is an answer in the making; the one before it, its question, stays (not for "sinks")
    shared     the context has room, but other answers have the rest of the cache: `n_ctx_seq` is what is left for this
    """

    messages: tuple[Span, ...]
    n_held: int
    n_room: int
    n_ctx_seq: int
    n_keep: int = 0
    answering: bool = False
    shared: bool = False

    @property
    def full(self) -> str:
        """What is full, in words."""
        if self.shared:
            return "The cache, shared with other running answers,"
        return f"The context of {self.n_ctx_seq:,} tokens"

    @property
    def n_sinks(self) -> int:
        """Leading tokens that "sinks" keeps."""
        return max(N_SINKS, self.n_keep)


@dataclass(frozen=True, slots=True)
class SeqRm:
    """`seq_rm(seq, p0, p1)`: the cells of `[p0, p1)` leave."""

    p0: int
    p1: int


@dataclass(frozen=True, slots=True)
class SeqAdd:
    """`seq_add(seq, p0, p1, delta)`: the positions `[p0, p1)` move by `delta`. p1 is -1 for the end."""

    p0: int
    p1: int
    delta: int


@dataclass(frozen=True, slots=True)
class OverflowPlan:
    """What to do, in order: `calls`, then decode the tokens `prefill` (positions after the calls; (0, 0) for none).

    gone     indices of the messages that leave; `ranges` their tokens before anything moved
    n_held   tokens of the sequence once all of this is done
    exact    whether answers will be those of a prefill of what stays
    parted   the beginning of the answer in the making is among what leaves
    """

    policy: OverflowPolicy
    sentence: str
    gone: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    calls: tuple[SeqRm | SeqAdd, ...] = ()
    prefill: tuple[int, int] = (0, 0)
    n_held: int = 0
    exact: bool = True
    parted: bool = False

    @property
    def stops(self) -> bool:
        return self.policy == "stop"


def plan_overflow(policy: OverflowPolicy, now: Situation, can: Abilities) -> OverflowPlan:
    """What to do so that `n_room` more tokens fit. Nothing leaves while they fit already."""
    missing = now.n_held + now.n_room - now.n_ctx_seq
    if missing <= 0:
        return OverflowPlan(policy, "There is room.", n_held=now.n_held)
    if policy == "stop":
        return _stop(now, "")
    if policy != "recompute" and (why := _impossible(can)):
        return _stop(now, f"The oldest messages cannot be removed: {why}")
    wanted = max(missing, now.n_ctx_seq // RESERVE)
    gone = _leaving(policy, now, wanted)
    if not gone and policy == "sinks" and now.answering and now.n_held - now.n_sinks > wanted:
        everything = tuple(i for i, m in enumerate(now.messages[:-1]) if m.end > now.n_sinks)
        return _slide(policy, now, everything, (now.n_sinks, now.n_sinks + wanted), parted=True)
    gone = gone or _leaving(policy, now, missing)
    if not gone:
        return _stop(now, "The remaining messages cannot be removed.")
    start, end = now.messages[gone[0]].start, now.messages[gone[-1]].end
    if policy == "recompute":
        return _recompute(now, can, gone, (start, end))
    return _slide(policy, now, gone, (max(start, now.n_sinks) if policy == "sinks" else start, end))


def slide_sentence(full: str, n_gone: int, n_tokens: int, n_before: int, *, parted: bool = False) -> str:
    """What is said when messages leave and later ones move. full: `Situation.full`; n_gone: messages; n_tokens: what
    left, n_before: what stays before it; parted: the beginning of the answer left too.
    """
    what = " and ".join(["the beginning of this answer"] * parted + [_messages(n_gone)] * (n_gone > 0))
    stays = f"the first {n_before:,} tokens stay" if n_before else "nothing before them stays"
    return (
        f"{full} was full: {what} ({n_tokens:,} tokens) left it, {stays}, and the later tokens moved to lower "
        "positions without being computed again. From here on, answers are not exact."
    )


def recompute_sentence(full: str, n_gone: int, n_tokens: int, n_read: int) -> str:
    """What is said when messages leave and the rest is prefilled again: n_read tokens."""
    return (
        f"{full} was full: {_messages(n_gone)} ({n_tokens:,} tokens) left it, and "
        f"{n_read:,} tokens are computed again, so that the answer is exact."
    )


def shades(policy: OverflowPolicy, now: Situation, can: Abilities, n_gone: int = 0) -> tuple[Retention, ...]:
    """How each message is shown. `n_room`: what the next turn is expected to need. n_gone: messages before
    `messages[0]` that left earlier; they come first.
    """
    leaving = set(plan_overflow(policy, now, can).gone)
    result: list[Retention] = ["gone"] * n_gone
    result += ["next" if i in leaving else "in the cache" for i in range(len(now.messages))]
    return tuple(result)


# --- private ----------------------------------------------------------------------------------------------------------


def _stop(now: Situation, why: str) -> OverflowPlan:
    ends = "The answer ends here." if now.answering else ""
    sentence = " ".join(part for part in (f"{now.full} is full.", why, ends) if part)
    return OverflowPlan("stop", sentence, n_held=now.n_held)


def _impossible(can: Abilities) -> str:
    if not can.can_remove_part:
        return can.why_not_remove
    return "" if can.can_shift else can.why_not_shift


def _leaving(policy: OverflowPolicy, now: Situation, missing: int) -> tuple[int, ...]:
    """The oldest messages that may leave, as few as free `missing` tokens; () when even all of them do not.

    They are neighbours: the system prompt and n_keep are at the beginning. With "sinks" the system prompt is a message
    like others, but the first tokens of what leaves stay.
    """
    sinks = policy == "sinks"
    last = 2 if now.answering and not sinks else 1
    gone: list[int] = []
    freed, kept = 0, False
    for i, message in enumerate(now.messages[:-last]):
        if freed >= missing and not message.follows:
            break
        kept = not sinks and (message.is_system or message.start < now.n_keep or (kept and message.follows))
        start = max(message.start, now.n_sinks) if sinks else message.start
        if kept and gone:
            break  # a system message in the middle ends what may leave in one piece
        if kept or start >= message.end:
            continue
        gone.append(i)
        freed += message.end - start
    return tuple(gone) if freed >= missing else ()


def _slide(
    policy: OverflowPolicy, now: Situation, gone: tuple[int, ...], left: tuple[int, int], *, parted: bool = False
) -> OverflowPlan:
    p0, p1 = left
    return OverflowPlan(
        policy,
        slide_sentence(now.full, len(gone), p1 - p0, p0, parted=parted),
        gone,
        (left,),
        (SeqRm(p0, p1), SeqAdd(p1, -1, p0 - p1)),
        n_held=now.n_held - (p1 - p0),
        exact=False,
        parted=parted,
    )


def _recompute(now: Situation, can: Abilities, gone: tuple[int, ...], left: tuple[int, int]) -> OverflowPlan:
    p0, p1 = left
    n_held = now.n_held - (p1 - p0)
    start = p0 if can.can_remove_part else 0
    return OverflowPlan(
        "recompute",
        recompute_sentence(now.full, len(gone), p1 - p0, n_held - start),
        gone,
        (left,),
        (SeqRm(start or -1, -1),),
        prefill=(start, n_held),
        n_held=n_held,
    )


def _messages(n_gone: int) -> str:
    return "the oldest message" if n_gone == 1 else f"the {n_gone} oldest messages"
