"""A text against the room that its context has: what is said of it, and what helps if it does not fit."""

from collections.abc import Callable

from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QToolButton, QWidget

from kvdesk.policies.forecast import in_seconds, put_words
from kvdesk.protocol.chat import TurnPreview
from kvdesk.quantities import tokens_text
from kvdesk.translation import plural, tr
from kvdesk.ui.markdown.offsets import utf16
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import link_button
from kvdesk.ui.widgets.kit import Kit


def room_words(preview: TurnPreview) -> tuple[str, str]:
    """The sentence under a draft, and its tone."""
    n_draft, room = preview.n_draft, preview.room
    if preview.refused and not room:
        text = tr("Too long: the conversation alone takes {n} of {n_ctx} tokens")
        return text.format(n=f"{preview.n_conversation:,}", n_ctx=f"{preview.n_ctx:,}"), "danger"
    if preview.refused and not n_draft:
        return preview.refused, "danger"
    if preview.refused:
        text = tr("Too long: {tokens}, and {room} fit with an answer")
        return text.format(tokens=tokens_text(n_draft), room=f"{room:,}"), "danger"
    if preview.n_evicted_tokens:
        n = preview.n_evicted_messages
        if n:
            text = plural(
                "{tokens}: the oldest message ({evicted}) is removed from the context for it",
                "{tokens}: the %n oldest messages ({evicted}) are removed from the context for it",
                n,
            )
        else:
            text = tr("{tokens}: the oldest tokens ({evicted}) are removed from the context for it")
        return text.format(tokens=tokens_text(n_draft), evicted=tokens_text(preview.n_evicted_tokens)), "warning"
    if not preview.n_ctx:
        return preview.sentence, "secondary"
    if n_draft > room:
        left = preview.n_ctx - preview.n_conversation - n_draft
        text = tr("{tokens}: only {left} left for the answer")
        return text.format(tokens=tokens_text(n_draft), left=f"{left:,}"), "warning"
    return preview.sentence, "secondary"  # how many they are is in the meter


def edit_words(preview: TurnPreview, *, is_answer: bool) -> tuple[str, str]:
    """What another version of a message costs, and the tone of the sentence."""
    if preview.refused or preview.n_evicted_tokens:
        return room_words(preview)
    words = tr("{n} of {all} tokens to read")
    if is_answer:
        words = tr("{n} of {all} tokens to read with your next message")
    n_all = preview.n_reused + preview.n_put + preview.n_prefill
    tokens = words.format(n=f"{preview.n_prefill:,}", all=f"{n_all:,}")
    if preview.n_put:
        tokens = tr(", ").join((tokens, put_words(preview.n_put)))
    ms = preview.first_token_ms
    said = tokens if ms is None else tr("{tokens}: {time}").format(tokens=tokens, time=in_seconds(ms))
    return said, "secondary"


def select_excess(field: QPlainTextEdit | QTextEdit, n_fitting: int) -> None:
    """Select all but the first characters of what is typed, so that it can be seen, and deleted."""
    text, cursor = field.toPlainText(), field.textCursor()
    cursor.setPosition(utf16(text))  # positions in a document count UTF-16 units
    cursor.setPosition(utf16(text[:n_fitting]), cursor.MoveMode.KeepAnchor)
    field.setTextCursor(cursor)


class RoomHelp(QWidget):
    """Remedies for a context that is too small, each a link. `shorten`: what the first one does."""

    def __init__(self, kit: Kit, shorten: Callable[[], None]) -> None:
        super().__init__()
        self.links: tuple[QToolButton, ...] = (
            link_button(tr("Shorten"), tip=tr("Selects the part of the text that does not fit"), clicked=shorten),
            link_button(
                tr("Larger context…"),
                tip=tr("Opens the settings at n_ctx and shows what a larger one takes"),
                clicked=kit.act("settings.context"),
            ),
            link_button(
                tr("When full…"),
                tip=tr("What happens then: the oldest messages can be removed from the context"),
                clicked=lambda: kit.actions.run("chat.overflow", at=self.links[2]),
            ),
        )
        boxes.row(*self.links, boxes.Stretch(1), on=self, margins=0, spacing=4)

    def offer_shorten(self, offered: bool) -> None:
        self.links[0].setVisible(offered)

    def offer_selection(self, offered: bool) -> None:
        """The text can be shortened, if any of it fits."""
        self._show_first(tr("Shorten"), tr("Selects the part of the text that does not fit"), offered=offered)

    def offer_first_part(self, offered: bool) -> None:
        """What is attached can be shortened, if any of it fits."""
        tip = tr("Keeps the first part of what is attached, as much as fits beside the text and an answer")
        self._show_first(tr("Keep what fits"), tip, offered=offered)

    def _show_first(self, text: str, tip: str, *, offered: bool) -> None:
        link = self.links[0]
        if link.text() != text:
            link.setText(text)
            link.setToolTip(tip)
        link.setVisible(offered)
