"""The place of the window and the widths of its panes, as Qt writes them down and restores them."""

from typing import Final

from PySide6.QtCore import QByteArray, QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QMainWindow, QSplitter

from kvdesk.session import SettingsStore
from kvdesk.settings import WindowPlace
from kvdesk.ui.widgets.style.sizes import fit_to_screen
from kvdesk.ui.widgets.timers import once

FIRST_SIZE: Final = QSize(1280, 800)
KEEP_MS: Final = 500  # after the last move or change of size


class WindowPlacement(QObject):
    """Keeps in the settings where a person puts the window and its panes."""

    def __init__(self, window: QMainWindow, panes: QSplitter, settings: SettingsStore) -> None:
        super().__init__(window)
        self._window, self._panes, self._settings = window, panes, settings
        self._soon = once(self, KEEP_MS, self.keep)
        window.installEventFilter(self)
        panes.splitterMoved.connect(lambda *_: self._soon.start())

    def restore(self) -> None:
        """Before the window is shown: where it was, on a screen that exists."""
        place, window = self._settings.current.window, self._window
        if not window.restoreGeometry(_bytes(place.geometry)):
            window.resize(QSize(place.width, place.height) if place.width else FIRST_SIZE)
            fit_to_screen(window)
            at = QPoint(place.x, place.y)
            if not at.isNull() and window.screen().availableGeometry().contains(QRect(at, window.size())):
                window.move(at)
            if place.maximized:
                window.setWindowState(Qt.WindowState.WindowMaximized)
        if not self._panes.restoreState(_bytes(place.panes)):
            sidebar, inspector = place.sidebar_width, place.inspector_width
            self._panes.setSizes([sidebar, max(0, window.width() - sidebar - inspector), inspector])

    def keep(self) -> None:
        """Keep where the window is now, if it has been shown."""
        self._soon.stop()
        if self._window.isVisible():
            self._settings.change(window=self.now())

    def now(self) -> WindowPlace:
        """The place now. A hidden pane has the width that it had last."""
        return WindowPlace(geometry=_text(self._window.saveGeometry()), panes=_text(self._panes.saveState()))

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and self._window.isVisible():
            self._soon.start()
        return False


def _bytes(text: str) -> QByteArray:
    return QByteArray.fromBase64(QByteArray(text.encode()))


def _text(data: QByteArray) -> str:
    return bytes(data.toBase64().data()).decode()
