"""One batch a step over all running turns: everybody who decodes gets a token, prefill gets what time is left.

A conversation that decodes must not stand still while another one reads a long prompt, so the prompt comes in chunks
that make a step at most `LONGEST_STEP` times what it takes without. Pure: no queue, no clock. Must never know the
engine; it is told how long a batch takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

LONGEST_STEP = 2.5
"""A step with prefill takes at most so many steps without: 5 is what a reader may notice, the rest is for noise."""

BatchMs = Callable[[int, int], float | None]
"""Expected ms of a batch of n_tokens over n_kv cells (`BatchTimes.ms`); None where nothing is known."""

_UNKNOWN_CHUNK = 4  # tokens of prefill beside decoding turns while no time is known


@dataclass(frozen=True, slots=True)
class Want:
    """A running turn. n_prefill: tokens of its prompt not decoded yet, 0 when it decodes one token a step.

    n_read     tokens of its prompt that were decoded for this turn
    waited_ms  since it last had a token in a batch; the longest waiting come first when not all fit
    """

    seq_id: int
    n_prefill: int
    waited_ms: float = 0.0
    n_read: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """So many tokens of this sequence are in the batch."""

    seq_id: int
    n_tokens: int


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The next batch: decoding turns first, one token each, then chunks of prompts. `ms` is expected, None unknown."""

    shares: tuple[Share, ...]
    ms: float | None
    reason: str

    @property
    def n_tokens(self) -> int:
        return sum(share.n_tokens for share in self.shares)


def compose(wants: Sequence[Want], batch_ms: BatchMs, n_kv: int, n_batch: int, *, together: bool = True) -> BatchPlan:
    """The next batch for these turns, none of which is left out for good. n_kv: the span of the next step.

    together: False where the engine cannot have several sequences in one batch; then the longest waiting turn has it.

    Prompts share the chunk evenly; what a short one leaves goes to the others, so it is read without waiting for a
    long one.
    """
    waiting = sorted(wants, key=lambda w: (-w.waited_ms, w.seq_id))
    waiting = waiting if together else waiting[:1]
    decoding = [w for w in waiting if not w.n_prefill][:n_batch]
    prompts = [w for w in waiting if w.n_prefill]
    n_room = n_batch - len(decoding)
    if not prompts or not n_room:
        shares = _ones(decoding)
        return BatchPlan(shares, batch_ms(len(shares), n_kv), _count(len(shares), "conversation", "decode"))
    if not decoding:
        parts = _split(prompts, n_room)
        n = sum(share.n_tokens for share in parts)
        return BatchPlan(parts, batch_ms(n, n_kv), "Nobody waits for a token: the batch is full of prompt.")
    without = batch_ms(len(decoding), max(1, n_kv - sum(w.n_read for w in prompts)))
    chunk = _chunk(len(decoding), min(n_room, sum(w.n_prefill for w in prompts)), batch_ms, n_kv, without)
    shares = _ones(decoding) + _split(prompts, chunk)
    return BatchPlan(
        shares,
        batch_ms(len(decoding) + chunk, n_kv),
        f"{_count(len(decoding), 'conversation', 'decode')} and must not wait: {chunk} tokens of prompt with them.",
    )


def _ones(decoding: Sequence[Want]) -> tuple[Share, ...]:
    return tuple(Share(w.seq_id, 1) for w in decoding)


def _chunk(n_decoding: int, most: int, batch_ms: BatchMs, n_kv: int, without: float | None) -> int:
    """The most tokens of prompt, at least one, with which a step stays within its limit.

    `without`: ms of a step while no prompt was read. What is read already makes steps longer, and counts against it.
    """
    if without is None:
        return min(most, _UNKNOWN_CHUNK)
    limit = LONGEST_STEP * without
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        ms = batch_ms(n_decoding + middle, n_kv)
        if ms is not None and ms <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _split(prompts: Sequence[Want], n_tokens: int) -> tuple[Share, ...]:
    """Share out `n_tokens` evenly, nobody more than it has; the longest waiting get the odd ones."""
    parts = {w.seq_id: 0 for w in prompts}
    open_ones = list(prompts)
    while n_tokens and open_ones:
        each = max(1, n_tokens // len(open_ones))
        for want in tuple(open_ones):
            n = min(each, want.n_prefill - parts[want.seq_id], n_tokens)
            parts[want.seq_id] += n
            n_tokens -= n
            if parts[want.seq_id] == want.n_prefill:
                open_ones.remove(want)
    return tuple(Share(seq_id, n) for seq_id, n in parts.items() if n)


def _count(n: int, name: str, verb: str) -> str:
    return f"1 {name} {verb}s" if n == 1 else f"{n} {name}s {verb}"
