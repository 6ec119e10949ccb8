"""Where the platform has no dialog for files, Qt's own has kvdesk's look; clear buttons and tooltips have it too."""

from pathlib import Path

import pytest
from PySide6.QtCore import QFileInfo, QTimer
from PySide6.QtGui import QAbstractFileIconProvider, QImage
from PySide6.QtWidgets import (
    QApplication,
    QDialogButtonBox,
    QFileDialog,
    QHeaderView,
    QLabel,
    QLineEdit,
    QStyle,
    QToolButton,
    QToolTip,
    QTreeView,
)
from pytestqt.qtbot import QtBot

from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.choose_file import ask_for_file
from kvdesk.ui.widgets.file_dialog import dress
from kvdesk.ui.widgets.search_field import clearable
from kvdesk.ui.widgets.style.theme import Theme


def test_the_dialog_that_asks_is_dressed(window: MainWindow) -> None:
    found: list[QFileDialog] = []

    def look() -> None:
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, QFileDialog)
        found.append(dialog)
        assert not dialog.findChild(QToolButton, "listModeButton").isVisible()
        assert dialog.layout().contentsMargins().left() == 24
        buttons = dialog.findChild(QDialogButtonBox).buttons()
        assert all(button.icon().isNull() for button in buttons)
        assert [bool(button.property("primary")) for button in buttons].count(True) == 1
        dialog.reject()

    QTimer.singleShot(0, lambda: QTimer.singleShot(0, look))
    assert ask_for_file(window, "Open a model", "GGUF (*.gguf)") is None
    assert found


def test_size_and_date_are_not_cut(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:  # noqa: ARG001
    (tmp_path / "a model with a rather long name.Q4_K_M.gguf").write_bytes(bytes(1_500_000))
    dialog = QFileDialog(directory=str(tmp_path))
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    qtbot.addWidget(dialog)
    table = dialog.findChild(QTreeView)
    for column in range(4):  # whatever Qt remembers of an earlier dialog
        table.header().setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
        table.header().showSection(column)
        table.header().resizeSection(column, 60)
    dress(dialog)
    dialog.show()
    qtbot.waitUntil(lambda: table.model().rowCount(table.rootIndex()) == 1)
    header = table.header()
    texts = [table.model().index(0, column, table.rootIndex()).data() for column in range(4)]
    widths = [table.fontMetrics().horizontalAdvance(text) for text in texts]
    qtbot.waitUntil(lambda: all(header.sectionSize(column) >= widths[column] for column in (1, 2, 3)))
    assert not table.horizontalScrollBar().isVisible()


def test_the_platforms_own_dialog_is_left_alone(qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    dialog = QFileDialog()
    qtbot.addWidget(dialog)
    monkeypatch.setattr(dialog, "layout", lambda: None)
    monkeypatch.setattr(dialog, "setIconProvider", lambda _: pytest.fail("it has no icons of Qt"))
    dress(dialog)


def test_files_and_folders_have_line_icons(qtbot: QtBot, theme: Theme, tmp_path) -> None:  # type: ignore[no-untyped-def]  # noqa: ARG001
    dialog = QFileDialog()
    qtbot.addWidget(dialog)
    dress(dialog)
    icons = dialog.iconProvider()
    (tmp_path / "x.gguf").write_bytes(b"")
    folder, file = icons.icon(QFileInfo(str(tmp_path))), icons.icon(QFileInfo(str(tmp_path / "x.gguf")))
    of_kind = icons.icon(QAbstractFileIconProvider.IconType.Folder)
    pictures: list[QImage] = [icon.pixmap(20, 20).toImage() for icon in (folder, of_kind, file)]
    assert pictures[0] == pictures[1] != pictures[2]


def test_the_clear_button_of_a_field_is_kvdesks(qtbot: QtBot, theme: Theme) -> None:  # noqa: ARG001
    field = QLineEdit("words")
    qtbot.addWidget(field)
    clearable(field)
    (button,) = field.findChildren(QToolButton)
    picture = button.actions()[0].icon().pixmap(16, 16).toImage()
    inks = {
        picture.pixelColor(x, y).name() for x in range(16) for y in range(16) if picture.pixelColor(x, y).alpha() > 250
    }
    fusion = field.style().standardIcon(QStyle.StandardPixmap.SP_LineEditClearButton)
    assert picture != fusion.pixmap(16, 16).toImage()
    assert "#000000" not in inks


def test_a_tooltip_has_little_room_around_its_text(qtbot: QtBot, theme: Theme) -> None:  # noqa: ARG001
    field = QLineEdit()
    qtbot.addWidget(field)
    field.show()
    QToolTip.showText(field.mapToGlobal(field.rect().center()), "A tooltip", field)
    tip = next(one for one in QApplication.topLevelWidgets() if one.metaObject().className() == "QTipLabel")
    assert isinstance(tip, QLabel)
    text = tip.fontMetrics().horizontalAdvance("A tooltip")
    assert text + 8 <= tip.width() <= text + 24
    QToolTip.hideText()
