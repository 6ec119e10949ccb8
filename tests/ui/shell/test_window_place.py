"""Where the window goes: on a screen that is there, whole, with its frame."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk.settings import Settings, WindowPlace
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.shell.window_place import fitted
from kvdesk.ui.widgets.controls import FRAME

LAPTOP, BESIDE = QRect(0, 0, 1280, 800), QRect(1280, 0, 1920, 1080)


@pytest.mark.parametrize("screen", [LAPTOP, QRect(0, 27, 1024, 573), QRect(0, 0, 800, 600), BESIDE])
def test_a_first_window_is_inside_of_its_screen_with_its_frame(screen: QRect) -> None:
    size, at = fitted(WindowPlace(), [screen])
    assert at is None
    outer = QRect(QPoint(), size).marginsAdded(FRAME).size()
    assert outer.boundedTo(screen.size()) == outer
    assert size.boundedTo(QSize(1280, 800)) == size


@pytest.mark.parametrize(
    ("place", "screens", "expected"),
    [
        ((1400, 50, 1000, 700), [LAPTOP, BESIDE], (1000, 700, QPoint(1400, 50))),
        ((1400, 50, 1000, 700), [LAPTOP], (1000, 700, None)),  # its screen is gone
        ((1400, 50, 1900, 1040), [LAPTOP], (1272, 764, None)),
        ((900, 300, 1000, 700), [LAPTOP], (1000, 700, QPoint(272, 64))),  # over the edge: inside again
        ((0, -500, 1000, 700), [LAPTOP], (1000, 700, None)),  # no hand reaches its title bar
        ((-20, 0, 1272, 764), [LAPTOP], (1272, 764, QPoint(0, 0))),
    ],
)
def test_a_window_comes_back_where_it_can_be_reached(
    place: tuple[int, int, int, int], screens: list[QRect], expected: tuple[int, int, QPoint | None]
) -> None:
    x, y, width, height = place
    size, at = fitted(WindowPlace(x=x, y=y, width=width, height=height), screens)
    assert (size.width(), size.height(), at) == expected


def test_size_and_panes_are_told_and_come_back(window: MainWindow, qtbot: QtBot) -> None:
    changed: list[frozenset[str]] = []
    store = window.session.settings
    store.listen(changed.append)
    window.resize(1100, 700)
    window._panes.setSizes([250, 450, 400])
    window._panes.splitterMoved.emit(250, 1)
    qtbot.waitUntil(lambda: frozenset({"window"}) in changed)
    place = store.current.window
    assert (place.width, place.height) == (1100, 700)
    sizes = window._panes.sizes()
    assert (place.sidebar_width, place.inspector_width) == (sizes[0], sizes[2])
    assert Settings.model_validate_json(Settings(window=place).model_dump_json()).window == place
    store.change(inspector_visible=False)
    window.close()
    assert store.current.window.inspector_width == sizes[2], "folded away it keeps its width"


def test_panes_of_a_large_screen_leave_room_for_the_chat_on_a_small_one(window: MainWindow) -> None:
    window.set_place(WindowPlace(width=2560, height=1400, sidebar_width=320, inspector_width=1000))
    window.resize(1280, 800)
    sidebar, chat, inspector = window._panes.sizes()
    assert chat > inspector > sidebar


def test_a_first_window_is_whole_on_a_small_screen(qapp: QApplication, qtbot: QtBot) -> None:
    """The screen of these tests has 800 x 800 pixels."""
    window = MainWindow(qapp)
    qtbot.addWidget(window)
    window.session.settings.change(**dict(Settings(all_instruments=True)))
    window.set_place(WindowPlace())
    window.show()
    qtbot.waitExposed(window)
    screen = window.screen().availableGeometry().size()
    assert window.size().grownBy(FRAME).boundedTo(screen) == window.size().grownBy(FRAME)
    corner = window.status.mapTo(window, window.status.rect().bottomRight())
    assert window.rect().contains(corner)


def test_a_narrow_window_loses_the_chats_and_gets_them_again(window: MainWindow, qtbot: QtBot) -> None:
    window.session.settings.change(**dict(Settings(all_instruments=True)))
    for width, is_hidden in ((1100, False), (892, True), (1100, False)):
        window.resize(width, 564)
        qtbot.waitUntil(lambda: window.conversations.isHidden() == is_hidden)  # noqa: B023
        assert window.width() == width, "nothing in it is wider"
        assert window.inspector.isVisible()


def test_a_narrow_screen_has_the_chats_or_the_cache_beside_the_text(window: MainWindow) -> None:
    """The screen of these tests is 800 pixels wide."""
    window.session.settings.change(**dict(Settings(sidebar_visible=False)))
    window.set_place(WindowPlace(width=790, height=560))
    window.session.settings.change(**dict(Settings()))
    assert (window.conversations.isHidden(), window.inspector.isHidden()) == (True, False)
    assert window.minimumSizeHint().width() <= 790
    window.shown_settings.toggle_sidebar()
    assert (window.conversations.isHidden(), window.inspector.isHidden()) == (False, True)
    window.shown_settings.toggle_inspector()
    assert (window.conversations.isHidden(), window.inspector.isHidden()) == (True, False)


class Shifting(MainWindow):
    """Under a window manager that adds its frame to each place that is asked for."""

    def move(self, *place: Any) -> None:
        (at,) = place
        super().move(at + QPoint(4, 5))


def test_a_window_does_not_drift_from_start_to_start(qapp: QApplication, qtbot: QtBot) -> None:
    """The screen of these tests has 800 x 800 pixels."""
    place = WindowPlace(x=30, y=40, width=600, height=500)
    window = Shifting(qapp)
    qtbot.addWidget(window)
    window.set_place(place)
    window.show()
    qtbot.waitUntil(lambda: window._placement._put is not None)
    now = window._placement.now()
    assert (now.x, now.y) == (30, 40)
    window.move(QPoint(60, 70))
    now = window._placement.now()
    assert (now.x, now.y) == (64, 75), "a person moved it"


def test_the_chat_grows_when_the_chats_are_hidden(window: MainWindow) -> None:
    window.resize(1280, 800)
    QApplication.processEvents()
    sidebar, chat, inspector = window._panes.sizes()
    window.shown_settings.toggle_sidebar()
    QApplication.processEvents()
    assert window._panes.sizes()[2] == inspector
    assert window._panes.sizes()[1] >= chat + sidebar
    window.shown_settings.toggle_sidebar()
    QApplication.processEvents()
    assert window._panes.sizes()[2] == inspector
