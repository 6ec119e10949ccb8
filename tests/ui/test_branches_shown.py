"""Branches of one chat are told apart wherever their cells are shown: by a shade of its colour and by a number."""

from itertools import pairwise

import pytest
from PySide6.QtCore import Qt

from kvdesk.cache.snapshot import SeqId
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import CacheView, Lease
from kvdesk.ui.map.colours import N_PAGE_OWNERS, ColourBy, colour_table
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.colours import DARK, LIGHT, Colours
from kvdesk.values import replace
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.cells.ruler_row import RulerRow, empty_row, together
from tests.ui.samples import CONVERSATIONS, ONE, TWO, cache_view

THREE = (Lease(ONE, 0, branch=3), Lease(TWO, 1), Lease(ONE, 2, inactive=True), Lease(ONE, 3, inactive=True, branch=2))


def three_branches() -> CacheView:
    runs = ((0, 20, (0,), 0, 1), (20, 40, (1,), 0, 2), (40, 60, (2,), 0, 3), (60, 80, (3,), 0, 4))
    return replace(cache_view(runs=runs), leases=THREE)


@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_branches_differ_in_grey_and_stand_out_from_free_cells(colours: Colours) -> None:
    for colour in range(palette.N_COLOURS):
        shades = [
            palette.branch_colour(palette.branch_index(colour, n), colours.panel, colours.text, colours.dark)
            for n in range(1, 7)
        ]
        assert shades[0] == palette.conversation_colour(colour, colours.dark)
        by_light = sorted(shades, key=lambda shade: palette.contrast(shade, "#000000"))
        assert all(palette.contrast(a, b) >= 1.35 for a, b in pairwise(by_light))
        assert all(palette.contrast(shade, colours.cell_span) >= 1.2 for shade in shades)


def test_the_map_has_a_colour_for_every_branch_of_every_colour() -> None:
    for mode, n in (
        (ColourBy.CONVERSATION, 1 + palette.N_COLOURS * palette.N_BRANCH_SHADES),
        (ColourBy.PAGE, 2 * (1 + N_PAGE_OWNERS)),
    ):
        table = colour_table(mode, DARK)
        assert 8 + 4 * n <= len(table)
        assert len({int(colour) for colour in table[8 : 8 + 4 * n : 4]}) >= n - 1


def test_rulers_map_list_and_legend_tell_branches_apart(window: MainWindow) -> None:
    window.store.apply(three_branches())
    window.store.count()
    title = CONVERSATIONS[0].title
    rows = window.inspector.cache.instruments.rulers.rows
    assert [(row.name, row.span.seq_id, row.follows) for row in rows] == [
        (f"{title}, sequence 2", 2, False),
        (f"{title}, sequence 3", 3, True),
        (f"{title}, sequence 0", 0, True),
        (CONVERSATIONS[1].title, 1, False),
    ]
    assert len({row.colour for row in rows}) == 4
    scene = window.inspector.cache.map._scene
    assert scene.titles[3] == f"{title}, sequence 3"
    assert [scene.colours[seq] for seq in (2, 3, 0)] == [palette.branch_index(0, n) for n in (1, 2, 3)]
    assert "sequence 2, 3, 0, free" in window.inspector.cache._legend.accessibleDescription()
    index = window.conversations._model.index_of(ONE)
    assert "3 branches" in index.data(Qt.ItemDataRole.AccessibleTextRole)
    assert "3 branches are in the cache" in index.data(Qt.ItemDataRole.ToolTipRole)
    window.store.apply(replace(three_branches(), leases=THREE[1:3]))
    window.store.count()
    assert [row.name for row in window.inspector.cache.instruments.rulers.rows if row.span.seq_id == 2] == [title], (
        "alone, it needs no number"
    )
    assert "branches" not in window.conversations._model.index_of(ONE).data(Qt.ItemDataRole.AccessibleTextRole)


def test_branches_stand_below_each_other_by_number() -> None:
    def row(seq_id: int, conversation: str, branch: int = 0) -> RulerRow:
        span = replace(empty_row("t", 0).span, seq_id=SeqId(seq_id))
        return replace(empty_row("t", 0), span=span, conversation=ConversationId(conversation), branch=branch)

    rows = together([row(0, "a", 2), row(1, "b"), row(2, "a", 10), row(3, ""), row(4, "a", 1), row(5, "")])
    assert [(r.span.seq_id, r.follows) for r in rows] == [
        (4, False),
        (0, True),
        (2, True),
        (1, False),
        (3, False),
        (5, False),
    ]
