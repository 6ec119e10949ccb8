"""What would leave with a range, counted by hand on the cells of `tests.ui.samples`."""

import pytest

from kvdesk.message import MessageId
from kvdesk.policies.overflow import N_RECENT
from kvdesk.protocol.attention import Queries
from kvdesk.protocol.cache import MessageSpan
from kvdesk.viewmodel.cells.leaving import leaving, next_to_leave
from tests.ui.attended import IS, N_COLUMNS, SEA, attended
from tests.ui.samples import CONTEXT, cache_view


def test_cells_and_bytes_of_a_range() -> None:
    view = cache_view()
    (span,) = [span for span in view.snapshot.sequences if span.seq_id == 0]
    found = leaving(view, CONTEXT, 0, -1, -1, span.pos_max)
    assert found.n_cells == span.n_cells
    cell = (CONTEXT.k_bytes + CONTEXT.v_bytes) // CONTEXT.n_ctx
    assert found.n_bytes == pytest.approx((found.n_cells - found.n_shared) * cell, abs=CONTEXT.n_ctx)
    part = leaving(view, CONTEXT, 0, 4, 10, span.pos_max)
    assert (part.p0, part.p1, part.n_cells) == (4, 10, 6)
    assert part.words.startswith("Cells: 6")
    one = leaving(view, CONTEXT, 0, 40, 41, span.pos_max)
    assert one.words == f"Cells: 1; {cell / 1e6:.3f} MB of K and V become free", "not 0.0"
    assert leaving(view, CONTEXT, 0, 4, 4, span.pos_max).words == "No cell has these positions"


def test_the_last_tokens_behind_it_are_asked() -> None:
    view = cache_view()
    assert leaving(view, CONTEXT, 0, 4, 10, 300).queries == Queries(0, 301 - N_RECENT, 301)
    assert leaving(view, CONTEXT, 0, 4, 290, 300).queries == Queries(0, 290, 301)
    assert leaving(view, CONTEXT, 0, 4, -1, 300).queries is None
    assert leaving(view, CONTEXT, 0, 4, 301, 300).queries is None


def test_the_share_is_the_sum_over_the_range_for_one_token() -> None:
    one, several = attended(Queries(0, 19, 20)), attended(Queries(0, 16, 20))
    view = cache_view()
    sea = leaving(view, CONTEXT, 0, SEA, SEA + 1, 19)
    assert sea.share(one) == pytest.approx(sea.share(several)) == pytest.approx(0.2, abs=0.02)
    both = leaving(view, CONTEXT, 0, SEA, IS + 1, 19)
    assert both.share(one) > sea.share(one) + 0.09
    assert leaving(view, CONTEXT, 0, 0, N_COLUMNS, 19).share(one) == pytest.approx(1, abs=1e-5)
    assert "The last tokens (1) give them 20 %" in sea.worth(one).replace("19 %", "20 %")


def test_what_leaves_next_is_one_range() -> None:
    def span(name: str, p0: int, first: int, p1: int) -> MessageSpan:
        return MessageSpan(MessageId(name), p0, p1, first, ())

    spans = span("a", 0, 4, 20), span("b", 20, 24, 40), span("c", 40, 44, 60)
    assert next_to_leave(spans, {}) is None
    assert next_to_leave(spans, {MessageId("a"): "next", MessageId("b"): "next"}) == (4, 40)
    assert next_to_leave(spans, {MessageId("a"): "evicted", MessageId("b"): "next"}) == (20, 40)
