"""What is attached to the draft that is shown: from the button, a paste or a drop to what the conversation keeps.

The conversation owns it (`Conversation.draft_attachments`); this says by `changed` what it shall be, and shows what it
is. Owns what only the window knows: files that are being read, and the whole of what was shortened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject, Signal, Slot

from kvdesk.chat import Attachment, Conversation, ConversationId
from kvdesk.translation import tr
from kvdesk.ui.composer.composer import Composer
from kvdesk.ui.widgets.choose_file import ask_for_files
from kvdesk.values import replace
from kvdesk.viewmodel.attachment_facts import shortened


class DraftAttachments(QObject):
    """Of the conversation that is shown in the pane of `composer`."""

    changed = Signal(str, object)  # conversation, its attachments from now on: a tuple
    files_given = Signal(str, object)  # conversation, paths to be read as attachments
    reading_cancelled = Signal(int)
    encoding_chosen = Signal(str, object, str)  # conversation, an attachment, the encoding to read its file in again

    def __init__(self, composer: Composer) -> None:
        super().__init__(composer)
        self._composer = composer
        self._conversation: ConversationId | None = None
        self._attachments: tuple[Attachment, ...] = ()
        self._reading: Mapping[ConversationId, Mapping[int, str]] = {}
        self._encodings: Mapping[Attachment, str] = {}
        self._whole: dict[Attachment, Attachment] = {}
        rows = composer.attachments
        rows.removed.connect(self._on_removed)
        rows.as_text_clicked.connect(self._on_as_text_clicked)
        rows.whole_clicked.connect(self._on_whole_clicked)
        rows.cancelled.connect(self.reading_cancelled)
        rows.encoding_chosen.connect(self._on_encoding_chosen)
        composer.attach_clicked.connect(self.choose)
        composer.edit.files_given.connect(self.give)
        composer.edit.long_pasted.connect(self._on_long_pasted)
        composer.edit.can_attach = lambda: self.can_attach
        composer.shorten_clicked.connect(self._on_shorten_clicked)
        composer.counted.connect(self._on_counted)

    @property
    def can_attach(self) -> bool:
        """Whether a conversation is shown."""
        return self._conversation is not None

    def show_conversation(self, conversation: Conversation | None) -> None:
        name = conversation.id if conversation else None
        if name != self._conversation:
            self._whole.clear()
        self._conversation = name
        self._attachments = conversation.draft_attachments if conversation else ()
        self._show()

    def show_reading(self, reading: Mapping[ConversationId, Mapping[int, str]]) -> None:
        """The files that are being read: their numbers and names, by conversation."""
        self._reading = reading
        self._show()

    def show_encodings(self, encodings: Mapping[Attachment, str]) -> None:
        """The attachments whose file can be read again in another encoding, and in which it was read."""
        self._encodings = encodings
        self._show()

    @Slot()
    def choose(self) -> None:
        """Ask for files to attach."""
        if self.can_attach:
            kinds = tr("Text, code, PDF, DOCX, RTF (*)")
            self.give(ask_for_files(self._composer, tr("Attach files"), kinds))

    @Slot(object)
    def give(self, files: Sequence[str]) -> None:
        """Attach files."""
        if files and self.can_attach:
            self.files_given.emit(self._conversation, list(files))
            self._composer.focus_edit()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        shown = self._attachments
        reading = self._reading.get(self._conversation, {}) if self._conversation else {}
        self._composer.show_attachments(
            shown,
            reading,
            [attachment in self._whole for attachment in shown],
            [self._encodings.get(attachment, "") for attachment in shown],
            can_change=self.can_attach,
        )

    def _change(self, attachments: Sequence[Attachment]) -> None:
        if self._conversation is not None:
            self.changed.emit(self._conversation, tuple(attachments))

    @Slot(str)
    def _on_long_pasted(self, text: str) -> None:
        names = {attachment.name for attachment in self._attachments}
        name, n = tr("Pasted text"), 1
        while name in names:
            n += 1
            name = tr("Pasted text {n}").format(n=n)
        self._change((*self._attachments, Attachment(name, "pasted", text)))

    @Slot(int)
    def _on_removed(self, index: int) -> None:
        self._change((*self._attachments[:index], *self._attachments[index + 1 :]))
        self._composer.focus_edit()

    @Slot(int)
    def _on_as_text_clicked(self, index: int) -> None:
        text = self._attachments[index].text
        self._composer.insert_text(text)
        self._on_removed(index)

    @Slot(int)
    def _on_whole_clicked(self, index: int) -> None:
        attachments = list(self._attachments)
        attachments[index] = self._whole[attachments[index]]
        self._change(attachments)

    @Slot(int, str)
    def _on_encoding_chosen(self, index: int, encoding: str) -> None:
        if self._conversation is not None:
            self.encoding_chosen.emit(self._conversation, self._attachments[index], encoding)

    @Slot(int)
    def _on_shorten_clicked(self, n_characters: int) -> None:
        kept = shortened(self._attachments, n_characters)
        if kept and len(kept) <= len(self._attachments):
            whole = self._attachments[len(kept) - 1]
            self._whole[kept[-1]] = self._whole.get(whole, whole)
            self._change(kept)

    @Slot(object)
    def _on_counted(self, n_tokens: tuple[int, ...]) -> None:
        if len(n_tokens) == len(self._attachments):
            self._change([replace(a, n_tokens=n) for a, n in zip(self._attachments, n_tokens, strict=True)])
