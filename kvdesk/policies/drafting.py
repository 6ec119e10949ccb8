"""Tokens that are guessed ahead of an answer, and how many of them one batch verifies.

The guess is what came after the last earlier place where the text read as its end does now. Every token of the answer
is compared with the guess, whether that was in a batch or not: so it is known for nothing how often guesses hold. A
batch of guessed tokens is made only where that and the measured cost of such batches promise more tokens a second than
one token at a time. Pure: no engine, no clock; it is told how long a batch took.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kvdesk.policies.tuned import KEPT, SCATTER, TILE
from kvdesk.values import dataclass

_N: Final = 3
"""Tokens of the runs that are looked up. Shorter ones recur by chance; how often longer ones hold is counted."""
SIZES: Final = tuple(2**n for n in range(1, TILE.bit_length()))
"""Tokens of a batch, the sampled one and the guessed: so few sizes that the cost of each is known soon."""


class Guess:
    """What the next tokens may be, from what was there before; how often that held.

    n_same   so many tokens before the guess are as they were where it comes from
    """

    def __init__(self, others: Iterable[Sequence[int]], tokens: Sequence[int]) -> None:
        """`tokens`: the text that goes on; `others`: further texts that it may repeat, the likeliest last."""
        self._ends: dict[tuple[int, ...], tuple[Sequence[int], int]] = {}
        for text in others:
            self._index(text, _N, len(text))
        self._tokens = list(tokens)
        self._index(self._tokens, _N, len(self._tokens))
        self._held: dict[int, deque[bool]] = {}  # by the number of digits of `n_same`
        self._from: tuple[Sequence[int], int] | None = None
        self.n_same = 0
        self._look()

    def next(self, most: int) -> list[int]:
        """At most so many tokens; [] where nothing like the end was there before."""
        if self._from is None:
            return []
        text, start = self._from
        return list(text[start : start + most])

    def add(self, token: int) -> None:
        """The text goes on with this token."""
        guessed = self.next(1)
        if guessed:
            held = guessed[0] == token
            self._held.setdefault(self.n_same.bit_length(), deque(maxlen=TILE)).append(held)
            self._step(held=held)
        self._tokens.append(token)
        n = len(self._tokens)
        self._index(self._tokens, n - 1, n)
        if self._from is None:
            self._look()

    @property
    def holds(self) -> float:
        """How likely the next guessed token is right, by those whose ends were the same for about as long, or else for
        less; 0.0 before enough were compared.
        """
        held: list[bool] = []
        for digits in range(self.n_same.bit_length(), 0, -1):
            held += self._held.get(digits, ())
            if len(held) >= KEPT:
                return sum(held) / (len(held) + 1)
        return 0.0

    def _step(self, *, held: bool) -> None:
        assert self._from is not None
        text, start = self._from
        if held and start + 1 < len(text):
            self._from, self.n_same = (text, start + 1), min(self.n_same + 1, TILE)
        else:
            self._from, self.n_same = None, 0

    def _look(self) -> None:
        """Find the last place that reads as the end does."""
        found = self._ends.get(tuple(self._tokens[-_N:]))
        if found is None:
            return
        text, end = found
        n, most = _N, min(end, len(self._tokens), TILE)
        while n < most and text[end - n - 1] == self._tokens[-n - 1]:
            n += 1
        self._from, self.n_same = found, n

    def _index(self, text: Sequence[int], first: int, end: int) -> None:
        """Remember the runs that end at `first` to `end` - 1, each with what follows."""
        for at in range(max(first, _N), end):
            self._ends[tuple(text[at - _N : at])] = (text, at)


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens of one batch, 1: no guess is in it; how many tokens of the answer it is expected to give, and how many
    times as quick that is as one at a time.
    """

    n_tokens: int
    expected: float = 1.0
    gain: float = 1.0


class DraftSize:
    """The size of batches with guessed tokens, by what batches of each size took. Of one context's settings."""

    def __init__(self) -> None:
        self._taken: dict[int, deque[float]] = {}

    def took(self, n_tokens: int, ms: float) -> None:
        """A batch of one answer's tokens."""
        self._taken.setdefault(n_tokens, deque(maxlen=KEPT)).append(ms)

    def choose(self, holds: float, most: int, usual_ms: Callable[[int], float | None]) -> Draft:
        """`holds`: how likely each guessed token is right; `most`: tokens of the batch at most; `usual_ms`: of a batch
        of so many tokens as far as is known otherwise.
        """
        best, step = Draft(1), self._ms(1, usual_ms)
        for n in SIZES:
            ms = self._ms(n, usual_ms)
            if n > most or not step or not ms:
                break
            expected = n if holds >= 1.0 else (1 - holds**n) / (1 - holds)
            gain = expected * step / ms
            if gain > max(best.gain, SCATTER):
                best = Draft(n, expected, gain)
        return best

    def _ms(self, n: int, usual_ms: Callable[[int], float | None]) -> float | None:
        taken = self._taken.get(n)
        return statistics.median(taken) if taken else usual_ms(n)
