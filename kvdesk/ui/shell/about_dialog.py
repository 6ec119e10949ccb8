"""About kvdesk: the versions of all that decides how it behaves, and the licences of what is installed."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from kvdesk.translation import tr
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import fit_to_screen, label
from kvdesk.ui.widgets.icons import application_icon
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.sizes import DIALOG_MARGIN_PX
from kvdesk.ui.widgets.theme import Theme
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class AboutFacts:
    """Names with versions, and installed packages with the name of their licence. `notice`: all licence texts, ""
    where each package brings its own.
    """

    versions: tuple[tuple[str, str], ...]
    licences: tuple[tuple[str, str], ...]
    notice: str = ""


class AboutDialog(QDialog):
    """Not modal. Two tables that one reads, which scroll together; the licence texts are folded."""

    def __init__(self, theme: Theme, parent: QWidget, facts: AboutFacts) -> None:
        super().__init__(parent)
        self._facts = facts
        self.setWindowTitle(tr("About kvdesk"))
        inside = QWidget()
        inside.setObjectName("column")
        column = QVBoxLayout(inside)
        column.setContentsMargins(DIALOG_MARGIN_PX, DIALOG_MARGIN_PX, DIALOG_MARGIN_PX, 8)
        column.setSpacing(8)
        column.addLayout(self._make_head())
        for title, rows in ((tr("Versions"), facts.versions), (tr("Licences"), facts.licences)):
            column.addSpacing(8)
            column.addWidget(label(title, weight="strong"))
            column.addLayout(_table(rows))
        if facts.notice:
            text = _page(theme, tr("Licence texts"), facts.notice)
            text.setMinimumHeight(theme.px(240))
            column.addWidget(Collapsible(theme, tr("Licence texts"), text))
        column.addStretch(1)
        scroll = ScrollColumn()
        scroll.setAccessibleName(tr("Versions and licences"))
        scroll.setWidget(inside)
        self.copy_button, close = QPushButton(tr("Copy the versions")), QPushButton(tr("Close"))
        self.copy_button.clicked.connect(self._on_copy_clicked)
        close.clicked.connect(self.close)
        close.setDefault(True)
        row = QHBoxLayout()
        row.setContentsMargins(DIALOG_MARGIN_PX, 8, DIALOG_MARGIN_PX, DIALOG_MARGIN_PX)
        row.addWidget(self.copy_button)
        row.addStretch(1)
        row.addWidget(close)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(scroll, 1)
        whole.addLayout(row)
        self.resize(theme.px(560), theme.px(640))
        fit_to_screen(self)

    def _make_head(self) -> QHBoxLayout:
        icon = QLabel()
        icon.setPixmap(application_icon().pixmap(48, 48))
        icon.setAccessibleName("kvdesk")
        what = label(tr("Chat with GGUF models on a laptop, and see what the KV cache is doing."), tone="secondary")
        what.setWordWrap(True)
        names = QVBoxLayout()
        names.addWidget(label("kvdesk", scale="large"))
        names.addWidget(what)
        head = QHBoxLayout()
        head.setSpacing(16)
        head.addWidget(icon, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(names, 1)
        return head

    @property
    def versions_text(self) -> str:
        """One line a version, to be pasted into a report."""
        return "\n".join(f"{name:18}  {version}" for name, version in self._facts.versions)

    @property
    def licences_text(self) -> str:
        """One line a package."""
        return "\n".join(f"{name}  {licence}" for name, licence in self._facts.licences)

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.versions_text)


def _table(rows: Iterable[tuple[str, str]]) -> QGridLayout:
    """Names in the quiet tone, values beside them."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(4)
    grid.setColumnStretch(1, 1)
    for n, (name, text) in enumerate(rows):
        value = label(text)
        value.setAccessibleName(f"{name}: {text}")
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        key = label(name, tone="secondary")
        for part, place in ((key, 0), (value, 1)):
            part.setWordWrap(True)
            part.setProperty("proper", True)  # names, in no language
            grid.addWidget(part, n, place, Qt.AlignmentFlag.AlignTop)
        key.setMinimumWidth(key.fontMetrics().averageCharWidth() * 22)
    return grid


def _page(theme: Theme, name: str, text: str) -> QPlainTextEdit:
    page = QPlainTextEdit(text)
    page.setReadOnly(True)
    page.setTabChangesFocus(True)
    page.setProperty("boxed", True)
    theme.give_font(page, "mono_small")
    page.setAccessibleName(name)
    return page
