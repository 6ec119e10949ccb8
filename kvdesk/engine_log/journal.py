"""The cells that another engine printed, dump by dump, as a recording: the time line shows it like any other."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from kvdesk.cache.journal.packing import REQUEST, Operation
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.journal.view_recorder import ViewRecorder
from kvdesk.cache.snapshot import CacheMap, CacheName, StreamMap
from kvdesk.engine_log.cells import ShownCache
from kvdesk.engine_log.lines import seconds_of
from kvdesk.translation import tr
from kvdesk.values import replace

_MOST_CELLS: Final = 1 << 22
"""Cells of all streams that are recorded."""
_MOST_MS: Final = 1e11
_LATEST_S: Final = 1e11
_NAMES: tuple[CacheName, ...] = ("kv", "base", "window")


class CellsJournal:
    """Belongs to one thread; its recordings may go to any. `n`: of the operations so far."""

    def __init__(self) -> None:
        self._views = ViewRecorder()
        self._streams: dict[tuple[bool, int], StreamMap] = {}
        self._latest: ShownCache | None = None
        self.n = 0

    def take(self, caches: Mapping[tuple[bool, int], ShownCache]) -> None:
        """Record what was printed last of each stream; streams whose cells are not known are left out, and those of
        another size than the latest of their cache, which are of another context.
        """
        known = [(key, cache) for key, cache in caches.items() if cache.cells is not None]
        known.sort(key=lambda one: (one[1].ubatch, one[1].at_line))
        latest = known[-1][1] if known else None
        sizes = {is_window: cache.line.size for (is_window, _), cache in known}
        shown = {key: cache for key, cache in known if cache.line.size == sizes[key[0]]}
        streams = {is_window: max(n for one, n in shown if one == is_window) + 1 for is_window in sizes}
        if latest is None or latest is self._latest or sum(n * sizes[i] for i, n in streams.items()) > _MOST_CELLS:
            return
        self._latest = latest
        self.n += 1
        for key, cache in shown.items():
            assert cache.cells is not None
            self._streams[key] = _dated(cache.cells, self._streams.get(key), self.n)

        def operation(_last: int, number: int) -> Operation:
            at = latest.line
            call = f"find_slot: stream[{at.stream}], n = {at.high_water}, used = {at.used}, head = {at.head}"
            reason = tr("as printed by the engine at ubatch {n:,}").format(n=latest.ubatch)
            return Operation(number, seconds_of(latest.clock), "decode", call, reason=reason)

        self._views.take(self.n, self._maps(shown), operation)

    def note(self, at_s: float, call: str, ms: float, reason: str) -> None:
        """Record a request that ended at `at_s`. A log may say any number: times that no request has are unknown."""
        self.n += 1
        ms = ms if 0 <= ms < _MOST_MS else 0.0
        at_s = at_s if 0 <= at_s < _LATEST_S else 0.0
        self._views.note(Operation(self.n, at_s, REQUEST, call, ms, reason=reason))

    def recording(self) -> Recording | None:
        """What was printed so far; None before the first cells."""
        return self._views.recording()

    def _maps(self, shown: Mapping[tuple[bool, int], ShownCache]) -> tuple[CacheMap, ...]:
        maps = []
        for name in _NAMES:
            ours = {key[1]: key for key, cache in shown.items() if cache.name == name}
            if ours:
                one = shown[next(iter(ours.values()))]
                streams = tuple(
                    self._streams[ours[i]] if i in ours else _empty(one.line.size) for i in range(max(ours) + 1)
                )
                maps.append(CacheMap(name, streams, one.line.n_swa, "standard" if one.line.n_swa else "none"))
        return tuple(maps)


def _dated(cells: StreamMap, before: StreamMap | None, number: int) -> StreamMap:
    """The cells with the number of the dump that showed each of them as it is for the first time."""
    written = np.where(cells.pos != -1, number, 0).astype(np.int64)
    if before is not None:
        n = min(len(cells.pos), len(before.pos))
        same = (cells.pos[:n] == before.pos[:n]) & (cells.seq_bits[:n] == before.seq_bits[:n]).all(axis=1)
        written[:n][same] = before.written_at_op[:n][same]
    return replace(cells, written_at_op=written)


def _empty(size: int) -> StreamMap:
    none = np.empty(0, np.int32)
    return StreamMap(none, np.empty((0, 4), np.uint64), none, np.empty(0, np.int64), size, 0, 0, 0)
