"""What can be asked of the parts that a build can leave out: the laboratory, models and their hub, servers, serving.

Their controllers in `kvdesk.app` carry it out. These classes do nothing, as `Commands`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kvdesk.message import ConversationId, MessageId
from kvdesk.settings import KnownServer, ToolGrant, ToolServer

if TYPE_CHECKING:
    from kvdesk.protocol.experiment import Request
    from kvdesk.viewmodel.downloads import Offer
    from kvdesk.viewmodel.lab import PastResult


class LabCommands:
    """Of the laboratory."""

    def ask_needs(self, request: Request) -> None:
        """Ask what an experiment would take: `LabPage.show_needs`."""

    def begin(self, request: Request) -> None:
        """Run an experiment."""

    def cancel(self, why: str = "") -> None:
        """End the running one. `why`: a sentence, if the user did not end it."""

    def ask_results(self, experiment_id: str) -> None:
        """Ask for its past results: `LabPage.show_results`."""

    def open_report(self, past: PastResult) -> None:
        """Open the report of a result."""

    def delete_results(self, results: tuple[PastResult, ...]) -> None:
        """Move results to the trash."""


class ModelCommands:
    """Of the models on this computer."""

    def refresh(self) -> None:
        """Look through the folders again."""

    def add_folder(self, folder: Path) -> None:
        """List the models of a folder too."""

    def drop_folder(self, folder: Path) -> None:
        """List them no more; the files stay."""

    def mark(self, path: Path, *, favourite: bool) -> None:
        """Mark a model as a favourite, or not."""

    def delete(self, path: Path) -> None:
        """Delete the files of a model: the user has said yes."""


class HubCommands:
    """Of the model hub, and of downloads by their keys."""

    def fill(self) -> None:
        """The part is shown; the network is not used yet."""

    def search(self, words: str) -> None:
        """Search for models, or show those of a repository that is named. "": what is asked for is not wanted."""

    def list_files(self, repo: str) -> None:
        """Ask which models a repository has."""

    def get(self, offer: Offer) -> None:
        """Download a model."""

    def pause(self, key: str) -> None:
        """Pause a download."""

    def resume(self, key: str) -> None:
        """Go on with it."""

    def drop(self, key: str) -> None:
        """Cancel it, or remove it from the list."""

    def open(self, key: str) -> None:
        """Open the model that was downloaded."""

    def set_access(self, endpoint: str, token: str | None) -> None:
        """Address of the hub, and the token; None: as it is."""


class ServerCommands:
    """Of servers that answer. A key of None is the one that is known."""

    def test(self, url: str, key: str | None) -> None:
        """Ask what is there: `ConnectSection.show_found` or `show_problem`."""

    def connect_to(self, server: KnownServer, key: str | None) -> None:
        """Open its model."""

    def forget(self, url: str) -> None:
        """Remove it from the list, and delete its key."""

    def read_key(self, url: str) -> None:
        """Ask for the key of a known server: `ConnectSection.show_key`."""


ToolDecision = Literal["once", "tool", "server", "deny"]
"""Of a user about a call: allowed once, this tool for good, all tools of this server for good, not allowed."""


class ToolCommands:
    """Of tool servers, by their names."""

    def start(self, name: str) -> None:
        """Start a server, or connect to it; the user is asked first unless it was allowed permanently."""

    def stop(self, name: str) -> None:
        """End it."""

    def sign_out(self, name: str) -> None:
        """End it, and delete the token of its address from the keyring."""

    def add(self, server: ToolServer, values: Mapping[str, str]) -> None:
        """Add a server, or replace that of its name. values: of its variables or headers; they are kept as keys."""

    def forget(self, name: str) -> None:
        """Remove it from the list, with its permissions."""

    def import_file(self, path: Path) -> None:
        """Add the servers that another program's file lists."""

    def leave_out(self, name: str, tools: tuple[str, ...]) -> None:
        """No chat is offered these tools of it."""

    def revoke(self, grant: ToolGrant) -> None:
        """Ask again from now on."""

    def switch(self, conversation: ConversationId, name: str, *, on: bool) -> None:
        """Whether a chat's answers may call its tools."""

    def decide(self, message: MessageId, decision: ToolDecision) -> None:
        """Answer the question about the call whose result this message is."""


class ServeCommands:
    """Of serving other programs."""

    def begin(self) -> None:
        """Serve, with the settings as they are now."""

    def end(self) -> None:
        """Stop serving."""

    def renew_key(self) -> None:
        """Make another key."""
