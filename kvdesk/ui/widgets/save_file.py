"""Asking where a file is to be saved."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QFileDialog, QWidget

_SUFFIX: Final = re.compile(r"\*(\.\w+)")


def ask_where_to_save(parent: QWidget, title: str, name: str, kinds: str) -> Path | None:
    """The file a person chose, with the suffix of its kind whether it was typed or not; None where nothing was chosen.

    `kinds` is Qt's filter, such as "JSON (*.json)"; of several, parted by ";;", any suffix may be typed. A file that is
    there is overwritten only after a question.
    """
    suffixes = tuple(_SUFFIX.findall(kinds)) or (Path(name).suffix,)
    while True:
        chosen, kind = QFileDialog.getSaveFileName(parent, title, name, kinds)
        if not chosen or chosen.lower().endswith(suffixes):
            return Path(chosen) if chosen else None
        file = Path(chosen + (_SUFFIX.findall(kind) or [Path(name).suffix])[0])
        if not file.exists():
            return file
        name = str(file)  # the dialog asked about another name: it asks about this one now
