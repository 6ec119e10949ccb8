"""The cells of another program's cache, as its engine printed them last: the dumps of LLAMA_KV_CACHE_DEBUG in its log.

They are what the engine said at one moment, never a proof: nothing here knows what it did since.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from kvdesk.cache.dump import DumpReader, SlotDump, read_cells
from kvdesk.cache.metrics import stream_metrics
from kvdesk.cache.record import FindSlotLine
from kvdesk.cache.seq_bits import seq_has
from kvdesk.cache.signs import signs
from kvdesk.cache.snapshot import CacheName, StreamMap
from kvdesk.engine_log.lines import LONGEST, LogLine
from kvdesk.quantities import cells_text
from kvdesk.translation import plural, tr

SEARCH: Final = "find_slot: "
"""Begins the lines with which the engine prints its cells."""
_MOST_CHARS: Final = 64 << 20
"""Characters of the maps that are remembered, of all streams."""
_MEANWHILE: Final = 32
"""Lines of other threads that may come between those of a dump: a server takes requests in while it decodes."""
_ROW: Final = re.compile(r"[.M0-9][.M0-9 ]*\*?")


class ShownCache:
    """One stream of one cache as it was printed. Its maps are read when somebody asks for `cells`.

    ubatch   number of the ubatch whose slots were searched, from 1; the cells are those before it was placed
    at_line  of the log; clock: the time that it prints for the search, "" for none
    """

    def __init__(self, name: CacheName, dump: SlotDump, ubatch: int, at_line: int, clock: str) -> None:
        self.name: CacheName = name
        self.ubatch, self.at_line, self.clock = ubatch, at_line, clock
        self.line, self.spans = dump.line, dump.spans
        self._dump = dump
        self.n_chars = len(dump.sequence_map or "") + len(dump.position_map or "")

    @cached_property
    def cells(self) -> StreamMap | None:
        """None if the log has no maps of it, or maps that contradict its numbers."""
        return read_cells(self._dump)


class CellsReader:
    """Feed it the lines of a log; `caches` is what was printed last of each stream."""

    def __init__(self) -> None:
        self.caches: dict[tuple[bool, int], ShownCache] = {}
        self._messages = _Messages()
        self._dumps = DumpReader()
        self._ubatch = 0
        self._searches: dict[tuple[bool, int], FindSlotLine] = {}  # of the ubatch so far, the last of each stream
        self._at = LogLine(0, "")
        self._clock = ""  # of the last search
        self._is_apart = True  # whether other lines came since the last search

    @property
    def in_map(self) -> bool:
        """Whether the line before was a row of a map: it says nothing else."""
        return self._messages.has_rows

    def feed(self, line: LogLine) -> bool:
        """Whether a dump was completed by this line."""
        is_slot = line.text.startswith(SEARCH)
        found = False
        for message in self._messages.feed(line):
            found |= self._take(self._dumps.feed(message), line)
        if is_slot:
            self._clock = line.clock
        elif not self._messages.in_dump:
            found |= self._take(self._dumps.close(), line)
            self._is_apart = True
        return found

    def close(self) -> bool:
        """Whether the end of the log completed a dump."""
        for message in self._messages.close():
            self._dumps.feed(message)
        return self._take(self._dumps.close(), self._at)

    def _take(self, dump: SlotDump | None, now: LogLine) -> bool:
        began, self._at = self._at, now
        if dump is None:
            return False
        key = (dump.line.n_swa > 0, dump.line.stream)
        # An ubatch of several sequences is one search a sequence: alike in one stream, or in their own streams.
        if self._is_apart or self._searches.get(key, dump.line) != dump.line:
            self._ubatch += 1
            self._searches = {}
        self._searches[key] = dump.line
        self._is_apart = False
        if sum(cache.n_chars for cache in self.caches.values()) > _MOST_CHARS:
            self.caches.clear()
        if key[0]:
            for other in self.caches.values():
                other.name = "window" if other.line.n_swa else "base"
        has_window = any(cache.line.n_swa for cache in self.caches.values())
        name: CacheName = "window" if key[0] else "base" if has_window else "kv"
        self.caches[key] = ShownCache(name, dump, self._ubatch, began.number, self._clock)
        return True


class _Messages:
    """Joins lines to messages as the engine logged them: in a plain log its maps have a line for each row."""

    def __init__(self) -> None:
        self._rows: list[str] = []
        self._n_chars = 0
        self._n_others = 0
        self.in_dump = False

    @property
    def has_rows(self) -> bool:
        return bool(self._rows)

    def feed(self, line: LogLine) -> Iterator[str]:
        text = line.text
        if text.startswith(SEARCH):
            yield from self._map()
            self.in_dump, self._n_others = True, 0
            yield text + "\n"
        elif self.in_dump and text.startswith("\n"):
            yield text
        elif self.in_dump and self._n_chars + len(text) < LONGEST and _are_rows(text):
            self._rows.append(text)
            self._n_chars += len(text) + 1
        else:
            yield from self._map()
            if text.strip():
                self._n_others += 1
                # What a server says of its slots comes from the thread that decodes.
                self.in_dump = self.in_dump and self._n_others < _MEANWHILE and not text.startswith("slot ")

    def close(self) -> Iterator[str]:
        """What is still open; after it, other lines belong to no dump."""
        yield from self._map()
        self.in_dump = False

    def _map(self) -> Iterator[str]:
        if self._rows:
            rows, self._rows, self._n_chars = self._rows, [], 0
            yield "\n" + "\n".join(rows) + "\n\n"


def _are_rows(text: str) -> bool:
    """Whether this is a row of a map, or a run of them; other lines may come as a run, too."""
    return bool(_ROW.match(text) if "\n" in text else _ROW.fullmatch(text.rstrip()))


def cache_lines(cache: ShownCache) -> Iterator[str]:
    """One stream as lines of text: numbers, sequences, and a map of 64 signs."""
    yield from number_lines(cache)
    if cache.cells is not None:
        per_sign = -(-cache.line.size // 64)
        yield f"  [{''.join(signs(cache.cells, per_sign))}]  " + plural("1 cell a sign", "%n cells a sign", per_sign)


def number_lines(cache: ShownCache) -> Iterator[str]:
    """One stream without its map."""
    at = cache.line
    said = tr("{name}, stream {stream} · as printed by the engine at ubatch {ubatch:,} (line {line:,} of the log)")
    yield said.format(name=cache.name, stream=at.stream, ubatch=cache.ubatch, line=cache.at_line)
    numbers = tr("{used:,} of {size:,} cells used · high water {high:,} · head {head:,}").format(
        used=at.used, size=at.size, high=at.high_water, head=at.head
    )
    if cache.cells is not None:
        metrics = stream_metrics(cache.cells)
        n = metrics.n_free_runs
        numbers += tr(" · n_kv {n_kv:,} · {holes:.1%} holes · {runs} · {shared:,} shared").format(
            n_kv=metrics.n_kv,
            holes=metrics.hole_ratio,
            runs=plural("1 free run", "%n free runs", n),
            shared=metrics.n_shared,
        )
    yield f"  {numbers}"
    for span in cache.spans:
        count = ""
        if cache.cells is not None and (n := int(seq_has(cache.cells.seq_bits, span.seq_id).sum())):
            count = " · " + cells_text(n)
        said = tr("sequence {seq}: positions {first:,} to {last:,}")
        yield "  " + said.format(seq=span.seq_id, first=span.pos_min, last=span.pos_max) + count
    if cache.cells is None:
        yield "  " + tr("Cells are not printed at this level (LLAMA_KV_CACHE_DEBUG=3 prints them).")
