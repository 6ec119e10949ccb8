"""Asking where a file is to be saved."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget


def ask_where_to_save(parent: QWidget, title: str, name: str, kinds: str) -> Path | None:
    """The file a person chose, with the suffix of `name` whether it was typed or not; None where nothing was chosen.

    `kinds` is Qt's filter, such as "JSON (*.json)". A file that is there is overwritten only after a question.
    """
    suffix = Path(name).suffix
    while True:
        chosen, _ = QFileDialog.getSaveFileName(parent, title, name, kinds)
        if not chosen or chosen.lower().endswith(suffix):
            return Path(chosen) if chosen else None
        file = Path(chosen + suffix)
        if not file.exists():
            return file
        name = str(file)  # the dialog asked about another name: it asks about this one now
