"""Asking for files to open, and where one is to be saved. Dialogs begin in the folder that was used last; they are the
platform's own if it has one.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

from kvdesk.session import SettingsStore
from kvdesk.settings import Settings
from kvdesk.ui.widgets.file_dialog import dress_when_shown

_SUFFIX: Final = re.compile(r"\*(\.\w+)")


class LastFolder:
    """The folder of the file that was chosen last; before that, and if it is gone, the documents, or the home.

    `settings` keep it: those of the window that was made last.
    """

    def __init__(self) -> None:
        self.settings = SettingsStore(Settings())

    @property
    def path(self) -> Path:
        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        for folder in filter(None, (self.settings.current.last_folder, documents)):
            with suppress(OSError, ValueError):  # a disk that is not there
                if Path(folder).is_dir():
                    return Path(folder)
        return Path.home()

    def use(self, file: str) -> None:
        """A person has chosen this file."""
        self.settings.change(last_folder=str(Path(file).absolute().parent))


last_folder: Final = LastFolder()
"""Of all windows of this process."""


def ask_for_file(parent: QWidget, title: str, kinds: str) -> Path | None:
    """A file to open; None if nothing was chosen. `kinds` is Qt's filter, such as "JSON (*.json)"."""
    dress_when_shown()
    chosen, _ = QFileDialog.getOpenFileName(parent, title, str(last_folder.path), kinds)
    if not chosen:
        return None
    last_folder.use(chosen)
    return Path(chosen)


def ask_for_files(parent: QWidget, title: str, kinds: str) -> list[str]:
    """Files to open; none if nothing was chosen."""
    dress_when_shown()
    chosen, _ = QFileDialog.getOpenFileNames(parent, title, str(last_folder.path), kinds)
    if chosen:
        last_folder.use(chosen[0])
    return list(chosen)


def ask_for_folder(parent: QWidget, title: str) -> Path | None:
    """A folder that exists; None if nothing was chosen."""
    dress_when_shown()
    chosen = QFileDialog.getExistingDirectory(parent, title, str(last_folder.path))
    return Path(chosen) if chosen else None


def ask_where_to_save(parent: QWidget, title: str, name: str, kinds: str) -> Path | None:
    """The file a person chose, with the suffix of its kind whether it was typed or not; None if nothing was chosen.

    `kinds` is Qt's filter, such as "JSON (*.json)"; of several, parted by ";;", any suffix may be typed. A file that is
    there is overwritten only after a question.
    """
    suffixes = tuple(_SUFFIX.findall(kinds)) or (Path(name).suffix,)
    name = str(last_folder.path / name)
    while True:
        dress_when_shown()
        chosen, kind = QFileDialog.getSaveFileName(parent, title, name, kinds)
        if not chosen:
            return None
        last_folder.use(chosen)
        if chosen.lower().endswith(suffixes):
            return Path(chosen)
        suffix = (_SUFFIX.findall(kind) or [Path(name).suffix])[0]
        begun = Path(chosen).suffix.lower()  # ".json" for ".jsonl" is a part of it, not of the name
        is_begun = bool(begun) and suffix.startswith(begun)
        file = Path(chosen).with_suffix(suffix) if is_begun else Path(chosen + suffix)
        if not file.exists():
            return file
        name = str(file)  # the dialog asked about another name: it asks about this one now
