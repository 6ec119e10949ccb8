"""About kvdesk: the versions of all that decides how it behaves, and the licences of what is installed."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QHBoxLayout, QLabel, QPlainTextEdit, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.dialog import Dialog, facts
from kvdesk.ui.widgets.style.icons import application_icon
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class AboutFacts:
    """Names with versions, and installed packages with the name of their licence. `notice`: all licence texts, ""
    where each package brings its own.
    """

    versions: tuple[tuple[str, str], ...]
    licences: tuple[tuple[str, str], ...]
    notice: str = ""


class AboutDialog(Dialog):
    """Two tables that one reads, which scroll together; the licence texts are folded."""

    def __init__(self, theme: Theme, parent: QWidget, about: AboutFacts) -> None:
        super().__init__(theme, parent, tr("About kvdesk"))
        self._facts = about
        self.column.addLayout(self._make_head())
        for title, rows in ((tr("Versions"), about.versions), (tr("Licences"), about.licences)):
            self.column.addSpacing(8)
            self.column.addWidget(label(title, weight="strong"))
            self.column.addLayout(facts(rows, proper=True))
        if about.notice:
            text = _page(theme, tr("Licence texts"), about.notice)
            text.setMinimumHeight(theme.px(240))
            self.column.addWidget(Collapsible(theme, tr("Licence texts"), text))
        self.column.addStretch(1)
        self.copy_button = self.buttons.addButton(tr("Copy the versions"), QDialogButtonBox.ButtonRole.ActionRole)
        self.copy_button.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.versions_text))
        self.buttons.addButton(QDialogButtonBox.StandardButton.Close).setDefault(True)

    def _make_head(self) -> QHBoxLayout:
        icon = QLabel()
        icon.setPixmap(application_icon().pixmap(48, 48))
        icon.setAccessibleName("kvdesk")
        what = label(
            tr("Chat with GGUF models on a laptop, and see what the KV cache is doing."), tone="secondary", wrap=True
        )
        names = boxes.column(label("kvdesk", scale="large"), what)
        return boxes.row((icon, 0, Qt.AlignmentFlag.AlignTop), (names, 1), spacing=16)

    @property
    def versions_text(self) -> str:
        """One line a version, to be pasted into a report."""
        return "\n".join(f"{name:18}  {version}" for name, version in self._facts.versions)


def _page(theme: Theme, name: str, text: str) -> QPlainTextEdit:
    page = QPlainTextEdit(text, readOnly=True, tabChangesFocus=True)
    page.setProperty("boxed", True)
    theme.give_font(page, "mono_small")
    page.setAccessibleName(name)
    return page
