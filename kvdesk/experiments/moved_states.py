"""States moved in two ways: by llama.cpp's own calls with nothing around them, and by kvdesk with all it does.

Both have the same cells in the same places: two conversations, a long and a short one, in every other run of cells.
"""

import functools
import mmap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.compacting import compact
from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.cache_manager.state_swapper import StateSwapper
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory import state
from kvdesk.cache.compaction import Layout, permute_section, plan_compaction
from kvdesk.cache.geometry import Geometry
from kvdesk.cache.state.blob import parse_state
from kvdesk.errors import EngineError
from kvdesk.experiments.raw_context import RawContext
from kvdesk.message import ConversationId
from kvdesk.policies.costs import Costs, Reads
from kvdesk.policies.swap import Limits, StateKind
from kvdesk.translation import tr

LONG, SHORT, FILLERS = 0, 1, (2, 3)
N_SEQ = 4
_HOT = (SHORT,)
_NO_LIMIT = Limits(1 << 40, 0)
_ANY = StateKind("", "", "", "", flash_attn=True, rope=(0.0, 0.0))
Bytes = NDArray[np.uint8]


class Texts(NamedTuple):
    """States of one sequence: the long conversation, the short one, and one as long as both; all of one text.

    run: cells in a run
    """

    long: bytes
    short: bytes
    filler: bytes
    tokens: tuple[int, ...]
    n_long: int
    n_short: int
    run: int

    @property
    def n_cells(self) -> int:
        """Cells that are used once the fillers are gone; the context has twice as many."""
        return self.n_long + self.n_short

    def scatter(self, restore: Callable[[int, bytes], object], remove: Callable[[int, int, int], object]) -> None:
        """In an empty cache of `2 * n_cells` cells: two fillers take all, every other run of theirs is removed, the
        conversations come into the holes, and the fillers go.
        """
        for seq_id in FILLERS:
            restore(seq_id, self.filler)
        for seq_id in FILLERS:
            for at in range(0, self.n_cells, 2 * self.run):
                remove(seq_id, at, at + self.run)
        restore(LONG, self.long)
        restore(SHORT, self.short)
        for seq_id in FILLERS:
            remove(seq_id, -1, -1)


def read_texts(context: RawContext, tokens: list[int], run: int) -> Texts:
    """Decode the text once, and take the states on the way. Raises RefusedCall, ContextError."""
    n, n_short = len(tokens), len(tokens) // 8
    context.clear()
    states, done = {}, 0
    for end in (n_short, n - n_short, n):
        context.read(tokens[done:end], done)
        states[end], done = context.saved(0), end
    return Texts(states[n - n_short], states[n_short], states[n], tuple(tokens), n - n_short, n_short, run)


# --- llama.cpp's own calls --------------------------------------------------------------------------------------------


class Parts:
    """Each call alone, timed, between memory that was used before. `blob`: the whole state, as it was got last."""

    def __init__(self, context: RawContext, texts: Texts, geometry: Geometry) -> None:
        self._context, self._texts, self._geometry = context, texts, geometry
        self.scatter()
        self.n_bytes = state.state_size(context.ctx)
        self.blob, self._other = used_memory(self.n_bytes), used_memory(self.n_bytes)
        self._sequences = {LONG: used_memory(len(texts.long)), SHORT: used_memory(len(texts.short))}

    def scatter(self) -> None:
        self._context.clear()
        self._texts.scatter(self._context.restore, self._context.seq_rm)

    def get(self) -> float:
        """The whole state, out. Seconds."""
        return timed(lambda: state.get_state(self._context.ctx, self.blob.data))

    def get_to_new_memory(self) -> float:
        start = time.perf_counter()
        state.get_state(self._context.ctx, new_memory(self.n_bytes).data)
        return time.perf_counter() - start

    def permute(self, order: NDArray[np.int64]) -> float:
        """K and V of the state that was got, a cell after another in this order. Seconds."""
        sections = parse_state(self.blob.data, self._geometry).caches[0][0].sections
        first = sections[0].offset if sections else 0
        self._other[:first] = self.blob[:first]
        start = time.perf_counter()
        for section in sections:
            part = slice(section.offset, section.offset + section.n_bytes)
            permute_section(self.blob[part], self._other[part], section, order)
        return time.perf_counter() - start

    def set(self) -> float:
        """The whole state that was got, in again. Seconds."""
        return timed(lambda: _accepted(state.set_state(self._context.ctx, self.blob.data)))

    def seq_get(self, seq_id: int) -> float:
        """One sequence, out. Seconds."""
        target = self._sequences[seq_id].data
        return timed(lambda: state.get_seq_state(self._context.ctx, seq_id, target))

    def seq_set(self, seq_id: int) -> float:
        """The sequence that was got, in again after its cells were freed. Seconds."""
        self._context.seq_rm(seq_id)
        source = self._sequences[seq_id].data
        return timed(lambda: _accepted(state.set_seq_state(self._context.ctx, seq_id, source)))

    def memcpy(self, n_threads: int = 1) -> float:
        """As many bytes as the whole state has, copied. Seconds."""
        return copied(self._other, self.blob, n_threads)

    def memcpy_to_new_memory(self) -> float:
        start = time.perf_counter()
        new_memory(self.n_bytes)[:] = self.blob
        return time.perf_counter() - start


# --- kvdesk -----------------------------------------------------------------------------------------------------------


class Own:
    """kvdesk's way to do it: every call guarded, mirrored and compared, the cells audited, the operation recorded.

    The whole of what happens while a conversation is idle; a copy for undo is added only by hand.
    """

    def __init__(self, context: Context, texts: Texts) -> None:
        self.context, self._texts = context, texts
        journal = OperationJournal(context, lambda _event: None)
        self._saved = SavedStateStore(None, _ANY, _NO_LIMIT)
        swapper = StateSwapper(context, journal, self._saved, lambda _n_tokens, _n_bytes: (1e9, 0.0))
        self._costs = Costs(Reads(0, 0, True))
        self._manager = Cache(context, journal, swapper, self._costs)
        self._place()

    @property
    def high_water(self) -> int:
        """Cells up to the last in use."""
        return self.context.memory.totals()[1]

    @property
    def wrong(self) -> str:
        """How the map differs from the engine's own state, all of it; "" if it does not."""
        found = self.context.auditor.audit(whole=True)
        return "" if found.state == "verified" else found.detail or found.state

    def scatter(self) -> None:
        self.context.memory.clear(data=False)
        self._place()

    def order(self, layout: Layout) -> NDArray[np.int64]:
        """Ranks of the cells in the order that `compact` gives them."""
        return plan_compaction(self.context.memory.snapshot(), layout, _HOT).streams[0].order

    def compact(self, layout: Layout) -> float:
        """HOT_FIRST: the short conversation is the hot one, which lies behind the long one. Seconds."""
        return timed(lambda: compact(self.context, self._costs, layout, _HOT))

    def swap_out(self) -> float:
        """The long conversation. Seconds."""
        self._saved.drop([saved.key for saved in self._saved.values()])
        return timed(lambda: self._manager.swap_out(self._sequence(LONG)))

    def swap_in(self) -> float:
        """Restore it. Seconds."""
        return timed(lambda: self._manager.swap_in(_name(LONG)))

    def move_short(self) -> float:
        """The short conversation alone: out, its cells freed, in where cells are free. Seconds."""
        memory, states = self.context.memory, self.context.states

        def move() -> None:
            blob = states.seq_get(SHORT)
            memory.seq_rm(SHORT, -1, -1)
            _accepted(states.seq_set(SHORT, blob, self._texts.tokens[: self._texts.n_short]))

        return timed(move)

    def _place(self) -> None:
        texts, memory, states = self._texts, self.context.memory, self.context.states
        texts.scatter(lambda seq_id, blob: states.seq_set(seq_id, blob, texts.tokens, audited=False), memory.seq_rm)
        for seq_id, n in ((LONG, texts.n_long), (SHORT, texts.n_short)):
            sequence = self._manager.lease(_name(seq_id))
            if sequence.seq_id != seq_id:
                raise EngineError(
                    tr("The conversations of the experiment do not have the sequences that it gave them.")
                )
            self._manager.adopt(sequence, texts.tokens[:n])

    def _sequence(self, seq_id: int) -> CacheSequence:
        return self._manager.lease(_name(seq_id))


def _name(seq_id: int) -> ConversationId:
    return ConversationId(f"conversation {seq_id}")


# --- memory -----------------------------------------------------------------------------------------------------------


def others_work() -> None:
    """Replace the content of the processor's caches, as decoding a token does, which reads all weights."""
    int(_others().view(np.uint64).sum())


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def new_memory(n_bytes: int) -> Bytes:
    """Memory that the system has not handed out before: each page costs when it is touched."""
    return np.frombuffer(mmap.mmap(-1, max(1, n_bytes)), np.uint8, n_bytes)


def used_memory(n_bytes: int) -> Bytes:
    """Memory that was written to."""
    memory = new_memory(n_bytes)
    memory.fill(1)
    return memory


def copied(target: Bytes, source: Bytes, n_threads: int = 1) -> float:
    """Seconds of a memcpy in `n_threads` parallel parts."""
    if n_threads == 1:
        return timed(lambda: np.copyto(target, source))
    parts = list(zip(np.array_split(target, n_threads), np.array_split(source, n_threads), strict=True))
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda _: None, parts))  # starts the threads
        return timed(lambda: list(pool.map(lambda part: np.copyto(*part), parts)))


def _accepted(taken: bool) -> None:
    if not taken:
        raise EngineError(tr("llama.cpp did not accept a state that it had saved."))


@functools.cache
def _others() -> Bytes:
    """More than the caches of a processor hold."""
    return used_memory(128 << 20)
