"""Import: how far the reading is, what the file has, and whether all of it is to be added. Not modal."""

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QWidget

from kvdesk.conversations.porting.summary import Summary, rows
from kvdesk.translation import plural, tr
from kvdesk.ui.widgets.controls import ThinProgress, label, set_tone
from kvdesk.ui.widgets.dialog import Dialog, facts, sentence
from kvdesk.ui.widgets.style.theme import Theme


class ImportDialog(Dialog):
    """Passive: shows what its methods get."""

    confirmed = Signal(bool)
    """Import them; True: also those that are here already, as copies."""
    cancelled = Signal()
    """It was closed before anything was imported."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent, tr("Import chats"))
        self._summary: Summary | None = None
        self._ended = False
        self.facts: dict[str, str] = {}
        """What is shown of the file, by name."""
        title = label(name, weight="strong", wrap=True)
        self._sentence = sentence("")
        self._progress = ThinProgress(tr("Progress of the import"))
        self.copies = QCheckBox(tr("Import once more what is here already, as copies"))
        self.copies.toggled.connect(self._show_button)
        self.copies.hide()
        self.import_button = self.add_primary(tr("Import"))
        self.import_button.setEnabled(False)
        self.import_button.clicked.connect(self._on_import_clicked)
        self.close_button = self.buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        for widget in (title, self._sentence, self._progress, self.copies):
            self.column.addWidget(widget)
        self.column.addStretch(1)

    def show_reading(self, done: int, total: int) -> None:
        """Bytes that were read, and of all."""
        mb = 1 << 20
        told = tr("Reading: {done:.1f} of {total:.1f} MB").format(done=done / mb, total=total / mb)
        self._say(told if total >= mb else tr("Reading"))
        self._progress.set_share(done / max(total, 1))

    def show_summary(self, summary: Summary) -> None:
        """What the file has: it can be imported now."""
        self._summary = summary
        self._progress.set_share(None)
        some = tr("All chats that are not here yet are imported, or none.")
        whole = tr("All of these chats are imported, or none.") if not summary.n_known else some
        known = tr("All of these chats are here already.") if summary.n_known else tr("All of its chats are empty.")
        self._say(whole if summary.n_new else known)
        self.facts = dict(rows(summary))
        self.column.insertLayout(self.column.indexOf(self.copies), facts(self.facts.items()))
        self.copies.setVisible(bool(summary.n_known))
        self._show_button()
        (self.import_button if self.import_button.isEnabled() else self.close_button).setFocus()
        QTimer.singleShot(0, self, self.fit)  # Qt counts new labels once it has shown them

    def show_writing(self, n_messages: int, total: int) -> None:
        """Messages that were written, and of all."""
        self.import_button.setEnabled(False)
        self.copies.setEnabled(False)
        self._say(tr("Saving: {n} of {total} messages").format(n=f"{n_messages:,}", total=f"{total:,}"))
        self._progress.set_share(n_messages / max(total, 1))

    def show_failure(self, reason: str, detail: str = "") -> None:
        """Nothing is imported, and why."""
        self._ended = True
        self._progress.set_share(None)
        self.import_button.hide()
        self.copies.hide()
        self.close_button.setText(tr("Close"))
        self.close_button.setFocus()
        self._say(reason, "danger")
        self._sentence.setToolTip(detail)
        self.fit()

    def end(self) -> None:
        """All is imported."""
        self._ended = True
        self.accept()

    def done(self, result: int) -> None:
        """However it is closed."""
        super().done(result)
        if not self._ended:
            self._ended = True
            self.cancelled.emit()

    def _on_import_clicked(self) -> None:
        if self._summary is not None:
            self.show_writing(0, self._summary.n_messages)
            self.confirmed.emit(self.copies.isChecked())

    def _show_button(self) -> None:
        if self._summary is None:
            return
        n = self._summary.n_conversations if self.copies.isChecked() else self._summary.n_new
        self.import_button.setEnabled(n > 0)
        chats = plural("Import one chat", "Import %n chats", n)
        self.import_button.setText(chats if n else tr("Nothing to import"))

    def _say(self, text: str, tone: str = "secondary") -> None:
        self._sentence.setText(text)
        self._sentence.setAccessibleName(text)
        set_tone(self._sentence, tone)
