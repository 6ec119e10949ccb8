"""Saved KV caches that are opened or dropped in the main window: each gets its own window."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from kvdesk import paths
from kvdesk.app.background import Background
from kvdesk.errors import KvdeskError
from kvdesk.settings import Settings
from kvdesk.ui.shell.main_window import MainWindow

if TYPE_CHECKING:
    from kvdesk.app.windows.saved_state import Question, StateWindow
    from kvdesk.state_files.found import Answer


class StateWindows(QObject):
    """`settings` name the model and the context that a file would be restored into."""

    def __init__(self, window: MainWindow, settings: Callable[[], Settings]) -> None:
        super().__init__(window)
        self._window, self._settings = window, settings
        self._background = Background("state", self)
        self.opened: list[StateWindow] = []
        window.closing.connect(self._close)

    def open(self, path: Path) -> None:
        """Read it; then there is a window, or what is wrong is said in the main one."""
        from kvdesk.app.windows.saved_state import Question

        now = self._settings()
        model = Path(now.model) if now.model else paths.embedded_model()
        question = Question(path, None, model if model is not None and model.exists() else None, now.context)
        self._background.run(question.answer, partial(self._show, question), self._on_error)

    def _show(self, question: Question, answer: Answer) -> None:
        from kvdesk.app.windows.saved_state import StateWindow

        self.opened = [window for window in self.opened if not window.is_closed]
        window = StateWindow(self._window.theme, question, answer)
        self.opened.append(window)
        window.show()

    def _on_error(self, error: KvdeskError) -> None:
        self._window.store.complain(str(error), error.detail)

    def _close(self) -> None:
        self._background.close()
        for window in self.opened:
            window.close()
