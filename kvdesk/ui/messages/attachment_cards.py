"""What was attached to a message that was sent: a line for each, which unfolds its text."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QFrame, QWidget

from kvdesk import folding
from kvdesk.message import Attachment
from kvdesk.translation import tr
from kvdesk.ui.messages.message_body import MessageBody
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.chat.attachment_facts import attachment_facts
from kvdesk.viewmodel.chat.find_in_chat import SEARCHED


class AttachmentCards(QWidget):
    """One below the other."""

    def __init__(self, theme: Theme, attachments: Sequence[Attachment]) -> None:
        super().__init__()
        self.cards = [AttachmentCard(theme, attachment) for attachment in attachments]
        boxes.column(*self.cards, on=self, margins=0, spacing=0)

    def mark(self, words: Sequence[str], at: int = -1, *, unfold: bool = True) -> list[QPoint]:
        """As `MessageBody.mark`: unfolds those where one of the words occurs, of several only number `at`."""
        marked: list[QPoint] = []
        for card in self.cards:
            marked += (card.mapTo(self, place) for place in card.mark(words, at - len(marked), unfold=unfold))
        return marked


class AttachmentCard(QWidget):
    """Folded at first; the text is laid out when it is looked at."""

    def __init__(self, theme: Theme, attachment: Attachment) -> None:
        super().__init__()
        self._theme, self._attachment = theme, attachment
        self._text: MessageBody | None = None  # made when it is unfolded first
        self.button = IconButton(theme, "chevron-right", "", clicked=self._on_clicked)
        facts = attachment_facts(attachment, attachment.n_tokens)
        self.title = ElidedLabel(f"{attachment.name}  ·  {facts}", tone="secondary", scale="small")
        self._box = QFrame()  # so that it does not look as if it had been typed
        self._box.setProperty("card", "code")
        self._box.hide()
        row = boxes.row(self.button, (self.title, 1), spacing=4)
        boxes.column(row, self._box, on=self, margins=0, spacing=4)
        self._show_name()

    @property
    def is_open(self) -> bool:
        return not self._box.isHidden()

    def mark(self, words: Sequence[str], at: int = -1, *, unfold: bool = True) -> list[QPoint]:
        """As `MessageBody.mark`, in the beginning of the text: to lay out all of a long one would stall the window. A
        folded text has its places at the card.
        """
        found = folding.places(self._attachment.text[:SEARCHED], words)
        if unfold and found and not self.is_open and at < len(found):
            self._on_clicked()
        if self._text is None or not self.is_open or (words and not found):
            return [QPoint(0, 0)] * len(found)
        return [self._text.mapTo(self, place) for place in self._text.mark(words, at, unfold=unfold)]

    def _on_clicked(self) -> None:
        if self._text is None:
            self._text = MessageBody(self._theme, plain=True, quiet=True)
            self._text.show_source(self._attachment.text)
            boxes.column(self._text, on=self._box, margins=(12, 8, 12, 8))
        self._box.setVisible(not self.is_open)
        self.button.set_icon_name("chevron-down" if self.is_open else "chevron-right")
        self._show_name()

    def _show_name(self) -> None:
        name = tr("Fold {name}") if self.is_open else tr("Show the text of {name}")
        self.button.setAccessibleName(name.format(name=self._attachment.name))
        self.button.setToolTip(self.button.accessibleName())
