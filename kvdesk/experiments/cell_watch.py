"""Follows the cells of an experiment's contexts by the rules of the cache, for watching and recording."""

import time
from collections.abc import Callable

from kvdesk.cache.geometry import Geometry
from kvdesk.cache.journal import Journal, Operation
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.mirror import Mirror
from kvdesk.errors import ContextError, KvdeskError
from kvdesk.protocol.experiment_cells import CellsSeen
from kvdesk.translation import tr

INTERVAL_S = 0.25
"""Between two reported maps. It is not part of the measured time, but uses the same core."""


class CellWatch:
    """Watches one context. `tell` gets its cells now and then; record: every call is recorded.

    An experiment may do things that the rules do not cover. After the first call that the engine answers differently,
    nothing more is reported.
    """

    _told_at = 0.0  # by all contexts of the process

    def __init__(self, geometry: Geometry, tell: Callable[[CellsSeen], None] | None, *, record: bool = False) -> None:
        self._tell = tell
        self._mirror: Mirror | None = Mirror(geometry) if geometry.facts.kind != "unknown" else None
        self._journal = Journal(self._mirror) if record and self._mirror is not None else None

    @property
    def mirror(self) -> Mirror:
        """The current cells, read-only. Raises ContextError if they are unknown."""
        if self._mirror is None:
            raise ContextError(tr("The cells of this context did not follow the rules known to kvdesk."))
        return self._mirror

    def recording(self) -> Recording:
        """All calls so far. Raises ContextError if they were not recorded."""
        if self._journal is None or self._mirror is None:
            raise ContextError(
                tr("This context was not recorded, or its cells did not follow the rules that kvdesk knows.")
            )
        return self._journal.recording()

    def follow(self, call: Callable[[Mirror], bool | None], text: str = "", seconds: float = 0.0) -> None:
        """Apply a call of the context to the mirror with `call`; that returns False if the engine did something else.

        text: llama.cpp's call, which took `seconds`.
        """
        if self._mirror is None:
            return
        try:
            known = call(self._mirror) is not False
        except (KvdeskError, LookupError, ValueError):
            known = False
        if not known:
            self._mirror = None
            return
        if self._journal is not None:
            name = text.partition("(")[0].removeprefix("llama_").removeprefix("memory_")
            self._journal.record([Operation(self._mirror.operation, time.time(), name, text, seconds * 1e3)])
        if self._tell and self._mirror.caches and time.perf_counter() - CellWatch._told_at >= INTERVAL_S:
            maps = tuple(cache.freeze() for cache in self._mirror.caches)
            self._tell(CellsSeen.of(self._mirror.operation, maps))
            CellWatch._told_at = time.perf_counter()
