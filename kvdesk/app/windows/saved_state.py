"""A saved KV cache in its own window. Files are read in a child process, beside the window."""

from functools import partial
from pathlib import Path

from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent

from kvdesk.app.background import Background
from kvdesk.app.windows.qt_application import SideWindow, chosen_theme, qt_application, run_until_closed
from kvdesk.errors import KvdeskError
from kvdesk.session import Commands, Store
from kvdesk.settings import ContextSettings
from kvdesk.state_files.found import Answer
from kvdesk.state_files.reader import read_state_file
from kvdesk.translation import tr
from kvdesk.ui.cache.saved_state import SavedStateView
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choose_file import ask_for_file
from kvdesk.ui.widgets.dropped_files import accept, files_of
from kvdesk.ui.widgets.style.sizes import fit_to_screen
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a file: how it differs from another, whether it would be restored into a model's context."""

    path: Path
    other: Path | None = None
    model: Path | None = None
    settings: ContextSettings | None = None

    def answer(self) -> Answer:
        """Blocks while the child reads. Raises UserError."""
        return read_state_file(self.path, self.other, self.model, self.settings)


class StateWindow(SideWindow):
    """Shows one file. A file that is dropped on it is compared; a model is that which it would be restored into."""

    def __init__(self, theme: Theme, question: Question, answer: Answer) -> None:
        super().__init__(question.path.name)
        self.setAcceptDrops(True)
        self.question, self.is_closed = question, False
        self.view = SavedStateView(theme)
        self.view.show_answer(answer)
        self.view.model_wanted.connect(self._choose_model)
        self.view.other_wanted.connect(self._choose_other)
        boxes.column(self.view, on=self, margins=12)
        self.show_notices(theme, Store(), Commands(), over=self.view)
        self._background = Background("state", self)
        self.resize(820, 860)
        fit_to_screen(self)

    def ask(self, question: Question) -> None:
        """Show the answer to another question, or the reason if there is no answer."""
        self._background.run(question.answer, partial(self._on_answer, question), self._on_error)

    def _choose_model(self) -> None:
        kinds = tr("GGUF models (*.gguf);;All files (*)")
        if file := ask_for_file(self, tr("Restore into a model"), kinds):
            self.ask(replace(self.question, model=file))

    def _choose_other(self) -> None:
        if file := ask_for_file(self, tr("Compare with another file"), tr("All files (*)")):
            self.ask(replace(self.question, other=file))

    def _on_answer(self, question: Question, answer: Answer) -> None:
        self.question = question
        self.view.show_answer(answer)

    def _on_error(self, error: KvdeskError) -> None:
        self.strip.show_result(str(error), "danger", "")

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if files_of(event):
            accept(event)

    def dropEvent(self, event: QDropEvent) -> None:
        for path in map(Path, files_of(event)[:1]):
            accept(event)
            is_model = path.suffix.lower() == ".gguf"
            self.ask(replace(self.question, model=path) if is_model else replace(self.question, other=path))

    def closeEvent(self, event: QCloseEvent) -> None:
        self._background.close()
        self.is_closed = True
        super().closeEvent(event)


def open_window(question: Question) -> StateWindow:
    """Raises UserError, before there is a window, where the file cannot be read."""
    answer = question.answer()
    app = qt_application()
    return StateWindow(chosen_theme(app, app), question, answer)


def run(question: Question) -> int:
    """Show a file until the window is closed. Returns the exit code."""
    return run_until_closed(open_window(question))
