"""What the next tokens of an answer may be, from what was there before, and how often such guesses held.

The guess is what came after the last earlier place where a text read as the end does now. Where one token of it was
wrong and nothing better is found, it goes on behind that one: a name was changed. Every token of the answer is compared
with the guess, whether that was in a batch or not: so it is known for nothing how often guesses hold. What was there
before is looked through in portions, a portion a token, newest first: a long text delays no token much. Pure: no
engine, no clock.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from kvdesk.policies.tuned import KEPT, TILE

_N: Final = 3
"""Tokens of the runs that are looked up. Shorter ones recur by chance; how often longer ones hold is counted."""
PORTION: Final = 8 * TILE
"""Tokens of other texts, and of this one, that are looked through for each token of the answer."""
MOST: Final = PORTION * TILE
"""Tokens that are looked through, of this text and of all others each: about 7 MB each."""


class Guess:
    """Of one answer.

    n_same   tokens before the guess that are the same where it comes from; 1 if the one before was another, 0 if it
             follows from a grammar
    """

    def __init__(
        self, others: Iterable[Sequence[int]], tokens: Sequence[int], forced: Callable[[], Sequence[int]] = lambda: ()
    ) -> None:
        """`tokens`: the text that goes on; `others`: further texts that it may repeat, the likeliest first, each in
        pieces of about `PORTION`; `forced`: tokens that must come next, as far as that is known.
        """
        self._tokens, self._others = list(tokens), list[int]()
        self._forced = forced
        self._ends: dict[tuple[int, ...], tuple[list[int], int]] = {}
        self._held: dict[int, deque[bool]] = {}  # by the number of digits of `n_same`
        self._from: tuple[Sequence[int], int] | None = None
        self.n_same = 0
        self._earlier = self._look_through(others)
        for _ in range(KEPT):  # that takes a few ms
            next(self._earlier, None)
        self._look()

    def next(self, most: int) -> list[int]:
        """At most that many tokens; [] if nothing like the end occurred before."""
        if self._from is None:
            return []
        text, start = self._from
        return list(text[start : start + most])

    def add(self, token: int) -> None:
        """Append this token to the text."""
        missed = None
        if self._from is not None:
            text, start = self._from
            held, after = text[start] == token, (text, start + 1)
            self._held.setdefault(self.n_same.bit_length(), deque(maxlen=TILE)).append(held)
            self._from = missed = None
            if start + 1 < len(text):
                if held:
                    self._from, self.n_same = after, min(self.n_same + 1, TILE) if self.n_same else 0
                elif self.n_same:
                    missed = after
        self._tokens.append(token)
        n = len(self._tokens)
        if n > _N:
            self._ends[tuple(self._tokens[n - 1 - _N : n - 1])] = (self._tokens, n - 1)
        next(self._earlier, None)
        if self._from is None:
            self._look(missed)

    @property
    def holds(self) -> float:
        """How likely the next guessed token is right, by those whose ends were the same for about as long, or else for
        less; 0.0 before enough were compared.
        """
        held: list[bool] = []
        kind = self.n_same.bit_length()
        for digits in range(kind, 0, -1) if kind else (0,):
            held += self._held.get(digits, ())
            if len(held) >= KEPT:
                return sum(held) / (len(held) + 1)
        return 0.0

    # --- private ------------------------------------------------------------------------------------------------------

    def _look(self, missed: tuple[Sequence[int], int] | None = None) -> None:
        """Find the last place that reads as the end does, or what must come; else go on at `missed`."""
        found = self._ends.get(tuple(self._tokens[-_N:]))
        if found is not None:
            text, end = found
            n, most = _N, min(end, len(self._tokens), TILE)
            while n < most and text[end - n - 1] == self._tokens[-n - 1]:
                n += 1
            self._from, self.n_same = found, n
        elif forced := self._forced():
            self._from, self.n_same = (forced, 0), 0
        elif missed is not None:
            self._from, self.n_same = missed, 1

    def _look_through(self, others: Iterable[Sequence[int]]) -> Iterator[None]:
        """What there was before, a portion each time; what is known already is newer, and stays."""
        for end in range(len(self._tokens), max(0, len(self._tokens) - MOST), -PORTION):
            self._index(self._tokens, range(end - 1, max(0, end - 1 - PORTION), -1))
            yield
        for text in others:
            start = len(self._others)
            self._others += text[: MOST - start]
            self._index(self._others, range(start, len(self._others)))
            if len(self._others) == MOST:
                return
            yield

    def _index(self, text: list[int], places: range) -> None:
        """Remember the runs that end before the tokens at these places, which followed them."""
        for at in places:
            if at >= _N:
                self._ends.setdefault(tuple(text[at - _N : at]), (text, at))
