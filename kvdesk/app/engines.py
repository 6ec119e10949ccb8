"""Which back end a model needs: the engine in this process or in a child process, or a connection to a server."""

from collections.abc import Callable

from kvdesk.app.worker import local_engine
from kvdesk.backends.base import Backend, Emit
from kvdesk.backends.switch import Maker, Switch
from kvdesk.protocol.model import Endpoint, ModelSource


class Engines:
    """safe_mode: whether files are opened in a child process; key_of: the key of the server at an address. Both are
    asked when a model is opened.
    """

    def __init__(self, safe_mode: Callable[[], bool], key_of: Callable[[str], str]) -> None:
        self._safe_mode, self._key_of = safe_mode, key_of

    def make(self, emit: Emit) -> Backend:
        """The back end of a window."""
        return Switch(emit, self._maker_of)

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
