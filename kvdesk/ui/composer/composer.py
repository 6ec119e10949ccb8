"""The field for the next message, what is attached to it, and what both cost. Enter sends."""

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QWidget

from kvdesk.message import Attachment, attachment_as_read
from kvdesk.protocol.chat import ContextUse, TurnPreview
from kvdesk.translation import tr
from kvdesk.ui.composer.attachment_list import AttachmentList
from kvdesk.ui.composer.context_meter import ContextMeter
from kvdesk.ui.messages.message_edit import MessageEdit
from kvdesk.ui.messages.room_help import RoomHelp, room_words, select_excess
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, restyle, set_tone
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.timers import once
from kvdesk.viewmodel.cells.context_parts import DraftEstimate, parts_of_preview

PAUSE_MS: Final = 300


class Composer(QFrame):
    """The attachments, the field, what helps where it is too long, how full the context is, a line about all that, and
    the buttons: Attach, and Send or Stop.
    """

    sent = Signal()
    text_changed = Signal()
    counted = Signal(tuple)  # before it is sent: tokens of each attachment, where they are known
    asked_again = Signal()  # what messages cost has changed
    shorten_clicked = Signal(int)  # characters of what is attached, as the model reads it, that fit

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        theme = kit.theme
        self._kit = kit
        self.setProperty("card", "composer")
        self.is_running = self._asks = False
        self._last_text = ""
        self.blocked = ""
        """Why nothing can be sent; "" if it can."""
        self._loading = ""
        self._attachments: tuple[Attachment, ...] = ()
        self._attached_chars: tuple[int, ...] = ()
        self._can_attach = False
        self._use: ContextUse | None = None
        self._estimate = DraftEstimate()
        self.edit = MessageEdit()
        self.edit.submitted.connect(self.submit)
        self.edit.focused.connect(self.set_focused)
        self.edit.setAccessibleName(tr("Message"))
        self.edit.setPlaceholderText(tr("Type a message"))
        theme.give_font(self.edit, "text")
        self.edit.textChanged.connect(self._on_text_changed)
        self._preview: TurnPreview | None = None
        self._pause = once(self, PAUSE_MS, self._on_pause)
        self.hint = ElidedLabel(n_lines=2, tone="secondary", scale="small")  # no higher than the button beside it
        self._send = IconButton(
            theme, "send", tr("Send"), tr("Send (Enter)"), "accent_text", clicked=self._on_send_clicked
        )
        self._send.setProperty("send", True)
        tip = tr("Attach text, code, PDF, DOCX or RTF files (Ctrl+Shift+A); dropping and pasting them works too")
        self._attach = IconButton(theme, "attach", tr("Attach files"), tip, clicked=kit.act("chat.attach"))
        self.attachments = AttachmentList(theme)
        self.meter = ContextMeter(theme)
        row = boxes.row((self.hint, 1), self._send, margins=0, spacing=4)
        self.help = RoomHelp(kit, self._shorten)
        """The links under a text that is too long; hidden otherwise."""
        field = boxes.row((self._attach, 0, Qt.AlignmentFlag.AlignBottom), (self.edit, 1), spacing=4)
        parts = self.attachments, field, self.help, self.meter, row
        boxes.column(*parts, on=self, margins=(12, 8, 8, 8), spacing=4)
        self._show_state()

    @property
    def text(self) -> str:
        return self.edit.toPlainText()

    @property
    def is_loading(self) -> bool:
        """Whether what is sent waits for a model."""
        return bool(self._loading)

    def set_text(self, text: str) -> None:
        self.edit.setPlainText(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)

    def insert_text(self, text: str) -> None:
        """Where the cursor is, in the place of what is selected."""
        self.edit.insertPlainText(text)

    def show_attachments(
        self,
        attachments: Sequence[Attachment],
        reading: Mapping[int, str],
        shortened: Sequence[bool],
        encodings: Sequence[str],
        *,
        can_change: bool,
    ) -> None:
        """What goes with the text; files that are being read for it; which of them were shortened, and in which
        encoding each was read if another one can be chosen.
        """
        self.attachments.show_attachments(attachments, reading, shortened, encodings, can_change=can_change)
        self._can_attach = can_change
        new = tuple(attachments)
        if new != self._attachments:
            self._attachments = new
            self._attached_chars = tuple(len(attachment_as_read(attachment)) for attachment in new)
            self._on_draft_changed()
        else:
            self._show_state()

    def show_use(self, use: ContextUse | None) -> None:
        """How full the context of the conversation is without the draft; None: not known. The draft's price follows it:
        messages were deleted, another branch is shown, tools were switched on.
        """
        if use != self._use:
            self._use = use
            self._show_meter()
            self.ask_again()

    def set_running(self, running: bool, *, asks: bool = False) -> None:
        """An answer is being written: the button stops it. `asks`: it waits for permission to call a tool."""
        self.is_running, self._asks = running, asks
        self._show_state()

    def set_loading(self, name: str) -> None:
        """The model of this name is being opened: what is sent waits for it. Empty: none is."""
        self._loading = name
        self._show_state()

    def set_blocked(self, reason: str) -> None:
        """Why nothing can be sent now; empty when it can. Typing is always possible."""
        self.blocked = reason
        self._show_state()

    @property
    def is_too_long(self) -> bool:
        """Whether the text, as it is now, is known not to fit."""
        return self._preview is not None and bool(self._preview.refused)

    def show_preview(self, preview: TurnPreview) -> None:
        """Show the cost of sending; ignored where the text has changed since."""
        if self._is_of_draft(preview):
            self._preview = preview
            self._estimate.learn(preview)
            self._show_state()

    def forget_preview(self) -> None:
        """Forget the preview: it is no longer valid."""
        self._preview = None
        self._show_state()

    def ask_again(self) -> None:
        """Something that the preview hangs on has changed: another context, another policy, a longer conversation."""
        self.asked_again.emit()
        if self._has_draft:
            self._pause.start()

    def _shorten(self) -> None:
        if self._preview is not None and self._preview.n_attached_fitting and self._can_attach:
            self.shorten_clicked.emit(self._preview.n_attached_fitting)
        else:
            self.select_excess()

    def select_excess(self) -> None:
        """Select what is too much of the text, so that it can be seen, and deleted."""
        if self._preview is None:
            return
        select_excess(self.edit, self._preview.n_fitting)
        self.focus_edit()

    def focus_edit(self) -> None:
        self.edit.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def submit(self) -> None:
        """Send what is typed, if that is possible; while an answer is written it waits in the queue."""
        self.edit.commit_preedit()
        text, preview, selected = self.text, self._preview, self._kit.store.selected
        if selected is not None and self._has_draft and not self._why_not():
            if preview is not None and preview.n_attached:
                self.counted.emit(preview.n_attached)
            self.edit.clear()
            self.sent.emit()
            self._kit.commands.conversations.send(selected, text)

    @property
    def _has_draft(self) -> bool:
        """Whether there is anything to send."""
        return bool(self._attachments) or bool(self.text.strip())

    def _is_of_draft(self, preview: TurnPreview) -> bool:
        """Whether a preview is of the draft as it is now."""
        is_draft = preview.replaced is None and preview.text == self.text.rstrip()
        return is_draft and preview.attached_chars == self._attached_chars

    def _why_not(self) -> str:
        """Why what is typed cannot be sent or queued, "" if it can."""
        if self.blocked:
            return self.blocked
        if name := self.attachments.reading:
            return tr("{name} is being read. Send when it is attached, or stop reading it.").format(name=name)
        return room_words(self._preview)[0] if self._preview is not None and self.is_too_long else ""

    def set_focused(self, focused: bool) -> None:
        restyle(self, "focused", focused)

    def _on_send_clicked(self) -> None:
        selected = self._kit.store.selected
        if not self.is_running:
            self.submit()
        elif selected is not None:
            self._kit.commands.conversations.stop(selected)

    def _on_text_changed(self) -> None:
        self.edit.fit()
        if (text := self.text) != self._last_text:  # Qt also tells of what an input method composes
            self._last_text = text
            self.text_changed.emit()
            self._on_draft_changed()

    def _on_draft_changed(self) -> None:
        """The text, or what is attached, is another."""
        if self._preview is not None and not self._is_of_draft(self._preview):
            self._preview = None
        if self._has_draft:
            self._pause.start()
        else:
            self._pause.stop()
        self._show_state()

    def _on_pause(self) -> None:
        selected = self._kit.store.selected
        if self._has_draft and not self.is_running and selected is not None:
            self._kit.commands.conversations.turns.preview(selected, self.text)

    def _show_state(self) -> None:
        self._send.set_icon_name("stop" if self.is_running else "send")
        self._send.setAccessibleName(tr("Stop") if self.is_running else tr("Send"))
        self._send.setToolTip(tr("Stop (Esc)") if self.is_running else tr("Send (Enter)"))
        self._show_help()
        self._show_costs()
        self._show_meter()
        self._attach.setEnabled(self._can_attach)
        self._send.setEnabled(self.is_running or (self._has_draft and not self._why_not()))
        words, tone = self._words()
        self.hint.setText(words)
        set_tone(self.hint, tone)

    def _show_help(self) -> None:
        """What helps where the draft is too long: with attachments those are shortened, else the text."""
        preview = self._preview
        self.help.setVisible(preview is not None and bool(preview.refused) and not self.is_running)
        if preview is not None and preview.attached_chars:
            self.help.offer_first_part(bool(preview.n_attached_fitting) and self._can_attach)
        else:
            self.help.offer_selection(preview is not None and preview.n_fitting > 0)

    def _show_costs(self) -> None:
        """Beside each attachment: its tokens, and how long they take to be read."""
        preview = self._preview
        if preview is None or not self._attachments:
            return
        ms = preview.first_token_ms
        per_token = ms / preview.n_prefill if ms is not None and preview.n_prefill else None
        self.attachments.show_costs(preview.n_attached, per_token)

    def _show_meter(self) -> None:
        if self._preview is not None and self._preview.n_draft and not self.is_running:
            self.meter.show_parts(parts_of_preview(self._preview))
        elif self._use is not None:
            n_typed = len(self.text) if self.text.strip() else 0
            self.meter.show_parts(self._estimate.parts(self._use, sum(self._attached_chars), n_typed))
        else:
            self.meter.show_parts(None)

    def _words(self) -> tuple[str, str]:
        """The line under the text, and its tone."""
        if self.blocked or (self.attachments.reading and self._has_draft):
            return self._why_not(), "secondary"
        if self._asks:
            return tr("Allow or deny the call above  ·  Esc stops the answer"), "secondary"
        if self.is_running:
            stops = tr("Enter queues it  ·  Esc stops the answer") if self._has_draft else tr("Esc stops the answer")
            return stops, "secondary"
        if self._loading:
            return tr("Loading {name}. What you send waits for it.").format(name=self._loading), "secondary"
        if self._preview is not None:
            return room_words(self._preview)
        return tr("Enter sends  ·  Shift+Enter starts a new line"), "secondary"


def centred(widget: QWidget, width: int) -> QWidget:
    """The widget in the middle of a row, at most `width` wide."""
    holder = QWidget()
    widget.setMaximumWidth(width)
    boxes.row(boxes.Stretch(1), (widget, 100), boxes.Stretch(1), on=holder, margins=(24, 8, 24, 16))
    return holder
