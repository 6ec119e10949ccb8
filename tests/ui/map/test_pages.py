import numpy as np

from kvdesk.cache.pages import paged_overlay
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import ColourBy, Scene, page_words
from kvdesk.ui.map.frame import make_frame, strips_of
from kvdesk.ui.map.pages import PageCache
from tests.ui.samples import cache_view

NEVER = (99, 99)


class SlowClock:
    """Every look at it takes 0.1 s."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        self.s += 0.1
        return self.s


def test_pages_take_turns_in_shade_and_those_that_are_not_full_are_marked() -> None:
    view = cache_view(runs=((0, 40, (0,), 0, 1),), size=256)
    scene = Scene(ColourBy.PAGE, colours={0: 0}, pages=(paged_overlay(view.snapshot.maps[0], 16),))
    (part,) = make_frame(view, strips_of(view, 400, 1.0), scene, NEVER).strips
    layer = part.layer(0, 60)
    groups = (layer.code[:40].astype(int) - raster.FIRST_GROUP) // raster.N_SHADES
    assert groups.tolist() == [3] * 16 + [4] * 16 + [3] * 8
    assert (layer.marks[:32] == 0).all()
    assert (layer.marks[32:40] == raster.PARTIAL).all()
    assert (layer.marks[40:] == 0).all()


def test_cells_written_after_the_overlay_are_on_no_page_yet() -> None:
    old = cache_view(runs=((0, 32, (0,), 0, 1),), size=256)
    new = cache_view(runs=((0, 36, (0,), 0, 1),), size=256)
    scene = Scene(ColourBy.PAGE, colours={0: 0}, pages=(paged_overlay(old.snapshot.maps[0], 16),))
    (part,) = make_frame(new, strips_of(new, 400, 1.0), scene, NEVER).strips
    assert set(part.layer(32, 36).code.tolist()) == {raster.FIRST_GROUP}


def test_an_overlay_that_took_long_is_kept_for_long() -> None:
    clock = SlowClock()
    keeper = PageCache(clock)
    first, second = cache_view(size=256).snapshot, cache_view(size=256).snapshot
    kept = keeper.overlays(first)
    assert keeper.overlays(second) is kept
    assert keeper.is_behind(second)
    assert 2.0 < keeper.wait_s < 2.5, "0.1 s of work: 2.5 s of rest"
    clock.s += 3
    assert keeper.overlays(second) is not kept
    assert not keeper.is_behind(second)


def test_a_cache_of_another_size_does_not_wait() -> None:
    keeper = PageCache(SlowClock())
    keeper.overlays(cache_view(size=256).snapshot)
    (other,) = keeper.overlays(cache_view(size=512).snapshot)
    assert other.page_of[0].size == 512


def test_what_paging_holds_and_wastes_in_words() -> None:
    view = cache_view(runs=((0, 20, (0,), 0, 1),), size=256)
    overlay = paged_overlay(view.snapshot.maps[0], 16)
    assert page_words(overlay, "base") == (
        "base: Pages of 16: 2 held = 32 slots, 12 empty (37.5% wasted), 0 shared. llama.cpp: 20 cells for the same."
    )
    assert np.count_nonzero(overlay.page_of[0] >= 0) == 20
