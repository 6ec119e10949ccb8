"""What a batch takes on this machine, learned from those that were measured: ms by number of tokens and n_kv.

Small batches and large ones are learned apart: llama.cpp computes them with different kernels. Knows no engine.
"""

from __future__ import annotations

import statistics
from collections import deque

from kvdesk.policy.fit import Line, at, robust_fit

SMALL = 63
"""Tokens of the largest small batch: from 64 on flash attention works in tiles (GGML_FA_TILE_Q, ggml-cpu/common.h)."""
_KEPT = 4  # measurements of one kind of batch; their median counts
_PATIENCE = 16  # measurements before the line is drawn anew; sooner while there are few
_KINDS = 48  # kinds of batches remembered, the last measured ones


class BatchTimes:
    """ms = a + b n + c n n_kv, with a, b, c >= 0; one line for batches up to `SMALL` tokens, one above."""

    def __init__(self) -> None:
        self._samples: dict[bool, dict[tuple[int, int], deque[float]]] = {False: {}, True: {}}
        self._lines: dict[bool, Line] = {}
        self._news = {False: 0, True: 0}

    def learn(self, n_tokens: int, n_kv: int, ms: float) -> None:
        """A batch of `n_tokens` over `n_kv` cells took `ms`. The first one of a new context may be left out."""
        large = n_tokens > SMALL
        kinds = self._samples[large]
        key = (n_tokens, n_kv)
        taken = kinds.pop(key, deque(maxlen=_KEPT))
        taken.append(ms)
        kinds[key] = taken
        if len(kinds) > _KINDS:
            del kinds[next(iter(kinds))]
        self._news[large] += 1

    def ms(self, n_tokens: int, n_kv: int) -> float | None:
        """Expected time of a batch; None while nothing was measured that tells."""
        large = n_tokens > SMALL
        if not self._samples[large]:
            large = not large
            if not self._samples[large]:
                return None
        if large not in self._lines or self._news[large] >= min(_PATIENCE, len(self._samples[large])):
            self._lines[large] = self._fit(large)
            self._news[large] = 0
        return at(self._lines[large], _row(n_tokens, n_kv))

    def measured(self, n_tokens: int) -> bool:
        """Whether a batch of exactly `n_tokens` was measured; otherwise `ms` goes by what others took."""
        return any(n == n_tokens for n, _ in self._samples[n_tokens > SMALL])

    def prefill_ms(self, n_tokens: int, n_past: int, n_batch: int) -> float | None:
        """Expected time of a prompt's `n_tokens` behind `n_past` cells, in batches of `n_batch`."""
        total = 0.0
        for start in range(0, n_tokens, n_batch):
            n = min(n_batch, n_tokens - start)
            ms = self.ms(n, n_past + start + n)
            if ms is None:
                return None
            total += ms
        return total

    def _fit(self, large: bool) -> Line:
        kinds = self._samples[large]
        return robust_fit([_row(n, n_kv) for n, n_kv in kinds], [statistics.median(taken) for taken in kinds.values()])


def _row(n_tokens: int, n_kv: int) -> tuple[float, float, float]:
    return 1.0, float(n_tokens), float(n_tokens) * n_kv
