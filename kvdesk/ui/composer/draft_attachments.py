"""What is attached to the draft that is shown: from the button, a paste or a drop to what the conversation keeps.

The conversation owns it (`Conversation.draft_attachments`); this asks for what it shall be, and shows what it is. Owns
what only the window knows: the whole of what was shortened.
"""

from collections.abc import Sequence

from PySide6.QtCore import QObject

from kvdesk.message import Attachment, ConversationId
from kvdesk.translation import tr
from kvdesk.ui.composer.composer import Composer
from kvdesk.ui.widgets.choose_file import ask_for_files
from kvdesk.ui.widgets.kit import Kit
from kvdesk.values import replace
from kvdesk.viewmodel.chat.attachment_facts import shortened


class DraftAttachments(QObject):
    """Of the conversation that is shown, in `composer`."""

    def __init__(self, kit: Kit, composer: Composer) -> None:
        super().__init__(composer)
        self._store, self._commands, self._composer = kit.store, kit.commands, composer
        self._whole: dict[Attachment, Attachment] = {}
        rows = composer.attachments
        rows.removed.connect(self._on_removed)
        rows.as_text_clicked.connect(self._on_as_text_clicked)
        rows.whole_clicked.connect(self._on_whole_clicked)
        rows.cancelled.connect(kit.commands.cancel_reading)
        rows.encoding_chosen.connect(self._on_encoding_chosen)
        composer.edit.files_given.connect(self.give)
        composer.edit.long_pasted.connect(self._on_long_pasted)
        composer.edit.picture_pasted.connect(self._on_picture_pasted)
        composer.edit.can_attach = lambda: self.can_attach
        composer.shorten_clicked.connect(self._on_shorten_clicked)
        composer.counted.connect(self._on_counted)

    @property
    def can_attach(self) -> bool:
        """Whether a conversation is shown."""
        return self._store.selected is not None

    @property
    def _attachments(self) -> tuple[Attachment, ...]:
        shown = self._store.shown
        return shown.draft_attachments if shown is not None else ()

    def choose(self) -> None:
        """Ask for files to attach."""
        if self.can_attach:
            kinds = tr("Text, code, PDF, DOCX, RTF (*)")
            self.give(ask_for_files(self._composer, tr("Attach files"), kinds))

    def give(self, files: Sequence[str]) -> None:
        """Attach files."""
        if files and self.can_attach:
            self._commands.attach_files(self._store.selected or ConversationId(""), list(files))
            self._composer.focus_edit()

    # --- inside -------------------------------------------------------------------------------------------------------

    def show(self, *, is_other: bool) -> None:
        """What is attached to the shown conversation; `is_other`: another one is shown."""
        if is_other:
            self._whole.clear()
        store, shown = self._store, self._attachments
        self._composer.show_attachments(
            shown,
            store.reading.get(store.selected, {}) if store.selected else {},
            [attachment in self._whole for attachment in shown],
            [store.encodings.get(attachment, "") for attachment in shown],
            can_change=self.can_attach,
        )

    def _change(self, attachments: Sequence[Attachment]) -> None:
        if self._store.selected is not None:
            self._commands.attach(self._store.selected, tuple(attachments))

    def _on_long_pasted(self, text: str) -> None:
        names = {attachment.name for attachment in self._attachments}
        name, n = tr("Pasted text"), 1
        while name in names:
            n += 1
            name = tr("Pasted text {n}").format(n=n)
        self._change((*self._attachments, Attachment(name, "pasted", text)))

    def _on_picture_pasted(self) -> None:
        self._store.notify(tr("A picture cannot be pasted. Text, code, PDF, DOCX and RTF files can be attached."))

    def _on_removed(self, index: int) -> None:
        self._change((*self._attachments[:index], *self._attachments[index + 1 :]))
        self._composer.focus_edit()

    def _on_as_text_clicked(self, index: int) -> None:
        text = self._attachments[index].text
        self._composer.insert_text(text)
        self._on_removed(index)

    def _on_whole_clicked(self, index: int) -> None:
        attachments = list(self._attachments)
        attachments[index] = self._whole[attachments[index]]
        self._change(attachments)

    def _on_encoding_chosen(self, index: int, encoding: str) -> None:
        if self._store.selected is not None:
            self._commands.read_again(self._store.selected, self._attachments[index], encoding)

    def _on_shorten_clicked(self, n_characters: int) -> None:
        kept = shortened(self._attachments, n_characters)
        if kept and len(kept) <= len(self._attachments):
            whole = self._attachments[len(kept) - 1]
            self._whole[kept[-1]] = self._whole.get(whole, whole)
            if left_out := [attachment.name for attachment in self._attachments[len(kept) :]]:
                self._store.notify(tr("There is no room for {names}.").format(names=", ".join(left_out)), "warning")
            self._change(kept)

    def _on_counted(self, n_tokens: tuple[int, ...]) -> None:
        if len(n_tokens) == len(self._attachments):
            self._change([replace(a, n_tokens=n) for a, n in zip(self._attachments, n_tokens, strict=True)])
