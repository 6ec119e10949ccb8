"""Follows the cells of an experiment's contexts by the rules of the cache, to be watched while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from kvdesk.cache.geometry import Geometry
from kvdesk.cache.mirror import Mirror
from kvdesk.errors import KvdeskError
from kvdesk.protocol.experiment_cells import CellsSeen

INTERVAL_S = 0.25
"""Between two maps that are told: it is no part of what is timed, but takes the same core."""


class CellWatch:
    """Of one context. `tell` gets its cells, now and then.

    An experiment may do what the rules do not foresee. From a call on that the engine has answered otherwise than the
    rules say, nothing is told any more.
    """

    _told_at = 0.0  # by all contexts of the process

    def __init__(self, geometry: Geometry, tell: Callable[[CellsSeen], None]) -> None:
        self._tell = tell
        self._mirror: Mirror | None = Mirror(geometry) if geometry.facts.kind != "unknown" else None

    def follow(self, call: Callable[[Mirror], bool | None]) -> None:
        """`call` does to the mirror what has been done to the context; False where the engine did otherwise."""
        if self._mirror is None:
            return
        try:
            known = call(self._mirror) is not False
        except (KvdeskError, LookupError, ValueError):
            known = False
        if not known:
            self._mirror = None
        elif self._mirror.caches and time.perf_counter() - CellWatch._told_at >= INTERVAL_S:
            maps = tuple(cache.freeze() for cache in self._mirror.caches)
            self._tell(CellsSeen.of(self._mirror.operation, maps))
            CellWatch._told_at = time.perf_counter()
