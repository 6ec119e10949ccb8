"""What would leave with a range of positions: cells, bytes, and the attention that the last tokens give them. No Qt."""

from collections.abc import Iterable, Mapping

import numpy as np

from kvdesk.cache.attention_weights import combined
from kvdesk.cache.seq_bits import seq_count
from kvdesk.message import MessageId
from kvdesk.policies.overflow import N_RECENT
from kvdesk.protocol.attention import Attended, Queries
from kvdesk.protocol.cache import CacheView, ContextInfo, MessageSpan
from kvdesk.translation import tr
from kvdesk.values import dataclass
from kvdesk.viewmodel.cells.attention import percent
from kvdesk.viewmodel.cells.links import cells_of_positions
from kvdesk.viewmodel.cells.readout import megabytes


@dataclass(frozen=True, slots=True)
class Leaving:
    """Positions `[p0, p1)` of a sequence whose last one is `pos_max`. n_cells: that hold them, `n_shared` of which stay
    for other sequences; n_bytes: of K and V that become free.
    """

    seq_id: int
    p0: int
    p1: int
    pos_max: int
    n_cells: int
    n_shared: int
    n_bytes: int

    @property
    def words(self) -> str:
        """Cells and bytes."""
        if not self.n_cells:
            return tr("No cell has these positions")
        if self.n_shared:
            said = tr("Cells: {n}, {shared} of which stay for other chats; {mb} MB of K and V become free")
        else:
            said = tr("Cells: {n}; {mb} MB of K and V become free")
        return said.format(n=f"{self.n_cells:,}", shared=f"{self.n_shared:,}", mb=megabytes(self.n_bytes))

    @property
    def queries(self) -> Queries | None:
        """The last tokens behind the range, whose attention is measured; None if there are none."""
        if self.p1 > self.pos_max:
            return None
        return Queries(self.seq_id, max(self.p1, self.pos_max + 1 - N_RECENT), self.pos_max + 1)

    def share(self, attended: Attended) -> float:
        """Of the attention of the tokens asked for that goes to the range, the mean of all heads."""
        pos = attended.columns.pos
        inside = (pos >= self.p0) & (pos < self.p1)
        return float(combined(attended.layers)[0, inside].sum(dtype=np.float64)) / len(attended.pos)

    def worth(self, attended: Attended) -> str:
        """That share in a sentence, beside the share of the cells."""
        n_seen = int((attended.columns.pos < attended.pos[0]).sum())
        return tr(
            "The last tokens ({n}) give them {share} of their attention. They are {cells} of the cells before those."
        ).format(n=len(attended.pos), share=percent(self.share(attended)), cells=percent(self.n_cells / max(n_seen, 1)))


def leaving(view: CacheView, context: ContextInfo, seq_id: int, p0: int, p1: int, pos_max: int) -> Leaving:
    """What would leave with these positions of a sequence; -1: from its start, to its end."""
    p0, p1 = max(p0, 0), p1 if p1 >= 0 else pos_max + 1
    runs = [run for run in cells_of_positions(view.snapshot, seq_id, p0, p1) if run.cache == 0]
    n_cells = sum(len(run.cells) for run in runs)
    n_shared = 0
    for run in runs:
        bits = view.snapshot.maps[0].streams[run.stream].seq_bits[run.cells]
        n_shared += int((seq_count(bits) > 1).sum())
    n_bytes = (n_cells - n_shared) * (context.k_bytes + context.v_bytes) // max(1, context.n_ctx)
    return Leaving(seq_id, p0, p1, pos_max, n_cells, n_shared, n_bytes)


def next_to_leave(spans: Iterable[MessageSpan], retention: Mapping[MessageId, str]) -> tuple[int, int] | None:
    """Positions of the messages that are evicted next; None for none. What a template writes before the first message
    stays.
    """
    found = [span for span in spans if retention.get(span.message) == "next"]
    return (found[0].p0 or found[0].text_p0, found[-1].p1) if found else None
