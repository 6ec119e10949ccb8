"""A window fed by hand. What it says is recorded."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import ModelLoaded, Working
from kvdesk.session import Store
from kvdesk.session.state import State
from kvdesk.settings import Settings, ThemeChoice
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.access import announce as announcing
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.theme import Theme
from tests.garbage import garbage_between_tests, unstyled  # noqa: F401 - fixtures
from tests.ui import recording
from tests.ui.pauses import short_pauses  # noqa: F401 - the fixture
from tests.ui.samples import CONTEXT, CONVERSATIONS, MODEL, ONE

STYLED = frozenset({"blocks", "graphs", "map", "markdown", "widgets", "test_nothing_cut", "test_zoom"})
"""Folders and modules whose tests look at sizes and colours; elsewhere those do that use `styled`."""
SHARING = frozenset(
    {"attention", "settings", "test_honesty", "test_zoom"}
    | {"test_alternatives", "test_chat", "test_command_palette", "test_conversation_list"}
    | {"test_actions", "test_main_window", "test_message_actions", "test_message_list", "test_operations"}
    | {"test_overflow_choice", "test_overview", "test_text_chunks", "test_timeline", "test_typing"}
    | {"test_focus", "test_input_methods", "test_introduction", "test_selection_links"}
    | {"test_counted", "test_empty_pane", "test_message_editing", "test_rebuild", "test_unreachable"}
    | {"test_composer_attachments", "test_leaving_row", "test_loop_notice", "test_pane_header"}
    | {"test_room", "test_serve_section", "test_tokens", "test_tool_message"}
)
"""Modules and folders whose tests use one `window` a module, emptied before each, but for those that use `fresh`."""


@pytest.fixture(scope="module")
def shared(qapp: QApplication) -> Iterator[list[MainWindow]]:
    """The window of a module of `SHARING`; empty until its first test asks for it."""
    windows: list[MainWindow] = []
    yield windows
    for window in windows:
        window.close()
        window.deleteLater()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@pytest.fixture(autouse=True)
def no_stray_widgets(qapp: QApplication, shared: list[MainWindow]) -> Iterator[None]:
    """Widgets of a test are gone before the next: a style sheet is applied to all there are. While tests share a window
    the others are only closed: menus and forms that pyqtgraph makes without a parent belong to a plot of that window,
    which would crash without them when it is deleted.
    """
    yield
    for widget in QApplication.topLevelWidgets():
        if isinstance(widget, QWidget):  # PySide may give what lived at that address before, such as a QWidgetItem
            if widget in shared:
                continue
            widget.close()
            if not shared:
                widget.deleteLater()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    if not shared:
        assert not QApplication.allWidgets()
        qapp.setStyleSheet("")  # as at the start: a window is made without it


@pytest.fixture(autouse=True)
def no_sheet(request: pytest.FixtureRequest) -> None:
    if not STYLED & {request.path.parent.name, request.path.stem} and "styled" not in request.fixturenames:
        request.getfixturevalue("unstyled")


@pytest.fixture
def fresh() -> None:
    """The test has a window of its own also where others share one."""


@pytest.fixture
def styled() -> None:
    """The test looks at sizes or colours: its widgets have their style sheet."""


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    return Theme(qapp, theme=ThemeChoice.DARK)


@pytest.fixture
def kit(theme: Theme) -> Kit:
    """Of a page without a window; what it asks for is recorded."""
    return recording.kit_of(theme, Store(Settings()))


def new_window(app: QApplication, qtbot: QtBot) -> MainWindow:
    window = MainWindow(app, Store(Settings(theme=ThemeChoice.DARK)), recording.Recorder())
    begin(window)
    qtbot.waitExposed(window)
    return window


def begin(window: MainWindow) -> None:
    """Shown, with everything in sight."""
    window.resize(1280, 800)  # the screen of these tests has 800 x 800 pixels
    window.store.settings.change(**dict(Settings(theme=ThemeChoice.DARK, all_instruments=True)))
    window.show()


def empty(window: MainWindow) -> None:
    """Nothing is left of earlier tests."""
    known, store = tuple(window.store.conversations.values()), window.store
    for conversation in known:
        store.show_conversations(known, conversation.id)
        window.chat.composer.set_text("")
    measured, texts = store.measured, store.texts
    for name, value in vars(State()).items():
        setattr(store, name, value)
    store.measured, store.texts = measured, texts
    measured.forget()
    texts.clear()
    store._operation = None
    for part in (window.chat, window.conversations, window.status):
        part.show_all()
    store.show_conversations((), None)
    window.inspector.show_features()
    window.store.apply(Working("", 0, 0))
    window.rooms.show_chats()
    for _ in window.activity.sentences:
        window.activity.dismiss()
    window.chat.banner.hide()
    window.inspector.show_tab("Cache")
    window.chat.composer.focus_edit()


@pytest.fixture
def empty_window(qapp: QApplication, qtbot: QtBot) -> MainWindow:
    """A window as it is right after the start: shown, nothing in it."""
    window = new_window(qapp, qtbot)
    qtbot.addWidget(window)
    return window


@pytest.fixture
def window(qapp: QApplication, qtbot: QtBot, request: pytest.FixtureRequest, shared: list[MainWindow]) -> MainWindow:
    """A window with a model, a context and two conversations, the first of them selected."""
    if not SHARING & {request.path.parent.name, request.path.stem} or "fresh" in request.fixturenames:
        window: MainWindow = request.getfixturevalue("empty_window")
    elif shared:
        (window,) = shared
        empty(window)
        begin(window)
        window.activateWindow()
    else:
        window = new_window(qapp, qtbot)
        shared.append(window)
    window.store.show_conversations(CONVERSATIONS, ONE)
    window.store.apply(ModelLoaded(MODEL))
    window.store.apply(ContextReady(CONTEXT, rebuilt=False))
    return window


@pytest.fixture
def record() -> recording.Record:
    """Connects to a signal or a recorded command, and returns the list of what it sends."""
    return recording.record


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """What a screen reader hears, and whether at once."""
    heard: list[tuple[str, bool]] = []

    def hear(event: QAccessibleAnnouncementEvent) -> None:
        heard.append((event.message(), event.politeness() == QAccessible.AnnouncementPoliteness.Assertive))

    monkeypatch.setattr(announcing, "_send", hear)
    monkeypatch.setattr(announcing, "_is_heard", lambda: True)
    return heard
