import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import CacheSnapshot, Verification
from kvdesk.message import MessageId
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.viewmodel.cells import links
from tests.ui.placing import place
from tests.ui.samples import ONE, cache_view

ASKED, ANSWERED = MessageId("asked"), MessageId("answered")
# "Hi 🌊!" in four tokens: "Hi", " ", two halves of the wave, "!"; template text around it at 3..5 and 10..12.
WAVE = MessageSpan(ASKED, 3, 12, 5, (2, 3, 3, 4, 5))
ANSWER = MessageSpan(ANSWERED, 12, 20, 14, (1, 2, 3))
SPANS = MessageSpans(ONE, 1, (WAVE, ANSWER))


def snapshot() -> CacheSnapshot:
    """Two caches of two streams; sequence 1 holds positions 0 to 19."""
    facts = ModelFacts("gemma2", "iswa", n_swa=64, swa_type="standard")
    mirror = Mirror(plan(facts, ContextParams(n_ctx=512, n_seq_max=2)))
    place(mirror, 0, 0, 5)
    place(mirror, 1, 0, 20)
    return mirror.snapshot(Verification("mirrored", 0))


@pytest.mark.parametrize(
    ("start", "end", "positions"),
    [(0, 1, (5, 6)), (0, 5, (5, 10)), (2, 3, (6, 7)), (3, 4, (7, 9)), (4, 5, (9, 10)), (2, 2, (3, 3)), (9, 12, (3, 3))],
    ids=["in a token", "all", "a blank", "two tokens of one character", "the last", "nothing", "beyond the text"],
)
def test_positions_of_characters(start: int, end: int, positions: tuple[int, int]) -> None:
    assert links.positions_of_text(WAVE, start, end) == positions


def test_where_the_template_changed_the_text_the_whole_message_is_meant() -> None:
    changed = MessageSpan(ASKED, 3, 12, 5, ())
    assert links.positions_of_text(changed, 1, 2) == (3, 12)
    assert links.text_of_positions(changed, np.array([7], np.int32)) == links.TextRange(ASKED, 0, 0, exact=False)


@pytest.mark.parametrize(
    ("positions", "characters"),
    [([5], (0, 2)), ([7], (3, 4)), ([8], (3, 4)), ([6, 9], (2, 5)), ([3], (0, 0)), ([3, 5], (0, 2))],
    ids=["a word", "the first half", "the second half", "with a gap", "template text", "template and text"],
)
def test_characters_at_positions(positions: list[int], characters: tuple[int, int]) -> None:
    assert links.text_of_positions(WAVE, np.array(positions, np.int32)) == links.TextRange(ASKED, *characters)


def test_positions_of_another_message_are_not_this_one() -> None:
    assert links.text_of_positions(WAVE, np.array([2, 12], np.int32)) is None


def test_the_message_at_a_position() -> None:
    assert links.span_at(SPANS, 11) == (0, WAVE)
    assert links.span_at(SPANS, 12) == (1, ANSWER)
    assert links.span_at(SPANS, 2) is None


def test_cells_of_a_text_are_found_in_every_cache_in_the_stream_of_the_sequence() -> None:
    runs = links.cells_of_text(SPANS, snapshot(), ASKED, 3, 5)
    assert [(run.cache, run.stream, run.cells.tolist()) for run in runs] == [(0, 1, [7, 8, 9]), (1, 1, [7, 8, 9])]
    assert links.cells_of_text(SPANS, snapshot(), MessageId("other"), 0, 5) == ()
    assert links.cells_of_text(SPANS, snapshot(), ASKED, 2, 2) == ()


def test_the_text_of_cells_goes_over_messages() -> None:
    found = links.text_of_cells({1: SPANS}, snapshot(), 0, 1, 9, 16)
    assert found == (links.TextRange(ASKED, 4, 5), links.TextRange(ANSWERED, 0, 2))
    assert links.text_of_cells({1: SPANS}, snapshot(), 0, 0, 0, 5) == (), "another sequence's cells"
    assert links.text_of_cells({1: SPANS}, snapshot(), 7, 0, 0, 5) == (), "a cache that is gone"


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_there_and_back_covers_what_was_selected(widths: list[int], data: st.DataObject) -> None:
    """Characters -> cells -> characters never loses a character."""
    ends = tuple(int(end) for end in np.cumsum(widths))
    n = ends[-1]
    if n == 0:
        return
    start = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(start + 1, n))
    span = MessageSpan(ASKED, 0, len(ends), 0, ends)
    p0, p1 = links.positions_of_text(span, start, end)
    back = links.text_of_positions(span, np.arange(p0, p1, dtype=np.int32))
    assert back.start <= start
    assert back.end >= end


def test_the_positions_of_cells_are_of_the_sequence_that_has_most_of_them() -> None:
    view = cache_view(runs=((0, 10, (0, 1), 0, 1), (10, 14, (1,), 20, 1), (14, 30, (0,), 10, 1))).snapshot
    assert links.range_of_cells(view, 0, 0, 8, 12) == (1, 8, 22), "positions 8, 9, 20 and 21"
    assert links.range_of_cells(view, 0, 0, 2, 5, own=0) == (0, 2, 5)
    assert links.range_of_cells(view, 0, 0, 2, 5, own=1) == (1, 2, 5)
    assert links.range_of_cells(view, 0, 0, 40, 50) is None
    assert links.range_of_cells(view, 1, 0, 0, 5) is None, "there is no such cache"
