import pytest
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from kvdesk.cache.snapshot import CacheMap
from kvdesk.protocol.cache import CacheView
from kvdesk.ui.map import raster
from kvdesk.ui.map.colours import N_STEPS, ColourBy, Scene, scales_of
from kvdesk.ui.map.frame import make_frame, strips_of
from kvdesk.ui.map.legend import CellLegend
from kvdesk.ui.map.legend_entries import MapLegend, key_of
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.palette import branch_index
from tests.ui.samples import cache_view


def key(mode: ColourBy, view: CacheView) -> MapLegend:
    return key_of(make_frame(view, strips_of(view, 400, 1.0), Scene(mode), (0, 0)), view.snapshot)


def words(found: MapLegend) -> list[str]:
    return [entry.words for entry in found.entries]


def test_the_key_names_what_the_map_can_show() -> None:
    whole = cache_view(runs=((0, 10, (0,), 0, 0),))
    marks = ["free", "free, read too", "just written", "shared", "head", "read to here"]
    assert words(key(ColourBy.CONVERSATION, whole)) == marks
    view = cache_view()
    assert words(key(ColourBy.CONVERSATION, view)) == [*marks[:2], "hole", *marks[2:]]
    assert "shared" not in words(key(ColourBy.SEQUENCES, view)), "the colour says it"
    window = CacheMap("window", view.snapshot.maps[0].streams, 8)
    snapshot = view.snapshot.__class__(
        **{name: getattr(view.snapshot, name) for name in view.snapshot.__slots__ if name != "maps"},
        maps=(view.snapshot.maps[0], window),
    )
    assert "overwritten next" in words(key(ColourBy.CONVERSATION, CacheView(snapshot, view.leases)))


@pytest.mark.parametrize("mode", list(ColourBy))
def test_every_mode_fits_into_three_lines_of_a_narrow_pane(mode: ColourBy, theme: Theme, qtbot: QtBot) -> None:
    legend = CellLegend(theme)
    qtbot.addWidget(legend)
    legend.show_key(key(mode, cache_view()))
    legend.resize(336, legend.heightForWidth(336))
    assert legend.height() < 4 * legend.fontMetrics().lineSpacing()
    assert mode.value.lower() in legend.accessibleDescription()
    picture = legend.grab().toImage()
    inks = {
        picture.pixelColor(x, y).name() for x in range(0, picture.width(), 3) for y in range(0, picture.height(), 3)
    }
    assert QColor(theme.colours.cell_span).name() in inks


def colours_of(found: MapLegend, words: str) -> list[int]:
    """The groups of a swatch."""
    entry = next(entry for entry in found.entries if entry.words == words)
    return [(code - raster.FIRST_GROUP) // raster.N_SHADES for code in entry.codes]


def test_marks_are_shown_in_the_colours_of_the_chats_that_are_there() -> None:
    view, orange, green = cache_view(), 1, 2
    scene = Scene(colours={0: branch_index(orange, 1), 3: branch_index(orange, 4), 1: branch_index(green, 1)})
    found = key_of(make_frame(view, strips_of(view, 400, 1.0), scene, (0, 0)), view.snapshot)
    assert colours_of(found, "shared") == [1 + orange, 1 + green]
    assert colours_of(found, "sequence 0") == [1 + branch_index(orange, 1)], "of the chat that has branches"
    assert colours_of(found, "3") == [1 + branch_index(orange, 4)]
    assert all(entry.words != "1" for entry in found.entries), "another chat has one branch only"


def test_the_scale_of_ages_ends_soon_after_the_oldest_cell() -> None:
    view = cache_view(operation=1_606, runs=((0, 10, (0,), 0, 6), (10, 20, (0,), 10, 1_600)))
    assert scales_of(view.snapshot, ColourBy.AGE).age == 2_000
    frame = make_frame(view, strips_of(view, 400, 1.0), Scene(ColourBy.AGE), (0, 0))
    codes = frame.strips[0].layer(0, 11).code
    old, young = int(codes[0]), int(codes[10])
    assert (young - old) // raster.N_SHADES > N_STEPS // 2, "told apart over the whole scale"
