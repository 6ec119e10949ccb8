"""A child: starts kvdesk as a person does, closes its window when it is ready, and prints what there was to be seen.

    home_window FILE    FILE: a pickled `StateKind`

Prints JSON only when kvdesk ended with 0: messages by id (conversation, text, note), and the saved states that may be
used.
"""

import json
import pickle
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from kvdesk import __main__, paths
from kvdesk.app import application
from kvdesk.errors import StoreError
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import EngineDied
from kvdesk.protocol.messages import CommandFailed
from kvdesk.session import Changed, Commands
from kvdesk.session import Store as Session
from kvdesk.session.changed import Problem, Update
from kvdesk.store.store import Store
from kvdesk.ui.shell.main_window import MainWindow
from tests.stress.damaged_homes import states_in

seen: list[str] = []
said: list[str] = []
messages: dict[str, tuple[str, str, str]] = {}


def note(_changed: Changed, update: Update | None) -> None:
    if isinstance(update, ContextReady | CommandFailed | EngineDied):
        seen.append(type(update).__name__)
    elif isinstance(update, Problem):
        said.append(update.sentence)


def main(kind: Path) -> int:
    build = application.build

    def made(app: QApplication, store: Session, commands: Commands) -> MainWindow:
        store.listen(note)
        return MainWindow(app, store, commands)

    def built(file: str | None) -> application.Parts:
        parts = build(file)
        timer = QTimer(parts.window, interval=20)
        timer.timeout.connect(lambda: _close_when_ready(parts))
        timer.start()
        return parts

    vars(application)["MainWindow"] = made
    application.build = built  # type: ignore[assignment]
    code = __main__.main([])
    if code == 0:
        log = paths.log_dir() / "kvdesk.log"
        unexpected = log.is_file() and "unexpected" in log.read_text("utf-8", "replace")
        states = states_in(paths.data_dir(), pickle.loads(kind.read_bytes()))
        print(json.dumps({"seen": seen, "unexpected": unexpected, "messages": messages, "states": states}))  # noqa: T201
    return code


def _close_when_ready(parts: application.Parts) -> None:
    chats = parts.controller.chats
    service, shown = chats.service, parts.window.store.selected
    is_read = shown is not None and service.is_read(shown)
    if not seen or messages or not (is_read or any("Nothing can be added to this chat" in text for text in said)):
        return
    for known in service.conversations:
        with suppress(StoreError):  # a chat on a damaged page, which the window says when it is selected
            found = chats._store.ask(partial(Store.all_messages, conversation=known.id)).result()
            messages.update((m.id, (known.id, m.text, m.note)) for m in found)
    messages[""] = ("", "", "")  # seen, also if there are none
    parts.window.asks_before_closing = False
    parts.window.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
