"""Carries out what takes more than the conversations or the engine alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvdesk.app.controller import Controller
from kvdesk.cache.journal.file import JournalHeader
from kvdesk.cache.journal.recording import Recording
from kvdesk.message import Attachment, ConversationId, MessageId
from kvdesk.protocol.features import Feature
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import CopySequence, Operate
from kvdesk.session.commands import Commands, ReportChoice
from kvdesk.translation import tr

if TYPE_CHECKING:
    from kvdesk.viewmodel.downloads import Offer


class AppCommands(Commands):
    """Given to the window before there is a `controller`; nothing is asked for until `begin`."""

    controller: Controller

    def begin(self, controller: Controller) -> None:
        """Everything is asked of this controller, and of its engine."""
        self.controller, self.conversations = controller, controller.conversations
        self.submit, self.rebuild = controller.host.submit, controller.rebuild

    # --- messages, drafts ---------------------------------------------------------------------------------------------

    def ask_starter(self, name: str) -> None:
        self.controller.furnish()
        self.controller.first.ask(name)

    def undelete_messages(self, conversation: ConversationId) -> None:
        message = self.conversations.removals.undo(conversation)
        if message is not None and conversation == self.controller.store.selected:
            self.controller.window.chat.view.scroll_to(message)

    def compare(self, conversation: ConversationId, message: MessageId) -> None:
        self.controller.branches.compare(conversation, message)

    def attach(self, conversation: ConversationId, attachments: tuple[Attachment, ...]) -> None:
        self.controller.attaching.attach(conversation, attachments)

    def attach_files(self, conversation: ConversationId, paths: Sequence[str]) -> None:
        self.controller.attaching.read(conversation, paths)

    def cancel_reading(self, number: int) -> None:
        self.controller.attaching.cancel(number)

    def read_again(self, conversation: ConversationId, attachment: Attachment, encoding: str) -> None:
        self.controller.attaching.read_again(conversation, attachment, encoding)

    # --- conversations ------------------------------------------------------------------------------------------------

    def new_chat(self) -> None:
        self.controller.chats.new()

    def select(self, conversation: ConversationId) -> None:
        if self.conversations.get(conversation) is not None:
            self.controller.chats.select(conversation)

    def archive(self, conversation: ConversationId, *, archived: bool) -> None:
        """One that is shown gives way to another when it is put away."""
        self.conversations.arrangement.archive(conversation, archived)
        if archived and conversation == self.controller.store.selected:
            self.controller.chats.select_any()

    def move(self, conversation: ConversationId, folder: str) -> None:
        """Where one does not see it go, it is said."""
        controller = self.controller
        self.conversations.arrangement.move(conversation, folder)
        known = self.conversations.get(conversation)
        if known is None or folder not in controller.settings.collapsed_folders:
            return
        title = known.title or tr("New chat")
        where = tr("“{title}” is in the folder “{folder}” now.") if folder else tr("“{title}” is in no folder now.")
        controller.store.notify(where.format(title=title, folder=folder))

    def delete(self, conversation: ConversationId) -> None:
        self.controller.deletions.begin(conversation)

    def undo_delete(self) -> None:
        self.controller.deletions.undo()

    def search(self, text: str) -> None:
        self.controller.search.ask(text)

    def open_found(self, conversation: ConversationId, message: MessageId | None) -> None:
        self.controller.search.go_to(conversation, message)

    def export(self, path: Path, conversations: Sequence[ConversationId]) -> None:
        self.controller.exports.save(path, conversations)

    def import_chats(self, *paths: Path) -> None:
        self.controller.imports.start(*paths)

    def save_unsaved(self, path: Path) -> None:
        self.controller.save_unsaved(path)

    # --- cache --------------------------------------------------------------------------------------------------------

    def cancel_work(self) -> None:
        self.controller.host.cancel()

    def fork(self, conversation: ConversationId, message: MessageId | None, p0: int = -1, p1: int = -1) -> None:
        store = self.controller.store
        source = (store.sequences if store.view is not None else store.written).get(conversation, -1)
        new = self.controller.chats.fork(conversation, message)
        is_whole, is_known = message is None and p1 < 0, message is None or p1 >= 0
        can = Feature.CACHE_OPERATIONS in store.features and store.answer("seq_cp" if is_whole else "partial seq_cp")[0]
        if new is not None and source >= 0 and is_known and can:  # else its next answer shares what it can
            self.submit(Operate(CopySequence(source, new, p0, p1)))

    def save_recording(self, path: Path, recording: Recording) -> None:
        model = self.controller.store.model
        source = model.source if model is not None else None
        name = "" if source is None else source.path.name if isinstance(source, LocalFile) else source.name
        self.controller.saver.save(path, recording, JournalHeader(name, versions()))

    def watch(self, watched: bool) -> None:
        self.controller.watch(watched)

    # --- models, application ------------------------------------------------------------------------------------------

    def open_model(self, path: Path) -> None:
        self.controller.open_known_model(path)

    def open_state(self, path: Path) -> None:
        self.controller.states.open(path)

    def open_embedded(self) -> None:
        self.controller.open_embedded()

    def reconnect(self) -> None:
        self.controller.servers.reconnect()

    def download(self, offer: Offer) -> None:
        self.controller.furnish()
        self.controller.downloads.download(offer)

    def show_about(self) -> None:
        self.controller.help.show_about()

    def report_problem(self, path: Path, choice: ReportChoice) -> None:
        self.controller.help.report(path, choice)


def versions() -> dict[str, str]:
    """The versions that a journal names."""
    from importlib.metadata import PackageNotFoundError, version  # late: they import the package email

    from kvdesk import __version__

    found = {"kvdesk": __version__}
    for name in ("llama-cpp-python", "PySide6-Essentials"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # a packaged application may come without metadata
    return found
