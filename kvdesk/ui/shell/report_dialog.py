"""What a report of a problem holds, said and chosen before it is written."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QCheckBox, QDialog, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from kvdesk.session.commands import Commands, ReportChoice
from kvdesk.translation import tr
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import fit_to_screen, label
from kvdesk.ui.widgets.sizes import DIALOG_MARGIN_PX


class ReportDialog(QDialog):
    """Not modal."""

    def __init__(self, parent: QWidget, commands: Commands) -> None:
        super().__init__(parent)
        self._commands = commands
        self.setWindowTitle(tr("Report a problem"))
        self._boxes: dict[str, QCheckBox] = {}
        inside = QWidget()
        inside.setObjectName("column")
        column = self._column = QVBoxLayout(inside)
        column.setContentsMargins(DIALOG_MARGIN_PX, DIALOG_MARGIN_PX, DIALOG_MARGIN_PX, 8)
        column.setSpacing(8)
        column.addWidget(
            _text(tr("One zip file is written where you choose. Nothing is sent: you give it to whom you want."))
        )
        column.addSpacing(4)
        column.addWidget(label(tr("It always holds"), weight="strong"))
        column.addWidget(
            _text(
                tr(
                    "versions and processor, settings without their texts, and what can be done to the cache of the "
                    "open model"
                )
            )
        )
        column.addSpacing(4)
        column.addWidget(label(tr("And, where it is ticked"), weight="strong"))
        default = ReportChoice()
        self._add(
            "logs",
            tr("Logs of kvdesk and llama.cpp"),
            tr("Without what stands in quotation marks, and without what errors say: it could be from a chat."),
            ticked=default.logs,
        )
        self._add(
            "journal",
            tr("Journal of the cache"),
            tr("Every operation since the context was made, without the tokens."),
            ticked=default.journal,
        )
        self._add(
            "texts",
            tr("The chat that is open, with all its texts"),
            tr("Also the texts that are otherwise left out of logs, settings and journal. Of other chats too."),
            ticked=default.texts,
        )
        self._add(
            "folders",
            tr("Whole paths of files"),
            tr("They may hold your name. Otherwise only the names of files are written."),
            ticked=default.folders,
        )
        save, close = QPushButton(tr("Save…")), QPushButton(tr("Cancel"))
        save.setProperty("primary", True)
        save.clicked.connect(self._on_save_clicked)
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.setContentsMargins(DIALOG_MARGIN_PX, 8, DIALOG_MARGIN_PX, DIALOG_MARGIN_PX)
        row.setSpacing(8)
        row.addStretch(1)
        row.addWidget(close)
        row.addWidget(save)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setAccessibleName(tr("Contents of the report"))
        scroll.setWidget(inside)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(scroll, 1)
        whole.addLayout(row)
        self.save_button = save

    def showEvent(self, event: QShowEvent) -> None:
        """As high as its sentences need in lines that one reads well."""
        super().showEvent(event)
        width = self.fontMetrics().averageCharWidth() * 80
        below = self.save_button.sizeHint().height() + 8 + DIALOG_MARGIN_PX
        self.resize(width, self._column.totalHeightForWidth(width) + below)
        fit_to_screen(self)

    @property
    def choice(self) -> ReportChoice:
        """What is ticked now."""
        return ReportChoice(**{name: box.isChecked() for name, box in self._boxes.items()})

    def box(self, name: str) -> QCheckBox:
        """The box of a field of `ReportChoice`."""
        return self._boxes[name]

    def _add(self, name: str, text: str, tip: str, *, ticked: bool) -> None:
        box = self._boxes[name] = QCheckBox(text)
        box.setChecked(ticked)
        box.setAccessibleDescription(tip)
        under = _text(tip)
        under.setContentsMargins(24, 0, 0, 4)
        self._column.addWidget(box)
        self._column.addWidget(under)

    @Slot()
    def _on_save_clicked(self) -> None:
        if file := ask_where_to_save(self, tr("Save the report"), "kvdesk-report.zip", tr("Zip files (*.zip)")):
            self._commands.report_problem(file, self.choice)
            self.close()


def _text(text: str) -> QWidget:
    result = label(text, tone="secondary", scale="small")
    result.setWordWrap(True)
    result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return result
