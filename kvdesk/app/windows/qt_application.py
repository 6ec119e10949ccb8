"""The Qt application of a command that shows one window, and what such windows have in common."""

import signal
import sys
from typing import Final

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QWidget

from kvdesk import paths
from kvdesk.session import Commands, Store
from kvdesk.store.settings_file import load_settings
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.widgets.access.key_tips import tell_reached
from kvdesk.ui.widgets.access.typing import presses
from kvdesk.ui.widgets.controls import on_ground
from kvdesk.ui.widgets.floating import Floating
from kvdesk.ui.widgets.style.icons import application_icon
from kvdesk.ui.widgets.style.theme import Theme

WAKE_MS: Final = 250
_ENDS: Final = (signal.SIGINT, signal.SIGTERM)
_UNHANDLED: Final = (signal.SIG_DFL, signal.default_int_handler)


def qt_application() -> QApplication:
    """The one of this process, made if there is none yet."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("kvdesk")
    app.setApplicationDisplayName("kvdesk")
    return app


def chosen_theme(app: QApplication, parent: QObject) -> Theme:
    """The look and the size of text that the user chose in kvdesk's window; without such a choice the system's."""
    settings, _ = load_settings(paths.settings_file(make_folder=False))
    theme = Theme(app, parent, settings.theme)
    theme.set_size(settings.zoom, settings.font_px)
    return theme


class SideWindow(QWidget):
    """A journal, a log or a saved state in its own window, which Ctrl+Q and Ctrl+W close."""

    def __init__(self, title: str) -> None:
        super().__init__()
        on_ground(self, "panel")
        self.setWindowTitle(title)
        self.setWindowIcon(application_icon())
        for keys in ("Ctrl+Q", "Ctrl+W"):
            QShortcut(QKeySequence(keys), self).activated.connect(self.close)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not presses(self.focusWidget(), event):
            super().keyPressEvent(event)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 - Qt's name
        return tell_reached(self, moved=super().focusNextPrevChild(next))

    def show_notices(self, theme: Theme, store: Store, commands: Commands, over: QWidget) -> None:
        """Notices of `store` float over the bottom of a widget of this window."""
        self.strip = ActivityStrip(theme, store, commands)
        self._floating = Floating(self.strip, self, (over,), lambda: over)


def run_until_closed(window: QWidget) -> int:
    """Show a window until it is closed, or until Ctrl+C or SIGTERM if nobody else handles them. Returns the exit
    code, which is 128 + n after signal n.
    """
    asked: list[int] = []
    waker = QTimer(window, interval=WAKE_MS)  # Python looks at signals only when it runs
    waker.timeout.connect(lambda: asked and window.close())
    waker.start()
    handlers = {number: signal.getsignal(number) for number in _ENDS}
    before = {number: handler for number, handler in handlers.items() if handler in _UNHANDLED}
    for number in before:
        signal.signal(number, lambda number, _frame: asked.append(number))
    window.show()
    try:
        code = int(QApplication.exec())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 + asked[0] if asked else code
