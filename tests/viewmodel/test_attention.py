"""What tokens looked at, with a choice of layers and heads: by cell, by word, by head."""

import numpy as np
import pytest

from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.message import MessageId
from kvdesk.protocol.attention import Attend, Queries
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.values import replace
from kvdesk.viewmodel.cells.attention import (
    Choice,
    Looking,
    Scope,
    Shown,
    Spot,
    attention_at,
    column_words,
    percent,
    position_at,
    queries_of,
    steps_of,
    words_of,
)
from kvdesk.viewmodel.cells.head_pictures import Heads, Tiles, picture
from tests.ui.attended import IS, LAYERS, N_COLUMNS, N_HEADS, SEA, SINK, SPECIAL, attended, indexed
from tests.ui.samples import ONE, Run, cache_view

ONE_TOKEN = Queries(0, 19, 20)
TEXTS = {SINK: "The", SEA: "sea", IS: " is"}
ANSWER = MessageSpan(MessageId("a"), 8, 20, 11, (3, 6, 9, 11, 14, 18, 19))


def snapshot(runs: tuple[Run, ...] = ((0, 32, (0, 1), 0, 1), (32, 60, (0,), 32, 3))) -> CacheSnapshot:
    return cache_view(runs=runs).snapshot


def test_all_heads_or_one_of_them() -> None:
    every = Shown(attended(ONE_TOKEN), Choice())
    assert every.rows()[:3] == [SINK, SEA, IS]
    assert every.weights.sum() == pytest.approx(1, abs=1e-5)
    special = Shown(attended(ONE_TOKEN), Choice(*SPECIAL))
    assert special.rows()[0] == IS
    assert special.weights[IS] == pytest.approx(0.6)
    assert not special.sinks[IS], "one head may have a good reason"
    most = Shown(attended(ONE_TOKEN), Choice(how="max"))
    assert most.weights[[SINK, IS]] == pytest.approx([0.6, 0.6])


def test_a_sink_is_marked_and_shares_leave_it_out() -> None:
    shown = Shown(attended(ONE_TOKEN), Choice(layer=0))
    assert np.flatnonzero(shown.sinks).tolist() == [SINK]
    assert shown.share(SEA) == pytest.approx(0.5, abs=1e-4), "0.2 of the 0.4 beside the sink"
    assert shown.most == pytest.approx(0.2)
    assert shown.ends == ("≤ 0.02 %", "20 %")
    steps = shown.steps(48)
    assert steps[SINK] == steps[SEA] == 47
    assert steps[1] < steps[IS] < 47
    assert "a sink" in column_words(shown, SINK, TEXTS)
    assert column_words(shown, SEA, TEXTS) == "“sea”: 20 % of the attention"


def test_what_one_token_looks_at_most_is_no_sink_for_that() -> None:
    one, many = attended(ONE_TOKEN), attended(Queries(0, 8, 20))
    for result in (one, many):
        for layer in result.layers:
            layer.weights[:, :, SEA] = 0.5 * len(result.pos)
    assert np.flatnonzero(Shown(one, Choice()).sinks).tolist() == [SINK]
    assert np.flatnonzero(Shown(many, Choice()).sinks).tolist() == [SINK, SEA]


def test_tokens_of_a_message_are_added_up() -> None:
    asked = Queries(0, 8, 20)
    one, many = Shown(attended(ONE_TOKEN), Choice()), Shown(attended(asked), Choice())
    assert many.weights == pytest.approx(12 * one.weights, rel=1e-5)
    assert (many.most, many.spot) == (one.most, None)
    rows = Shown(attended(replace(asked, each=True)), Choice())
    assert rows.weights == pytest.approx(many.weights, rel=1e-5)
    assert rows.spot == 19


def test_what_is_asked_for() -> None:
    spans = MessageSpans(ONE, 0, (MessageSpan(MessageId("q"), 0, 8, 3, ()), ANSWER))
    assert queries_of(Spot(0, 25), Scope.TOKEN, spans, 25) == Queries(0, 25, 26)
    assert queries_of(Spot(0, 9), Scope.TOKEN, spans, 25) == Queries(0, 9, 10)
    assert queries_of(Spot(0, 9), Scope.LAST, spans, 25) == Queries(0, 2, 10, each=True)
    assert queries_of(Spot(0, 25), Scope.LAST, spans, 25) == Queries(0, 18, 26, each=True)
    assert queries_of(Spot(0, 9), Scope.ANSWER, spans, 25) == Queries(0, 8, 20)
    assert queries_of(Spot(0, 9), Scope.ANSWER, spans, 15) == Queries(0, 8, 16), "as far as it is written"
    assert queries_of(Spot(0, 23), Scope.ANSWER, spans, 25) == Queries(0, 23, 24), "of no known message"
    assert queries_of(Spot(0, 23), Scope.ANSWER, None, 25) == Queries(0, 23, 24)


CHANGES: dict[str, tuple[tuple[Run, ...], bool]] = {
    "nothing": (((0, 32, (0, 1), 0, 1), (32, 60, (0,), 32, 3)), False),
    "more tokens": (((0, 32, (0, 1), 0, 1), (32, 90, (0,), 32, 3)), False),
    "another sequence lets go": (((0, 32, (0,), 0, 1),), False),
    "a cell is free": (((0, 10, (0,), 0, 1), (11, 32, (0,), 11, 1)), True),
    "positions moved": (((0, 32, (0,), 2, 1),), True),
    "another sequence has them": (((0, 32, (1,), 0, 1),), True),
    "all are gone": ((), True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_result_is_stale_once_its_cells_have_changed(change: str) -> None:
    runs, is_stale = CHANGES[change]
    assert Shown(attended(ONE_TOKEN), Choice()).is_stale(snapshot(runs)) is is_stale


@pytest.mark.parametrize("queries", [ONE_TOKEN, Queries(0, 8, 20), Queries(0, 8, 20, each=True)])
def test_what_the_indexer_chose_is_said(queries: Queries) -> None:
    shown = Shown(indexed(attended(queries)), Choice())
    assert shown.chosen is not None
    assert shown.chosen[[SINK, SEA, IS]] == pytest.approx([1, 1, 0.5])
    assert np.flatnonzero(~shown.left_out).tolist() == [SINK, SEA, IS]
    assert column_words(shown, SEA, TEXTS).endswith("of the attention; chosen by the indexer")
    assert column_words(shown, IS, TEXTS).endswith("; chosen by the indexer in 50 % of the cases")
    stream = snapshot().maps[0].streams[0]
    assert attention_at(shown, 0, 0, stream, 5) == ("0 % of the attention", "left out by the indexer")
    one = Shown(indexed(attended(queries)), Choice(layer=0))
    assert one.left_out[IS]
    assert shown.caches == one.caches == frozenset({0})
    found = indexed(attended(queries))
    apart = replace(found, columns=replace(found.columns, cells=2 * found.columns.cells))
    assert Shown(apart, Choice()).caches == frozenset({0, 1}), "its keys are in cells of their own"
    assert not Shown(attended(queries), Choice()).left_out.any(), "no indexer leaves nothing out"


def test_cells_that_hold_something_else_have_no_colour() -> None:
    shown, moved = Shown(attended(ONE_TOKEN), Choice()), snapshot(((0, 10, (0,), 0, 1), (13, 32, (0,), 13, 1)))
    stream = moved.maps[0].streams[0]
    cells, columns = shown.cells_in(0, 0, stream)
    assert cells.tolist() == columns.tolist() == [*range(10), *range(13, N_COLUMNS)]
    assert attention_at(shown, 0, 0, stream, SEA) == ("20 % of the attention",)
    assert attention_at(shown, 0, 0, stream, 10) == ()
    assert shown.cells_in(1, 0, stream)[0].size == 0, "none of the layers has its K there"


def test_words_and_the_tokens_that_they_are() -> None:
    shown = Shown(attended(ONE_TOKEN), Choice(layer=0))
    words = words_of(shown, ANSWER, 13)
    strongest = max(words, key=lambda word: word.step)
    assert (strongest.first, strongest.last, strongest.column) == (6, 9, SEA)
    assert position_at(ANSWER, 7) == SEA
    assert position_at(ANSWER, 0) == 11
    assert position_at(ANSWER, 19) is None


@pytest.mark.parametrize(
    ("share", "words"),
    [(1, "100 %"), (0.37, "37 %"), (0.0995, "10 %"), (0.041, "4.1 %"), (0.00031, "0.031 %"), (0, "0 %")],
)
def test_shares_in_percent(share: float, words: str) -> None:
    assert percent(share) == words


def test_steps_are_logarithmic() -> None:
    weights = np.array([0, 1e-5, 1e-3, 1e-2, 1e-1, 1, 2], np.float32)
    assert steps_of(weights, 1.0, 30).tolist() == [0, 0, 0, 10, 20, 29, 29]


def test_every_head_has_a_picture() -> None:
    heads = Heads(attended(ONE_TOKEN), TEXTS)
    assert (heads.layers, heads.n_heads) == (LAYERS, N_HEADS)
    tiles = Tiles(N_HEADS, len(LAYERS), N_COLUMNS, 5)
    codes = picture(heads, tiles, 48)
    assert codes.shape == (2 * 6, N_HEADS * 21)
    left, top, width, height = tiles.box(1, SPECIAL[1])
    tile = codes[top : top + height, left : left + width]
    assert tile[:, IS].min() == tile.max(), "brightest where it looked most"
    assert tile[0, SINK] < codes[0, SINK], "less than other heads"
    assert (codes[5] == 48).all(), "between the layers"
    assert (codes[:, 20] == 48).all(), "between the heads"
    assert tiles.at(left, top) == (1, SPECIAL[1])
    assert tiles.at(N_HEADS * 21, 0) is None


def test_a_small_picture_keeps_the_largest_weights() -> None:
    asked = Queries(0, 8, 20, each=True)
    codes = picture(Heads(attended(asked), TEXTS), Tiles(N_HEADS, 2, 4, 3), 48)
    assert codes.shape == (2 * 4, N_HEADS * 5)
    one = picture(Heads(attended(ONE_TOKEN), TEXTS), Tiles(N_HEADS, 2, 4, 3), 48)
    assert np.array_equal(codes, one), "rows that are alike"
    assert codes[0, 0] == codes.ravel()[codes.ravel() < 48].max(), "the sink is in the first of its pixels"


def test_a_head_in_words() -> None:
    heads = Heads(attended(ONE_TOKEN), TEXTS)
    assert heads.words(1, SPECIAL[1]) == "Layer 3, head 2: most on “␣is”, position 15 (60 %)"
    assert heads.words(0, 0) == "Layer 0, head 0: most on “The”, position 0 (60 %)"


def test_only_what_is_wanted_is_shown() -> None:
    looking = Looking(spot=Spot(0, 19)).of_choice(Choice(3, 2)).begun()
    assert looking.answered(attended(ONE_TOKEN, number=7)) is looking, "of an earlier question"
    found = looking.answered(attended(ONE_TOKEN, number=looking.number))
    assert (found.running, found.shown.choice) == (False, Choice(3, 2))
    assert looking.failed(Attend(ONE_TOKEN, 7), "No.") is looking
    assert looking.failed(Attend(ONE_TOKEN, looking.number), "No.").problem == "No."
    gone = found.forgotten()
    assert gone.shown is None
    assert gone.answered(attended(ONE_TOKEN, number=found.number)) is gone, "of the chat before"


def test_a_layer_or_head_that_the_result_has_not_is_not_chosen() -> None:
    looking = Looking().of_choice(Choice(1, 9)).begun().answered(attended(ONE_TOKEN, number=1))
    assert looking.choice == Choice()
    assert looking.of_choice(Choice(3, N_HEADS)).choice == Choice(3)
    other = looking.shown.attended
    few = replace(other.layers[0], weights=other.layers[0].weights[:2], elsewhere=other.layers[0].elsewhere[:2])
    looking = looking.begun().answered(replace(other, number=2, layers=(few, other.layers[1])))
    assert looking.of_choice(Choice(3, 5)).choice == Choice(3, 5)
    assert looking.of_choice(Choice(3, 5)).of_choice(Choice(0, 5)).choice == Choice(0), "layer 0 has two heads"
    heads = Heads(replace(other, layers=(few, other.layers[1])), TEXTS)
    assert (picture(heads, Tiles(N_HEADS, 2, 4, 3), 48)[:3, 10:] == 48).all(), (
        "of heads that it has not nothing is drawn"
    )
    assert heads.words(0, 5) == "Layer 0, head 5: this layer has 2 heads"
