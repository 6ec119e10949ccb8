"""Qt's own dialog for files in kvdesk's style, where the platform has none."""

from typing import Final

from PySide6.QtCore import QFileInfo, QTimer
from PySide6.QtGui import QAbstractFileIconProvider, QIcon, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QDialogButtonBox,
    QFileDialog,
    QFileIconProvider,
    QHeaderView,
    QPushButton,
    QSplitter,
    QToolButton,
    QTreeView,
)

from kvdesk.ui.widgets.controls import restyle
from kvdesk.ui.widgets.style.icons import line_icon
from kvdesk.ui.widgets.style.sizes import DIALOG_MARGIN_PX

_BUTTONS: Final = {
    "backButton": "chevron-left",
    "forwardButton": "chevron-right",
    "toParentButton": "chevron-up",
    "newFolderButton": "plus",
}
_WITHOUT: Final = ("listModeButton", "detailModeButton")
_PLACES: Final = (QAbstractFileIconProvider.IconType.Computer, QAbstractFileIconProvider.IconType.Drive)


class _Icons(QFileIconProvider):
    """Line icons in the colour of the text."""

    def icon(self, about: QAbstractFileIconProvider.IconType | QFileInfo) -> QIcon:
        if isinstance(about, QFileInfo):
            return _icon("folder" if about.isDir() else "file")
        is_folder = about == QAbstractFileIconProvider.IconType.Folder or about in _PLACES
        return _icon("folder" if is_folder else "file")


_icons: list[_Icons] = []  # Qt keeps no reference


def dress_when_shown() -> None:
    """The next dialog for files that is shown, if it is Qt's own. Before one of Qt's functions that wait for it."""
    QTimer.singleShot(0, _dress_shown)


def _dress_shown() -> None:
    dialog = QApplication.activeModalWidget()
    if isinstance(dialog, QFileDialog):
        dress(dialog)


def dress(dialog: QFileDialog) -> None:
    """Nothing where it is the platform's."""
    layout = dialog.layout()
    if layout is None:
        return
    margin = DIALOG_MARGIN_PX
    layout.setContentsMargins(margin, margin, margin, margin)
    if not _icons:
        _icons.append(_Icons())
    dialog.setIconProvider(_icons[0])
    dialog.setViewMode(QFileDialog.ViewMode.Detail)
    for name, icon in _BUTTONS.items():
        if (button := dialog.findChild(QToolButton, name)) is not None:
            button.setIcon(_icon(icon))
    for name in _WITHOUT:
        if (button := dialog.findChild(QToolButton, name)) is not None:
            button.hide()
    dialog.resize(760, 480)
    if (splitter := dialog.findChild(QSplitter)) is not None:
        splitter.setSizes([140, 560])
    if (table := dialog.findChild(QTreeView)) is not None:
        _fit_columns(table)
    box = dialog.findChild(QDialogButtonBox)
    for choice in box.buttons() if box is not None else ():
        choice.setIcon(QIcon())
        if box is not None and isinstance(choice, QPushButton):
            restyle(choice, "primary", box.buttonRole(choice) == QDialogButtonBox.ButtonRole.AcceptRole)


def _fit_columns(table: QTreeView) -> None:
    """All in full but the name, which has what they leave."""
    header = table.header()
    header.setStretchLastSection(False)
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)


def _icon(name: str) -> QIcon:
    palette = QApplication.palette()
    return line_icon(name, palette.color(QPalette.ColorRole.Text).name(), palette.placeholderText().color().name())
