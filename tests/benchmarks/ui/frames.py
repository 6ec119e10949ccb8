"""The time that drawing a large cell map takes: the real widget on a view of a real mirror with mixed content."""

import math
import random
import time
from collections.abc import Callable, Iterator

from PySide6.QtCore import QCoreApplication, QPointF

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import Verification
from kvdesk.errors import UserError
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import CacheView, Lease, MessageSpan, MessageSpans
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.map.colours import ColourBy

N_CELLS = 131_072
N_FRAMES = 100  # of each kind, for each colour mode
_N_SEQ = 8
_N_TOKENS = 49_152  # different ones
_FILL = 0.85
_CHUNKS = (1, 7, 40, 256, 512)
_MESSAGE = 300  # positions


class MixedCache:
    """131,072 cells that conversations have written to in turns, with shared cells, holes and a pending K-shift."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        facts = ModelFacts("llama", "attention")
        self._mirror = Mirror(plan(facts, ContextParams(n_ctx=N_CELLS, n_seq_max=_N_SEQ, kv_unified=True)))
        self._ends = [0] * _N_SEQ
        self._write(0, 512)
        for seq in (1, 2, 3):
            self._mirror.seq_cp(0, seq, 0, 512)
            self._ends[seq] = 512
        while sum(self._ends) < N_CELLS * _FILL:
            self._write(self._random.randrange(_N_SEQ), self._random.choice(_CHUNKS))
        for seq in (1, 5):
            self._mirror.seq_rm(seq, self._ends[seq] // 3, self._ends[seq] // 2)
        self._shift = 5

    def next_view(self) -> CacheView:
        """The cache after one more token, and after a move whose K-shift is pending."""
        self._write(0, 1)
        self._mirror.seq_add(2, self._ends[2] // 2, -1, self._shift)
        self._shift = -self._shift
        leases = tuple(Lease(ConversationId(f"c{seq}"), seq) for seq in range(_N_SEQ - 1))
        return CacheView(self._mirror.snapshot(Verification("mirrored", 0)), leases, pending=self._mirror.pending_shift)

    def spans(self) -> dict[int, MessageSpans]:
        """Messages of equal length in every sequence."""
        found = {}
        for seq, end in enumerate(self._ends):
            starts = range(0, end, _MESSAGE)
            parts = tuple(MessageSpan(MessageId(f"{seq}-{p}"), p, min(p + _MESSAGE, end), p, ()) for p in starts)
            found[seq] = MessageSpans(ConversationId(f"c{seq}"), seq, parts)
        return found

    def _write(self, seq: int, n: int) -> None:
        first = self._ends[seq]
        tokens = [self._random.randrange(_N_TOKENS) for _ in range(n)]
        self._mirror.decode(Batch.of(seq, first, tokens), 0)
        self._ends[seq] += n


def frame_times(cells: CellMapView, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """P99 in ms of drawing a frame, for every colour mode: after a new view (codes and drawing), and while zooming and
    panning (drawing alone). The paged overlay, made at most twice a second, is in the frames it is made for. `words`:
    zooming and panning where large cells show their tokens.
    """
    cache = MixedCache()
    seqs = {seq: seq for seq in range(_N_SEQ - 1)}
    titles = {seq: f"Conversation {seq}" for seq in seqs}
    found = {}
    for mode in ColourBy:
        cells.set_colour_by(mode)
        cells.show_spans(cache.spans())
        cells.reset_zoom()
        fresh, painted = [], cells.clock.n_painted
        for number in range(N_FRAMES + 3):
            QCoreApplication.processEvents()  # what the window owes to earlier frames
            cells.show_view(cache.next_view(), seqs, titles)
            begun = time.perf_counter()
            cells.refresh()
            cells.repaint()
            if number >= 3:  # the first ones lay things out
                fresh.append((time.perf_counter() - begun) * 1e3)
        moved = _moved_ms(cells)
        new, drawn = percentile(99, fresh), percentile(99, moved)
        found[mode.value.lower()] = {"new_view_p99_ms": new, "zoom_and_pan_p99_ms": drawn}
        say(f"by {mode.value.lower()}: new view {new:.1f} ms, zoomed and panned {drawn:.1f} ms (P99)")
        if cells.clock.n_painted < painted + len(fresh) + len(moved):
            raise UserError("The map was not drawn: its window is not on the screen.")
    cells.set_colour_by(ColourBy.CONVERSATION)  # as it was
    cells.reset_zoom()
    texts = cells._texts
    cells.show_token_texts({token: f" w{token % 1000}" for token in range(_N_TOKENS)})
    found["words"] = {"zoom_and_pan_p99_ms": percentile(99, _moved_ms(cells))}
    cells.show_token_texts(texts)
    cells.reset_zoom()
    return found


def _moved_ms(cells: CellMapView) -> list[float]:
    """Each frame of `_moves`."""
    taken = []
    for move in _moves(cells):
        QCoreApplication.processEvents()
        begun = time.perf_counter()
        move()
        cells.repaint()
        taken.append((time.perf_counter() - begun) * 1e3)
    return taken


def percentile(share: int, values: list[float]) -> float:
    """Nearest rank."""
    return sorted(values)[max(0, math.ceil(share / 100 * len(values)) - 1)]


def _moves(cells: CellMapView) -> Iterator[Callable[[], None]]:
    """In and out through every step of the zoom, panned at each."""
    centre = QPointF(cells.width() / 3, cells.height() / 3)
    for number in range(N_FRAMES):
        if number % 4 == 0:
            factor = 1.25 if number < N_FRAMES // 2 else 0.8
            yield lambda factor=factor: cells.zoom_at(centre, factor)  # type: ignore[misc]
        else:
            yield lambda: cells.move_by(QPointF(-7, -5))
