"""Files that are dragged over the window and dropped on it: what is done with them, and what is said before."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFrame

from kvdesk.graphemes import cut
from kvdesk.state_files.signs import looks_like_state
from kvdesk.translation import tr
from kvdesk.ui.chat_list.chat_files import chats_in
from kvdesk.ui.shell.window import Window
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.dropped_files import accept, files_of
from kvdesk.values import dataclass

_WIDEST_PX: Final = 480
_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class _Outcome:
    said: str
    do: Callable[[], object]


class FileDrops(QObject):
    """A model is opened, a saved cache is shown, chats are imported, other files are attached to the shown chat."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._words = label("", wrap=True)
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._hint = QFrame(window)
        self._hint.setProperty("card", "palette")
        self._hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        boxes.column(self._words, on=self._hint, margins=(24, 16, 24, 16))
        self._hint.hide()

    @property
    def hint(self) -> str:
        """What happens if the files are dropped; "" while none are dragged."""
        return "" if self._hint.isHidden() else self._words.text()

    def enter(self, event: QDropEvent) -> None:
        """Accept what can be dropped, and say what happens then."""
        outcome = self._accepted(event)
        if outcome is None:
            return
        self._words.setText(outcome.said)
        window, hint, chat = self._window, self._hint, self._window.chat
        over = chat if chat.isVisible() else window
        width = min(window.theme.px(_WIDEST_PX), over.width() - 48)
        hint.resize(width, hint.heightForWidth(width))
        hint.move(over.mapTo(window, over.rect().center()) - hint.rect().center())
        hint.show()
        hint.raise_()

    def move(self, event: QDropEvent) -> None:
        """They are dragged on: the pointer shows that they are not moved."""
        if self.hint:
            accept(event)

    def leave(self) -> None:
        """They are dragged elsewhere."""
        self._hint.hide()

    def drop(self, event: QDropEvent) -> None:
        self._hint.hide()
        if (outcome := self._accepted(event)) is not None:
            outcome.do()

    def _accepted(self, event: QDropEvent) -> _Outcome | None:
        files = files_of(event)
        outcome = self._outcome(files) if files else None
        if outcome is not None:
            accept(event)
        else:
            event.ignore()
        return outcome

    def _outcome(self, files: list[str]) -> _Outcome | None:
        """None: nothing can be done with them now."""
        store, commands, chat = self._window.store, self._window.commands, self._window.chat
        models = [file for file in files if file.lower().endswith(".gguf")]
        states = [file for file in files if looks_like_state(file)]
        if models and not store.dead:
            said = tr("Drop to open the model {file}")
            return _Outcome(said.format(file=_name(models[0])), lambda: commands.open_model(Path(models[0])))
        files = [file for file in files if file not in models]
        if states:
            said = tr("Drop to look into the saved cache {file}").format(file=_name(states[0]))
            if len(states) > 1:
                said = tr("Drop to look into {n} saved caches").format(n=len(states))
            return _Outcome(said, lambda: _each(states, commands.open_state))
        if chats := chats_in(files):
            said = tr("Drop to import the chats of {file}")
            said = said.format(file=_name(chats[0]))
            if len(chats) > 1:
                said = tr("Drop to import the chats of {n} files").format(n=len(chats))
            return _Outcome(said, lambda: commands.import_chats(*map(Path, chats)))
        if not (files and store.can_chat and chat.isVisible() and chat.attachments.can_attach):
            return None
        said = tr("Drop to attach {file}").format(file=_name(files[0]))
        if len(files) > 1:
            said = tr("Drop to attach {n} files").format(n=len(files))
        return _Outcome(said, lambda: chat.attachments.give(files))


def _each(files: list[str], do: Callable[[Path], None]) -> None:
    for file in files:
        do(Path(file))


def _name(file: str) -> str:
    return cut(Path(file).name, _LONGEST_NAME)
