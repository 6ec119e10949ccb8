"""What batches and states cost on this machine: ms by tokens and cells, bytes per ms, learned from measurements.

The cost of a token is linear in the cells that it reads. One token, a few and a tile or more have their own lines,
since llama.cpp computes their attention with different kernels. Flash attention skips masked cells (ggml-cpu/ops.cpp),
but each head of each layer looks at the mask of each. Forecasts, pieces of prompts, swapping and compaction ask here.
Pure: measured times come in. Must never know the engine.
"""

import statistics
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from kvdesk.policies.tuned import BYTES_A_MS, KEPT, MASK_NS, SEEN_NS, TILE
from kvdesk.values import dataclass

_SPAN = 256  # cells that are not told apart, as llama.cpp pads n_kv
_SPLIT = 512  # n_kv from which on threads divide cells


@dataclass(frozen=True, slots=True)
class Reads:
    """What a decoded token reads: bytes of all weights, bytes of K and V of each cell; `skips`: not of masked cells.
    heads: those of all layers, by the threads that share them; each looks at the mask of each cell. numbers: of K and V
    that these heads read of a visible cell. n_parts: into which llama.cpp divides the cells by their index, one for
    each thread; 1 if threads divide heads instead.
    """

    weights: int
    cell: int
    skips: bool
    heads: float = 0.0
    numbers: float = 0.0
    n_parts: int = 1


class _Line:
    """ms of a token by the cells it reads: a line through the medians of the latest measurements over about as many
    cells.

    Load makes short spans expensive as well as long ones, so a slope is never negative. Outliers do not move a median.
    """

    def __init__(self) -> None:
        self._taken: dict[int, deque[tuple[float, float]]] = {}
        self._usual: list[tuple[float, float]] = []
        self.n = 0  # measurements

    def __bool__(self) -> bool:
        return bool(self._taken)

    @property
    def n_spans(self) -> int:
        """Different numbers of cells."""
        return len(self._taken)

    def learn(self, cells: float, ms: float) -> None:
        self._taken.setdefault(int(cells) // _SPAN, deque(maxlen=KEPT)).append((cells, ms))
        self._usual = []
        self.n += 1

    def ms(self, cells: float, least_slope: float = 0.0) -> float:
        """Expected ms of a token over that many cells."""
        usual = self._medians()
        half = len(usual) // 2
        slope = least_slope
        if half:
            (low, low_ms), (high, high_ms) = _middle(usual[:half]), _middle(usual[-half:])
            slope = max(slope, (high_ms - low_ms) / max(high - low, 1.0))
        base = statistics.median(ms - slope * at for at, ms in usual)
        return max(base, 0.0) + slope * cells

    def least_ratio(self, n_bytes: Callable[[float], float]) -> float:
        """The least ms for each byte that a token reads."""
        return min(ms / n_bytes(cells) for cells, ms in self._medians())

    def _medians(self) -> list[tuple[float, float]]:
        """(cells, ms) for each span, ascending."""
        if not self._usual:
            self._usual = sorted(_middle(taken) for taken in self._taken.values())
        return self._usual


def _middle(points: Iterable[tuple[float, float]]) -> tuple[float, float]:
    cells, ms = zip(*points, strict=True)
    return statistics.median(cells), statistics.median(ms)


class Costs:
    """The costs of contexts with the same settings. n_kv: cells below the highest used one; n_visible: of those, cells
    that a token of the batch sees, in the mean.
    """

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._one, self._few, self._tiled = _Line(), _Line(), _Line()
        self._states: deque[float] = deque(maxlen=2 * KEPT)  # ms a byte

    def learn(self, n_tokens: int, n_kv: int, n_visible: float, ms: float) -> None:
        """A batch of `n_tokens` took `ms`. Between one and a quarter of a tile it is a pass over the weights above all,
        which tells nothing of its tokens.
        """
        if n_tokens == 1 or n_tokens >= TILE // 4:
            read_ms = max(0.0, ms / n_tokens - self._masked_ms(n_kv, n_visible))
            self._line(n_tokens).learn(self._cells(n_kv, n_visible), read_ms)

    def learn_state(self, n_bytes: int, ms: float) -> None:
        """Saving and restoring a state of `n_bytes` took `ms` together."""
        if n_bytes > 0:
            self._states.append(ms / n_bytes)

    # --- one token a batch --------------------------------------------------------------------------------------------

    @property
    def known(self) -> bool:
        """Whether the cost of a cell was measured: tokens were decoded over different spans."""
        return self._one.n_spans > 1

    def step_ms(self, n_kv: int, n_visible: float) -> float | None:
        """One decoded token; None before the first. A cell costs at least what its bytes do."""
        if not self._one:
            return None
        return self._one.ms(self._cells(n_kv, n_visible), self._least_slope()) + self._masked_ms(n_kv, n_visible)

    def awaited(self, own: NDArray[np.intp], n_kv: int) -> int:
        """Visible cells that a decoded token waits for, if its sequence has the cells `own`: those of the busiest part
        times the parts. Below 512 cells there are none (ggml-cpu/ops.cpp, use_split_kv_path).
        """
        n_parts = self._reads.n_parts
        if n_parts == 1 or n_kv < _SPLIT or not len(own):
            return len(own)
        return int(np.bincount(own // -(-n_kv // n_parts)).max()) * n_parts

    def saved_ms(self, n_kv: int, n_kv_after: int, n_visible: int = 0, n_visible_after: int = 0) -> float:
        """What a decoded token gains when the span shrinks, and the visible cells that it waits for become others. 0.0
        before the first token.
        """
        now, after = self.step_ms(n_kv, n_visible), self.step_ms(n_kv_after, n_visible_after)
        return now - after if now is not None and after is not None else 0.0

    def speedup(self, n_kv: int, n_kv_after: int, n_visible: float) -> float | None:
        """Decode speed at `n_kv_after` divided by the speed at `n_kv`; None while not enough was measured."""
        now = self.step_ms(n_kv, n_visible)
        return now / max(now - self.saved_ms(n_kv, n_kv_after), 0.05 * now) if self.known and now else None

    # --- a prompt -----------------------------------------------------------------------------------------------------

    def batch_ms(self, n_tokens: int, n_kv: int, n_visible: float) -> float | None:
        """A batch: no less than one token. None while nothing was measured."""
        step = self.step_ms(n_kv, n_visible)
        line = self._line(n_tokens) or self._tiled or self._few
        if n_tokens == 1 or not line:
            return step if step is None else n_tokens * step
        token = line.ms(self._cells(n_kv, n_visible)) + self._masked_ms(n_kv, n_visible)
        return max(step or 0.0, n_tokens * token)

    def reading_ms(self, n_tokens: int, n_past: int, n_batch: int, n_others: int = 0) -> float | None:
        """A prompt's `n_tokens` behind `n_past` cells, in batches of `n_batch`; None while nothing was measured.
        `n_others`: masked cells below n_kv, of other sequences or none.
        """
        total = 0.0
        for start in range(n_past, n_past + n_tokens, n_batch):
            n = min(n_batch, n_past + n_tokens - start)
            ms = self.batch_ms(n, start + n + n_others, start + (n + 1) / 2)
            if ms is None:
                return None
            total += ms
        return total

    def usual_tok_s(self, n_tokens: int, n_past: int, n_batch: int) -> float:
        """How fast this many tokens are usually read; 0.0 while too few batches were measured."""
        if n_tokens < 1 or self._line(min(n_tokens, n_batch)).n < KEPT:
            return 0.0
        ms = self.reading_ms(n_tokens, n_past, n_batch)
        return n_tokens / ms * 1e3 if ms else 0.0

    # --- a state ------------------------------------------------------------------------------------------------------

    def state_ms(self, n_bytes: int) -> float:
        """To save and restore `n_bytes`; a guess before the first."""
        return n_bytes * (statistics.median(self._states) if self._states else 1 / BYTES_A_MS)

    def again(self, n_tokens: int, n_bytes: int) -> tuple[float, float]:
        """ms to have that many tokens again: read as a prompt, or restored from their state of `n_bytes`. Until a
        prompt was measured, the estimate is one pass over the weights for each tile.
        """
        read = self.reading_ms(n_tokens, 0, 8 * TILE)
        guess = n_tokens / TILE * self._reads.weights / BYTES_A_MS
        return (guess if read is None else read), self.state_ms(n_bytes)

    # --- private ------------------------------------------------------------------------------------------------------

    def _line(self, n_tokens: int) -> _Line:
        return self._one if n_tokens == 1 else self._few if n_tokens < TILE else self._tiled

    def _cells(self, n_kv: int, n_visible: float) -> float:
        """Cells whose K and V a token reads. It may see more than there are: positions have gaps, and
        recurrent states no cells.
        """
        return n_visible if self._reads.skips and n_visible <= n_kv else n_kv

    def _masked_ms(self, n_kv: int, n_visible: float) -> float:
        """Of a token, for cells that are skipped."""
        return self._reads.heads * MASK_NS / 1e6 * (n_kv - self._cells(n_kv, n_visible))

    def _least_slope(self) -> float:
        weights, cell = self._reads.weights, self._reads.cell
        seen = 0.0 if self.known else self._reads.numbers * SEEN_NS / 1e6
        return max(seen, cell * self._one.least_ratio(lambda cells: weights + cell * cells) if cell else 0.0)
