"""Where the window goes: on a screen that is there, whole, with its frame."""

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk.session import Store
from kvdesk.settings import Settings, WindowPlace
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.sizes import FRAME


def opened(qapp: QApplication, qtbot: QtBot, settings: Settings) -> MainWindow:
    window = MainWindow(qapp, Store(settings))
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    return window


def test_size_and_panes_are_told_and_come_back(window: MainWindow, qapp: QApplication, qtbot: QtBot) -> None:
    changed: list[frozenset[str]] = []
    store = window.store.settings
    store.listen(changed.append)
    window.resize(1100, 700)
    window.panes.setSizes([250, 450, 400])
    window.panes.splitterMoved.emit(250, 1)
    qtbot.waitUntil(lambda: frozenset({"window"}) in changed)
    sizes = window.panes.sizes()
    store.change(inspector_visible=False)
    window.close()
    place = store.current.window
    assert Settings.model_validate_json(Settings(window=place).model_dump_json()).window == place

    again = opened(qapp, qtbot, Settings(window=place))
    assert again.height() == 700
    again.store.settings.change(inspector_visible=True)
    again.resize(1100, 700)
    QApplication.processEvents()
    assert again.panes.sizes() == sizes, "folded away they keep their widths"


def test_panes_of_a_large_screen_leave_room_for_the_chat_on_a_small_one(window: MainWindow) -> None:
    window.resize(2560, 1400)
    window.panes.setSizes([320, 1240, 1000])
    state = window.panes.saveState()
    window.resize(1280, 800)
    window.panes.restoreState(state)
    _sidebar, chat, inspector = window.panes.sizes()
    assert chat >= window.chat.minimumWidth()
    assert inspector >= window.inspector.minimumWidth()


def test_a_window_on_a_screen_that_is_gone_is_placed_on_one_that_exists(qapp: QApplication, qtbot: QtBot) -> None:
    window = opened(qapp, qtbot, Settings())
    window.setGeometry(5000, 3000, 600, 500)
    window._placement.keep()
    again = opened(qapp, qtbot, window.store.settings.current)
    assert again.screen().availableGeometry().contains(again.geometry())


def test_a_place_kept_by_an_earlier_version_counts(qapp: QApplication, qtbot: QtBot) -> None:
    place = WindowPlace(x=20, y=30, width=760, height=600, sidebar_width=0, inspector_width=300)
    window = opened(qapp, qtbot, Settings(window=place, all_instruments=True))
    assert (window.height(), window.pos().x(), window.pos().y()) == (600, 20, 30)
    window.close()
    kept = window.store.settings.current.window
    assert kept.geometry
    assert kept.width == 0, "Qt's own words are all that is kept"


def test_a_damaged_place_is_the_first_one(qapp: QApplication, qtbot: QtBot) -> None:
    window = opened(qapp, qtbot, Settings(window=WindowPlace(geometry="?", panes="ä")))
    assert window.size() == opened(qapp, qtbot, Settings()).size()


def test_a_first_window_is_whole_on_a_small_screen(qapp: QApplication, qtbot: QtBot) -> None:
    """The screen of these tests has 800 x 800 pixels."""
    window = opened(qapp, qtbot, Settings(all_instruments=True))
    screen = window.screen().availableGeometry().size()
    assert window.size().grownBy(FRAME).boundedTo(screen) == window.size().grownBy(FRAME)
    corner = window.status.mapTo(window, window.status.rect().bottomRight())
    assert window.rect().contains(corner)


def test_a_window_without_room_for_both_begins_with_the_chat(qapp: QApplication, qtbot: QtBot) -> None:
    """Whatever was shown when it had more room."""
    for instruments in (False, True):
        window = opened(qapp, qtbot, Settings(all_instruments=instruments, zoom=200))
        panes = window.chat, window.inspector
        assert [pane.isVisible() for pane in panes] == [True, False]
        window.action_set.run("view.inspector")
        assert [pane.isVisible() for pane in panes] == [False, True], "it was asked for"
        window.action_set.run("chat.write")
        assert [pane.isVisible() for pane in panes] == [True, False]
        assert window.store.settings.current.inspector_visible, "beside the chat where there is room"


def test_a_narrow_window_loses_the_chats_and_gets_them_again(window: MainWindow, qtbot: QtBot) -> None:
    window.store.settings.change(**dict(Settings(all_instruments=True)))
    for width, is_hidden in ((1100, False), (892, True), (1100, False)):
        window.resize(width, 564)
        qtbot.waitUntil(lambda: window.conversations.isHidden() == is_hidden)  # noqa: B023
        assert window.width() == width, "nothing in it is wider"
        assert window.inspector.isVisible()


def test_a_narrow_screen_has_the_chats_or_the_cache_beside_the_text(window: MainWindow) -> None:
    """The screen of these tests is 800 pixels wide."""
    window.store.settings.change(**dict(Settings(sidebar_visible=False)))
    window.resize(790, 560)
    window.store.settings.change(**dict(Settings()))
    assert (window.conversations.isHidden(), window.inspector.isHidden()) == (True, False)
    assert window.minimumSizeHint().width() <= 790
    window.shown_settings.toggle_sidebar()
    assert (window.conversations.isHidden(), window.inspector.isHidden()) == (False, True)
    window.shown_settings.toggle_inspector()
    assert (window.conversations.isHidden(), window.inspector.isHidden()) == (True, False)


def test_the_chat_grows_when_the_chats_are_hidden(window: MainWindow) -> None:
    window.resize(1280, 800)
    QApplication.processEvents()
    sidebar, chat, inspector = window.panes.sizes()
    window.shown_settings.toggle_sidebar()
    QApplication.processEvents()
    assert window.panes.sizes()[2] == inspector
    assert window.panes.sizes()[1] >= chat + sidebar
    window.shown_settings.toggle_sidebar()
    QApplication.processEvents()
    assert window.panes.sizes()[2] == inspector
