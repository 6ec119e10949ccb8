"""The calm view of the first start, and the way to the whole inspector and back."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import BackendReady, ModelLoaded, TurnEnded
from kvdesk.protocol.features import Feature
from kvdesk.settings import Settings
from kvdesk.ui.operations.menus import choose_range
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.samples import CONTEXT, CONVERSATIONS, MODEL, ONE, STATS, TWO, cache_view, message, show_messages
from tests.ui.seen import figures

INSTRUMENTS = "bar", "operations", "numbers", "rulers", "trends"


def test_a_first_start_shows_the_map_and_four_numbers(window: MainWindow, qtbot: QtBot) -> None:
    window.store.settings.change(**dict(Settings()))
    window.store.apply(cache_view())
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "", "streaming")))
    window.store.apply(TurnEnded(ONE, message("a", "assistant", "").id, "complete", STATS))
    page = window.inspector.cache
    assert page.map.isVisible()
    assert not any(getattr(page.instruments, name).isVisible() for name in INSTRUMENTS)
    qtbot.waitUntil(lambda: figures(page.overview)["Reused last time"] == "128 of 140 tokens")
    assert figures(page.overview) == {
        "Cells in use": "220 of 1,024",
        "Reused last time": "128 of 140 tokens",
        "Read per new token": "256 cells",
        "Gaps in between": "8.3 %",
    }
    for button in page.findChildren(QPushButton):
        assert not button.isVisible() or button is page.overview.all_button


def test_what_was_reused_last_time_is_that_of_the_shown_chat(window: MainWindow, qtbot: QtBot) -> None:
    window.store.settings.change(**dict(Settings()))
    window.store.apply(cache_view())
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "Yes", stats=STATS)))
    other = replace(STATS, prompt_tokens=37, reused_tokens=26)
    window.store.apply(TurnEnded(TWO, message("b", "assistant", "").id, "complete", other))
    overview = window.inspector.cache.overview
    qtbot.waitUntil(lambda: figures(overview)["Reused last time"] == "128 of 140 tokens")
    window.store.show_conversations(CONVERSATIONS, TWO)
    qtbot.waitUntil(lambda: figures(overview)["Reused last time"] == "26 of 37 tokens")


def test_one_click_shows_all_instruments_and_the_settings_remember_it(window: MainWindow, qtbot: QtBot) -> None:
    window.store.settings.change(**dict(Settings()))
    window.store.apply(cache_view())
    page = window.inspector.cache
    qtbot.mouseClick(page.overview.all_button, Qt.MouseButton.LeftButton)
    assert all(getattr(page.instruments, name).isVisible() for name in INSTRUMENTS)
    assert not page.overview.isVisible()
    assert len(page.instruments.rulers.rows) == 2, "at once, not with the next view"
    assert window.store.settings.current.all_instruments
    window.inspector.show_tab("Graphs")
    window.shown_settings.toggle_instruments()
    assert window.inspector.labels[window.inspector._tabs.checkedId()] == "Cache"
    assert page.overview.isVisible()
    window.shown_settings.toggle_instruments()
    less = next(button for button in page.findChildren(QToolButton) if button.text() == "Show less")
    qtbot.mouseClick(less, Qt.MouseButton.LeftButton)
    assert page.overview.isVisible()
    assert not window.store.settings.current.all_instruments


def test_a_server_that_shows_its_cells_after_all_has_its_map(window: MainWindow) -> None:
    """First connected without a key, then with one: the page with the cells is shown, and again not without it."""
    chats = frozenset({Feature.CHAT, Feature.CONTINUE})
    cells = chats | {Feature.CACHE_VIEW}
    for features in (chats, cells, chats, cells):
        window.store.apply(BackendReady(features))
        window.store.apply(ModelLoaded(MODEL))
        shows = Feature.CACHE_VIEW in features
        if shows:
            window.store.apply(ContextReady(CONTEXT, rebuilt=False))
            window.store.apply(cache_view())
        assert window.inspector.cell_map.isVisible() == shows


def test_cells_chosen_for_an_operation_bring_the_operations(window: MainWindow) -> None:
    window.store.settings.change(**dict(Settings()))
    window.store.apply(cache_view())
    choose_range(window.kit, ONE, 3, 9)
    assert window.inspector.cache.instruments.operations.isVisible()
    assert window.inspector.cache.instruments.operations.chosen.p1 == 9
