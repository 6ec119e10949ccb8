"""The size of the window's text and all around it: by keys, and kept. `test_nothing_cut.py` looks at twice the size."""

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from kvdesk.chat import QueuedMessage
from kvdesk.message import Attachment
from kvdesk.settings import Settings, ThemeChoice
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.colours import DARK, LIGHT
from kvdesk.values import replace
from tests.ui.samples import CONVERSATIONS, ONE, STATS, cache_view, message, show_messages, update_message

CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def used(window: MainWindow) -> MainWindow:
    window.store.apply(cache_view())
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "Hello to you.", stats=STATS)))
    window.activateWindow()
    return window


@pytest.mark.usefixtures("unstyled")
def test_keys_make_everything_larger_and_smaller(used: MainWindow, qtbot: QtBot) -> None:
    zooms: list[int] = []
    used.store.settings.listen(lambda _changed: zooms.append(used.store.settings.current.zoom))
    theme, edit = used.theme, used.chat.composer.edit
    px = theme.text.pixelSize()
    for key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
        qtbot.keyClick(edit, key, CONTROL)
    assert zooms == [110, 125]
    assert theme.text.pixelSize() == round(1.25 * px)
    qtbot.keyClick(edit, Qt.Key.Key_Minus, CONTROL)
    assert used.store.settings.current.zoom == 110
    qtbot.keyClick(edit, Qt.Key.Key_0, CONTROL)
    assert (used.store.settings.current.zoom, theme.text.pixelSize()) == (100, px)


@pytest.mark.usefixtures("unstyled")
def test_the_zoom_has_ends(used: MainWindow) -> None:
    for _ in range(20):
        used.action_set.run("view.zoom_in")
    assert used.store.settings.current.zoom == 200
    for _ in range(20):
        used.action_set.run("view.zoom_out")
    assert used.store.settings.current.zoom == 50


@pytest.mark.usefixtures("unstyled")
def test_settings_that_were_kept_are_shown(used: MainWindow) -> None:
    px = used.theme.system_px
    used.store.settings.change(**dict(Settings(theme=ThemeChoice.DARK, zoom=150, font_px=px + 2)))
    assert used.theme.text.pixelSize() == round(1.5 * (px + 2))
    used.action_set.run("view.larger_text")
    assert used.store.settings.current.font_px == px + 3
    used.action_set.run("view.default_text")
    assert used.store.settings.current.font_px == 0


@pytest.mark.usefixtures("unstyled")
def test_themes_are_actions(used: MainWindow) -> None:
    used.action_set.run("view.theme_light")
    assert (used.theme.colours, used.store.settings.current.theme) == (LIGHT, ThemeChoice.LIGHT)
    used.action_set.run("view.theme_dark")
    assert used.theme.colours is DARK
    used.action_set.run("view.theme_system")
    assert used.store.settings.current.theme is ThemeChoice.SYSTEM


def test_at_twice_the_size_the_chat_is_seen_and_the_inspector_on_demand(used: MainWindow, qtbot: QtBot) -> None:
    used.store.settings.change(**dict(Settings(theme=ThemeChoice.DARK, zoom=200)))
    assert used.chat.isVisible()
    assert not used.inspector.isVisible()
    qtbot.keyClick(used.chat.composer.edit, Qt.Key.Key_I, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    assert used.inspector.isVisible()
    assert not used.chat.isVisible()
    qtbot.keyClick(used, Qt.Key.Key_I, CONTROL)
    assert used.chat.isVisible()
    for key in (Qt.Key.Key_N, Qt.Key.Key_L):
        used.action_set.run("view.instruments")
        assert not used.chat.isVisible()
        qtbot.keyClick(used, key, CONTROL)
        assert used.chat.isVisible()
        assert used.chat.composer.edit.hasFocus()


def test_without_room_for_both_the_chats_are_listed_in_the_chats_place(used: MainWindow, qtbot: QtBot) -> None:
    used.store.show_conversations(CONVERSATIONS, ONE)
    used.resize(900, 700)
    used.store.settings.change(zoom=200, inspector_visible=False)
    chat, chats = used.chat, used.conversations
    qtbot.waitUntil(lambda: chats.isHidden() and chat.width() == used.width())
    row = chats.view.visualRect(chats.view.model().index(0, 0)).center()
    leave = (
        lambda: qtbot.mouseClick(chats.view.viewport(), Qt.MouseButton.LeftButton, pos=row),
        lambda: qtbot.keyClick(chats.view, Qt.Key.Key_Return),
        lambda: qtbot.keyClick(chats.view, Qt.Key.Key_Escape),
        lambda: qtbot.keyClick(chats.view, Qt.Key.Key_A),
    )
    for go_on in leave:
        qtbot.keyClick(used, Qt.Key.Key_B, CONTROL)
        assert (chats.isVisible(), chat.isVisible()) == (True, False)
        assert chats.view.hasFocus()
        go_on()
        assert (chats.isVisible(), chat.isVisible()) == (False, True)
        assert chat.composer.edit.hasFocus()
    assert chat.composer.text == "a"
    used.resize(1400, 700)
    qtbot.waitUntil(chats.isVisible)
    assert chat.isVisible()


@pytest.mark.parametrize("search", ["chat.search", "view.sidebar"])
def test_the_chats_come_in_place_of_the_parameters_without_room_for_both(used: MainWindow, search: str) -> None:
    used.resize(900, 700)
    used.store.settings.change(inspector_visible=False)
    used.action_set.run("chat.parameters")
    assert used.conversations.isHidden()
    used.action_set.run(search)
    assert used.conversations.isVisible()
    assert used.chat.isVisible()
    assert not used.panes.shows_parameters


def test_the_panes_beside_the_chat_grow_with_the_text_and_come_back(used: MainWindow, qtbot: QtBot) -> None:
    used.resize(1800, 900)
    panes = used.panes
    panes.setSizes([200, panes.width() - 660, 460])
    panes.splitterMoved.emit(200, 1)  # a person did
    before = panes.sizes()
    used.rooms.show_settings()
    used.store.settings.change(zoom=125)
    used.rooms.show_chats()
    grown = [round(used.theme.scale * before[i]) for i in (0, 2)]
    qtbot.waitUntil(lambda: [panes.sizes()[i] for i in (0, 2)] == pytest.approx(grown, abs=2))
    used.store.settings.change(zoom=100)
    qtbot.waitUntil(lambda: panes.sizes() == pytest.approx(before, abs=2))


def test_the_column_of_text_grows_in_a_wide_window(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "Hello to you.")))
    text, composer = window.chat.view.widgets[1], window.chat.composer
    assert text.width() <= window.theme.text_column
    window.resize(1920, 1080)
    qtbot.waitUntil(lambda: text.width() > 1.2 * window.theme.text_column)
    qtbot.waitUntil(lambda: composer.width() == text.width())
    assert composer.mapTo(window, QPoint()).x() == text.mapTo(window, QPoint()).x()


def test_what_is_shown_grows_with_the_text(used: MainWindow, qtbot: QtBot) -> None:
    attached = (Attachment("notes.txt", "text", "short"),)
    queued = (QueuedMessage("And then?"),)
    used.store.show_conversations([replace(CONVERSATIONS[0], draft_attachments=attached, queued=queued)], ONE)
    update_message(used, replace(message("q", "user", "Hello"), pinned=True))
    chat, edit, px = used.chat, used.chat.composer.edit, used.theme.text.pixelSize()
    parts = chat.composer.attachments, chat.queue, chat.pinned, chat.view.widgets[1]
    before = [part.height() for part in parts]
    used.store.settings.change(zoom=200)
    assert edit.font().pixelSize() == 2 * px
    assert edit.fontMetrics().height() <= edit.height()
    qtbot.waitUntil(lambda: all(part.height() > 1.6 * px for part, px in zip(parts, before, strict=True)))


def test_what_is_shown_and_nothing_else_keeps_the_window_large(used: MainWindow, qtbot: QtBot) -> None:
    used.store.apply(cache_view(size=8192))
    used.resize(900, 1100)
    used.store.settings.change(all_instruments=True, inspector_visible=True)
    qtbot.waitUntil(lambda: used.inspector.cell_map.height() > 500)
    assert used.minimumSizeHint().height() <= 600, "a maximized window gets its size back"
    used.store.settings.change(zoom=200)
    for show in (used.rooms.show_models, used.rooms.show_settings):
        show()
        qtbot.wait(1)
        assert used.minimumSizeHint().width() <= 1024
    used.rooms.show_chats()
    used.shown_settings.show_instruments(True)
    for tab in used.inspector.labels:
        used.inspector.show_tab(tab)
        qtbot.wait(1)
        hint = used.minimumSizeHint()
        assert (hint.width() <= 900, hint.height() <= 700) == (True, True), tab


def test_after_a_zoom_the_inspector_is_as_wide_as_it_was(used: MainWindow, qtbot: QtBot) -> None:
    inspector = used.inspector
    qtbot.waitUntil(lambda: inspector.minimumWidth() == inspector.minimumSizeHint().width())
    before = inspector.minimumWidth()
    used.store.settings.change(zoom=200)
    qtbot.waitUntil(lambda: inspector.minimumWidth() > 1.5 * before)
    used.store.settings.change(zoom=100)
    qtbot.waitUntil(lambda: inspector.minimumWidth() == before)
