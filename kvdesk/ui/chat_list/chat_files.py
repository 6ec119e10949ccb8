"""Chats to a file and from one: what is asked of a person before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unicodedata import category

from PySide6.QtWidgets import QWidget

from kvdesk.conversations.porting.signs import ENDINGS, looks_like_chats
from kvdesk.graphemes import cut
from kvdesk.message import ConversationId
from kvdesk.translation import tr
from kvdesk.ui.widgets.choose_file import ask_for_files, ask_where_to_save
from kvdesk.ui.widgets.kit import Kit

if TYPE_CHECKING:
    from kvdesk.conversations.porting.export import ExportFormat

_LONGEST_NAME: Final = 80


def ask_for_import(parent: QWidget, kit: Kit) -> None:
    """Ask for files of chats."""
    kinds = " ".join(f"*{ending}" for ending in ENDINGS)
    chats = tr("Chats of kvdesk, ChatGPT, Open WebUI, LM Studio, Jan, llama.cpp ({endings})").format(endings=kinds)
    if files := ask_for_files(parent, tr("Import chats"), ";;".join((chats, tr("All files (*)")))):
        kit.commands.import_chats(*map(Path, files))


def export_folder(parent: QWidget, kit: Kit, folder: str) -> None:
    """All chats of a folder, archived ones too."""
    export_chats(parent, kit, [one.id for one in kit.store.conversations.values() if one.folder == folder])


def export_chats(parent: QWidget, kit: Kit, conversations: Sequence[ConversationId]) -> None:
    """Ask where these are to be saved; one as Markdown and several as JSON, unless another format is chosen."""
    if not conversations:
        return
    from kvdesk.conversations.porting.export import JSON, MARKDOWN

    if len(conversations) == 1:
        known = kit.store.conversations.get(conversations[0])
        title, first = (known.title if known is not None else "") or tr("New chat"), MARKDOWN
        asked = tr("Export the chat")
    else:
        title, first, asked = tr("kvdesk chats"), JSON, tr("Export {n} chats").format(n=f"{len(conversations):,}")
    if file := ask_where_to_save(parent, asked, _file_name(title) + first.ending, _kinds(first)):
        kit.commands.export(file, tuple(conversations))


def chats_in(files: Iterable[str]) -> list[str]:
    """Those of these files and folders that seem to have chats."""
    return [file for file in files if looks_like_chats(Path(file))]


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
