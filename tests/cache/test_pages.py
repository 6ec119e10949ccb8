"""What pages would hold, on maps written out by hand; and that slots always add up."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.pages import PAGE_SIZES, paged_overlay
from kvdesk.cache.seq_bits import seq_has
from kvdesk.cache.snapshot import CacheMap
from tests.cache.journals import FACTS, Player, maps_of


def mirror(unified: bool = True) -> Mirror:
    return Mirror(plan(FACTS[0], ContextParams(n_ctx=1024, n_seq_max=3, n_batch=512, kv_unified=unified)))


def decode(it: Mirror, seq: int, tokens: list[int]) -> None:
    n, start = len(tokens), it.seq_pos_max(seq) + 1
    it.decode(Batch(tokens, range(start, start + n), [(seq,)] * n, [False] * n), 0)


def test_empty() -> None:
    found = paged_overlay(maps_of(mirror())[0], 16)
    assert (found.n_pages, found.n_slots, found.waste, found.sequences) == (0, 0, 0.0, ())
    assert (found.page_of[0] == -1).all()


def test_last_page_is_wasted() -> None:
    it = mirror()
    decode(it, 0, [*range(20)])
    found = paged_overlay(maps_of(it)[0], 16)
    assert (found.n_pages, found.n_slots, found.n_empty, found.n_filled, found.n_used) == (2, 32, 12, 20, 20)
    assert found.waste == 12 / 32
    assert found.page_of[0][:21].tolist() == [0] * 16 + [1] * 4 + [-1]


def test_shared_cells_share_full_pages_only() -> None:
    it = mirror()
    decode(it, 0, [*range(20)])
    it.seq_cp(0, 1, -1, -1)
    found = paged_overlay(maps_of(it)[0], 16)
    assert [s.pages for s in found.sequences] == [(0, 1), (0, 2)]
    assert [s.n_shared for s in found.sequences] == [1, 1]
    assert (found.n_pages, found.n_shared, found.n_empty) == (3, 1, 24)
    assert (found.n_filled, found.n_used) == (24, 20)  # four cells would be there twice
    assert (found.page_of[0][:20] >= 0).all()


@pytest.mark.parametrize("unified", [True, False])
def test_equal_prefixes_in_own_cells_would_be_shared(unified: bool) -> None:
    it = mirror(unified)
    decode(it, 0, [*range(32)])
    decode(it, 2, [*range(16), 99, *range(17, 32)])
    found = paged_overlay(maps_of(it)[0], 16)
    assert [s.pages for s in found.sequences] == [(0, 1), (0, 2)]
    assert (found.n_filled, found.n_used, found.n_shared) == (48, 64, 1)


def test_a_page_after_another_prefix_is_another_page() -> None:
    it = mirror()
    decode(it, 0, [1] * 32)
    decode(it, 1, [2] * 16 + [1] * 16)
    assert paged_overlay(maps_of(it)[0], 16).n_pages == 4


def test_unknown_tokens_are_not_equal() -> None:
    it = mirror()
    for seq in (0, 1):
        decode(it, seq, [5] * 16)
    it.caches[0].streams[0].token[:] = -1
    it.seq_cp(0, 2, -1, -1)
    found = paged_overlay(maps_of(it)[0], 16)
    assert [s.pages for s in found.sequences] == [(0,), (1,), (0,)]


def test_no_slots() -> None:
    with pytest.raises(ValueError, match="at least one slot"):
        paged_overlay(maps_of(mirror())[0], 0)


@settings(max_examples=10)
@given(st.sampled_from(FACTS[:2]), st.booleans(), st.integers(0, 2**32 - 1), st.sampled_from([1, *PAGE_SIZES]))
def test_slots_add_up(facts: ModelFacts, unified: bool, seed: int, page_size: int) -> None:
    player = Player(facts, unified, True, 3, seed)
    player.play(25)
    for cache in maps_of(player.mirror):
        found = paged_overlay(cache, page_size)
        assert found.n_filled + found.n_empty == found.n_slots
        assert found.n_used == sum(stream.used for stream in cache.streams)
        assert sum(s.n_empty for s in found.sequences) == found.n_empty
        assert {p for s in found.sequences for p in s.pages} == set(range(found.n_pages))
        for page, stream in zip(found.page_of, cache.streams, strict=True):
            assert ((page >= 0) == stream.columns(stream.size).seq_bits.any(axis=1)).all()
            _, counts = np.unique(page[page >= 0], return_counts=True)
            assert (counts <= page_size).all()
        if page_size == 1:
            assert found.n_empty == 0
        assert [list(s.pages) for s in found.sequences] == _page_by_page(cache, page_size)


def _page_by_page(cache: CacheMap, page_size: int) -> list[list[int]]:
    """vLLM's rule, page by page: a full page is known by the page before it and its content."""
    known: dict[tuple[int, tuple[object, ...]], int] = {}
    tables, n_pages = [], 0
    for s, stream in enumerate(cache.streams):
        for seq_id in range(64):
            cells = sorted(
                np.flatnonzero(seq_has(stream.seq_bits, seq_id)).tolist(), key=lambda cell: int(stream.pos[cell])
            )
            held = [
                (int(stream.pos[cell]), int(stream.token[cell]), (s, cell) if stream.token[cell] < 0 else None)
                for cell in cells
            ]
            numbers = [-1]
            for start in range(0, len(held), page_size):
                page = tuple(held[start : start + page_size])
                number = known.setdefault((numbers[-1], page), n_pages) if len(page) == page_size else n_pages
                n_pages += number == n_pages
                numbers.append(number)
            if held:
                tables.append(numbers[1:])
    return tables


def test_a_large_cache() -> None:
    """Measured: 5 ms for 120,000 cells in pages of 16."""
    it = Mirror(plan(FACTS[0], ContextParams(n_ctx=131_072, n_seq_max=4, n_batch=4096, kv_unified=True)))
    rng = np.random.default_rng(0)
    for i in range(30):
        decode(it, i % 4, rng.integers(0, 49_000, 4000).tolist())
    cache = maps_of(it)[0]
    before = time.thread_time()
    assert paged_overlay(cache, 16).n_pages == 7500
    assert time.thread_time() - before < 0.5
