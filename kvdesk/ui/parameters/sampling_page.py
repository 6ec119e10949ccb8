"""How the answers of one chat are sampled: as the settings say, or by its own values."""

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from kvdesk.settings import Sampling
from kvdesk.translation import tr
from kvdesk.ui.settings.rows import SettingRows
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.style.theme import Theme

_TABLE = "sampling"


class SamplingPage(QWidget):
    """The rows of the settings, which can be changed once the chat has its own values."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._general = Sampling()  # of the settings
        self._kept: Sampling | None = None  # own values, while those of the settings are shown
        self.own_box = QCheckBox(tr("Own sampling for this chat"))
        self.own_box.toggled.connect(self._on_own_toggled)
        about = label(tr("Else its answers are sampled as the settings say."), tone="secondary", scale="small")
        self.rows = SettingRows(theme)
        self.rows.add_table(_TABLE, Sampling)
        self.rows.edited.connect(self.edited)
        content = QWidget()
        boxes.column(self.rows, boxes.Stretch(1), on=content, margins=(0, 0, 12, 0))
        boxes.column(self.own_box, about, (ScrollColumn(content, tr("Sampling")), 1), on=self, margins=0, spacing=4)
        self.set_sampling(None)

    @property
    def sampling(self) -> Sampling | None:
        """Values of the chat's own; None: as the settings say."""
        return Sampling(**self.rows.values(_TABLE)) if self.own_box.isChecked() else None

    @property
    def shown(self) -> Sampling:
        """What counts with what is shown: the chat's own values, or those of the settings."""
        return self.sampling or self._general

    @property
    def problem(self) -> str:
        """What is wrong with the first entry that is invalid; "" if all are valid."""
        return self.rows.problem if self.own_box.isChecked() else ""

    def set_sampling(self, sampling: Sampling | None) -> None:
        """Show these; None: those of the settings."""
        self._kept = sampling
        with QSignalBlocker(self.own_box):
            self.own_box.setChecked(sampling is not None)
        self._show_values()

    def show_general(self, sampling: Sampling) -> None:
        """What the settings say."""
        self._general = sampling
        if not self.own_box.isChecked():
            self._show_values()

    def _show_values(self) -> None:
        own = self.own_box.isChecked()
        for field in self.rows.fields(_TABLE):
            field.setEnabled(own)
        self.rows.show_values(_TABLE, (self._kept or self._general) if own else self._general)

    def _on_own_toggled(self) -> None:
        if not self.own_box.isChecked():
            self._kept = Sampling(**self.rows.values(_TABLE))
        self._show_values()
        self.edited.emit()
