"""Reads and writes the lines about cells that LLAMA_KV_CACHE_DEBUG makes the engine log.

Owns parsing them, also from other programs' logs, and writing the same text for our cells, to compare the two
character by character (ids from 10 on are ambiguous only when read). Must never know the mirror.
llama-kv-cache.cpp:900-963.

    level 1   one line per sequence of each ubatch, and the span of every sequence in its stream
    level 2   and the maps of window caches
    level 3   and the maps of all caches
"""

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.record import FindSlotLine, SlotState, SpanLine
from kvdesk.cache.seq_bits import seq_bit, seq_has, seq_members
from kvdesk.cache.snapshot import StreamMap
from kvdesk.values import dataclass

_N = r"\d{1,9}"  # no cache has more cells
_SLOT = re.compile(
    r"find_slot: stream\[(\d{1,3})\]"
    rf", n = +({_N}), used = +({_N}), head = +({_N}), size = +({_N}), n_swa = +({_N})\s*$"
)
_SPAN = re.compile(rf"find_slot: stream\[(\d{{1,3}})\] min\[(\d{{1,3}})\] = +(-?{_N}), max\[\2\] = +(-?{_N})\s*$")
_MAP = re.compile(r"\n[.M0-9][.M0-9 *\n]*")

_SEQ_ROW = 256  # cells in a line of the sequence map
_POS_ROW = 64  # cells in a line of the position map
_POS_WIDTH = 5
_WORDS = 4  # of 64 sequences each
_SEQUENCES = 64 * _WORDS  # of llama.cpp, LLAMA_MAX_SEQ


@dataclass(frozen=True, slots=True)
class SlotDump:
    """The engine's log of one sequence of one ubatch. The maps are its text, None below level 3 (2)."""

    line: FindSlotLine
    spans: tuple[SpanLine, ...] = ()
    sequence_map: str | None = None
    position_map: str | None = None


def parse_log(messages: Iterable[str]) -> list[SlotDump]:
    """Select the dumps from log messages, one string per call of the log callback; other messages are ignored."""
    reader = DumpReader()
    dumps = [dump for message in messages if (dump := reader.feed(message))]
    return dumps + ([last] if (last := reader.close()) else [])


class DumpReader:
    """Reads the dumps of a log message by message."""

    def __init__(self) -> None:
        self._line: FindSlotLine | None = None
        self._maps: list[str] = []
        self._spans: list[SpanLine] = []

    def feed(self, message: str) -> SlotDump | None:
        """The previous dump, if this message begins another."""
        slot = _SLOT.match(message)
        if slot:
            before = self.close()
            self._line = FindSlotLine(*map(int, slot.groups()))
            return before
        if self._line is None:
            return None
        if span := _SPAN.match(message):
            if len(self._spans) < _SEQUENCES > int(span[2]):
                self._spans.append(SpanLine(*map(int, span.groups())))
        elif len(self._maps) < 2 and _MAP.fullmatch(message.rstrip()):
            self._maps.append(message)
        return None

    def close(self) -> SlotDump | None:
        """The last dump, after the end of the log."""
        line, maps, spans = self._line, self._maps, self._spans
        self._line, self._maps, self._spans = None, [], []
        return SlotDump(line, tuple(spans), *(maps if len(maps) == 2 else (None, None))) if line else None


def read_cells(dump: SlotDump) -> StreamMap | None:
    """The cells that the maps of a dump show; None if it has none or they contradict its line.

    A shared cell (`M`) gets every sequence whose span contains its position and that has no other cell there.
    Several shared cells of one position get none: the log does not show which sequence has which. Nor do cells in a row
    with an id from 10 on, which cannot be split into cells.
    """
    if dump.sequence_map is None or dump.position_map is None:
        return None
    pos = _read_positions(dump.position_map, dump.line.size)
    if pos is None:
        return None
    used = pos != -1
    high_water = int(used.nonzero()[0][-1]) + 1 if used.any() else 0
    if (int(used.sum()), high_water) != (dump.line.used, dump.line.high_water):
        return None
    if spans := dump.spans:
        first, last = min(span.pos_min for span in spans), max(span.pos_max for span in spans)
        if not used.any() or (int(pos[used].min()), int(pos.max())) != (first, last):
            return None
    bits = np.zeros((high_water, _WORDS), np.uint64)
    rows = [row.removesuffix(" *") for row in dump.sequence_map.strip("\n").split("\n")]
    is_shared = np.zeros(high_water, bool)
    for first, row in zip(range(0, high_water, _SEQ_ROW), rows, strict=False):
        if len(row) != min(_SEQ_ROW, dump.line.size - first):
            continue
        signs = np.frombuffer(row.encode(), np.uint8)[: high_water - first]
        for seq_id in range(10):
            bits[first : first + len(signs)][signs == ord("0") + seq_id, 0] |= np.uint64(1 << seq_id)
        is_shared[first : first + len(signs)] = signs == ord("M")
    shared = is_shared.nonzero()[0]
    _, which, counts = np.unique(pos[shared], return_inverse=True, return_counts=True)
    shared = shared[counts[which] == 1]
    for span in dump.spans:
        word, bit = seq_bit(span.seq_id)
        own = pos[:high_water][seq_has(bits, span.seq_id)]
        inside = (pos[shared] >= span.pos_min) & (pos[shared] <= span.pos_max) & ~np.isin(pos[shared], own)
        bits[shared[inside], word] |= bit
    empty = np.zeros(high_water, np.int64)
    return StreamMap(
        pos=pos[:high_water],
        seq_bits=bits,
        token=np.full(high_water, -1, np.int32),
        written_at_op=empty,
        size=dump.line.size,
        head=dump.line.head,
        used=dump.line.used,
        high_water=high_water,
    )


def _read_positions(text: str, size: int) -> NDArray[np.int32] | None:
    """The positions of a map, -1 for a free cell. Columns have five characters, or six where a number needs them."""
    columns = text.replace(" *", "").replace("\n", "")
    if len(columns) == _POS_WIDTH * size and columns.isascii():
        return _of_columns(np.frombuffer(columns.encode(), np.uint8).reshape(size, _POS_WIDTH))
    found: list[int] = []
    for row in text.strip("\n").split("\n"):
        row = row.removesuffix(" *")
        n = min(_POS_ROW, size - len(found))
        words = row.split()
        if len(words) != n:
            width = _POS_WIDTH if len(row) <= n * _POS_WIDTH else _POS_WIDTH + 1
            words = [row[i : i + width].strip() for i in range(0, n * width, width)]
        if n == 0 or not all(word == "." or (word.isdecimal() and len(word) < 10) for word in words):
            return None
        found += [-1 if word == "." else int(word) for word in words]
    return np.array(found, np.int32) if len(found) == size else None


def _of_columns(signs: NDArray[np.uint8]) -> NDArray[np.int32] | None:
    """The same for columns that all have five characters: 32,768 cells take one millisecond instead of twenty."""
    is_digit = (signs >= ord("0")) & (signs <= ord("9"))
    is_free = signs[:, 0] == ord(".")
    is_blank = signs == ord(" ")
    is_blank[:, 0] |= is_free
    n_digits = is_digit.sum(axis=1)
    is_first = np.arange(_POS_WIDTH) < n_digits[:, None]
    if not (is_digit | is_blank).all() or (is_digit != is_first).any() or ((n_digits == 0) != is_free).any():
        return None
    values = np.where(is_digit, signs - np.uint8(ord("0")), 0).astype(np.int32)
    powers = 10 ** np.clip(n_digits[:, None] - 1 - np.arange(_POS_WIDTH), 0, None)
    found: NDArray[np.int32] = (values * powers).sum(axis=1).astype(np.int32)
    found[is_free] = -1
    return found


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
    rows = map(tuple, cells.seq_bits.tolist())
    marks = ["." if pos == -1 else _mark(row) for pos, row in zip(cells.pos.tolist(), rows, strict=True)]
    marks += ["."] * (cells.size - len(marks))
    return "\n" + _in_lines(marks, _SEQ_ROW, " *\n") + "\n"


@lru_cache(maxsize=1024)
def _mark(row: tuple[int, ...]) -> str:
    """For a used cell with this row of `seq_bits`."""
    members = seq_members(row)
    return str(members[0]) if len(members) == 1 else "M"


def render_position_map(cells: StreamMap) -> str:
    """The position map that the engine would log for these cells: positions in columns of at least five characters."""
    free = ".".ljust(_POS_WIDTH)
    words = [free if pos == -1 else f"{pos:<{_POS_WIDTH}}" for pos in cells.pos.tolist()]
    words += [free] * (cells.size - len(words))
    for i in range(_SEQ_ROW - 1, cells.size, _SEQ_ROW):
        words[i] += " *"
    return "\n" + _in_lines(words, _POS_ROW, "\n") + "\n"


def _in_lines(words: list[str], n: int, end: str) -> str:
    """`end` after each `n` words."""
    lines = ["".join(words[i : i + n]) for i in range(0, len(words), n)]
    return end.join(lines if len(words) % n else [*lines, ""])
