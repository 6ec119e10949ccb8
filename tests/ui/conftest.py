"""A window fed by hand. What it says is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.session import Store
from kvdesk.settings import Settings, ThemeChoice
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets import announce as announcing
from kvdesk.ui.widgets.theme import Theme
from tests.garbage import garbage_between_tests, unstyled  # noqa: F401 - fixtures
from tests.ui.samples import CONTEXT, CONVERSATIONS, MODEL, ONE

UNSTYLED = frozenset(
    {"cache", "chat", "chat_list", "composer", "lab", "messages", "models", "parameters", "server", "settings", "shell"}
    | {"test_branches_shown", "test_chat", "test_input_methods", "test_operations", "test_timeline"}
)
"""Folders and modules whose tests look at no size and no colour, but for those that use `styled`."""


@pytest.fixture(autouse=True)
def no_stray_widgets(qapp: QApplication) -> Iterator[None]:
    """Widgets of a test are gone before the next: a style sheet is applied to all there are."""
    yield
    for widget in QApplication.topLevelWidgets():
        if isinstance(widget, QWidget):  # PySide may give what lived at that address before, such as a QWidgetItem
            widget.close()
            widget.deleteLater()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert not QApplication.allWidgets()
    qapp.setStyleSheet("")  # as at the start: a window is made without it


@pytest.fixture(autouse=True)
def no_sheet(request: pytest.FixtureRequest) -> None:
    if UNSTYLED & {request.path.parent.name, request.path.stem} and "styled" not in request.fixturenames:
        request.getfixturevalue("unstyled")


@pytest.fixture
def styled() -> None:
    """The test looks at sizes or colours: its widgets have their style sheet."""


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    return Theme(qapp, theme=ThemeChoice.DARK)


@pytest.fixture
def empty_window(qapp: QApplication, qtbot: QtBot) -> MainWindow:
    """A window as it is right after the start: shown, nothing in it."""
    window = MainWindow(qapp, Store(Settings(theme=ThemeChoice.DARK)))
    window.resize(1280, 800)  # the screen of these tests has 800 x 800 pixels
    qtbot.addWidget(window)
    window.session.settings.change(**dict(Settings(theme=ThemeChoice.DARK, all_instruments=True)))
    window.show()
    qtbot.waitExposed(window)
    return window


@pytest.fixture
def window(empty_window: MainWindow) -> MainWindow:
    """A window with a model, a context and two conversations, the first of them selected."""
    empty_window.show_conversations(CONVERSATIONS, ONE)
    empty_window.apply_event(ModelLoaded(MODEL))
    empty_window.apply_event(ContextReady(CONTEXT, rebuilt=False))
    return empty_window


@pytest.fixture
def record() -> Callable[[object], list[tuple[object, ...]]]:
    """Connects to a signal and returns the list of what it sends."""

    def connect(signal: object) -> list[tuple[object, ...]]:
        sent: list[tuple[object, ...]] = []
        signal.connect(lambda *values: sent.append(values))  # type: ignore[attr-defined]
        return sent

    return connect


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """What a screen reader hears, and whether at once."""
    heard: list[tuple[str, bool]] = []

    def hear(event: QAccessibleAnnouncementEvent) -> None:
        heard.append((event.message(), event.politeness() == QAccessible.AnnouncementPoliteness.Assertive))

    monkeypatch.setattr(announcing, "_send", hear)
    monkeypatch.setattr(announcing, "_is_heard", lambda: True)
    return heard
