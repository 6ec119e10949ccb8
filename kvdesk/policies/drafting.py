"""How many guessed tokens one batch verifies, of one answer or of several, and why none, in words.

A batch of guessed tokens is made only where the measured cost of such batches, and how often guesses hold, promise more
tokens a second than one token of each answer at a time. An answer whose batches gave less than that rests. Pure: no
engine, no clock; the caller reports how long a batch took. Guesses are those of `kvdesk.policies.guessing`.
"""

import math
import statistics
from collections import Counter, deque
from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from typing import Final, NamedTuple

from kvdesk.policies.tuned import KEPT, SCATTER, TILE
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

SIZES: Final = tuple(2**n for n in range(1, TILE.bit_length()))
"""Tokens of a batch, the sampled ones and the guessed: so few sizes that the cost of each is known soon."""

_QUARTER: Final = TILE // 4
"""Tokens of a batch from which on `Costs` knows what they cost. The first rest of an answer has as many steps."""

_WHY: Final = {
    "nothing": marked("No drafts: nothing that was there before came again often enough."),
    "answers": marked("No drafts: in this context only one answer at a time can have them."),
    "texts": marked("No drafts: other texts were read at the same time."),
}

UsualMs = Callable[[int], float | None]
"""ms of a batch of that many tokens, if it is known otherwise."""


class Chance(NamedTuple):
    """What an answer may have of a batch. holds: how likely each guessed token is right; most: tokens at most, the one
    sampled last and the guessed ones.
    """

    holds: float
    most: int

    def expected(self, n: int) -> float:
        """Tokens that the answer gets of a batch with `n` of its tokens: right guesses up to the first wrong one, and
        the one sampled after them.
        """
        return n if self.holds >= 1.0 else (1 - self.holds**n) / (1 - self.holds)


class Price(NamedTuple):
    """A batch of `n_tokens` costs as much as `steps` steps with one token of each answer. at_best: how many times as
    quick it is where all guesses are right; less where an answer without any would be much slower.
    """

    n_tokens: int
    steps: float
    at_best: float


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens of each answer in the next batch, 1: no guess is in it; how many times as quick that is expected to be as
    one token of each at a time. price: of the cheapest batch, if none has a guess; None if nothing was guessed,
    or no batch was measured.
    """

    sizes: tuple[int, ...]
    gain: float = 1.0
    price: Price | None = None


class DraftSize:
    """The size of batches with guessed tokens, by what batches of each size took. Of one context's settings.

    wanted   whether batches may have guesses at all
    why_not  why no batch of this context can have any, "" if one can
    """

    def __init__(self, why_not: str = "") -> None:
        self.wanted, self.why_not = True, why_not
        self._step_ms: dict[int, deque[float]] = {}
        self._steps: dict[tuple[int, int], deque[float]] = {}
        self._n_refused = 0

    @property
    def is_off(self) -> bool:
        """Whether no batch has guesses."""
        return not self.wanted or bool(self.why_not)

    def took(self, n_answers: int, n_tokens: int, ms: float) -> None:
        """A batch of these answers' tokens. It is kept in steps: what else runs on the machine makes both slower. Less
        than a step is the luck of a busy machine, on which any guess would seem to pay.
        """
        if n_tokens == n_answers:
            self._step_ms.setdefault(n_answers, deque(maxlen=KEPT)).append(ms)
        elif step := self.step_ms(n_answers):
            self._steps.setdefault((n_answers, n_tokens), deque(maxlen=KEPT)).append(max(1.0, ms / step))

    def step_ms(self, n_answers: int) -> float | None:
        """A batch with one token of each; None before the first."""
        taken = self._step_ms.get(n_answers)
        return statistics.median(taken) if taken else None

    def steps(self, n_answers: int, n_tokens: int) -> float | None:
        """What a batch of `n_tokens` of these answers takes, in steps; None before the first."""
        taken = self._steps.get((n_answers, n_tokens))
        return statistics.median(taken) if taken else None

    def choose(self, chances: Sequence[Chance], most: int, usual_ms: UsualMs) -> Draft:
        """What the next batch has of these answers, `most` tokens in all: the size that gives most tokens a second, if
        that is worth it. No answer is slower for the others' guesses by more than `SCATTER`.

        What prompts tell of the cost of a quarter of a tile and more makes a smaller batch look cheaper than it is. So
        one that was never measured is tried only where it would lose little, were it twice as dear as the half of it,
        or as dear as that quarter; the smallest always.
        """
        k = len(chances)
        ones, price = (1,) * k, None
        best = Draft(ones)
        if all(chance.most == 1 for chance in chances):
            return best
        worst = 1.0
        for n in SIZES:
            if n <= k:
                continue
            sizes = _shared(chances, n) if n <= most else ()
            if not sizes:
                break
            expected = [chance.expected(size) for chance, size in zip(chances, sizes, strict=True)]
            given, steps = sum(expected) / k, self.steps(k, n)
            measured = steps is not None
            worst = steps or min(2 * worst, self._usual(k, _QUARTER, usual_ms) or math.inf)
            if not measured and (n >= _QUARTER or n // 2 <= k or given * SCATTER >= worst):
                steps = self._usual(k, n, usual_ms)
            if steps is None:
                continue
            gain = given / steps
            if gain > max(best.gain, SCATTER) and min(expected) * SCATTER >= steps:
                best = Draft(sizes, gain)
            at_best = min(n / k, SCATTER * min(chance.most for chance in chances)) / steps
            if measured and (price is None or at_best >= price.at_best):
                price = Price(n, steps, at_best)
        if best.gain > 1.0 or price is None:
            return best
        self._n_refused += 1
        if self._n_refused % (16 * TILE) == 0:  # they may have been measured in a bad moment: try again
            self._steps.clear()
        return Draft(ones, price=price)

    def _usual(self, n_answers: int, n: int, usual_ms: UsualMs) -> float | None:
        """In steps."""
        step, usual = self.step_ms(n_answers) or usual_ms(n_answers), usual_ms(n)
        return usual / step if usual and step else None


def _shared(chances: Sequence[Chance], n: int) -> tuple[int, ...]:
    """`n` tokens shared among these answers so that most are right, at least one each; () if they may have fewer."""
    if sum(chance.most for chance in chances) < n:
        return ()
    if len(chances) == 1:
        return (n,)
    sizes = [1] * len(chances)
    likely = [(-chance.holds if chance.most > 1 else 1.0, 1, i) for i, chance in enumerate(chances)]
    heapify(likely)  # how likely the next guessed token of each counts; of equals that of the shortest
    for _ in range(n - len(chances)):
        *_, i = likely[0]
        sizes[i] += 1
        chance = chances[i]
        heapreplace(likely, (-(chance.holds ** sizes[i]) if sizes[i] < chance.most else 1.0, sizes[i], i))
    return tuple(sizes)


class Drafts:
    """What became of one answer's guesses.

    drafted, accepted  guessed tokens that were in batches, and those of them that were right
    """

    def __init__(self, why_not: str = "") -> None:
        """`why_not`: a sentence, where this context has no drafts at all."""
        self.drafted = self.accepted = 0
        self._why_not = why_not
        self._gains: deque[float] = deque(maxlen=2 * KEPT)
        self._saved = 0.0  # steps
        self._rests, self._next_rest = 0, _QUARTER  # steps
        self._rested = False
        self._why: Counter[str] = Counter()
        self._prices: dict[str, Price] = {}

    def chance(self, holds: float, n_guessed: int, most: int) -> Chance:
        """Of the next batch: of `n_guessed` tokens, the batch having `most` of this answer at most."""
        if self._rests:
            self._rests -= 1
            return Chance(0.0, 1)
        return Chance(holds, min(1 + n_guessed, most) if holds else 1)

    def verified(self, n_drafted: int, n_accepted: int) -> None:
        """That many of this answer's tokens in the last batch were guessed, and right."""
        self.drafted += n_drafted
        self.accepted += n_accepted

    def gave(self, n_new: float, steps: float) -> None:
        """That batch gave `n_new` tokens and cost as much as `steps` of them alone. It rests as soon as such batches
        have cost a step more than they saved, or after several that cost more than they gave: each time twice as long,
        until several have paid off.
        """
        self._saved += n_new - steps
        self._gains.append(n_new / steps)
        slower = False
        if len(self._gains) == self._gains.maxlen:
            slower = statistics.fmean(self._gains) < 1.0
            self._next_rest = self._next_rest if slower else _QUARTER
        if slower or self._saved < -1.0:
            self._gains.clear()
            self._rests, self._rested = self._next_rest, True
            self._next_rest *= 2

    def waited(self, *, for_answers: bool) -> None:
        """The next batch may have no guesses, because of other answers, or of a text that is being read."""
        self._why["answers" if for_answers else "texts"] += 1

    def none(self, chance: Chance, price: Price | None) -> None:
        """No guess is in the next batch; `price` as in `Draft`."""
        why = "nothing"
        if chance.most > 1 and price is not None:
            why = "dear" if price.at_best <= SCATTER else "rare"
            self._prices[why] = price
        self._why[why] += 1

    @property
    def sentence(self) -> str:
        """What they gave, or why there were none; "" before the second token of the answer."""
        if self.drafted:
            said = tr("Drafts: {accepted} of {drafted} guessed tokens were right.")
            if self._rested:
                said += " " + tr("It rested while they gave less than one token at a time.")
            return said.format(accepted=f"{self.accepted:,}", drafted=f"{self.drafted:,}")
        if not self._why:
            return self._why_not
        ((why, _),) = self._why.most_common(1)
        if why in _WHY:
            return tr(_WHY[why])
        n, steps, _ = self._prices[why]
        if why == "dear":
            return tr("No drafts: a batch of {n} costs {steps:.1f} steps here.").format(n=n, steps=steps)
        said = tr("No drafts: too few guesses held, and a batch of {n} costs {steps:.1f} steps here.")
        return said.format(n=n, steps=steps)
