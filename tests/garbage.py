"""When garbage is collected in tests with windows. A conftest that imports the fixture has it for all its tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from kvdesk.ui.widgets import theme


@pytest.fixture(autouse=True)
def garbage_between_tests(qapp: QApplication) -> Iterator[None]:
    """Cyclic garbage with Qt objects in it is collected after a test and never in mid-test, as the application does it:
    PySide6 crashes where windows of an earlier test are collected inside another's event loop."""
    gc.disable()
    yield
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect()
    gc.enable()


@pytest.fixture
def unstyled(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is made without a style sheet, which takes a third of the time: for tests that look at no size and no
    colour.
    """
    monkeypatch.setattr(theme, "style_sheet", lambda *_: "")
    if not qapp.allWidgets():
        qapp.setStyleSheet("")
