"""The property that colours the map: the group of every used cell, and the names of the groups. numpy, no Qt."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.pages import PagedOverlay
from kvdesk.cache.snapshot import CacheSnapshot, StreamMap
from kvdesk.protocol.cache import MessageSpans
from kvdesk.translation import marked, tr
from kvdesk.ui.map.raster import NO_SEQUENCE, PARTIAL, SINK, Runs, second_sequence
from kvdesk.values import dataclass, field
from kvdesk.viewmodel.cells.attention import Shown
from kvdesk.viewmodel.palette import N_COLOURS

N_STEPS: Final = 48  # groups of a continuous scale
LEFT_OUT: Final = N_STEPS + 1  # group of cells that the indexer chose for no token, where attention is shown
UNKNOWN: Final = 0  # group of cells that no conversation, message, page or attention is known of
N_MESSAGE_COLOURS: Final = 8
N_TOOL_COLOURS: Final = 4
"""Of the schemas of servers, behind those of messages: further servers repeat them."""
N_PAGE_OWNERS: Final = 3 * N_COLOURS  # colours of a pair of pages: further branches repeat them
HOLDER_WORDS: Final = ("1", "2", "3", "4", "5–8", "9+")
_HOLDER_FROM: Final = np.array([2, 3, 4, 5, 9])


class ColourBy(StrEnum):
    """The colour modes. `tr` of the value is what a person reads."""

    CONVERSATION = marked("Conversation")
    POSITION = marked("Position")
    AGE = marked("Age")
    MESSAGE = marked("Message")
    SEQUENCES = marked("Sequences per cell")
    PAGE = marked("Pages")
    ATTENTION = marked("Attention")

    @property
    def meaning(self) -> str:
        return tr(_MEANINGS[self])


_MEANINGS: Final = {
    ColourBy.CONVERSATION: marked("which conversation holds the cell; shared cells have the colours of two"),
    ColourBy.POSITION: marked("the position (pos) of the token in its sequence"),
    ColourBy.AGE: marked("how many operations ago the cell was written"),
    ColourBy.MESSAGE: marked("which message of its conversation the token belongs to"),
    ColourBy.SEQUENCES: marked("how many sequences hold the cell"),
    ColourBy.PAGE: marked("a simulation: the pages that a paged allocator would hold for the same content"),
    ColourBy.ATTENTION: marked("how much of the attention of the token that is looked from the cell got"),
}
OPTIONAL: Final = frozenset({ColourBy.ATTENTION})
"""Modes of which a slice (`Slice.colours`) finds out what there is to show."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The input of colours beside the cells themselves.

    colours, titles   `palette.branch_index` and name of the conversation, or branch of it, that leases a sequence
    spans             messages of a sequence, by seq_id
    tools             servers whose schemas are in a sequence, by seq_id: name and positions [p0, p1)
    pages             the paged overlay of each cache, empty unless coloured by page
    attention         what a token looked at, None while that is not known
    """

    mode: ColourBy = ColourBy.CONVERSATION
    colours: Mapping[int, int] = field(default_factory=dict)
    titles: Mapping[int, str] = field(default_factory=dict)
    spans: Mapping[int, MessageSpans] = field(default_factory=dict)
    pages: tuple[PagedOverlay, ...] = ()
    tools: Mapping[int, tuple[tuple[str, int, int], ...]] = field(default_factory=dict)
    attention: Shown | None = None


@dataclass(frozen=True, slots=True)
class Scales:
    """Upper ends of the continuous scales, chosen so that they seldom change; those of other modes stay as they are.

    position   the next power of two above the highest position in the cache, at least 256
    age        operations since the oldest cell was written, rounded up to two digits, at least 100
    """

    position: int = 256
    age: int = 100


_AT_FIRST: Final = Scales()


def scales_of(snapshot: CacheSnapshot, mode: ColourBy) -> Scales:
    """The scale of this mode for the cells there are."""
    if mode is ColourBy.POSITION:
        highest = max((span.pos_max for span in snapshot.sequences), default=0)
        return Scales(position=1 << max(8, max(0, highest).bit_length()))
    if mode is ColourBy.AGE:
        oldest = max(
            (_oldest(stream, snapshot.operation) for cache in snapshot.maps for stream in cache.streams), default=0
        )
        digits = 10 ** max(0, len(str(oldest)) - 2)
        return Scales(age=max(100, -(-oldest // digits) * digits))
    return _AT_FIRST


def _oldest(stream: StreamMap, operation: int) -> int:
    """Operations since the oldest used cell was written; 0 without one."""
    high = stream.high_water
    written = stream.written_at_op[:high][stream.pos[:high] >= 0]
    return max(0, operation - int(written.min())) if written.size else 0


def conversation_groups(colours: Mapping[int, int]) -> NDArray[np.uint8]:
    """Group of every seq_id: 1 + `palette.branch_index` of the branch that leases it, else `UNKNOWN`."""
    table = np.full(256, UNKNOWN, np.uint8)
    for seq, colour in colours.items():
        if 0 <= seq < NO_SEQUENCE:
            table[seq] = 1 + colour
    return table


def groups_of(
    stream: StreamMap, runs: Runs, scene: Scene, scales: Scales, operation: int, page: NDArray[np.int32] | None
) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
    """Group of each cell up to the high-water mark, and of its lower half where the two differ somewhere.

    `page`: page of each cell of the stream, when coloured by page.
    """
    high = stream.high_water
    owners = conversation_groups(scene.colours)
    match scene.mode:
        case ColourBy.CONVERSATION:
            first = np.repeat(owners[runs.owner], runs.lengths)
            if not runs.shared:
                return first, None
            return first, np.repeat(owners[second_sequence(runs)], runs.lengths)
        case ColourBy.POSITION:
            step = np.float32(N_STEPS / scales.position)
            return np.clip(stream.pos[:high] * step, 0, N_STEPS - 1).astype(np.uint8), None
        case ColourBy.AGE:
            age = np.maximum(operation - stream.written_at_op[:high], 0).astype(np.float32)
            share = np.sqrt(np.minimum(age / np.float32(scales.age), 1))
            return np.uint8(N_STEPS - 1) - (share * np.float32(N_STEPS - 1)).astype(np.uint8), None
        case ColourBy.MESSAGE:
            return _by_message(stream, runs, scene.spans, scene.tools), None
        case ColourBy.SEQUENCES:
            steps = np.searchsorted(_HOLDER_FROM, runs.n_holders, side="right").astype(np.uint8)
            return np.repeat(steps, runs.lengths), None
        case ColourBy.PAGE:
            if page is None or page.size != stream.size:
                return np.zeros(high, np.uint8), None
            owner = owners[runs.owner]
            owner = np.where(owner == UNKNOWN, owner, 1 + (owner - 1) % np.uint8(N_PAGE_OWNERS)).astype(np.uint8)
            colour = np.repeat(owner, runs.lengths)
            odd = (page[:high] & 1).astype(np.uint8)
            return np.where(page[:high] < 0, np.uint8(UNKNOWN), colour * np.uint8(2) + odd + np.uint8(1)), None
        case ColourBy.ATTENTION:
            return np.zeros(high, np.uint8), None  # but for `by_attention`


def tool_group(i: int) -> int:
    """Group of the schemas of the server number `i` of a sequence, where messages are coloured."""
    return 1 + N_MESSAGE_COLOURS + i % N_TOOL_COLOURS


def by_attention(
    stream: StreamMap, place: tuple[int, int], shown: Shown, group: NDArray[np.uint8], marks: NDArray[np.uint8]
) -> None:
    """Colour the cells that were looked at, and those that the indexer left out, and mark sinks. Changes `group` and
    `marks`. `place`: cache and stream.
    """
    cells, columns = shown.cells_in(*place, stream)
    group[cells] = shown.steps(N_STEPS)[columns] + np.uint8(1)
    group[cells[shown.left_out[columns]]] = LEFT_OUT
    marks[cells[shown.sinks[columns]]] |= np.uint8(SINK)


def page_marks(overlay: PagedOverlay, page: NDArray[np.int32], high_water: int, marks: NDArray[np.uint8]) -> None:
    """Mark the cells of pages that are not full. Changes `marks`."""
    partial = np.zeros(overlay.n_pages + 1, np.uint8)  # the last entry is that of page -1
    for sequence in overlay.sequences:
        if sequence.n_empty and sequence.pages:
            partial[sequence.pages[-1]] = PARTIAL
    if page.size >= high_water:
        marks |= partial[page[:high_water]]


def page_words(overlay: PagedOverlay, name: str = "") -> str:
    """The memory that paging would hold and waste, beside that of llama.cpp for the same cells."""
    words = tr(
        "Pages of {page_size}: {n_pages} held = {n_slots} slots, {n_empty} empty ({waste} wasted), "
        "{n_shared} shared. llama.cpp: {n_used} cells for the same."
    ).format(
        page_size=overlay.page_size,
        n_pages=f"{overlay.n_pages:,}",
        n_slots=f"{overlay.n_slots:,}",
        n_empty=f"{overlay.n_empty:,}",
        waste=f"{overlay.waste:.1%}",
        n_shared=f"{overlay.n_shared:,}",
        n_used=f"{overlay.n_used:,}",
    )
    return f"{name}: {words}" if name else words


def _by_message(
    stream: StreamMap,
    runs: Runs,
    spans: Mapping[int, MessageSpans],
    tools: Mapping[int, tuple[tuple[str, int, int], ...]],
) -> NDArray[np.uint8]:
    """Messages are numbered 1 to 8 and again, in their order; cells of no known message are unknown. The schemas of
    tools, which are in the first message as a rule, come behind these numbers.

    A shared cell counts to its lowest sequence of which messages are known.
    """
    known = {seq: of.spans for seq, of in sorted(spans.items(), reverse=True) if of.spans and runs.hold(seq).any()}
    end = max((span.p1 for parts in known.values() for span in parts), default=0)
    message_at = np.zeros(
        (len(known) + 1, end + 1), np.uint8
    )  # the first row is of no sequence, the last column beyond
    row_of = np.zeros(runs.starts.size, np.int64)
    for row, (seq, parts) in enumerate(known.items(), start=1):
        row_of[runs.hold(seq)] = row
        for i, span in enumerate(parts):
            message_at[row, max(span.p0, 0) : span.p1] = 1 + i % N_MESSAGE_COLOURS
        for i, (_name, p0, p1) in enumerate(tools.get(seq, ())):
            message_at[row, max(p0, 0) : min(p1, end)] = tool_group(i)
    at = np.clip(stream.pos[: stream.high_water], 0, end) + np.repeat(row_of * (end + 1), runs.lengths)
    return message_at.ravel()[at]
