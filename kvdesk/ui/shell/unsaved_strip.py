"""A strip that stays while the disk keeps messages out: how much is not saved, why, and a way to save it elsewhere."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QMessageBox, QWidget

from kvdesk.session import Changed
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.kit import Kit


class UnsavedStrip(QFrame):
    """Cannot be dismissed: it goes when everything is saved."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self.destroyed.connect(kit.store.listen(self._show, Changed.UNSAVED))
        self.setProperty("card", "banner")
        self._sentence = label("", tone="danger", wrap=True, selectable=True)
        self.save_button = push_button(
            tr("Save elsewhere…"),
            tip=tr("Writes these chats as Markdown, on another disk"),
            clicked=self._on_save_clicked,
        )
        boxes.row(
            (self._sentence, 1),
            (self.save_button, 0, Qt.AlignmentFlag.AlignTop),
            on=self,
            margins=(12, 8, 12, 8),
            spacing=12,
        )
        self.hide()

    @property
    def sentence(self) -> str:
        """The sentence shown, empty while everything is saved."""
        return "" if self.isHidden() else self._sentence.text()

    def _show(self, *_heard: object) -> None:
        """Say what is not saved."""
        sentence = self._kit.store.unsaved
        self._sentence.setText(sentence)
        if sentence and sentence != self.sentence:
            announce(self, sentence, urgent=True)
        self._sentence.setAccessibleName(tr("Error: {sentence}").format(sentence=sentence))
        self.setVisible(bool(sentence))

    def may_close(self, parent: QWidget) -> bool:
        """Asks whether the window may close although something would be lost; True at once if nothing would."""
        if not self.sentence:
            return True
        box = QMessageBox(QMessageBox.Icon.Warning, "kvdesk", tr("Close and lose what is not saved?"), parent=parent)
        box.setInformativeText(self.sentence)
        box.setTextFormat(Qt.TextFormat.PlainText)
        stay = box.addButton(tr("Keep kvdesk open"), QMessageBox.ButtonRole.RejectRole)
        leave = box.addButton(tr("Close"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(stay)
        box.setEscapeButton(stay)
        box.exec()
        return box.clickedButton() is leave

    def _on_save_clicked(self) -> None:
        if file := ask_where_to_save(self, tr("Save elsewhere"), tr("kvdesk chats.md"), tr("Markdown (*.md)")):
            self._kit.commands.save_unsaved(file)
