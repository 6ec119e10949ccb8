"""What a user can ask of the application. Widgets call only this.

What conversations do is a method of `kvdesk.conversations`, what the engine does is sent to it, and both are called
directly. The rest are the typed methods here, which `kvdesk.app.commands` carries out, and those of `session.features`.
All return at once; the outcome is in the `Store`. Nothing happens without an application, so a window can be shown
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvdesk.cache.journal.recording import Recording
from kvdesk.conversations.service import ConversationService
from kvdesk.message import Attachment, ConversationId, MessageId
from kvdesk.protocol.messages import Command
from kvdesk.session.features import HubCommands, LabCommands, ModelCommands, ServeCommands, ServerCommands, ToolCommands
from kvdesk.settings import ContextSettings, Settings
from kvdesk.values import dataclass

if TYPE_CHECKING:
    from kvdesk.viewmodel.downloads import Offer


@dataclass(frozen=True, slots=True)
class ReportChoice:
    """What a user allows in a report besides versions, settings without texts and what the model's cache can do.

    texts    the chat that is open, and the texts that are otherwise left out of logs, settings and journal
    folders  whole paths
    """

    logs: bool = True
    journal: bool = True
    texts: bool = False
    folders: bool = False


class Commands:
    """The application replaces these attributes: look them up at each call.

    conversations  messages, answers, queues, names and folders
    submit         sends a command to the engine: `Host.submit`
    rebuild        a new context with these settings, which are remembered once it was made; how much of the cells is
                   kept: see `RebuildContext`
    """

    def __init__(self) -> None:
        self.conversations = ConversationService(lambda _command: None, lambda _answer: None, Settings)
        self.submit: Callable[[Command], None] = lambda _command: None
        self.rebuild: Callable[[ContextSettings, str], None] = lambda _context, _keep: None
        self.lab, self.models, self.hub = LabCommands(), ModelCommands(), HubCommands()
        self.servers, self.serving = ServerCommands(), ServeCommands()
        self.tools = ToolCommands()

    # --- messages, drafts ---------------------------------------------------------------------------------------------

    def ask_starter(self, name: str) -> None:
        """Ask the questions of a card of the empty chat."""

    def undelete_messages(self, conversation: ConversationId) -> None:
        """Restore what was deleted last."""

    def compare(self, conversation: ConversationId, message: MessageId) -> None:
        """Show this answer and its alternatives side by side."""

    def attach(self, conversation: ConversationId, attachments: tuple[Attachment, ...]) -> None:
        """These are attached to the draft from now on."""

    def attach_files(self, conversation: ConversationId, paths: Sequence[str]) -> None:
        """Read files as attachments of the draft."""

    def cancel_reading(self, number: int) -> None:
        """Stop reading a file."""

    def read_again(self, conversation: ConversationId, attachment: Attachment, encoding: str) -> None:
        """Read the file of an attachment in another encoding."""

    # --- conversations ------------------------------------------------------------------------------------------------

    def new_chat(self) -> None:
        """Show an empty conversation."""

    def select(self, conversation: ConversationId) -> None:
        """Show a conversation."""

    def archive(self, conversation: ConversationId, *, archived: bool) -> None:
        """Archive it, or take it out of the archive."""

    def move(self, conversation: ConversationId, folder: str) -> None:
        """Into a folder; "": out of its folder."""

    def delete(self, conversation: ConversationId) -> None:
        """Delete it; for some seconds that can be undone."""

    def undo_delete(self) -> None:
        """Restore the conversation that was deleted last."""

    def search(self, text: str) -> None:
        """Search all chats."""

    def open_found(self, conversation: ConversationId, message: MessageId | None) -> None:
        """Show a conversation at a message that the search found."""

    def export(self, path: Path, conversations: Sequence[ConversationId]) -> None:
        """Write conversations to a file, in the format of its ending."""

    def import_chats(self, *paths: Path) -> None:
        """Ask which chats of files and folders are to be added."""

    def save_unsaved(self, path: Path) -> None:
        """Also write the messages that the disk does not accept to this file."""

    # --- cache --------------------------------------------------------------------------------------------------------

    def cancel_work(self) -> None:
        """Cancel what `Working` reports, or the load of a model."""

    def fork(self, conversation: ConversationId, message: MessageId | None, p0: int = -1, p1: int = -1) -> None:
        """A new conversation with the messages up to this one (None: all) that shares the cells of `[p0, p1)` if
        that can be done. p0 -1: from the start; p1 -1: to the end, or, of a message: unknown, and nothing is shared.
        """

    def save_recording(self, path: Path, recording: Recording) -> None:
        """Write a journal as JSON lines."""

    def watch(self, watched: bool) -> None:
        """Whether the cache is shown: snapshots are made only then."""

    # --- models, application ------------------------------------------------------------------------------------------

    def open_model(self, path: Path) -> None:
        """Open a model file."""

    def open_state(self, path: Path) -> None:
        """Show a saved KV cache in its own window."""

    def open_embedded(self) -> None:
        """Open the model that comes with kvdesk."""

    def reconnect(self) -> None:
        """Connect again to the server that was connected last."""

    def download(self, offer: Offer) -> None:
        """Download the model that the empty chat offers."""

    def show_about(self) -> None:
        """Show versions and licences."""

    def report_problem(self, path: Path, choice: ReportChoice) -> None:
        """Write a report of a problem."""
