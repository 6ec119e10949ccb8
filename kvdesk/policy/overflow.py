"""What leaves when a context is full: a plan made of whole messages, announced in a sentence.

Four policies. "stop" ends the answer. "slide" removes the oldest messages and moves the rest down, keeping K and V as
they are: quick, approximate. "recompute" prefills what stays behind the removed messages: exact, slow. "sinks" keeps
the first few tokens and the most recent window, like "slide" with the beginning instead of the system prompt. Where the
model cannot do what was chosen the plan says so and stops. Never the middle of a message, never silently. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OverflowPolicy = Literal["stop", "slide", "recompute", "sinks"]
Shade = Literal["in the cache", "next to go", "gone"]

RESERVE = 8
"""Messages leave until 1/8 of the context is free where they can, so that this does not happen at every other token."""

N_SINKS = 4
"""Tokens at the very beginning that attention leans on (Xiao et al., StreamingLLM)."""

WHY: dict[OverflowPolicy, str] = {
    "stop": "The answer ends and says that the context is full. Nothing is forgotten.",
    "slide": "The oldest messages are forgotten at once; what later messages drew from them stays, so answers are "
    "close to, but not exactly, those of a shorter conversation.",
    "recompute": "The oldest messages are forgotten and the rest is read again: exact, and as slow as that.",
    "sinks": "The first tokens and the most recent messages stay: goes on for ever, quick, the least exact.",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A message's tokens `[start, end)` in the prompt, the template's marks included."""

    start: int
    end: int
    is_system: bool = False


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the memory allows and, where it does not, why (sentences of the capability matrix)."""

    can_remove_part: bool = True
    can_shift: bool = True
    why_not_remove: str = "This model cannot give back a part of its state."
    why_not_shift: str = "This model's positions cannot be moved."


@dataclass(frozen=True, slots=True)
class Situation:
    """A full context. Messages are in order and touch each other; the last one is being asked or answered.

    n_held   tokens of the sequence in the cache, n_room tokens that must fit behind them
    n_keep   leading tokens that stay whatever they are (rounded up to whole messages, except for "sinks")
    """

    messages: tuple[Span, ...]
    n_held: int
    n_room: int
    n_ctx_seq: int
    n_keep: int = 0


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
    """

    policy: OverflowPolicy
    sentence: str
    gone: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    calls: tuple[SeqRm | SeqAdd, ...] = ()
    prefill: tuple[int, int] = (0, 0)
    n_held: int = 0
    exact: bool = True

    @property
    def stops(self) -> bool:
        return self.policy == "stop"


def plan_overflow(policy: OverflowPolicy, now: Situation, can: Abilities) -> OverflowPlan:
    """What to do so that `n_room` more tokens fit. Nothing leaves while they fit already."""
    missing = now.n_held + now.n_room - now.n_ctx_seq
    if missing <= 0:
        return OverflowPlan(policy, "There is room.", n_held=now.n_held)
    full = f"The context of {now.n_ctx_seq:,} tokens is full"
    if policy == "stop":
        return _stop(f"{full}: the answer ends here.", now)
    if policy != "recompute" and (why := _impossible(can)):
        return _stop(f"{full}, and the oldest messages cannot leave: {why} The answer ends here.", now)
    gone = _leaving(policy, now, max(missing, now.n_ctx_seq // RESERVE)) or _leaving(policy, now, missing)
    if not gone:
        return _stop(f"{full}, and the messages that are left cannot be parted. The answer ends here.", now)
    start, end = now.messages[gone[0]].start, now.messages[gone[-1]].end
    if policy == "recompute":
        return _recompute(now, can, gone, (start, end), full)
    first = max(start, _n_sinks(now)) if policy == "sinks" else start
    return _slide(policy, now, gone, (first, end), full)


def shades(policy: OverflowPolicy, now: Situation, can: Abilities, n_gone: int = 0) -> tuple[Shade, ...]:
    """How each message is shown. `n_room`: what the next turn is expected to need. n_gone: messages before
    `messages[0]` that left earlier; they come first.
    """
    leaving = set(plan_overflow(policy, now, can).gone)
    result: list[Shade] = ["gone"] * n_gone
    result += ["next to go" if i in leaving else "in the cache" for i in range(len(now.messages))]
    return tuple(result)


# --- private ----------------------------------------------------------------------------------------------------------


def _stop(sentence: str, now: Situation) -> OverflowPlan:
    return OverflowPlan("stop", sentence, n_held=now.n_held)


def _impossible(can: Abilities) -> str:
    if not can.can_remove_part:
        return can.why_not_remove
    return "" if can.can_shift else can.why_not_shift


def _leaving(policy: OverflowPolicy, now: Situation, missing: int) -> tuple[int, ...]:
    """The oldest messages that may leave, as few as free `missing` tokens; () when even all of them do not.

    The last message never leaves. They are neighbours: the system prompt and n_keep are at the beginning. With "sinks"
    the system prompt is a message like others, but the first tokens of what leaves stay.
    """
    gone: list[int] = []
    freed = 0
    for i, message in enumerate(now.messages[:-1]):
        if policy != "sinks" and (message.is_system or message.start < now.n_keep):
            if gone:
                break  # a system message in the middle ends what may leave in one piece
            continue
        start = max(message.start, _n_sinks(now)) if policy == "sinks" else message.start
        if start >= message.end:
            continue
        gone.append(i)
        freed += message.end - start
        if freed >= missing:
            return tuple(gone)
    return ()


def _n_sinks(now: Situation) -> int:
    return max(N_SINKS, now.n_keep)


def _slide(
    policy: OverflowPolicy, now: Situation, gone: tuple[int, ...], left: tuple[int, int], full: str
) -> OverflowPlan:
    p0, p1 = left
    stays = f"the first {p0:,} tokens stay" if p0 else "nothing stays before them"
    return OverflowPlan(
        policy,
        f"{full}: {_messages(gone)} ({p1 - p0:,} tokens) left, {stays}, and later ones moved down unchanged. "
        "Answers are approximate from here on.",
        gone,
        (left,),
        (SeqRm(p0, p1), SeqAdd(p1, -1, p0 - p1)),
        n_held=now.n_held - (p1 - p0),
        exact=False,
    )


def _recompute(now: Situation, can: Abilities, gone: tuple[int, ...], left: tuple[int, int], full: str) -> OverflowPlan:
    p0, p1 = left
    n_held = now.n_held - (p1 - p0)
    start = p0 if can.can_remove_part else 0
    return OverflowPlan(
        "recompute",
        f"{full}: {_messages(gone)} ({p1 - p0:,} tokens) left, and {n_held - start:,} tokens are read again, "
        "so that the answer is exact.",
        gone,
        (left,),
        (SeqRm(start or -1, -1),),
        prefill=(start, n_held),
        n_held=n_held,
    )


def _messages(gone: tuple[int, ...]) -> str:
    return "the oldest message" if len(gone) == 1 else f"the {len(gone)} oldest messages"
