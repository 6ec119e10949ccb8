"""A long text read message by message into a window that is smaller, under one policy of what leaves it."""

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.take_out import take_out
from kvdesk.experiments.raw_context import RawContext
from kvdesk.policies.overflow import Abilities, Situation, Span, plan_overflow
from kvdesk.policies.tuned import RESERVE
from kvdesk.settings import Overflow
from kvdesk.translation import marked
from kvdesk.values import dataclass, field, replace


class Policy(StrEnum):
    """What happens when a message does not fit. The middle four are kvdesk's own (`kvdesk.policies.overflow`)."""

    ALL = marked("everything kept")
    SLIDE = marked("slide")
    RECOMPUTE = marked("recompute")
    SINKS = marked("attention sinks")
    STOP = marked("stop")
    RING = marked("ring")


OWN: Final[dict[Policy, Overflow]] = {
    Policy.SLIDE: Overflow.SLIDE,
    Policy.RECOMPUTE: Overflow.RECOMPUTE,
    Policy.SINKS: Overflow.SINKS,
    Policy.STOP: Overflow.STOP,
}


class Told(NamedTuple):
    """Something the text tells and that is asked for at the end. message: the number of the one that tells it."""

    message: int
    question: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(slots=True)
class Reading:
    """What came of reading a text.

    seconds   of each message that was read, making room for it included
    surprise  negative log-likelihood of each token in nats, message by message, NaN for the first token of all; empty
              where it was not asked for
    moved     cells whose positions were moved; read_again: tokens that were decoded a second time
    first     the message that did not fit first, None if all did
    """

    seconds: list[float] = field(default_factory=list)
    surprise: list[NDArray[np.float64]] = field(default_factory=list)
    moved: int = 0
    read_again: int = 0
    first: int | None = None


class Window:
    """One sequence of `context` that holds `limit` tokens at most; `limit` None: all. Everything it does is in
    `reading`.

    The ring removes the oldest messages and does nothing else: new tokens take the freed cells, and positions go on.
    """

    def __init__(self, context: RawContext, policy: Policy, limit: int | None) -> None:
        context.clear()
        self.reading = Reading()
        self._context, self._policy, self._limit = context, policy, limit
        self._messages: list[Span] = []
        self._tokens: list[int] = []
        self._removed = 0  # by the ring: what is held begins at this position
        self._last: NDArray[np.float32] | None = None  # logits after the last token

    def read(self, tokens: Sequence[int], index: int, *, is_system: bool, judged: bool) -> bool:
        """The next message, of which each but the first follows another. False: the policy stops here.

        judged: how surprising each token is, which takes time that is not counted. Raises ContextError.
        """
        start = time.perf_counter()
        if not self._make_room(len(tokens), index):
            return False
        seconds = time.perf_counter() - start + self._decode(tokens, judged=judged)
        self._messages.append(
            Span(len(self._tokens), len(self._tokens) + len(tokens), is_system, not is_system and index % 2 == 0)
        )
        self._tokens += tokens
        self.reading.seconds.append(seconds)
        return True

    def answers(self, told: Told) -> float:
        """Mean log-probability of the tokens of the answer behind what was read and the question; both are removed."""
        asked = [*told.question, *told.answer]
        place = self._end
        rows = self._context.all_logits(asked, 0, place)
        self._context.seq_rm(0, place, -1)
        first = len(told.question) - 1
        return -float(np.mean(surprise(rows[first : first + len(told.answer)], told.answer)))

    def token_s(self, n: int) -> float:
        """Median seconds of one more token, of `n` that are removed again. Raises ContextError."""
        seconds = []
        for _ in range(n):
            seconds.append(self._context.read(self._tokens[-1:], self._end).seconds)
            self._context.seq_rm(0, self._end, -1)
        return float(np.median(seconds))

    # --- private ------------------------------------------------------------------------------------------------------

    @property
    def _end(self) -> int:
        """Position of the next token."""
        return self._removed + len(self._tokens)

    def _decode(self, tokens: Sequence[int], *, judged: bool) -> float:
        """Seconds. Surprise is that of a token after all before it, the first of the message included."""
        if not judged:
            return self._context.read(tokens, self._end).seconds
        start = time.perf_counter()
        rows = self._context.all_logits(tokens, 0, self._end)
        seconds = time.perf_counter() - start
        before = np.full_like(rows[:1], np.nan) if self._last is None else self._last[None]
        self.reading.surprise.append(surprise(np.concatenate((before, rows[:-1])), tokens))
        self._last = rows[-1].copy()
        return seconds

    def _make_room(self, n: int, index: int) -> bool:
        """Whether `n` more tokens fit now. May evict messages."""
        if self._limit is None or len(self._tokens) + n <= self._limit:
            return True
        if self.reading.first is None:
            self.reading.first = index
        now = Situation(
            (*self._messages, Span(len(self._tokens), len(self._tokens))), len(self._tokens), n, self._limit
        )
        if self._policy is Policy.RING:
            removed = 0, _oldest(self._messages, max(now.missing, self._limit // RESERVE))
        else:
            plan = plan_overflow(OWN[self._policy], now, Abilities())
            if plan.stops:
                return False
            (removed,) = plan.removed
        self._evict(*removed)
        return True

    def _evict(self, p0: int, p1: int) -> None:
        """The tokens [p0, p1) of those that are held."""
        context, kept = self._context, self._tokens[p1:]
        if self._policy is Policy.RING:
            context.seq_rm(0, self._removed, self._removed + p1)
            self._removed += p1
        elif self._policy is Policy.RECOMPUTE:
            context.seq_rm(0, p0, -1)
            context.read(kept, p0)
            self.reading.read_again += len(kept)
        else:
            take_out(context, 0, [(p0, p1)])
            self.reading.moved += len(kept)
        del self._tokens[p0:p1]
        self._messages = [moved for message in self._messages if (moved := _without(message, p0, p1)).end > moved.start]


def surprise(rows: NDArray[np.float32], tokens: Sequence[int]) -> NDArray[np.float64]:
    """Negative log-likelihood in nats of each token by the logits before it, shape (n,)."""
    wide = rows.astype(np.float64)
    most = wide.max(axis=1)
    total = most + np.log(np.exp(wide - most[:, None]).sum(axis=1))
    surprises: NDArray[np.float64] = total - wide[np.arange(len(tokens)), np.asarray(tokens)]
    return surprises


def _without(message: Span, p0: int, p1: int) -> Span:
    """Where a message lies once the tokens [p0, p1) are gone."""

    def moved(at: int) -> int:
        return at if at <= p0 else max(p0, at - (p1 - p0))

    return replace(message, start=moved(message.start), end=moved(message.end))


def _oldest(messages: Sequence[Span], missing: int) -> int:
    """Tokens of the oldest messages, as few as are `missing` or more."""
    return next((message.end for message in messages if message.end >= missing), messages[-1].end)
