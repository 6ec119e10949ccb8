"""What a batch takes on this machine, learned from those that were measured: ms by tokens, n_kv and visible cells.

One token, a few and many are learned apart: llama.cpp computes their attention with different kernels. Flash attention
skips cells that are masked (ggml-cpu/ops.cpp), so that the cells of other sequences cost next to nothing. A machine
that has just become slower is followed at once, before the lines are drawn anew. Knows no engine.
"""

from __future__ import annotations

import statistics
from collections import deque

from kvdesk.policies.fit import Guess, Line, at, robust_fit

TILE = 64
"""Tokens from which on a graph computes attention in tiles (GGML_FA_TILE_Q): with many cells far less a token."""

_KEPT = 4  # measurements of batches of one size over as many cells; their median counts
_PATIENCE = 16  # measurements before the line is drawn anew; sooner while there are few
_SIZES = 48  # sizes and numbers of cells remembered, the last measured ones
_SPAN = 256  # cells that are not told apart, as llama.cpp pads n_kv
_SKIPPED = 0.1  # of what a cell costs where it is skipped: its mask is looked at all the same
_LATELY = 3  # measurements that say by how much the machine is slower or quicker than the lines
_FEW = 8  # sizes of small batches before which each new one turns the line
_QUICKER = 0.85  # share of the expected time below which all of these are before the lines are thought too slow
_DOUBLED = 3000.0  # cells over which a token takes about twice as long: a guess until measured
_HOPE = 2.0  # what was never measured is thought to be so many times quicker where it should be tried, or slower


class BatchTimes:
    """ms = a + b n + c n cells, with a, b, c >= 0: a line for one token, one for less than `TILE`, one for the rest.

    cells: n_kv; where attention `skips` masked ones, those that a token of the batch sees, n_visible in the mean, and a
    tenth of the others.
    """

    def __init__(self, *, skips: bool = False) -> None:
        self._skips = skips
        several: _Lately = deque(maxlen=_LATELY)  # of one machine: what few tokens take tells of many, too
        self._one, self._few, self._tiled = _Measured(deque(maxlen=_LATELY)), _Measured(several), _Measured(several)

    def learn(self, n_tokens: int, n_kv: int, n_visible: float, ms: float) -> None:
        """A batch of `n_tokens` over `n_kv` cells took `ms`. The first one of a new context may be left out."""
        self._measured(n_tokens).learn(n_tokens, self._cells(n_kv, n_visible), ms)

    def ms(self, n_tokens: int, n_kv: int, n_visible: float) -> float | None:
        """Expected time of a batch; None while nothing was measured that tells."""
        measured, cells = self._measured(n_tokens), self._cells(n_kv, n_visible)
        if measured:
            return self._ms(measured, n_tokens, cells)
        if measured is self._tiled and self._few:
            return self._ms(self._few, n_tokens, cells) * min(1.0, n_tokens / (_HOPE * TILE))
        if measured is self._few and self._one and self._tiled:
            one_ms, token_ms = self._ms(self._one, 1, cells), self._ms(self._tiled, TILE, cells) / TILE
            return one_ms + max(_HOPE * token_ms, self._one.line[2] * cells) * (n_tokens - 1)
        other = next((other for other in (self._few, self._tiled, self._one) if other), None)
        return None if other is None else self._ms(other, n_tokens, cells)

    def measured(self, n_tokens: int) -> bool:
        """Whether a batch of exactly `n_tokens` was measured; otherwise `ms` goes by what others took."""
        return self._measured(n_tokens).has(n_tokens)

    def prefill_ms(self, n_tokens: int, n_past: int, n_batch: int) -> float | None:
        """Expected time of a prompt's `n_tokens` behind `n_past` cells, in batches of `n_batch`."""
        total = 0.0
        for start in range(0, n_tokens, n_batch):
            n = min(n_batch, n_tokens - start)
            ms = self.ms(n, n_past + start + n, n_past + start + (n + 1) / 2)
            if ms is None:
                return None
            total += ms
        return total

    def _cells(self, n_kv: int, n_visible: float) -> float:
        """A token may be told to see more than there are: positions have gaps, and recurrent states no cells."""
        return n_kv if not self._skips or n_visible > n_kv else n_visible + _SKIPPED * (n_kv - n_visible)

    def _measured(self, n_tokens: int) -> _Measured:
        return self._one if n_tokens == 1 else self._few if n_tokens < TILE else self._tiled

    def _ms(self, measured: _Measured, n_tokens: int, cells: float) -> float:
        """By these measurements. A large batch is a pass over the weights, as a small one is, so that few tell. A few
        tokens are thought to cost as much more over more cells, each, as one does by itself.
        """
        small = self._one or self._few
        pass_ms = small.least if small and measured is self._tiled else None
        cell_ms = self._one.line[2] if self._one.line and measured is self._few else 0.0
        return measured.ms(n_tokens, cells, pass_ms, cell_ms)


class _Measured:
    """Batches of one kind and the line through what they took; false while there are none.

    lately: the last ones, also of another kind that the machine slows down as much.
    """

    def __init__(self, lately: _Lately) -> None:
        self._taken: dict[tuple[int, int], deque[float]] = {}
        self._lately = lately
        self.line: Line = ()
        self._knew_pass = False
        self._n_new = 0

    def __bool__(self) -> bool:
        return bool(self._taken)

    def has(self, n_tokens: int) -> bool:
        """Whether one of exactly so many tokens is among them."""
        return any(n == n_tokens for n, _ in self._taken)

    @property
    def least(self) -> float:
        """The least ms of any batch."""
        return min(statistics.median(taken) for taken in self._taken.values())

    def learn(self, n_tokens: int, cells: float, ms: float) -> None:
        size = n_tokens, _SPAN * round(cells / _SPAN)
        if 1 < n_tokens < TILE and size not in self._taken and len(self._taken) < _FEW:
            self._n_new = _PATIENCE  # each of so few turns the line
        taken = self._taken.pop(size, deque(maxlen=_KEPT))
        taken.append(ms)
        self._taken[size] = taken
        if len(self._taken) > _SIZES:
            del self._taken[next(iter(self._taken))]
        self._n_new += 1
        self._lately.append((self, n_tokens, cells, ms))

    def ms(self, n_tokens: int, cells: float, pass_ms: float | None, cell_ms: float) -> float:
        """Expected time of a batch. Before many were measured: pass_ms is what every batch is thought to cost, cell_ms
        what a token does at least for each cell.
        """
        knows_pass = pass_ms is not None
        is_due = self._n_new >= min(_PATIENCE, len(self._taken)) or (knows_pass and not self._knew_pass)
        if not self.line or is_due:
            usual = {size: statistics.median(taken) for size, taken in self._taken.items()}
            c = max(cell_ms, statistics.median(ms / (n * (_DOUBLED + over)) for (n, over), ms in usual.items()))
            guesses = None if pass_ms is None else Guess(pass_ms, pass_ms), None, Guess(c, c)
            self.line = robust_fit([_row(*size) for size in usual], list(usual.values()), guesses)
            self._n_new, self._knew_pass = 0, knows_pass
        return at(self.line, _row(n_tokens, cells)) * self._drift()

    def _drift(self) -> float:
        """Measured over expected, lately; 1.0 unless the machine is slower, or clearly quicker: a line that fits badly
        at one end would be wrong by more at the other.
        """
        ratios = [ms / at(by.line, _row(n, cells)) for by, n, cells, ms in self._lately if by.line]
        if len(ratios) == _LATELY and max(ratios) < _QUICKER:
            return max(ratios)
        return max(1.0, statistics.median(ratios)) if ratios else 1.0


_Lately = deque[tuple[_Measured, int, float, float]]


def _row(n_tokens: int, cells: float) -> tuple[float, float, float]:
    return 1.0, float(n_tokens), n_tokens * cells
