"""Which back end a model needs: the engine in this process or in a child process, or a connection to a server.

Saved states of what was deleted are removed here while no engine has their folder open.
"""

from collections.abc import Callable
from pathlib import Path

from kvdesk.app.worker import local_engine
from kvdesk.backends.base import Backend, Emit
from kvdesk.backends.switch import Maker, Switch
from kvdesk.message import ConversationId, MessageId
from kvdesk.paths import states_dir
from kvdesk.protocol.model import Endpoint, ModelSource
from kvdesk.store.writer import StoreWriter


class Engines:
    """safe_mode: whether files are opened in a child process; key_of: the key of the server at an address. Both are
    asked when a model is opened.
    """

    def __init__(self, safe_mode: Callable[[], bool], key_of: Callable[[str], str]) -> None:
        self._safe_mode, self._key_of = safe_mode, key_of

    def make(self, emit: Emit) -> Backend:
        """The back end of a window."""
        return Switch(emit, self._maker_of, _forget)

    def _maker_of(self, source: ModelSource | None) -> Maker:
        if isinstance(source, Endpoint):
            return self._server
        return self._child if self._safe_mode() else local_engine

    def _child(self, emit: Emit) -> Backend:
        from kvdesk.backends.process.backend import ProcessBackend

        return ProcessBackend(emit)

    def _server(self, emit: Emit) -> Backend:
        from kvdesk.backends.openai.backend import OpenAIBackend

        return OpenAIBackend(emit, self._key_of)


def forget_deleted(store: StoreWriter) -> None:
    """Remove saved states of what the database does not have: kvdesk was ended before the engine heard that it was
    deleted. For a start, before any back end runs. Waits for the database. Raises StoreError.
    """
    folder = states_dir()
    if folder.is_dir():
        from kvdesk.backends.local.cache_manager.forgotten_states import forget_unknown

        forget_unknown(folder, lambda chat, messages: store.ask(lambda stored: stored.has(chat, messages)).result())


def _forget(folder: Path, conversation: ConversationId, messages: tuple[MessageId, ...] | None) -> None:
    from kvdesk.backends.local.cache_manager.forgotten_states import forget_saved

    forget_saved(folder, conversation, messages)
