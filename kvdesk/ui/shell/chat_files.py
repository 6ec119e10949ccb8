"""Chats to a file and from one: what is asked of a person before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unicodedata import category

from PySide6.QtCore import QObject, Slot

from kvdesk.chat import ConversationId
from kvdesk.conversations.porting.signs import ENDINGS, looks_like_chats
from kvdesk.graphemes import cut
from kvdesk.translation import tr
from kvdesk.ui.shell.window_parts import WindowParts
from kvdesk.ui.widgets.choose_file import ask_for_file, ask_where_to_save

if TYPE_CHECKING:
    from kvdesk.conversations.porting.export import ExportFormat

_LONGEST_NAME: Final = 80


class ChatFiles(QObject):
    """Asks where, and says so by the window's signals."""

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts, self._window = parts, parts.window
        parts.conversations.export_clicked.connect(self.export_chat)
        parts.conversations.folder_export_clicked.connect(self.export_folder)

    @Slot()
    def import_chats(self) -> None:
        """Ask for a file of chats."""
        kinds = " ".join(f"*{ending}" for ending in ENDINGS)
        chats = tr("Chats of kvdesk, ChatGPT, Open WebUI, LM Studio, Jan, llama.cpp ({endings})").format(endings=kinds)
        if file := ask_for_file(self._window, tr("Import chats"), ";;".join((chats, tr("All files (*)")))):
            self._window.import_requested.emit(str(file))

    @Slot(str)
    def export_chat(self, conversation: str) -> None:
        """Ask where one chat is to be saved."""
        self.export_chats([ConversationId(conversation)])

    @Slot(str)
    def export_folder(self, folder: str) -> None:
        """All chats of a folder, archived ones too."""
        known = self._parts.state.conversations.values()
        self.export_chats([conversation.id for conversation in known if conversation.folder == folder])

    @Slot()
    def export_selected(self) -> None:
        """The chat that is shown."""
        if (selected := self._parts.events.selected) is not None:
            self.export_chats([selected])

    @Slot()
    def export_all(self) -> None:
        """All chats there are, archived ones too."""
        self.export_chats(tuple(self._parts.state.conversations))

    def export_chats(self, conversations: Sequence[ConversationId]) -> None:
        """Ask where these are to be saved; one as Markdown and several as JSON, unless another format is chosen."""
        if not conversations:
            return
        from kvdesk.conversations.porting.export import JSON, MARKDOWN

        if len(conversations) == 1:
            known = self._parts.state.conversations.get(conversations[0])
            title, first = (known.title if known is not None else "") or tr("New chat"), MARKDOWN
            asked = tr("Export the chat")
        else:
            title, first, asked = tr("kvdesk chats"), JSON, tr("Export {n} chats").format(n=f"{len(conversations):,}")
        if file := ask_where_to_save(self._window, asked, _file_name(title) + first.ending, _kinds(first)):
            self._window.chats_save_requested.emit(str(file), tuple(conversations))

    def chats_in(self, files: Iterable[str]) -> str:
        """The first of these files that seems to have chats; "" where none does."""
        return next((file for file in files if looks_like_chats(Path(file))), "")


def _file_name(title: str) -> str:
    """The title as every system takes it for the name of a file."""
    kept = "".join(c if c.isalnum() or category(c).startswith("M") or c in " -_" else "_" for c in title)
    return cut(kept.strip(), _LONGEST_NAME, "").strip() or "chat"


def _kinds(first: ExportFormat) -> str:
    """Qt's filter, with this format first."""
    from kvdesk.conversations.porting.export import EXPORT_FORMATS

    names = {
        ".json": tr("JSON, with everything (*.json)"),
        ".md": tr("Markdown, the branch that is shown (*.md)"),
        ".html": tr("HTML, the branch that is shown (*.html)"),
    }
    ordered = sorted(EXPORT_FORMATS, key=lambda form: form is not first)
    return ";;".join(names[form.ending] for form in ordered)
