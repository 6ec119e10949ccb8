"""Servers for the window: the dialog, tests of what is there, keys, and the list of those that are known.

Keys and tests have a thread of their own: a keyring may ask the person for a password, and a server may be slow.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot

from kvdesk.errors import KvdeskError, unexpected
from kvdesk.protocol.chat import Endpoint, ModelLoaded
from kvdesk.protocol.messages import Event
from kvdesk.protocol.servers import ServerFound
from kvdesk.session import SettingsStore
from kvdesk.settings import KnownServer
from kvdesk.store.server_keys import ServerKeys
from kvdesk.ui.shell.main_window import MainWindow

if TYPE_CHECKING:
    from kvdesk.ui.models.connect_dialog import ConnectDialog

MOST_SERVERS: Final = 50
_log = logging.getLogger(__name__)


def find(url: str, key: str) -> ServerFound:
    """What is at this address? Takes as long as the server does. Raises UserError."""
    import asyncio

    from kvdesk.backends.openai.client import client_of
    from kvdesk.backends.openai.kinds import ask
    from kvdesk.backends.openai.problems import problem_of

    async def asked() -> ServerFound:
        async with client_of(url, key) as client:
            return (await ask(client)).found

    try:
        return asyncio.run(asked())
    except Exception as error:
        raise problem_of(error, 15.0) from error


class Servers(QObject):
    """settings: where servers are remembered; open_server: connects one."""

    _found = Signal(int, object)  # number of the test; ServerFound or a KvdeskError
    _key_read = Signal(str, str)
    _key_kept = Signal(str)

    def __init__(
        self,
        window: MainWindow,
        keys: ServerKeys,
        settings: SettingsStore,
        open_server: Callable[[KnownServer], None],
    ) -> None:
        super().__init__(window)
        self._window, self._keys, self._settings, self._open = window, keys, settings, open_server
        self._number = 0  # of the last test: what an older one found is not shown
        self.dialog: ConnectDialog | None = None
        self._found.connect(self._on_found)
        self._key_read.connect(self._on_key_read)
        self._key_kept.connect(self._on_key_kept)
        window.server_requested.connect(self.show_dialog)
        window.reconnect_requested.connect(self._on_reconnect)
        window.remade.connect(self._on_remade)

    @Slot()
    def _on_remade(self) -> None:
        """The dialog has gone with the parts of the window."""
        self.dialog = None
        self._number += 1

    def apply(self, event: Event) -> None:
        """A server that answered is remembered, with the model that was opened there."""
        if isinstance(event, ModelLoaded) and isinstance(event.model.source, Endpoint):
            source = event.model.source
            self._remember(KnownServer(url=source.url, name=source.server, model=source.model))

    @Slot()
    def show_dialog(self) -> None:
        """Ask which server is to be connected."""
        from kvdesk.ui.models.connect_dialog import ConnectDialog  # not at start-up

        if self.dialog is None:
            self.dialog = dialog = ConnectDialog(self._window.theme, self._window)
            dialog.test_clicked.connect(self._on_test_clicked)
            dialog.connect_clicked.connect(self._on_connect_clicked)
            dialog.forget_clicked.connect(self._on_forget_clicked)
            dialog.chosen.connect(self._on_chosen)
        if not self.dialog.isVisible():
            self.dialog.show_servers(self._settings.current.servers)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()

    @Slot(str, str)
    def _on_test_clicked(self, url: str, key: str) -> None:
        self._number += 1
        number = self._number

        def work() -> None:
            try:
                found: object = find(url, key)
            except KvdeskError as error:
                found = error
            except Exception as error:  # noqa: BLE001 - told like any other
                _log.exception("a server could not be tested")
                found = KvdeskError(unexpected(error))
            self._tell(self._found.emit, number, found)

        self._begin(work)

    @Slot(int, object)
    def _on_found(self, number: int, found: ServerFound | KvdeskError) -> None:
        if self.dialog is None or number != self._number:
            return
        if isinstance(found, ServerFound):
            self.dialog.show_found(found)
        else:
            self.dialog.show_problem(str(found), found.detail)

    @Slot(object, str)
    def _on_connect_clicked(self, server: KnownServer, key: str) -> None:
        """The key counts at once; keeping it may take longer than connecting."""
        self._number += 1
        self._keys.use(server.url, key)
        self._remember(server)
        self._open(server)
        self._begin(lambda: self._tell(self._key_kept.emit, self._keys.keep(server.url, key)))

    @Slot()
    def _on_reconnect(self) -> None:
        if servers := self._settings.current.servers:
            self._open(servers[0])

    @Slot(str)
    def _on_forget_clicked(self, url: str) -> None:
        self._settings.change(servers=tuple(one for one in self._settings.current.servers if one.url != url))
        self._begin(lambda: self._keys.keep(url, ""))
        if self.dialog is not None:
            self.dialog.show_servers(self._settings.current.servers)

    @Slot(str)
    def _on_chosen(self, url: str) -> None:
        self._begin(lambda: self._tell(self._key_read.emit, url, self._keys.get(url)))

    @Slot(str, str)
    def _on_key_read(self, url: str, key: str) -> None:
        if self.dialog is not None:
            self.dialog.show_key(url, key)

    @Slot(str)
    def _on_key_kept(self, sentence: str) -> None:
        if sentence:
            self._window.show_result(sentence, "warning")

    def _remember(self, server: KnownServer) -> None:
        """As the last one that was connected."""
        others = tuple(known for known in self._settings.current.servers if known.url != server.url)
        self._settings.change(servers=(server, *others)[:MOST_SERVERS])

    @staticmethod
    def _begin(work: Callable[[], object]) -> None:
        """In a thread that nobody waits for: a keyring or a server may never answer."""
        threading.Thread(target=work, name="kvdesk-server", daemon=True).start()

    @staticmethod
    def _tell(emit: Callable[..., object], *values: object) -> None:
        try:
            emit(*values)
        except RuntimeError:  # the window is gone
            pass
