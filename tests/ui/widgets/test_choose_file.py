from pathlib import Path

import pytest
from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.settings import Settings
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.choose_file import ask_for_file, ask_for_files, ask_where_to_save, last_folder


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


def test_a_suffix_that_is_the_beginning_of_the_right_one_is_completed(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "day.json"), ""))
    file = ask_where_to_save(parent, "Export", "kvdesk-journal.jsonl", "JSON lines (*.jsonl)")
    assert file == tmp_path / "day.jsonl"


@pytest.mark.usefixtures("unstyled")
def test_dialogs_begin_where_the_last_file_was(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, other = tmp_path / "documents", tmp_path / "other"
    documents.mkdir()
    other.mkdir()
    monkeypatch.setattr(QStandardPaths, "writableLocation", lambda _: str(documents))
    begun: list[Path] = []
    answers = iter([other / "a.json", other / "b.json", "", other / "c.json"])

    def ask(_parent: QWidget, _title: str, start: str, _kinds: str) -> tuple[str, str]:
        begun.append(Path(start))
        return str(next(answers)), ""

    def ask_several(_parent: QWidget, _title: str, start: str, _kinds: str) -> tuple[list[str], str]:
        begun.append(Path(start))
        return [], ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", ask)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", ask_several)
    window.store.settings.change(**dict(Settings()))
    assert ask_for_file(window, "Open", "*.json") == other / "a.json"
    assert window.store.settings.current.last_folder == str(other), "also after a restart"
    assert ask_where_to_save(window, "Save", "x.json", "*.json") == other / "b.json"
    assert ask_for_file(window, "Open", "*.json") is None
    assert ask_for_files(window, "Open", "*") == []
    other.rmdir()
    assert ask_for_file(window, "Open", "*.json") == other / "c.json"
    assert begun == [documents, other / "x.json", other, other, documents]
    documents.rmdir()
    assert last_folder.path == Path.home()
