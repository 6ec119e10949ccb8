"""The property that colours the map: the group of every used cell, the names of the groups and their colours. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.pages import PagedOverlay
from kvdesk.cache.seq_bits import member_rows
from kvdesk.cache.snapshot import CacheSnapshot, StreamMap
from kvdesk.protocol.cache import MessageSpans
from kvdesk.translation import marked, tr
from kvdesk.ui.map.raster import (
    EDGE,
    FADING,
    FIRST_GROUP,
    FREE,
    FREE_IN_SPAN,
    FRESH,
    HOLE,
    N_SHADES,
    NO_SEQUENCE,
    PARTIAL,
    SHARED,
    SINK,
    Cells,
    Coloured,
    lowest_sequence,
    without_lowest,
)
from kvdesk.ui.widgets.style.colours import Colours
from kvdesk.values import dataclass, field
from kvdesk.viewmodel.cells.attention import Shown
from kvdesk.viewmodel.graphs.series import round_up
from kvdesk.viewmodel.palette import (
    N_BRANCH_SHADES,
    N_COLOURS,
    TOOLS,
    branch_colour,
    conversation_colour,
    mix,
    ramp_colour,
)

N_STEPS: Final = 48  # groups of a continuous scale
LEFT_OUT: Final = N_STEPS + 1  # group of cells that the indexer chose for no token, where attention is shown
UNKNOWN: Final = 0  # group of cells that no conversation, message, page or attention is known of
N_MESSAGE_COLOURS: Final = 8
N_TOOL_COLOURS: Final = 4
"""Of the schemas of servers, behind those of messages: further servers repeat them."""
N_PAGE_OWNERS: Final = 3 * N_COLOURS  # colours of a pair of pages: further branches repeat them
HOLDER_WORDS: Final = ("1", "2", "3", "4", "5–8", "9+")
_OPAQUE: Final = 0xFF000000
_TOOL_SHADES: Final = (0.0, 0.45, 0.15, 0.3)
"""Of the panel in the colours of `N_TOOL_COLOURS` servers: the first two differ most."""
_HOLDER_GROUP: Final = np.searchsorted([2, 3, 4, 5, 9], np.arange(NO_SEQUENCE + 2), side="right").astype(np.uint8)
"""By the number of sequences that hold a cell."""


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
    age        operations since the oldest cell was written, up to where an axis can end (`round_up`), at least 100
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
        return Scales(age=int(round_up(max(oldest, 100))))
    return _AT_FIRST


def _oldest(stream: StreamMap, operation: int) -> int:
    """Operations since the oldest used cell was written; 0 without one."""
    high = stream.high_water
    oldest = stream.written_at_op[:high].min(initial=operation, where=stream.pos[:high] >= 0)
    return operation - int(oldest)


def conversation_groups(colours: Mapping[int, int]) -> NDArray[np.uint8]:
    """Group of every seq_id: 1 + `palette.branch_index` of the branch that leases it, else `UNKNOWN`."""
    table = np.full(256, UNKNOWN, np.uint8)
    for seq, colour in colours.items():
        if 0 <= seq < NO_SEQUENCE:
            table[seq] = 1 + colour
    return table


Colouring = Callable[[Cells], Coloured]


def colouring(scene: Scene, scales: Scales, operation: int, stream: StreamMap, place: tuple[int, int]) -> Colouring:
    """What colours any cells of a stream. `place`: its cache and its number there."""
    match scene.mode:
        case ColourBy.CONVERSATION:
            owners = conversation_groups(scene.colours)
            return lambda cells: _by_conversation(cells, owners)
        case ColourBy.POSITION:
            step = np.float32(N_STEPS / scales.position)
            return lambda cells: _plain(cells, np.clip(cells.pos * step, 0, N_STEPS - 1).astype(np.uint8))
        case ColourBy.AGE:
            return lambda cells: _by_age(cells, operation, scales.age)
        case ColourBy.MESSAGE:
            messages = _Messages.of(scene.spans, scene.tools)
            return lambda cells: _plain(cells, messages.groups(cells))
        case ColourBy.SEQUENCES:  # the colour says what is shared
            return lambda cells: Coloured(_HOLDER_GROUP.take(cells.n_holders), None, _without(cells.marks, SHARED))
        case ColourBy.PAGE:
            return _by_page(scene, stream, *place)
        case ColourBy.ATTENTION:
            return _by_attention(scene.attention, stream, place)


def _plain(cells: Cells, group: NDArray[np.uint8]) -> Coloured:
    return Coloured(group, None, cells.marks)


def _without(marks: NDArray[np.uint8], some: int) -> NDArray[np.uint8]:
    """The marks without some."""
    return marks & np.uint8(~some & 255)


def _by_conversation(cells: Cells, owners: NDArray[np.uint8]) -> Coloured:
    first, shared = owners.take(lowest_sequence(cells.bits)), cells.n_holders > 1
    if not shared.any():
        return _plain(cells, first)
    second = owners.take(lowest_sequence(without_lowest(cells.bits)))
    return Coloured(first, np.where(shared, second, first), cells.marks)


def _by_age(cells: Cells, operation: int, oldest: int) -> Coloured:
    age = np.maximum(operation - cells.written_at_op, 0).astype(np.float32)
    share = np.sqrt(np.minimum(age / np.float32(oldest), 1))
    return _plain(cells, np.uint8(N_STEPS - 1) - (share * np.float32(N_STEPS - 1)).astype(np.uint8))


class _Messages(NamedTuple):
    """Messages are numbered 1 to 8 and again, in their order; cells of no known message are unknown. The schemas of
    tools, which are in the first message as a rule, come behind these numbers.

    at      group of each position: of no sequence in the first row, then of each sequence; beyond all messages in the
            last column
    row_of  by sequence
    known   bits of the sequences that have a row
    """

    at: NDArray[np.uint8]
    row_of: NDArray[np.int64]
    known: NDArray[np.uint64]

    @classmethod
    def of(cls, spans: Mapping[int, MessageSpans], tools: Mapping[int, tuple[tuple[str, int, int], ...]]) -> _Messages:
        known = {seq: of.spans for seq, of in spans.items() if of.spans and 0 <= seq < NO_SEQUENCE}
        end = max((span.p1 for parts in known.values() for span in parts), default=0)
        at = np.zeros((len(known) + 1, end + 1), np.uint8)
        row_of, bits = np.zeros(NO_SEQUENCE + 1, np.int64), member_rows([tuple(known)], 4)[0]
        for row, (seq, parts) in enumerate(known.items(), start=1):
            row_of[seq] = row
            for i, span in enumerate(parts):
                at[row, max(span.p0, 0) : span.p1] = 1 + i % N_MESSAGE_COLOURS
            for i, (_name, p0, p1) in enumerate(tools.get(seq, ())):
                at[row, max(p0, 0) : min(p1, end)] = tool_group(i)
        return cls(at, row_of, bits)

    def groups(self, cells: Cells) -> NDArray[np.uint8]:
        """A shared cell counts to its lowest sequence of which messages are known."""
        owner = lowest_sequence(cells.bits & self.known[: cells.bits.shape[1]])
        end = self.at.shape[1]
        groups: NDArray[np.uint8] = self.at.take(self.row_of.take(owner) * end + np.clip(cells.pos, 0, end - 1))
        return groups


def tool_group(i: int) -> int:
    """Group of the schemas of the server number `i` of a sequence, where messages are coloured."""
    return 1 + N_MESSAGE_COLOURS + i % N_TOOL_COLOURS


def _by_page(scene: Scene, stream: StreamMap, cache: int, number: int) -> Colouring:
    """In two shades of the owner in turns; cells of pages that are not full are marked."""
    overlay = scene.pages[cache] if cache < len(scene.pages) else None
    if overlay is None or number >= len(overlay.page_of) or overlay.page_of[number].size != stream.size:
        return lambda cells: _plain(cells, np.zeros(cells.pos.size, np.uint8))
    page_of = overlay.page_of[number]
    owners = conversation_groups(scene.colours)
    owners = np.where(owners == UNKNOWN, owners, 1 + (owners - 1) % np.uint8(N_PAGE_OWNERS))
    partial = np.zeros(overlay.n_pages + 1, np.uint8)  # the last entry is that of page -1
    for sequence in overlay.sequences:
        if sequence.n_empty and sequence.pages:
            partial[sequence.pages[-1]] = PARTIAL

    def coloured(cells: Cells) -> Coloured:
        page = page_of[cells.where]
        shade = owners.take(lowest_sequence(cells.bits)) * np.uint8(2) + (page & 1).astype(np.uint8) + np.uint8(1)
        return Coloured(np.where(page < 0, np.uint8(UNKNOWN), shade), None, cells.marks | partial[page])

    return coloured


def _by_attention(shown: Shown | None, stream: StreamMap, place: tuple[int, int]) -> Colouring:
    """The cells that were looked at, and those that the indexer left out; sinks are marked."""
    group, marks = np.zeros(stream.high_water, np.uint8), np.zeros(stream.high_water, np.uint8)
    if shown is not None:
        looked_at, columns = shown.cells_in(*place, stream)
        group[looked_at] = shown.steps(N_STEPS)[columns] + np.uint8(1)
        group[looked_at[shown.left_out[columns]]] = LEFT_OUT
        marks[looked_at[shown.sinks[columns]]] = SINK
    return lambda cells: Coloured(group[cells.where], None, _without(cells.marks, FRESH | FADING) | marks[cells.where])


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


def group_colours(mode: ColourBy, colours: Colours) -> list[str]:
    """Colour of each group of a mode, #rrggbb."""
    dark = colours.dark
    match mode:
        case ColourBy.MESSAGE:
            messages = [conversation_colour(i, dark) for i in range(N_MESSAGE_COLOURS)]
            tools = TOOLS[0] if dark else TOOLS[1]
            return [colours.secondary, *messages, *(mix(tools, colours.panel, share) for share in _TOOL_SHADES)]
        case ColourBy.CONVERSATION:
            return _owners(colours)
        case ColourBy.POSITION | ColourBy.AGE:
            return [ramp_colour(i / (N_STEPS - 1), dark) for i in range(N_STEPS)]
        case ColourBy.SEQUENCES:
            n = len(HOLDER_WORDS)
            return [ramp_colour(i / (n - 1), dark) for i in range(n)]
        case ColourBy.PAGE:
            pairs = [(hue, mix(hue, colours.panel, 0.4)) for hue in _owners(colours)[: N_PAGE_OWNERS + 1]]
            return [mix(colours.secondary, colours.panel, 0.5), *(shade for pair in pairs for shade in pair)]
        case ColourBy.ATTENTION:
            unseen = mix(colours.secondary, colours.panel, 0.6)
            left_out = mix(colours.danger, colours.panel, 0.65)
            return [unseen, *(ramp_colour(i / (N_STEPS - 1), dark) for i in range(N_STEPS)), left_out]


def _owners(colours: Colours) -> list[str]:
    """Of cells without a conversation, then of every branch by `palette.branch_index`."""
    n, panel, ink = N_COLOURS * N_BRANCH_SHADES, colours.panel, colours.text
    return [colours.secondary, *(branch_colour(i, panel, ink, colours.dark) for i in range(n))]


def shades(colour: str, colours: Colours) -> tuple[str, str, str, str]:
    """Plain, fading, just written, hidden. Told apart by lightness: brighter in the dark, deeper in the light."""
    glow, fading, fresh = ("#ffffff", 0.3, 0.65) if colours.dark else ("#000000", 0.2, 0.45)
    return colour, mix(colour, glow, fading), mix(colour, glow, fresh), mix(colour, colours.panel, 0.55)


@lru_cache(maxsize=16)
def colour_table(mode: ColourBy, colours: Colours) -> NDArray[np.uint32]:
    """256 ARGB values: one for every code that `raster` makes."""
    table = [colours.panel] * 256
    table[FREE], table[FREE_IN_SPAN] = colours.cell_free, colours.cell_span
    table[EDGE], table[HOLE] = colours.text, mix(colours.secondary, colours.cell_span, 0.5)
    for i, colour in enumerate(group_colours(mode, colours)):
        first = FIRST_GROUP + i * N_SHADES
        table[first : first + N_SHADES] = shades(colour, colours)
    return np.array([_OPAQUE | int(colour[1:], 16) for colour in table], np.uint32)
