"""What a report of a problem holds, said and chosen before it is written."""

from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QWidget

from kvdesk.session.commands import Commands, ReportChoice
from kvdesk.translation import tr
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.dialog import Dialog, sentence
from kvdesk.ui.widgets.style.theme import Theme


class ReportDialog(Dialog):
    """Not modal."""

    def __init__(self, theme: Theme, parent: QWidget, commands: Commands) -> None:
        super().__init__(theme, parent, tr("Report a problem"))
        self._commands = commands
        self._boxes: dict[str, QCheckBox] = {}
        self._say(tr("This writes one zip file where you choose. Nothing is sent; you decide who gets the file."))
        self.column.addSpacing(4)
        self.column.addWidget(label(tr("Always included"), weight="strong"))
        self._say(
            tr(
                "versions and processor, settings without their texts, and what can be done to the cache of the "
                "open model"
            )
        )
        self.column.addSpacing(4)
        self.column.addWidget(label(tr("Included if ticked"), weight="strong"))
        default = ReportChoice()
        self._add(
            "logs",
            tr("Logs of kvdesk and llama.cpp"),
            tr("Quoted text and error messages are removed: they could be from a chat."),
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
            tr("They may contain your name. Otherwise only file names are written."),
            ticked=default.folders,
        )
        self.column.addStretch(1)
        self.buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        self.save_button = self.add_primary(tr("Save…"))
        self.save_button.clicked.connect(self._on_save_clicked)

    @property
    def choice(self) -> ReportChoice:
        """What is ticked now."""
        return ReportChoice(**{name: box.isChecked() for name, box in self._boxes.items()})

    def _add(self, name: str, text: str, tip: str, *, ticked: bool) -> None:
        box = self._boxes[name] = QCheckBox(text)
        box.setChecked(ticked)
        box.setAccessibleDescription(tip)
        self.column.addWidget(box)
        self._say(tip, indent=24)

    def _say(self, text: str, indent: int = 0) -> None:
        words = sentence(text, scale="small")
        words.setContentsMargins(indent, 0, 0, 4 if indent else 0)
        self.column.addWidget(words)

    def _on_save_clicked(self) -> None:
        if file := ask_where_to_save(self, tr("Save the report"), "kvdesk-report.zip", tr("Zip files (*.zip)")):
            self._commands.report_problem(file, self.choice)
            self.close()
