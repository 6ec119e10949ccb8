"""The tour of the first start: it points at what is really there, and is left at any moment."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from pytestqt.qtbot import QtBot

from kvdesk.settings import Settings, ThemeChoice
from kvdesk.ui.shell.introduction import Introduction, placed
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.samples import ONE, STATS, cache_view, message, show_messages

AREA = QRect(0, 0, 800, 600)


@pytest.fixture
def tour(window: MainWindow, qtbot: QtBot) -> Introduction:
    """A window in use, and its tour, started by the person."""
    window.store.apply(cache_view())
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "Hello to you.", stats=STATS)))
    window.activateWindow()
    window.action_set.run("help.tour")
    tour = window.help.introduction
    assert tour is not None
    qtbot.waitUntil(tour.isVisible)
    return tour


def test_six_steps_point_at_the_real_parts(window: MainWindow, tour: Introduction, qtbot: QtBot) -> None:
    found = []
    for n in range(6):
        assert tour._at == n
        target = tour.target
        found.append(target)
        about = QRect(target.mapTo(window, QPoint()), target.size())
        assert window.rect().contains(tour.geometry())
        if n != 2:  # a map may leave no room beside it
            assert not tour.geometry().intersects(about)
        qtbot.keyClick(tour.next_button, Qt.Key.Key_Space)
    assert tour.isHidden()
    composer, stats, cells, menu, model, lab = found
    assert composer is window.chat.composer
    assert stats.objectName() == "answerStats"
    assert cells is window.inspector.cell_map
    assert [w.objectName() for w in (menu, model, lab)] == ["menuButton", "modelButton", "labButton"]


def test_what_a_step_asks_for_brings_the_next(window: MainWindow, tour: Introduction, qtbot: QtBot) -> None:
    edit = window.chat.composer.edit
    edit.setFocus()
    qtbot.keyClicks(edit, "Hello")
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert tour._at == 1
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "", "streaming")))
    assert tour.target is window.chat.view.widgets[-1], "its cost is not known yet"
    assert not tour.geometry().intersects(QRect(edit.mapTo(window, QPoint()), edit.size()))
    qtbot.keyClicks(edit, "And?")
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert tour._at == 1, "it asks for nothing"


def test_enter_goes_on(window: MainWindow, tour: Introduction, qtbot: QtBot) -> None:
    for n in range(1, 3):
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Return)
        assert tour._at == n
    tour.back_button.setFocus()
    qtbot.keyClick(tour.back_button, Qt.Key.Key_Return)
    assert tour._at == 1
    edit = window.chat.composer.edit
    edit.setFocus()
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert tour._at == 2, "nothing is typed"
    tour.leave()
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert tour.isHidden()


def test_an_empty_chat_has_no_step_about_an_answer(window: MainWindow, tour: Introduction) -> None:
    show_messages(window, ONE, ())
    tour.next_button.click()
    assert tour._title.text() == "The cell map"
    tour.back_button.click()
    assert tour._title.text() == "Write a message"


def test_one_goes_back(tour: Introduction, qtbot: QtBot) -> None:
    assert not tour.back_button.isVisible()
    qtbot.mouseClick(tour.next_button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(tour.back_button, Qt.MouseButton.LeftButton)
    assert tour._at == 0


def test_escape_leaves_it_at_any_step(window: MainWindow, tour: Introduction, qtbot: QtBot) -> None:
    for n in range(6):
        window.action_set.run("help.tour")
        assert tour.isVisible()
        for _ in range(n):
            tour.next_button.click()
        assert tour._at == n
        qtbot.keyClick(window, Qt.Key.Key_Escape)
        assert tour.isHidden()
        assert window.focusWidget() is window.chat.composer.edit


def test_hidden_parts_are_not_pointed_at(window: MainWindow, tour: Introduction) -> None:
    window.store.settings.change(
        **dict(Settings(theme=ThemeChoice.DARK, inspector_visible=False, sidebar_visible=False))
    )
    names = []
    for _ in range(6):
        target = tour.target
        names.append(target.objectName() if target is not None else None)
        tour.next_button.click()
    assert names[2] == "inspectorButton"
    assert names[5] == "sidebarButton"


def test_at_the_first_start_one_can_type_at_once(
    window: MainWindow, qtbot: QtBot, record: Callable[[object], list[tuple[object, ...]]]
) -> None:
    sent = record(window.commands.conversations.send)
    window.help.start_tour()
    assert window.store.settings.current.tour_seen
    qtbot.keyClicks(window.focusWidget(), "Hello")
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Return)
    assert sent == [(ONE, "Hello")]
    tour = window.help.introduction
    assert tour.isVisible()
    qtbot.mouseClick(tour.next_button, Qt.MouseButton.LeftButton)
    assert window.chat.composer.edit.hasFocus()


@pytest.mark.parametrize(
    "about", [QRect(300, 250, 200, 40), QRect(0, 0, 60, 30), QRect(740, 570, 60, 30), QRect(0, 520, 800, 80)]
)
def test_the_card_lies_beside_what_it_is_about(about: QRect) -> None:
    box = placed(QSize(340, 140), about, AREA)
    assert AREA.contains(box)
    assert not box.intersects(about)


def test_where_there_is_no_room_it_stays_in_the_window() -> None:
    assert AREA.contains(placed(QSize(340, 140), AREA, AREA))
