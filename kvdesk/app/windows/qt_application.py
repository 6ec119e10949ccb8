"""The Qt application of a command that shows one window: a journal, a log, a saved state."""

from __future__ import annotations

import sys

from PySide6.QtWidgets import QApplication


def qt_application() -> QApplication:
    """The one of this process, made if there is none yet."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("kvdesk")
    app.setApplicationDisplayName("kvdesk")
    return app
