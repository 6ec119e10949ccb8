"""The entries of the legend: the colours and marks on the map at this moment, with their meaning. No Qt."""

from typing import Final, Literal

from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.translation import plural, tr
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import HOLDER_WORDS, LEFT_OUT, N_MESSAGE_COLOURS, N_STEPS, ColourBy, page_words, tool_group
from kvdesk.ui.map.frame import MapFrame
from kvdesk.values import dataclass
from kvdesk.viewmodel.palette import N_COLOURS

Kind = Literal["colour", "split", "ramp", "mark", "head", "n_kv"]
_EXAMPLES: Final = {  # a group of each mode, to show marks on
    ColourBy.CONVERSATION: 1,
    ColourBy.POSITION: N_STEPS // 2,
    ColourBy.AGE: N_STEPS // 2,
    ColourBy.MESSAGE: 1,
    ColourBy.SEQUENCES: 1,
    ColourBy.PAGE: 3,
    ColourBy.ATTENTION: N_STEPS // 2,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A swatch and its words.

    codes  of its colours (`raster`): one, two for "split", many for "ramp"; marks: as bits, drawn on the first
    ends   words at both ends of a ramp
    """

    kind: Kind
    words: str
    codes: tuple[int, ...] = ()
    marks: int = 0
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class MapLegend:
    """Everything a legend says.

    pages  the paged overlay in words, empty unless coloured by page
    n_own  entries at the beginning that belong to the mode; the others are the same for all
    """

    mode: ColourBy
    entries: tuple[Entry, ...]
    pages: str = ""
    n_own: int = 0


def grounds_of(frame: MapFrame, snapshot: CacheSnapshot) -> tuple[object, ...]:
    """All that the key of a frame depends on: while it is equal, so is the key."""
    names = tuple(cache.name for cache in snapshot.maps)
    colours = tuple(sorted(frame.scene.colours.items()))
    scene = frame.scene
    tools, shown = tuple(scene.tools.items()), scene.attention
    attention = None
    if shown is not None:
        attention = shown.ends, shown.n_tokens, bool(shown.sinks.any()), bool(shown.left_out.any())
    return scene.mode, frame.scales, frame.is_shifted, frame.has_holes, names, scene.pages, colours, tools, attention


def key_of(frame: MapFrame, snapshot: CacheSnapshot) -> MapLegend:
    """The key of a frame: its scale first, then the marks that it has, then what is drawn over it."""
    mode, scene = frame.scene.mode, frame.scene
    example, other = _examples(frame)
    own = _scale(frame)
    entries = [*own]
    entries.append(Entry("colour", tr("free"), (raster.FREE,)))
    entries.append(Entry("colour", tr("free, read too"), (raster.FREE_IN_SPAN,)))
    if frame.has_holes:
        entries.append(Entry("colour", tr("hole"), (raster.HOLE,)))
    if mode is not ColourBy.ATTENTION:
        entries.append(Entry("mark", tr("just written"), (example + raster.FRESH_SHADE,), raster.FRESH))
    if mode is ColourBy.CONVERSATION:
        entries.append(Entry("split", tr("shared"), (example, other)))
    elif mode is not ColourBy.SEQUENCES:
        entries.append(Entry("mark", tr("shared"), (example,), raster.SHARED))
    if any(cache.name == "window" for cache in snapshot.maps):
        entries.append(Entry("mark", tr("overwritten next"), (example + raster.DIM,), raster.HIDDEN))
    if frame.is_shifted:
        entries.append(Entry("mark", tr("K-shift pending"), (example,), raster.SHIFTED))
    entries += [Entry("head", tr("head")), Entry("n_kv", tr("read to here"))]
    names = [cache.name if len(snapshot.maps) > 1 else "" for cache in snapshot.maps]
    pages = "\n".join(page_words(overlay, name) for overlay, name in zip(scene.pages, names, strict=False))
    return MapLegend(mode, tuple(entries), pages, len(own))


def _scale(frame: MapFrame) -> tuple[Entry, ...]:
    every = tuple(_code(i) for i in range(N_STEPS))
    match frame.scene.mode:
        case ColourBy.POSITION:
            return (Entry("ramp", tr("position"), every, ends=("0", f"{frame.scales.position - 1:,}")),)
        case ColourBy.AGE:
            ends = (plural("1 operation ago", "%n operations ago", frame.scales.age), tr("now"))
            return (Entry("ramp", tr("written"), every, ends=ends),)
        case ColourBy.SEQUENCES:
            return tuple(
                Entry("colour", tr("{n} sequence").format(n=words) if i == 0 else words, (_code(i),))
                for i, words in enumerate(HOLDER_WORDS)
            )
        case ColourBy.MESSAGE:
            codes = tuple(_code(i) for i in range(1, N_MESSAGE_COLOURS + 1))
            unknown = Entry("colour", tr("unknown"), (_code(0),))
            messages = Entry("ramp", tr("messages"), codes, ends=(tr("first"), tr("next …")))
            return messages, *_tools(frame), unknown
        case ColourBy.PAGE:
            pages = Entry("split", tr("alternating pages"), (_code(3), _code(4)))
            return pages, Entry("mark", tr("page not full"), (_code(3),), raster.PARTIAL)
        case ColourBy.ATTENTION:
            return _attention(frame)
        case ColourBy.CONVERSATION:
            return tuple(
                Entry(
                    "colour", tr("sequence {seq_id}").format(seq_id=seq) if i == 0 else f"{seq}", (_code(1 + colour),)
                )
                for i, (colour, seq) in enumerate(_branches(frame).items())
            )


def _attention(frame: MapFrame) -> tuple[Entry, ...]:
    shown = frame.scene.attention
    unseen = Entry("colour", tr("not looked at"), (_code(0),))
    if shown is None:
        return (unseen,)
    ramp = Entry("ramp", tr("attention"), tuple(_code(1 + i) for i in range(N_STEPS)), ends=shown.ends)
    sink = Entry("mark", tr("sink"), (_code(N_STEPS),), raster.SINK)
    left_out = Entry("colour", tr("left out by the indexer"), (_code(LEFT_OUT),))
    return (ramp, *((sink,) if shown.sinks.any() else ()), *((left_out,) if shown.left_out.any() else ()), unseen)


def _tools(frame: MapFrame) -> tuple[Entry, ...]:
    """The servers whose schemas are in the cache, with the number of their tokens."""
    words = tr("tools of {server}: {n}")
    found = {
        name: Entry("colour", words.format(server=name, n=f"{p1 - p0:,}"), (_code(tool_group(i)),))
        for parts in frame.scene.tools.values()
        for i, (name, p0, p1) in enumerate(parts)
    }
    return tuple(found.values())


def _branches(frame: MapFrame) -> dict[int, int]:
    """Colours and sequences of the branches of the chat that has most of them, from the first on; none without
    branches.
    """
    branches = {colour: seq for seq, colour in sorted(frame.scene.colours.items(), reverse=True)}
    last = max(branches, default=0)
    shown = range(last % N_COLOURS, last + 1, N_COLOURS) if last >= N_COLOURS else ()
    return {colour: branches[colour] for colour in shown if colour in branches}


def _examples(frame: MapFrame) -> tuple[int, int]:
    """Codes to show marks on: those of two chats that are there, where chats are coloured."""
    mode, colours = frame.scene.mode, [*dict.fromkeys(colour % N_COLOURS for colour in frame.scene.colours.values())]
    if mode is not ColourBy.CONVERSATION or not colours:
        return _code(_EXAMPLES[mode]), _code(2)
    others = colours[1:] or [(colours[0] + 1) % N_COLOURS]
    return _code(1 + colours[0]), _code(1 + others[0])


def _code(group: int) -> int:
    return raster.FIRST_GROUP + group * raster.N_SHADES
