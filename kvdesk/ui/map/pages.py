"""Keeps the paged overlay of what is shown, and makes a new one as seldom as the decoding threads need."""

import time
from collections.abc import Callable

from kvdesk.cache.pages import PAGE_SIZES, PagedOverlay, paged_overlay
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.ui.map.frame_clock import SHARE

_ROUGHLY_S = 0.5  # at least, between two overlays, however cheap


class PageCache:
    """An overlay takes Python's time for every page: one that took c ms is kept for c / 0.04 ms at least.

    Cells written meanwhile are on no page until then.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.page_size = PAGE_SIZES[0]
        self._of: CacheSnapshot | None = None
        self._overlays: tuple[PagedOverlay, ...] = ()
        self._due = 0.0

    @property
    def wait_s(self) -> float:
        """Until a new overlay may be made."""
        return max(0.0, self._due - self._now())

    def is_behind(self, snapshot: CacheSnapshot) -> bool:
        """Whether the kept overlay is of an earlier view."""
        return self._of is not snapshot

    def set_page_size(self, page_size: int) -> None:
        if page_size != self.page_size:
            self.page_size, self._of, self._due = page_size, None, 0.0

    def overlays(self, snapshot: CacheSnapshot) -> tuple[PagedOverlay, ...]:
        """The overlay of each cache; of an earlier view while a new one is not due."""
        sizes = [[stream.size for stream in cache.streams] for cache in snapshot.maps]
        fits = sizes == [[page.size for page in overlay.page_of] for overlay in self._overlays]
        if self._of is snapshot or (self._of is not None and fits and self._now() < self._due):
            return self._overlays
        begun = self._now()
        self._overlays = tuple(paged_overlay(cache, self.page_size) for cache in snapshot.maps)
        self._of = snapshot
        ended = self._now()
        self._due = ended + max((ended - begun) / SHARE, _ROUGHLY_S)
        return self._overlays
