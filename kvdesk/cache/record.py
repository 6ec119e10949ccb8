"""The record of an operation in the mirror: the cells of its tokens, and the lines the engine must have printed.

Plain frozen values; must never know how they were found.
"""

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.batch import BatchProblem
from kvdesk.cache.snapshot import CacheName, StreamMap
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class FindSlotLine:
    """`find_slot: stream[..], n = .., used = .., head = .., size = .., n_swa = ..` (llama-kv-cache.cpp:907)."""

    stream: int
    high_water: int
    used: int
    head: int
    size: int
    n_swa: int


@dataclass(frozen=True, slots=True)
class SpanLine:
    """`find_slot: stream[..] min[..] = .., max[..] = ..` (llama-kv-cache.cpp:960): one per sequence in the stream."""

    stream: int
    seq_id: int
    pos_min: int
    pos_max: int


@dataclass(frozen=True, slots=True, eq=False)
class SlotState:
    """The engine's line for one sequence of one ubatch before it looks for cells. `cells`: only when captured."""

    cache: CacheName
    line: FindSlotLine
    spans: tuple[SpanLine, ...]
    cells: StreamMap | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where the tokens of one ubatch went in one stream of one cache. Arrays hold cell indices.

    overwritten   cells of a window cache whose old token could not be seen any more and was replaced
    purged        cells freed because an older position than an overwritten one cannot stay (llama-kv-cache.cpp:1160)
    n_tested      cells that the slot search looked at, wrap included
    """

    cache: CacheName
    stream: int
    cells: NDArray[np.int64]
    overwritten: NDArray[np.int64]
    purged: NDArray[np.int64]
    n_tested: int


@dataclass(frozen=True, slots=True, eq=False)
class UbatchRecord:
    """One ubatch that was placed. `index`: its tokens' places in the batch; `n_kv`: cells its attention walked over."""

    index: NDArray[np.int64]
    placements: tuple[Placement, ...]
    slots: tuple[SlotState, ...]
    n_kv: int


@dataclass(frozen=True, slots=True, eq=False)
class DecodeRecord:
    """`n_decodes` llama_decode calls, one after another: operations `operation`, `operation + 1`, ...

    More than one call only where all of them returned 0, each placed one token of the same sequence in a cell that was
    empty, and nothing else changed. Then `ubatches` holds one entry, for the tokens of all calls in order.

    rc           what the engine returned; `expected_rc`: what the mirror had predicted (0, 1 or -1)
    problem      why the mirror expects the batch to be refused, None otherwise
    ubatches     the ubatches whose cells stay; `n_ubatches`: how many the batch of a call was cut into
    slots        everything the engine printed at level 1, in order, failed attempts included
    n_kv         cells that attention walked over in each call: maximum over its ubatches and caches
    n_shifted    cells whose moved position was pending: their K was rotated by this call
    mismatch     "" or what the engine did that the mirror cannot explain: the map is not to be trusted any more
    """

    operation: int
    rc: int
    expected_rc: int
    problem: BatchProblem | None = None
    ubatches: tuple[UbatchRecord, ...] = ()
    n_ubatches: int = 0
    slots: tuple[SlotState, ...] = ()
    n_kv: tuple[int, ...] = (0,)
    n_shifted: int = 0
    mismatch: str = ""

    @property
    def n_decodes(self) -> int:
        """How many llama_decode calls these were."""
        return len(self.n_kv)

    @property
    def last_operation(self) -> int:
        """Number of the last call."""
        return self.operation + len(self.n_kv) - 1

    @property
    def n_tested(self) -> int:
        """Cells that the slot searches of all placed ubatches looked at."""
        return sum(p.n_tested for u in self.ubatches for p in u.placements)


@dataclass(frozen=True, slots=True, eq=False)
class RestoreRecord:
    """One state restore. `ok` False: the engine must have returned 0. `slots`: what it must have printed at level 1."""

    operation: int
    ok: bool
    slots: tuple[SlotState, ...] = ()
    detail: str = ""
