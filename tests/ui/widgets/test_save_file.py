from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.ui.widgets.save_file import ask_where_to_save


def test_the_suffix_is_added_and_nothing_overwritten_unasked(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    (tmp_path / "there.md").write_text("old")
    asked: list[str] = []
    answers = iter(["v1.2", "UPPER.MD", "there", "there.md", ""])

    def ask(_parent: QWidget, _title: str, name: str, _kinds: str) -> tuple[str, str]:
        asked.append(Path(name).name)
        answer = next(answers)
        return str(tmp_path / answer) if answer else "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    found = [ask_where_to_save(parent, "Export", "chat.md", "Markdown (*.md)") for _ in range(4)]
    assert [file and file.name for file in found] == ["v1.2.md", "UPPER.MD", "there.md", None]
    assert asked == ["chat.md", "chat.md", "chat.md", "there.md", "chat.md"], "about a file that is there it asks again"
