"""When garbage is collected in tests with windows. A conftest that imports the fixture has it for all its tests."""

import gc
from collections.abc import Iterator
from functools import cache

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from kvdesk.ui.widgets.style import theme


@cache
def first_font() -> QFont:
    """The application's font before any theme has set one."""
    return QApplication.font()


@pytest.fixture(autouse=True)
def garbage_between_tests(qapp: QApplication) -> Iterator[None]:
    """Cyclic garbage with Qt objects in it is collected after a test and never in mid-test, as the application does it:
    PySide6 crashes where windows of an earlier test are collected inside another's event loop."""
    first_font()
    gc.disable()
    yield
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect()
    gc.enable()


@pytest.fixture
def unstyled(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is made without a style sheet and in the first font: for tests that look at no size and no colour."""
    monkeypatch.setattr(theme, "style_sheet", lambda *_: "")
    if not qapp.allWidgets():
        qapp.setStyleSheet("")
        qapp.setFont(first_font())  # one that is larger would leave the window no room
