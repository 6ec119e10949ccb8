"""Asks for the name of a new folder, at the row of the chat that goes there."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLineEdit, QWidget

from kvdesk.message import ConversationId
from kvdesk.session import Commands
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.input_method import composes
from kvdesk.ui.widgets.controls import label, push_button

_LONGEST = 60  # characters of a name


class FolderField(QFrame):
    """Hidden until it is asked for. Enter takes the name; `leave` (Esc) keeps everything as it was."""

    left = Signal()

    def __init__(self, parent: QWidget, commands: Commands) -> None:
        super().__init__(parent)
        self._commands = commands
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setProperty("card", "ask")
        self.conversation = ConversationId("")
        """For which a folder is asked for."""
        what = label(tr("New folder for this chat"), tone="secondary", scale="small", wrap=True)
        self.edit = QLineEdit(maxLength=_LONGEST, placeholderText=tr("Name of the folder"))
        self.edit.setAccessibleName(tr("Name of the new folder"))
        self.edit.returnPressed.connect(self._on_named)
        composes(self.edit)
        move = push_button(tr("Move"), scale="small", clicked=self._on_named)
        cancel = push_button(tr("Cancel"), scale="small", tip=tr("Cancel (Esc)"), clicked=self.leave)
        row = boxes.row(move, cancel, boxes.Stretch(1), spacing=4)
        boxes.column(what, self.edit, row, on=self, margins=8, spacing=8)
        self.hide()

    def ask(self, conversation: ConversationId, title: str) -> None:
        """For the folder into which this conversation goes."""
        self.conversation = conversation
        self.setAccessibleName(tr("Move “{title}” to a new folder").format(title=title))
        self.edit.clear()
        self.show()
        self.edit.setFocus()

    def leave(self) -> None:
        """No folder."""
        self.hide()
        self.left.emit()

    def _on_named(self) -> None:
        if name := self.edit.text().strip():
            self.hide()
            self._commands.move(self.conversation, name)
            self.left.emit()
