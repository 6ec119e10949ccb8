"""The engine's own words about its cells: the lines that LLAMA_KV_CACHE_DEBUG makes it log.

Owns their parsing, and writing the same text from our cells so that the two can be compared character by character (ids
from 10 on are ambiguous when read, not when written). Must never know the mirror. llama-kv-cache.cpp:900-963.

    level 1   one line per sequence of each ubatch, and the span of every sequence in its stream
    level 2   and the maps of window caches
    level 3   and the maps of all caches
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kvdesk.cache.cells import seq_members
from kvdesk.cache.record import FindSlotLine, SlotState, SpanLine
from kvdesk.cache.snapshot import StreamMap

_SLOT = re.compile(
    r"find_slot: stream\[(\d+)\], n = +(\d+), used = +(\d+), head = +(\d+), size = +(\d+), n_swa = +(\d+)\s*$"
)
_SPAN = re.compile(r"find_slot: stream\[(\d+)\] min\[(\d+)\] = +(-?\d+), max\[\2\] = +(-?\d+)\s*$")
_MAP = re.compile(r"\n[.M0-9][.M0-9 *\n]*\s*$")

_SEQ_ROW = 256  # cells in a line of the sequence map
_POS_ROW = 64  # cells in a line of the position map
_POS_WIDTH = 5


@dataclass(frozen=True, slots=True)
class SlotDump:
    """The engine's log of one sequence of one ubatch. The maps are its text, None below level 3 (2)."""

    line: FindSlotLine
    spans: tuple[SpanLine, ...] = ()
    sequence_map: str | None = None
    position_map: str | None = None


def parse_log(messages: Iterable[str]) -> list[SlotDump]:
    """Pick the dumps out of log messages, one string per call of the log callback; other messages are passed over."""
    dumps: list[SlotDump] = []
    line: FindSlotLine | None = None
    maps: list[str] = []
    spans: list[SpanLine] = []

    def finish() -> None:
        if line:
            dumps.append(SlotDump(line, tuple(spans), *(maps if len(maps) == 2 else (None, None))))

    for message in messages:
        slot = _SLOT.match(message)
        span = None if slot else _SPAN.match(message)
        if slot:
            finish()
            line, maps, spans = FindSlotLine(*map(int, slot.groups())), [], []
        elif span:
            spans.append(SpanLine(*map(int, span.groups())))
        elif line and len(maps) < 2 and _MAP.match(message):
            maps.append(message)
    finish()
    return dumps


def render_lines(states: Iterable[SlotState]) -> list[bytes]:
    """The engine's lines at level 1 for these slot searches (llama-kv-cache.cpp:907 and :960)."""
    lines = []
    for state in states:
        at = state.line
        lines.append(
            b"find_slot: stream[%d], n = %5d, used = %5d, head = %5d, size = %5d, n_swa = %5d\n"
            % (at.stream, at.high_water, at.used, at.head, at.size, at.n_swa)
        )
        lines += [
            b"find_slot: stream[%d] min[%d] = %5d, max[%d] = %5d\n"
            % (s.stream, s.seq_id, s.pos_min, s.seq_id, s.pos_max)
            for s in state.spans
        ]
    return lines


def render_sequence_map(cells: StreamMap) -> str:
    """The sequence map that the engine would log for these cells: `.` free, the id, `M` for more than one."""
    text = []
    c = cells.columns(cells.size)
    used = c.pos != -1
    for i in range(cells.size):
        if not used[i]:
            text.append(".")
        else:
            members = seq_members(c.seq_bits[i])
            text.append(str(members[0]) if len(members) == 1 else "M")
        if i % _SEQ_ROW == _SEQ_ROW - 1:
            text.append(" *\n")
    return "\n" + "".join(text) + "\n"


def render_position_map(cells: StreamMap) -> str:
    """The position map that the engine would log for these cells: positions in columns of at least five characters."""
    text = []
    for i, pos in enumerate(cells.columns(cells.size).pos.tolist()):
        text.append(("." if pos == -1 else str(pos)).ljust(_POS_WIDTH))
        if i % _SEQ_ROW == _SEQ_ROW - 1:
            text.append(" *")
        if i % _POS_ROW == _POS_ROW - 1:
            text.append("\n")
    return "\n" + "".join(text) + "\n"
