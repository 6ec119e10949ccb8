"""About kvdesk: the versions of all that decides how it behaves, and the licences of what is installed."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.icons import application_icon
from kvdesk.ui.widgets.theme import Theme


@dataclass(frozen=True, slots=True)
class AboutFacts:
    """Names with versions, and installed packages with the name of their licence. `notice`: all licence texts, ""
    where each package brings its own.
    """

    versions: tuple[tuple[str, str], ...]
    licences: tuple[tuple[str, str], ...]
    notice: str = ""


class AboutDialog(QDialog):
    """Not modal."""

    def __init__(self, theme: Theme, parent: QWidget, facts: AboutFacts) -> None:
        super().__init__(parent)
        self._facts = facts
        self.setWindowTitle(tr("About kvdesk"))
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
        self._versions = _page(theme, tr("Versions"), self.versions_text)
        licences = "\n".join(f"{name:38}  {licence}" for name, licence in facts.licences)
        self._licences = _page(theme, tr("Licences"), f"{licences}\n\n{facts.notice}".strip())
        copy, close = QPushButton(tr("Copy the versions")), QPushButton(tr("Close"))
        copy.clicked.connect(self._on_copy_clicked)
        close.clicked.connect(self.close)
        close.setDefault(True)
        row = QHBoxLayout()
        row.addWidget(copy)
        row.addStretch(1)
        row.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(8)
        column.addLayout(head)
        for title, page, share in ((tr("Versions"), self._versions, 1), (tr("Licences"), self._licences, 1)):
            column.addWidget(label(title, weight="strong"))
            column.addWidget(page, share)
        column.addLayout(row)
        self.copy_button = copy
        self.resize(theme.px(640), theme.px(680))

    @property
    def versions_text(self) -> str:
        """One line a version."""
        return "\n".join(f"{name:18}  {version}" for name, version in self._facts.versions)

    @property
    def licences_text(self) -> str:
        """What the lower field shows."""
        return self._licences.toPlainText()

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.versions_text)


def _page(theme: Theme, name: str, text: str) -> QPlainTextEdit:
    page = QPlainTextEdit(text)
    page.setReadOnly(True)
    page.setTabChangesFocus(True)
    page.setProperty("boxed", True)
    theme.give_font(page, "mono_small")
    page.setAccessibleName(name)
    return page
