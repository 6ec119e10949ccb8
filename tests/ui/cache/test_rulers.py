import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.cache.snapshot import SeqId, SequenceSpan
from kvdesk.message import ConversationId
from kvdesk.protocol.operations import BatchRefused
from kvdesk.ui.cache.rulers import Ruler, Rulers, _places
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import replace
from kvdesk.viewmodel.cells.ruler_row import RulerRow
from tests.ui.samples import cache_view

SENTENCE = "Sequence 0 ends at position 312 (X); the batch began at 340 (Y). It must begin at Y = X + 1 = 313."


def row(seq_id: int, *held: tuple[int, int]) -> RulerRow:
    positions = np.concatenate([np.arange(a, b, dtype=np.int32) for a, b in held])
    span = SequenceSpan(SeqId(seq_id), held[0][0], held[-1][1] - 1, len(positions), 0)
    return RulerRow(f"Chat {seq_id}", seq_id, span, positions)


@pytest.fixture
def rulers(theme: Theme, qtbot: QtBot) -> Rulers:
    rulers = Rulers(theme)
    qtbot.addWidget(rulers)
    rulers.resize(420, 300)
    rulers.show()
    rulers.show_rows((row(0, (0, 100), (120, 313)), row(1, (0, 40))), 4096)
    return rulers


def refused(y: int = 340) -> BatchRefused:
    return BatchRefused(0, 312, y, SENTENCE)


def test_holes_and_the_next_legal_position_are_said(rulers: Rulers) -> None:
    first = rulers.rows[0]
    assert (first.range_text, first.next_text, first.holes) == ("0–99, 120–312 (293)", "313", ((100, 120),))
    assert "20 missing between: [100, 120)" in first.tip
    assert "next valid position 313" in first.tip
    assert rulers.accessibleDescription() == "Chat 0: 0–99, 120–312 (293); Chat 1: 0–39"


def test_many_holes_are_cut_short() -> None:
    held = [(10 * n, 10 * n + (1 if n == 1 else 5)) for n in range(8)]
    assert row(0, *held).range_text == "0–4, 10, 20–24, 30–34, 40–44, 50–54, … (36)"


def test_rulers_share_a_scale_that_grows_in_even_steps(rulers: Rulers) -> None:
    assert rulers._heading._scale == 400
    rulers.show_rows((row(0, (0, 4096)),), 4096)
    assert rulers._heading._scale == 4096


@pytest.mark.usefixtures("styled")
def test_what_is_drawn(rulers: Rulers, theme: Theme) -> None:
    ruler = rulers._rulers[0]
    image = ruler.grab().toImage()
    middle = ruler.height() // 2
    drawn = {image.pixelColor(x, middle).name() for x in range(ruler.width())}
    assert theme.conversation_colour(0).name() in drawn
    assert theme.colours.panel in drawn or theme.colours.window in drawn
    assert theme.colours.text in drawn, "the next valid position"
    left, width, *_ = _places(theme, ruler.width(), ruler._range_px)
    hole = round(left + width * 110 / 400)
    assert image.pixelColor(hole, middle - 3).name() != theme.conversation_colour(0).name(), "a gap in the bar"


def test_a_refused_batch_stands_under_its_ruler_with_both_numbers(rulers: Rulers, qtbot: QtBot) -> None:
    rulers.show_refused(refused())
    (note,) = tuple(rulers._notes.values())
    assert note.event_shown.sentence == SENTENCE
    assert note.scale.accessibleName() == "X 312, next valid position 313, Y 340"
    assert rulers._column.indexOf(note) == rulers._column.indexOf(rulers._rulers[0]) + 1
    assert note.close_button.focusPolicy() & Qt.FocusPolicy.TabFocus
    qtbot.keyClick(note.close_button, Qt.Key.Key_Space)
    assert tuple(rulers._notes.values()) == ()


@pytest.mark.parametrize("y", [340, 314, 313 + 4000, 312, 5, 0])
def test_x_and_y_are_always_in_sight(rulers: Rulers, y: int) -> None:
    rulers.show_refused(refused(y))
    begin, end = next(iter(rulers._notes.values())).scale.span
    assert begin < 312 < 313 < end
    assert begin < y + 0.5 < end
    rulers.grab()


def test_it_stays_until_the_sequence_changes(rulers: Rulers) -> None:
    rulers.show_rows((row(0, (0, 200)),), 4096)  # a view from before: another is under way
    rulers.show_refused(refused())
    rulers.show_rows((row(0, (0, 200)),), 4096)
    assert tuple(rulers._notes.values())
    rulers.show_rows((row(0, (0, 313)), row(1, (0, 41))), 4096)
    assert tuple(rulers._notes.values()), "another sequence changed"
    rulers.show_rows((row(0, (0, 314)), row(1, (0, 41))), 4096)
    assert not tuple(rulers._notes.values())


def test_a_sequence_without_cells_can_be_refused_too(rulers: Rulers) -> None:
    rulers.show_refused(BatchRefused(5, -1, 3, "Sequence 5 is empty: the batch must begin at 0."))
    rulers.show_refused(BatchRefused(5, -1, 4, "Again."))
    assert [note.event_shown.sentence for note in rulers._notes.values()] == ["Again."]
    rulers.show_rows((row(5, (0, 1)),), 4096)
    assert not tuple(rulers._notes.values())


def test_rulers_are_reached_by_key_and_gone_when_empty(rulers: Rulers) -> None:
    shown = [ruler for ruler in rulers.findChildren(Ruler) if ruler.isVisible()]
    assert [ruler.accessibleName() for ruler in shown] == [
        "Positions of Chat 0: 0–99, 120–312 (293)",
        "Positions of Chat 1: 0–39",
    ]
    assert all(ruler.focusPolicy() & Qt.FocusPolicy.TabFocus for ruler in shown)
    rulers.show_rows((), 4096)
    assert not any(ruler.isVisible() for ruler in rulers.findChildren(Ruler))


def test_the_ruler_of_a_request_names_its_program(window: MainWindow, qtbot: QtBot) -> None:
    view = cache_view()
    asked = replace(view.leases[1], conversation=ConversationId("request"), client="editor/2.1")
    window.store.apply(replace(view, leases=(view.leases[0], asked)))
    qtbot.waitUntil(
        lambda: [row.name for row in window.inspector.cache.instruments.rulers.rows][1:] == ["request of editor/2.1"]
    )


def test_the_window_leads_the_event_to_the_rulers(window: MainWindow) -> None:
    window.store.apply(cache_view())
    window.store.apply(BatchRefused(0, 179, 200, "It must begin at 180."))
    assert [note.event_shown.sentence for note in window.inspector.cache.instruments.rulers._notes.values()] == [
        "It must begin at 180."
    ]
