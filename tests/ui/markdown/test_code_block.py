from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QPlainTextEdit
from pytestqt.qtbot import QtBot

from kvdesk.ui.markdown.code_block import CodeBlock
from kvdesk.ui.markdown.highlight import file_suffix
from kvdesk.ui.widgets.controls import IconButton
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.markdown.whole import answer_pieces


@pytest.mark.parametrize(
    ("language", "suffix"),
    [
        *(
            ("python", ".py"),
            ("py", ".py"),
            ("bash", ".sh"),
            ("sh", ".sh"),
            ("c", ".c"),
            ("cpp", ".cpp"),
            ("c++", ".cpp"),
        ),
        *(
            ("javascript", ".js"),
            ("ts", ".ts"),
            ("rust", ".rs"),
            ("json", ".json"),
            ("html", ".html"),
            ("java", ".java"),
        ),
        *(("yaml", ".yaml"), ("sql", ".sql"), ("go", ".go"), ("", ".txt"), ("no language", ".txt"), ("latex", ".tex")),
    ],
)
def test_the_suffix_is_that_of_the_language(language: str, suffix: str) -> None:
    assert file_suffix(language) == suffix


def test_code_is_saved_whole_in_a_file_of_its_language(
    theme: Theme, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "x = '\u4e2d'\n" * 1000
    pieces = answer_pieces(f"```python\n{code}```")
    block = CodeBlock(theme)
    qtbot.addWidget(block)
    block.resize(400, 200)
    block.show()
    block.show_segment(pieces[0])
    asked: list[str] = []
    chosen = iter([str(tmp_path / "mine.py"), "", str(tmp_path / "no folder" / "mine.py")])

    def ask(_parent: object, _title: str, name: str, kinds: str) -> tuple[str, str]:
        asked.append(f"{Path(name).name} {kinds}")
        return next(chosen), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    save = next(b for b in block.findChildren(IconButton) if b.accessibleName() == "Save this code as a file")
    qtbot.mouseClick(save, Qt.MouseButton.LeftButton)
    assert asked == ["code.py *.py"]
    assert (tmp_path / "mine.py").read_bytes() == code.encode()
    qtbot.mouseClick(save, Qt.MouseButton.LeftButton)
    assert len(list(tmp_path.iterdir())) == 1, "nothing was chosen"
    qtbot.mouseClick(save, Qt.MouseButton.LeftButton)
    said = [label.text() for label in block.findChildren(QLabel) if label.isVisible()]
    assert "mine.py cannot be written: No such file or directory." in said


def test_code_that_grows_is_coloured_as_if_it_were_whole(theme: Theme, qtbot: QtBot) -> None:
    source = "```python\nx = 1\ns = '''a\nfor b in c:\n'''\ndef f(n):\n    return n  # done\n```"

    def colours(block: CodeBlock) -> list[list[tuple[int, int, str]]]:
        found = []
        line = block.findChildren(QPlainTextEdit)[0].document().begin()
        while line.isValid():
            formats = line.layout().formats()
            found.append([(f.start, f.length, f.format.foreground().color().name()) for f in formats])
            line = line.next()
        return found

    blocks = [CodeBlock(theme), CodeBlock(theme)]
    for block in blocks:
        qtbot.addWidget(block)
    for end in range(10, len(source) + 1):
        blocks[0].show_segment(answer_pieces(source[:end])[0])
    blocks[1].show_segment(answer_pieces(source)[0])
    assert colours(blocks[0]) == colours(blocks[1])
    assert sum(map(len, colours(blocks[1]))) > 5


@pytest.mark.parametrize("line", ["x = 1  # of many", "x = '\u6f22\u5b57'  # wider than the block " + "-" * 90])
def test_no_line_of_a_program_is_hidden(theme: Theme, qtbot: QtBot, line: str) -> None:
    """Also while it grows: the layout gives a line more than the font's line spacing."""
    block = CodeBlock(theme)
    qtbot.addWidget(block)
    block.resize(400, 200)
    block.show()
    for n_lines in (1, 20, 60):
        block.show_segment(answer_pieces("```python\n" + f"{line}\n" * n_lines)[0])
        (view,) = block.findChildren(QPlainTextEdit)
        last = view.blockBoundingGeometry(view.document().lastBlock()).translated(view.contentOffset())
        assert last.bottom() <= view.viewport().height()
